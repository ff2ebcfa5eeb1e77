"""Row changes of a payload written by few statements, each with many rows of a table.

Only for tables and events where this has the effect of one statement a row: InnoDB tables with a primary key and
without foreign keys, triggers and versions, events with whole images and the usual checks. ``sql`` writes all others,
and writes these again row by row where a statement does not find the rows that it must.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar

import numpy as np

from binlane.apply.rows.change_order import ChangeOrder, Step
from binlane.apply.rows.statements import LARGEST_SET, MAX_ROWS, RowStatement, chunks, exact_set
from binlane.binlog.rows import CHECKS_OFF, COMPRESSED_ROWS, ROWS_KINDS, RowsFlag, RowsKind
from binlane.binlog.table_map import FLAGS_IN_BODY, TableMap
from binlane.binlog.types.columns import Column
from binlane.binlog.types.literals import Document, identifier, other_documents
from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import DECIMAL, INTEGER, NUMBERED, STRING, TEXT
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.vector.arrays import Bytes, Ints, distinct
from binlane.binlog.vector.column_literals import ColumnLiterals, values_of
from binlane.binlog.vector.frames import Frames, TableIndex, row_images, table_layouts
from binlane.binlog.vector.row_events import DELETE, INSERT, KINDS, UPDATE, row_counts
from binlane.binlog.wire import HEADER, EventType
from binlane.garbage import uncollected
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, RowCounts, TableKey
from binlane.schema.binding import BoundTable
from binlane.schema.model import Generated, Table, own_reason

Row: TypeAlias = tuple[str, ...]
"""Literals of some columns of a row."""
_T = TypeVar("_T")
_FIRST_WITH_VALUES: Final = {Flavor.MARIADB: (10, 3, 3), Flavor.MYSQL: (8, 0, 19)}
"""The first versions that know a list of rows as a table."""
_RENAMED_CHARSETS: Final = frozenset({"utf8mb3"})
"""Character sets whose collations have another name on older servers."""
_FEWEST_JOINED: Final = 2
_MAX_CONDITIONS: Final = 100
"""Most keys of several columns in a DELETE: the range optimizer's time for a row grows with their number."""
_LARGEST_SIGNED: Final = (1 << 63) - 1
_LONGEST_SIGNED: Final = len(str(_LARGEST_SIGNED))
_NAME: Final = "block"
_FEWEST: Final = 4
"""Fewer row changes are not worth the arrays."""
_KIND: Final = np.full(256, -1, np.int64)
"""The kind of a row by its event's type, as in ``row_events``; -1: not a plain rows event."""
for _code, _kind in ROWS_KINDS.items():
    if _code not in COMPRESSED_ROWS and _code != EventType.PARTIAL_UPDATE_ROWS:
        _KIND[_code] = {RowsKind.DELETE: DELETE, RowsKind.UPDATE: UPDATE, RowsKind.INSERT: INSERT}[_kind]
_STEPS: Final = {DELETE: Step.DELETE, UPDATE: Step.UPDATE, INSERT: Step.INSERT}


