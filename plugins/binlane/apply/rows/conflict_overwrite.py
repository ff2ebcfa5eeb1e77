"""Overwrites conflicting rows, one row a statement: duplicates are replaced, missing rows inserted, all recorded.

The target's row becomes the log's after image. A row is refused by name if this is not certain: without a primary key,
with a partial image, with triggers that would fire, with system versioning, or if removing a row would reach other rows
through a foreign key. Tables with triggers are written as row events, which fire none: only rows that a row event does
not write are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import pymysql

from binlane.apply.rows.before_image import BeforeImages
from binlane.apply.rows.conflict_detect import Children, NeedsRewriteError
from binlane.apply.rows.sql import ROW_COUNTS, KnownTable, SqlRows, miscounted, never_by_statements, no_expression
from binlane.apply.rows.statements import RowStatement
from binlane.apply.rows.target_row import is_full, key_in, key_of, rows_where
from binlane.apply.session.retry_verdicts import DRIFT, error_code
from binlane.binlog.row_values import Absent, Change, Image
from binlane.binlog.rows import RowsEvent, RowsKind
from binlane.binlog.rows_payload import in_runs
from binlane.binlog.types.json_binary import JsonDiffs
from binlane.binlog.types.literals import identifier
from binlane.errors import DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import Item, RowCounts, TableKey, plural
from binlane.schema.model import Generated, Key
from binlane.state.records.conflicts import Conflict, ConflictKind, Values

if TYPE_CHECKING:
    from binlane.apply.rows.writers import BlockWriter

_DUPLICATE: Final = 1062


@dataclass(slots=True)
class OverwritingRows(SqlRows):
    """Writes one attempt at one block."""

    many_rows: ClassVar[bool] = False
    row_events: BlockWriter | None = None
    """Compares rows, and sends them as row events in the modes of their sessions; None if the channel's own writer
    fires triggers, too: then the precheck has checked them."""
    note: Callable[[Conflict], None] = field(kw_only=True)
    """Records a conflict in the open transaction."""
    explained: int = 0
    """Number of conflicts that can explain an error of the block: all except rows with other values."""
    _written: RowCounts = field(default_factory=RowCounts)
    _children: dict[TableKey, Children] = field(default_factory=dict)
    """A block with a DDL is not written here."""
    _seqno: int = 0
    _timestamp: int = 0

    def prepare(self, format_event: bytes) -> None:
        """Prepare for a block; outside of a transaction."""
        SqlRows.prepare(self, format_event)
        if self.row_events is not None:
            self.row_events.begin_block(format_event)

    def forget_tables(self) -> None:
        """Read tables anew before their next row."""
        SqlRows.forget_tables(self)
        if self.row_events is not None:
            self.row_events.forget_tables()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; returns the target's row changes, which differ from the log's after drift."""
        before, self._seqno = self._written, seqno
        for item in items:
            for triggered, part in self._parts(item, seqno):
                if self.row_events is not None and triggered:
                    self._written += self._as_events(self.row_events, part, seqno, triggered)
                else:
                    SqlRows.write(self, iter((part,)), seqno)
        after = self._written
        return RowCounts(after.inserts - before.inserts, after.updates - before.updates, after.deletes - before.deletes)

    def write_event(self, table: KnownTable, event: RowsEvent, timestamp: int) -> RowCounts:
        """Write one rows event; returns the log's row changes."""
        counted, self._timestamp = RowCounts(), timestamp
        self._check_writable(table)
        try:
            for change in table.decoder.changes(event):
                self._change(table, change)
                counted += ROW_COUNTS[event.kind](1)
        except ValueError as exc:
            raise no_expression(table, exc) from exc
        except pymysql.err.MySQLError as exc:
            if (why := never_by_statements(error_code(exc), table.target)) is None:
                raise
            raise _refused(
                table, f"{why}; correct the target's rows of this block by hand, as the source had them before it"
            ) from exc
        return counted

    def execute(self, statement: RowStatement, timestamp: int) -> int:
        """See ``SqlRows``. Rows are looked for in front of the next one."""
        try:
            return SqlRows.execute(self, statement, timestamp)
        finally:
            self.take_every_date()

    def _parts(self, item: Item, seqno: int) -> Iterator[tuple[tuple[TableKey, ...], Item]]:
        """The item in parts, each with those of its tables whose triggers statements would fire: of them alone, or of
        none."""
        tables = [] if self.row_events is None else [each for each, _, _ in self.events(item.payload, seqno)]
        triggered = {each.bound.key for each in tables if each.target.triggers}
        if not triggered:
            yield (), item
            return
        for fires, payload in in_runs(item.payload, lambda event: self._table(event, seqno).bound.key in triggered):
            counted, named = RowCounts(), dict[TableKey, None]()
            for table, event, _ in self.events(payload, seqno):
                counted += ROW_COUNTS[event.kind](sum(1 for _ in table.decoder.changes(event)))
                named[table.bound.key] = None
            yield tuple(named) if fires else (), replace(item, payload=payload, rows=counted)

    def _as_events(self, row_events: BlockWriter, item: Item, seqno: int, triggered: tuple[TableKey, ...]) -> RowCounts:
        """Write an item as row events. Raises DriftError, with the triggers, for rows that only statements could write;
        the transaction must be rolled back then, as MySQL has done."""
        try:
            return row_events.write_rows(iter((item,)), item.context, seqno)
        except NeedsRewriteError as exc:
            raise self._would_fire(triggered) from exc
        except pymysql.err.MySQLError as exc:
            if error_code(exc) not in DRIFT:
                raise
            raise self._would_fire(triggered) from exc

    def _would_fire(self, tables: tuple[TableKey, ...]) -> DriftError:
        assert self.guard is not None
        found = [table for key in tables if (table := self.guard.target(key)) is not None]
        names = ", ".join(trigger.name for table in found for trigger in table.triggers)
        drops = ", ".join(
            f"DROP TRIGGER {identifier(table.key.database)}.{identifier(trigger.name)}"
            for table in found
            for trigger in table.triggers
        )
        return _refused(
            ", ".join(map(str, tables)),
            f"its triggers would fire ({names}): drop them on the target until the window is finished ({drops}); "
            "`binlane verify CHANNEL --full --repair` makes them again",
        )

    def _check_writable(self, table: KnownTable) -> None:
        # the precheck has not seen triggers that the window itself creates
        self._check_triggers(table.target)
        if not table.target.transactional:
            raise _refused(
                table, f"its engine is {table.target.engine}: rows that a rollback leaves behind would be applied twice"
            )
        if table.target.system_versioned:
            raise _refused(table, "it is system-versioned: statements would write a different history")

    def _change(self, table: KnownTable, change: Change) -> None:
        if change.before is None:
            assert change.after is not None
            self._insert(table, change.after, RowsKind.INSERT)
        elif change.after is None:
            self._compare(table, change.kind, change.before, None)
            if self._attempt(table, change) == 0:
                self._note(table, change.kind, ConflictKind.MISSING, key_of(table, change.before), None)
            else:
                self._written += RowCounts(deletes=1)
        else:
            self._update(table, change, change.before, change.after)

    def _compare(self, table: KnownTable, change: RowsKind, before: Image, after: Image | None) -> bool:
        """Record the row if it differs from the log's before image; returns whether it does."""
        builder = self.builder(table)
        condition, by_key = builder.condition(before)
        if not by_key or next(BeforeImages(self.session, builder).differing((before,)), None) is None:
            return False
        self._check_children(table, before, after)
        [row] = rows_where(self.session, table, builder.name, condition)
        self._note(table, change, ConflictKind.DIFFERENT, key_in(table, row), row)
        return True

    def _update(self, table: KnownTable, change: Change, before: Image, after: Image) -> None:
        if self._compare(table, change.kind, before, after) and not is_full(table, after) and is_full(table, before):
            # the after image is partial: first write the whole before image
            as_before = Change(RowsKind.UPDATE, before, before)
            if self._attempt(table, as_before) is None:
                self._remove_conflicts(table, before, before, change.kind, in_place=False)
                self._execute_one(table, as_before)
            self._written += RowCounts(updates=1)
        affected = self._attempt(table, change)
        if affected is None:
            self._remove_conflicts(table, after, before, change.kind, in_place=False)
            self._execute_one(table, change)
        elif affected == 0:
            self._note(table, change.kind, ConflictKind.MISSING, key_of(table, before), None)
            if not is_full(table, after) and is_full(table, before):
                self._insert(table, before, change.kind)
                self._execute_one(table, change)
                self._written += RowCounts(updates=1)
                return
            if not is_full(table, after):
                raise _refused(
                    table,
                    f"the row {key_of(table, before)} is missing and the log does not contain all of its columns "
                    "(needed: binlog_row_image = FULL, no binlog_row_value_options)",
                )
            self._insert(table, after, change.kind)
            return
        self._written += RowCounts(updates=1)

    def _insert(self, table: KnownTable, image: Image, cause: RowsKind) -> None:
        """Insert a row. ``cause``: the logged change, an insert or an update whose row is missing."""
        insert = Change(RowsKind.INSERT, None, image)
        if self._attempt(table, insert) is None:
            full = is_full(table, image)
            if self._remove_conflicts(table, image, None, cause, in_place=full) and full:
                self._execute_one(table, Change(RowsKind.UPDATE, image, image))
                self._written += RowCounts(updates=1)
                return
            self._execute_one(table, insert)
        self._written += RowCounts(inserts=1)

    def _attempt(self, table: KnownTable, change: Change) -> int | None:
        """Run the change; returns the rows found, or None for a duplicate key, which undoes this statement alone."""
        statement = self._statement(table, change)
        try:
            affected = self.execute(statement, self._timestamp)
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != _DUPLICATE or not table.bound.primary_key:
                raise
            return None
        if affected != 1 and (affected != 0 or change.before is None or not self._finds_by_key(table, change.before)):
            raise miscounted(statement, affected, "; rows without a primary key are not overwritten")
        return affected

    def _execute_one(self, table: KnownTable, change: Change) -> None:
        statement = self._statement(table, change)
        affected = self.execute(statement, self._timestamp)
        if affected != 1:
            raise miscounted(statement, affected)

    def _statement(self, table: KnownTable, change: Change) -> RowStatement:
        [statement] = self.builder(table).statements(change.kind, (change,))
        return statement

    def _finds_by_key(self, table: KnownTable, image: Image) -> bool:
        return self.builder(table).condition(image)[1]

    def _remove_conflicts(
        self, table: KnownTable, image: Image, own: Image | None, cause: RowsKind, *, in_place: bool
    ) -> bool:
        """Remove the rows that hold unique key values which ``image`` needs, except the row ``own`` itself.

        With ``in_place`` a row with the same primary key stays. Returns whether there was one.
        """
        builder, primary = self.builder(table), False
        others = "" if own is None else f" AND NOT ({builder.condition(own)[0]})"
        same, by_key = builder.condition(image)
        for key in sorted(table.target.keys, key=lambda key: key.primary):
            taken = self._taken(table, key, image) if key.unique else None
            if taken is None or (key.primary and not by_key):
                continue
            elsewhere = "" if key.primary or not by_key else f" AND NOT ({same})"
            where = f"({taken}){elsewhere}{others}"
            found = rows_where(self.session, table, builder.name, where)
            kind = ConflictKind.OVERWRITTEN if key.primary else ConflictKind.EXTRA
            for row in found:
                self._note(table, cause, kind, key_in(table, row), row)
            keep = key.primary and in_place
            if found:
                primary = primary or key.primary
                if keep:
                    self._check_children(table, image, None)
                else:
                    self._check_removal(table)
            if found and not keep:
                deleted = self.session.execute(f"DELETE FROM {builder.name} WHERE {where}")
                if deleted != len(found):
                    raise _refused(
                        table, f"expected to remove {plural(len(found), 'row')} with its keys, removed {deleted}"
                    )
                self._written += RowCounts(deletes=deleted)
        return primary

    def _taken(self, table: KnownTable, key: Key, image: Image) -> str | None:
        """A condition for rows with the image's values of a unique key; None for NULL or unlogged values."""
        places = {column.name: number for number, column in enumerate(table.target.columns)}
        builder, conditions = self.builder(table), []
        for part in key.columns:
            number = -1 if part.name is None else places.get(part.name, -1)
            if number < 0 or table.target.columns[number].generated not in (None, Generated.STORED):
                return None
            value = image[number]
            if value is None or isinstance(value, Absent | JsonDiffs):
                return None
            column = table.bound.columns[number]
            name, wanted = identifier(column.label), builder.literal(column, value)
            if part.prefix is not None:
                name, wanted = f"LEFT({name}, {part.prefix})", f"LEFT({wanted}, {part.prefix})"
            conditions.append(f"{name} = {wanted}")
        return " AND ".join(conditions)

    def _check_removal(self, table: KnownTable) -> None:
        """Refuse if a foreign key would pass the removal of a row on to other rows."""
        if found := self._children_of(table).any:
            raise _refused(table, f"a row of the target has to be removed, but {found}: correct the row by hand")

    def _check_children(self, table: KnownTable, before: Image, after: Image | None) -> None:
        """Refuse if a foreign key would pass on a change that the source has not made."""
        if why := self._children_of(table).reached_by(before, after):
            raise _refused(table, why)

    def _children_of(self, table: KnownTable) -> Children:
        key = table.bound.key
        if key not in self._children:
            self._children[key] = Children.of(self, table)
        return self._children[key]

    def _note(self, table: KnownTable, change: RowsKind, kind: ConflictKind, key: Values, found: Values | None) -> None:
        self.explained += kind is not ConflictKind.DIFFERENT
        self.note(Conflict(self._seqno, table.bound.key, change.value, kind, key, found))


def _refused(table: KnownTable | str, why: str) -> DriftError:
    name = table if isinstance(table, str) else table.bound.key
    return DriftError(f'{name}: on_conflict = "overwrite" does not write it: {why}')
