"""Detects conflicts (``on_conflict = "overwrite"``): compares each row before its change, and records differing rows.

The servers find a row by its key alone and overwrite its values. So the target's rows are first compared with the
before images, locked, in the block's own transaction. Missing rows and duplicate keys are errors of the row writer,
after which ``conflict_overwrite`` writes the block. Of several changes of a row in one item only the first is compared:
the later ones find the values that this item has written. The first may find some, too: where a foreign key carries a
change of a parent in the same item to the row, its columns are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final

from binlane.apply.rows.before_image import BeforeImages
from binlane.apply.rows.sql import KnownTable, SqlRows
from binlane.apply.rows.table_guard import users_tables
from binlane.apply.rows.target_row import is_full, key_in, rows_where, spelled
from binlane.apply.session.innodb_dictionary import ChildColumn, child_columns
from binlane.binlog.row_values import ABSENT, Absent, Image
from binlane.errors import DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import Item, ItemKind, TableKey
from binlane.schema.model import Generated
from binlane.state.records.conflicts import Conflict, ConflictKind

_CURRENT: Final = frozenset({"2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999", (1 << 64) - 1})
"""The end of a current row: the greatest TIMESTAMP up to MariaDB 11.4 and from 11.5 on, and the greatest transaction
id."""
_CASCADING: Final = ("CASCADE", "SET NULL")
RowName = tuple[TableKey, tuple[object, ...]]
"""A row of the log: its table and the values of its key."""


class NeedsRewriteError(DriftError):
    """A row has other values, and this change of it is written alone or not at all: the logged part does not give the
    whole row after it, or the change would reach rows of other tables."""


@dataclass(frozen=True, slots=True)
class _FirstChange:
    """A change whose row is to be compared."""

    table: KnownTable
    change: str
    before: Image
    after: Image | None
    needs_before: bool
    """The after image is partial (JSON differences, or changed columns only), and the before image is complete."""


@dataclass(frozen=True, slots=True)
class Children:
    """The tables whose foreign keys refer to one table: what they do with a change of its rows is neither in the log
    nor listed, in these tables and in those that refer to them in turn."""

    table: KnownTable
    compared: BeforeImages
    columns: tuple[ChildColumn, ...] | None
    """None: the account may not see all of them."""

    @classmethod
    def of(cls, sql: SqlRows, table: KnownTable) -> Children:
        """As they are now on the target."""
        compared = BeforeImages(sql.session, sql.builder(table))
        return cls(table, compared, child_columns(sql.session, table.bound.key))

    @property
    def any(self) -> str | None:
        """One of them, for messages; None if there is none."""
        if self.columns is None:
            return _HIDDEN
        return f"{self.columns[0].child} refers to the table by a foreign key" if self.columns else None

    def reached_by(self, before: Image, after: Image | None) -> str | None:
        """Why they may not be where the log's change would have found them: the row with the key of ``before`` has
        another value in a column that they refer to. None if they are."""
        columns = self.table.target.columns
        if self.columns is None:  # at most those of keys
            keyed = {part.name.lower() for key in self.table.target.keys for part in key.columns if part.name}
            found = dict.fromkeys(keyed, _HIDDEN)
        else:
            found = {each.column: f"{each.child} refers to it by a foreign key" for each in reversed(self.columns)}
        for number, column in enumerate(columns):
            who = found.get(column.name.lower())
            if who is not None and self.compared.has_other_than(before, after, number):
                key = dict(spelled(self.table, before, self.table.bound.primary_key))
                return (
                    f"the row {key} has another value of {column.name} than in the log, and {who}: what its change "
                    "does to rows there would be no change of the source; correct these rows by hand"
                )
        return None


_HIDDEN: Final = (
    "the account does not see whether a table of another database refers to it by a foreign key (GRANT PROCESS ON *.* "
    "shows it)"
)


@dataclass(slots=True)
class RowComparison:
    """Compares the rows of items before a ``BlockWriter`` writes them."""

    sql: SqlRows
    """Knows the tables; writes nothing."""
    note: Callable[[Conflict], None]
    """Records a conflict in the open transaction."""
    transactions: Callable[[int], Iterator[tuple[int, Sequence[Item]]]]
    """The transactions of the block that ends with a seqno, each with its items; empty for a block of one."""

    def forget_tables(self) -> None:
        """Read the properties of tables anew."""
        self.sql.forget_tables()

    def compare(self, item: Item, seqno: int) -> None:
        """Compare the rows of an item and note those that differ; nothing is written. The session's mode and time zone
        are the usual ones then, whatever they were before. Raises DriftError for rows that can be neither recorded nor
        overwritten, ApplyError for rows that cannot be compared, and the driver's errors."""
        users_tables(item.payload, self.sql.guard)
        self.sql.enter()
        self._compare(item, seqno)
        self.sql.leave()

    def _compare(self, item: Item, seqno: int) -> None:
        changes = self._first_changes(item, seqno)
        parents = {one.table.bound.key for one in changes.values()}
        by_table: dict[int, list[tuple[RowName, _FirstChange]]] = {}
        for name, one in changes.items():
            by_table.setdefault(id(one.table), []).append((name, one))
        differing: dict[RowName, _FirstChange] = {}
        for group in by_table.values():
            table = group[0][1].table
            compared = BeforeImages(self.sql.session, self.sql.builder(table))
            if not table.bound.primary_key:
                self._check_equal_rows(table, compared, [one for _, one in group])
                continue
            names = {id(one.before): name for name, one in group}
            cascaded = _cascaded(table, parents)
            for image in compared.differing(one.before for _, one in group):
                if cascaded and next(compared.differing((_without(image, cascaded),)), None) is None:
                    continue  # the item itself changes the column, as it did on the source
                differing[names[id(image)]] = changes[names[id(image)]]
        children: dict[TableKey, Children] = {}
        for one in differing.values():
            key = one.table.bound.key
            if key not in children:
                children[key] = Children.of(self.sql, one.table)
            if why := children[key].reached_by(one.before, one.after):
                self.sql.leave()
                raise NeedsRewriteError(f"{key}: {why}")
        if differing:
            self._note(differing, self._seqnos(frozenset(differing), seqno), seqno)

    def _first_changes(self, item: Item, seqno: int) -> dict[RowName, _FirstChange]:
        """The item's first change of each row, by row."""
        changes: dict[RowName, _FirstChange] = {}
        touched: set[RowName] = set()
        for table, event, _ in self.sql.events(item.payload, seqno):
            key = row_key(table)
            if not key:
                continue
            for change in table.decoder.changes(event):
                if change.before is not None and _is_history(table, change.before):
                    continue
                name = None if change.before is None else _name(table, key, change.before)
                if change.before is not None and name is not None and name not in touched:
                    part = change.after is not None and not is_full(table, change.after)
                    changes[name] = _FirstChange(
                        table,
                        change.kind.value,
                        change.before,
                        change.after,
                        part and is_full(table, change.before),
                    )
                for image in (change.before, change.after):
                    touched |= {found for found in [image and _name(table, key, image)] if found}
        return changes

    def _check_equal_rows(self, table: KnownTable, compared: BeforeImages, group: Sequence[_FirstChange]) -> None:
        key = row_key(table)
        for one in group:
            if not compared.has_equal_row(one.before, key):
                found = spelled(table, one.before, key)
                self.sql.leave()
                raise DriftError(
                    f"{table.bound.key}: no row equals the log's image before its {one.change} ({dict(found)}); "
                    "the table has no primary key, so the row is not overwritten: correct the row by hand"
                )

    def _seqnos(self, wanted: Set[RowName], seqno: int) -> Mapping[RowName, int]:
        """Row -> seqno of the first transaction of the block that changes it."""
        found: dict[RowName, int] = {}
        for number, items in self.transactions(seqno):
            for item in items:
                if item.kind is not ItemKind.ROWS:
                    continue
                for name in wanted & self._first_changes(item, number).keys():
                    found.setdefault(name, number)
            if len(found) == len(wanted):
                break
        return found

    def _note(self, differing: Mapping[RowName, _FirstChange], seqnos: Mapping[RowName, int], seqno: int) -> None:
        for name, one in differing.items():
            if one.needs_before:
                self.sql.leave()
                raise NeedsRewriteError(
                    f"{one.table.bound.key}: the row {dict(spelled(one.table, one.before, row_key(one.table)))} "
                    "differs from the log's image before the change, which contains only some of the columns"
                )
            builder = self.sql.builder(one.table)
            [row] = rows_where(self.sql.session, one.table, builder.name, builder.condition(one.before)[0])
            place = seqnos.get(name, seqno)
            key = key_in(one.table, row)
            self.note(Conflict(place, one.table.bound.key, one.change, ConflictKind.DIFFERENT, key, row))