@dataclass(frozen=True, slots=True)
class MultiRowTable:
    """A table whose rows may be written many at a time."""

    table: TableKey
    name: str
    """Quoted for a statement."""
    columns: tuple[str, ...]
    """The columns' names, quoted."""
    literals: ColumnLiterals
    """One object for all tables with the same columns."""
    key: tuple[int, ...]
    """Columns of the primary key."""
    written: tuple[int, ...]
    """The columns that a statement sets, ascending."""
    unique: tuple[int, ...]
    """Columns of other unique keys; all columns if the log does not have a key's values."""
    keys_meet: bool
    """``ChangeOrder.keys_meet``."""
    members: tuple[int, ...]
    """Places in ``written`` of ENUM columns, whose number 0 strict mode refuses."""
    sets: tuple[int, ...]
    """Places in ``written`` of SET columns."""
    documents: Mapping[int, bool]
    """Places in ``written`` of MySQL's JSON columns, and whether each takes NULL."""
    key_by_bytes: bool
    """Whether a row that is found by its key has the key's bytes."""
    joined: JoinedRows | None
    """How updates of many rows are written; None: row by row."""

    @classmethod
    def of(
        cls, bound: BoundTable, target: Table, literals: ColumnLiterals, server: Flavor, version: tuple[int, int, int]
    ) -> MultiRowTable | None:
        """None for a table whose changes have to keep their order, or whose rows are not found by a whole primary
        key. ``server``, ``version``: of the target."""
        primary = target.primary_key
        is_whole = primary is not None and all(part.prefix is None for part in primary.columns)
        if own_reason(target) is not None or target.triggers or not is_whole or not bound.primary_key:
            return None
        if not bound.written.issuperset(bound.primary_key):
            return None
        written, unique, columns = tuple(sorted(bound.written)), _other_unique(target), bound.columns
        return cls(
            table=bound.key,
            name=bound.name,
            columns=tuple(identifier(column.label) for column in columns),
            literals=literals,
            key=bound.primary_key,
            written=written,
            unique=unique,
            keys_meet=bool(unique) or not all(_is_key_by_bytes(columns[number]) for number in bound.primary_key),
            members=tuple(place for place, n in enumerate(written) if columns[n].type_code == ColumnType.ENUM),
            sets=tuple(place for place, n in enumerate(written) if columns[n].type_code == ColumnType.SET),
            documents={
                place: target.columns[n].nullable
                for place, n in enumerate(written)
                if server is Flavor.MYSQL and target.columns[n].data_type == "json"
            },
            key_by_bytes=all(_is_key_by_bytes(columns[number]) for number in bound.primary_key),
            joined=JoinedRows.of(bound, target, server) if version >= _FIRST_WITH_VALUES[server] else None,
        )

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for tables whose rows can be read together."""
        return id(self.literals), self.key, self.written, self.unique

    def inserts(self, rows: Sequence[Row], max_bytes: int) -> Iterator[RowStatement]:
        """Statements that insert rows. ``rows``: the literals of the columns that are written."""
        names = ", ".join(self.columns[number] for number in self.written)
        head = f"INSERT INTO {self.name} ({names}) VALUES "
        for tuples in chunks((f"({', '.join(row)})" for row in rows), max_bytes):
            yield RowStatement(
                self.table, head + ", ".join(tuples), RowsKind.INSERT, len(tuples), self._is_lenient(rows)
            )

    def updates(self, rows: Sequence[Row], max_bytes: int) -> Iterator[RowStatement]:
        """Statements that set all columns of rows, found by their primary keys."""
        lenient, places = self._is_lenient(rows), [self.written.index(number) for number in self.key]
        if (
            self.joined is None
            or len(rows) < _FEWEST_JOINED
            or any(_is_beyond_signed(row[place]) for row in rows for place in (*places, *self.sets))
        ):
            yield from (self.update(tuple(row[place] for place in places), row) for row in rows)
            return
        found = " AND ".join(
            f"t.{self.columns[n]} = v.c{place}{collation}"
            for n, place, collation in zip(self.key, places, self.joined.collations, strict=True)
        )
        # a key of other bytes that is equal by its collation gets the source's
        others = [number for number in self.written if number not in self.key]
        set_columns = (others or self.key) if self.key_by_bytes else self.written
        sets = ", ".join(f"t.{self.columns[n]} = v.c{self.written.index(n)}" for n in set_columns)
        names = ", ".join(f"c{place}" for place in range(len(self.written)))
        head, end = self.joined.head.format(names), self.joined.end.format(names)
        join = f"{end} STRAIGHT_JOIN {self.name} AS t ON {found} SET "
        named = [
            Document(f"t.{self.columns[self.written[place]]}", f"v.c{place}", nullable)
            for place, nullable in self.documents.items()
        ]
        lists, where = other_documents(named) if named else ((), "")
        for tuples in chunks((f"{self.joined.row}({', '.join(row)})" for row in rows), max_bytes):
            joined = f"{head}{', '.join(tuples)}{join}"
            first = tuple(f"{joined}{each} WHERE {where}" for each in lists)
            yield RowStatement(self.table, f"{joined}{sets}", RowsKind.UPDATE, len(tuples), lenient, first=first)

    def update(self, key: Row, row: Row) -> RowStatement:
        """A statement that sets all columns of the row with this key."""
        sets = ", ".join(f"{self.columns[n]} = {value}" for n, value in zip(self.written, row, strict=True))
        sql = f"UPDATE {self.name} SET {sets} WHERE {self._condition(key)}"
        named = [
            Document(self.columns[self.written[place]], row[place], nullable)
            for place, nullable in self.documents.items()
            if row[place] != "NULL"
        ]
        lists, where = other_documents(named) if named else ((), "")
        first = tuple(f"UPDATE {self.name} SET {each} WHERE {self._condition(key)} AND {where}" for each in lists)
        return RowStatement(self.table, sql, RowsKind.UPDATE, 1, self._is_lenient((row,)), first=first)

    def deletes(self, keys: Sequence[Row], max_bytes: int) -> Iterator[RowStatement]:
        """Statements that delete the rows with these primary keys."""
        by_list = len(self.key) == 1
        if by_list and self.sets:
            by_list = not any(self._is_beyond_set(self.key[0], literal) for (literal,) in keys)
        if by_list:
            head, between, end = f"DELETE FROM {self.name} WHERE {self.columns[self.key[0]]} IN (", ", ", ")"
            conditions: Iterator[str] = (literal for (literal,) in keys)
        else:
            head, between, end = f"DELETE FROM {self.name} WHERE ", " OR ", ""
            conditions = (f"({self._condition(key)})" for key in keys)
        for group in chunks(conditions, max_bytes, MAX_ROWS if by_list else _MAX_CONDITIONS):
            yield RowStatement(self.table, f"{head}{between.join(group)}{end}", RowsKind.DELETE, len(group))

    def _condition(self, key: Row) -> str:
        return " AND ".join(
            f"{exact_set(self.columns[n]) if self._is_beyond_set(n, value) else self.columns[n]} = {value}"
            for n, value in zip(self.key, key, strict=True)
        )

    def _is_beyond_set(self, number: int, literal: str) -> bool:
        return any(self.written[place] == number for place in self.sets) and int(literal) > LARGEST_SET

    def _is_lenient(self, rows: Iterable[Row]) -> bool:
        return bool(self.members) and any(row[place] == "0" for row in rows for place in self.members)


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """The form of an UPDATE that joins a table with a list of rows; ``{}`` are the names of the list's columns.

    The list comes first, so the server looks up each of its rows in the table's primary key (docs/decisions/0015).
    """

    head: str
    row: str
    """Before each row of the list."""
    end: str
    collations: tuple[str, ...]
    """Behind each column of the key: a list's texts have the collation of their character set."""

    @classmethod
    def of(cls, bound: BoundTable, target: Table, server: Flavor) -> JoinedRows | None:
        """None if the server would not find a row of the list by the key."""
        key = [(bound.columns[number], target.columns[number]) for number in bound.primary_key]
        kinds = {sql_type(column.data_type).values for _, column in key}
        if not kinds <= {INTEGER, DECIMAL, TEXT, STRING} or any(c.charset in _RENAMED_CHARSETS for _, c in key):
            return None
        collations = tuple(f" COLLATE {theirs.collation}" if ours.is_text else "" for ours, theirs in key)
        if server is Flavor.MYSQL:
            return cls("UPDATE (VALUES ", "ROW", ") AS v ({})", collations)
        return cls("UPDATE (WITH w ({}) AS (VALUES ", "", ") SELECT * FROM w) AS v", collations)