def _cascaded(table: KnownTable, parents: Set[TableKey]) -> frozenset[int]:
    """The columns of the table that its foreign keys change with the rows of ``parents``: MariaDB, and MySQL before
    9.6, log nothing of it, but later images of the row have the new values."""
    names = {
        name
        for key in table.target.foreign_keys
        if key.parent in parents and not {key.on_update, key.on_delete}.isdisjoint(_CASCADING)
        for name in key.columns
    }
    primary = table.bound.primary_key
    return frozenset(n for n, column in enumerate(table.target.columns) if column.name in names and n not in primary)


def _without(image: Image, columns: Set[int]) -> Image:
    return tuple(ABSENT if number in columns else value for number, value in enumerate(image))


def _is_history(table: KnownTable, image: Image) -> bool:
    """Whether a row of a system-versioned table is an earlier version, which DELETE HISTORY removes. Queries by the key
    alone find the current row instead, and the server itself finds an earlier version by key and end."""
    end = None if table.bound.row_end is None else image[table.bound.row_end]
    return end is not None and not isinstance(end, Absent) and end not in _CURRENT


def row_key(table: KnownTable) -> tuple[int, ...]:
    """Columns by which the servers find a row without comparing other columns; empty if there are none."""
    if table.bound.primary_key:
        return table.bound.primary_key
    places = {column.name: number for number, column in enumerate(table.target.columns)}
    for key in table.target.keys:
        numbers = tuple(places[part.name] for part in key.columns if part.name in places and part.prefix is None)
        columns = [table.target.columns[number] for number in numbers]
        whole = key.unique and len(numbers) == len(key.columns)
        if whole and not any(one.nullable or one.generated not in (None, Generated.STORED) for one in columns):
            return numbers
    return ()


def _name(table: KnownTable, key: tuple[int, ...], image: Image) -> RowName | None:
    values = tuple(image[number] for number in key)
    return None if any(isinstance(value, Absent) for value in values) else (table.bound.key, values)