def _is_beyond_signed(literal: str) -> bool:
    """Whether a number is larger than any signed integer: with smaller ones a list's column would be DECIMAL, which no
    key finds, and of which a SET loses the highest bit."""
    return len(literal) >= _LONGEST_SIGNED and literal.isdigit() and int(literal) > _LARGEST_SIGNED


def _is_key_by_bytes(column: Column) -> bool:
    """Whether different bytes are different keys."""
    kind = sql_type(column.data_type or "").values
    return kind in (INTEGER, DECIMAL, NUMBERED, TEXT) or (kind is STRING and not column.is_text)


def _other_unique(table: Table) -> tuple[int, ...]:
    places = {column.name: place for place, column in enumerate(table.columns)}
    hidden = {column.name for column in table.columns if column.generated is Generated.VIRTUAL}
    found = set[int]()
    for key in table.keys:
        if not key.unique or key.primary:
            continue
        for part in key.columns:
            if part.name is None or part.name in hidden or part.name not in places:
                return tuple(places.values())
            found.add(places[part.name])
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive rows events of a payload."""

    events: Ints
    changes: MultiRowChanges | None
    """None: to be written event by event."""


def stretches(
    frames: Frames, index: TableIndex, maps: Sequence[TableMap], tables: Sequence[MultiRowTable | None], max_bytes: int
) -> Iterator[Stretch]:
    """A payload's rows events in order. ``maps`` and ``tables``: by number of the table; None: to be written event by
    event. Raises as ``row_images``."""
    events = np.flatnonzero((index.number >= 0) & (frames.type_code != EventType.TABLE_MAP))
    flags = frames.data[frames.offset[events] + HEADER.size + FLAGS_IN_BODY]
    may = np.array([table is not None for table in tables], np.bool_)[index.number[events]]
    may &= (flags & CHECKS_OFF == 0) & (_KIND[frames.type_code[events]] >= 0)
    images, first = np.empty((0, 4), np.int64), np.zeros(events.size + 1, np.int64)
    if may.any():
        chosen = frames.select(events[may])
        counts, images, lacking = row_images(chosen, index.number[events[may]], table_layouts(maps), _NAME)
        first[1:][may] = counts
        may[may] = ~lacking
    first = np.cumsum(first)
    logged = flags & RowsFlag.CASCADES_LOGGED
    edges = [0, *(np.flatnonzero(np.diff(may) | (np.diff(logged) != 0)) + 1).tolist(), events.size]
    for start, end in pairwise(edges):
        part, changes = events[start:end], None
        rows = slice(int(first[start]), int(first[end]))
        if start < end and may[start] and rows.stop - rows.start >= _FEWEST:
            times = np.diff(first[start : end + 1])
            changes = MultiRowChanges(
                tables, np.repeat(index.number[part], times), np.repeat(_KIND[frames.type_code[part]], times),
                images[rows], int(logged[start]), max_bytes,
            )  # fmt: skip
        yield Stretch(part, changes)


@dataclass(slots=True)
class MultiRowChanges:
    """The row changes of consecutive rows events of tables that may be written many rows at a time."""

    tables: Sequence[MultiRowTable | None]
    """By number; None for tables without a row here."""
    number: Ints
    """The table of each row."""
    kind: Ints
    """As in ``row_events``."""
    images: Ints
    """As from ``frames.row_images``."""
    flags: int
    """CASCADES_LOGGED, or 0: no other flag matters to events that may be written so."""
    max_bytes: int
    """Usual bytes of a statement."""
    _keys: list[Hashable] = field(init=False)
    _steps: list[Step] = field(init=False)
    _after: list[Row] = field(init=False)
    """The literals of the columns that are written, for inserts and updates."""
    _before: list[Row] = field(init=False)
    """The literals of the primary key, for deletes and updates that stand alone."""

    @property
    def counts(self) -> RowCounts:
        """The row changes by kind."""
        return row_counts(np.bincount(self.kind, minlength=KINDS))

    @uncollected()
    def statements(self, data: Bytes) -> list[RowStatement]:
        """The statements, in order.

        Raises ValueError or struct.error for a value that no statement can write.
        """
        rows = self.number.size
        self._keys, self._steps = [None] * rows, [_STEPS[kind] for kind in self.kind.tolist()]
        self._after, self._before = [()] * rows, [()] * rows
        for table, rows_of in self._by_shape():
            self._read(table, rows_of, data)
        orders = [ChangeOrder(table is not None and table.keys_meet) for table in self.tables]
        groups: dict[tuple[int, int], list[int]] = {}
        for row, (number, key, step) in enumerate(zip(self.number.tolist(), self._keys, self._steps, strict=True)):
            groups.setdefault((orders[number].place(key, step), number), []).append(row)
        return [
            statement
            for place, number in sorted(groups)
            for statement in self._of_group(number, Step(place % len(Step)), groups[place, number])
        ]

    def _by_shape(self) -> Iterator[tuple[MultiRowTable, Ints]]:
        """The rows of tables with the same columns and keys, with one of these tables."""
        shapes: dict[object, int] = {}
        found: list[MultiRowTable] = []
        shape_of = np.full(len(self.tables), -1, np.int64)
        for number in distinct(self.number).tolist():
            table = self._table(number)
            shape_of[number] = shapes.setdefault(table.shape, len(shapes))
            if shape_of[number] == len(found):
                found.append(table)
        of = shape_of[self.number]
        for shape, table in enumerate(found):
            yield table, np.flatnonzero(of == shape)

    def _table(self, number: int) -> MultiRowTable:
        table = self.tables[number]
        assert table is not None
        return table

    def _read(self, table: MultiRowTable, rows: Ints, data: Bytes) -> None:
        """Fills keys, steps and literals of the rows of tables with the same shape."""
        deletes, updates, inserts = (rows[self.kind[rows] == kind] for kind in (DELETE, UPDATE, INSERT))
        if deletes.size:
            columns = _Columns(table, data, self.images[deletes, 0], 1 + max(table.key))
            _fill(self._keys, deletes, columns.keys())
            _fill(self._before, deletes, columns.literals(table.key))
        if inserts.size:
            columns = _Columns(table, data, self.images[inserts, 2])
            _fill(self._keys, inserts, columns.keys())
            _fill(self._after, inserts, columns.literals(table.written))
        if updates.size:
            columns = _Columns(table, data, self.images[updates, 2])
            _fill(self._after, updates, columns.literals(table.written))
            before = _Columns(table, data, self.images[updates, 0], 1 + max((*table.key, *table.unique)))
            _fill(self._keys, updates, before.keys())
            fixed = (*table.key, *table.unique)
            alone = [old != new for old, new in zip(before.values(fixed), columns.values(fixed), strict=True)]
            if any(alone):
                _fill(self._before, updates, before.literals(table.key))
                for row, is_alone in zip(updates.tolist(), alone, strict=True):
                    if is_alone:
                        self._steps[row] = Step.ALONE

    def _of_group(self, number: int, step: Step, rows: Sequence[int]) -> Iterator[RowStatement]:
        """Statements for changes with the same position."""
        table = self._table(number)
        if step is Step.DELETE:
            yield from table.deletes([self._before[row] for row in rows], self.max_bytes)
        elif step is Step.INSERT:
            yield from table.inserts([self._after[row] for row in rows], self.max_bytes)
        elif step is Step.UPDATE:
            yield from table.updates([self._after[row] for row in rows], self.max_bytes)
        else:
            yield from (table.update(self._before[row], self._after[row]) for row in rows)


class _Columns:
    """The columns of some images of tables with the same shape."""

    def __init__(self, table: MultiRowTable, data: Bytes, images: Ints, columns: int | None = None) -> None:
        self._table, self._data = table, data
        self._start, self._end = table.literals.places(data, images, columns)

    def values(self, numbers: Sequence[int]) -> Iterator[tuple[bytes | None, ...]]:
        """The bytes of some columns, image by image."""
        return zip(*(values_of(self._data, self._start[n], self._end[n]) for n in numbers), strict=True)

    def keys(self) -> Iterator[tuple[bytes | None, ...]]:
        """The primary keys."""
        return self.values(self._table.key)

    def literals(self, numbers: Sequence[int]) -> Iterator[Row]:
        """The literals of some columns, image by image. Raises as ``ColumnLiterals.column``."""
        spell = self._table.literals.column
        return zip(*(spell(n, self._data, self._start[n], self._end[n]) for n in numbers), strict=True)


def _fill(target: list[_T], rows: Ints, values: Iterable[_T]) -> None:
    for row, value in zip(rows.tolist(), values, strict=True):
        target[row] = value
