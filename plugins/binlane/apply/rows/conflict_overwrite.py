"""Rows by SQL, one a statement, where rows in the way are replaced and missing ones are made: each is noted.

What the target ends with is the log's after image. A row is refused by name where that cannot be had for certain:
without a primary key, with an image that does not hold all columns, with triggers that would fire, with history, or
where removing a row would reach others through a foreign key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pymysql

from binlane.apply.rows.before_image import BeforeImages
from binlane.apply.rows.sql import ROW_COUNTS, KnownTable, SqlRows, miscounted, no_expression
from binlane.apply.rows.statements import RowStatement
from binlane.apply.rows.target_row import is_full, key_in, key_of, rows_where
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.row_values import Absent, Change, Image
from binlane.binlog.rows import RowsEvent, RowsKind
from binlane.binlog.types.json_binary import JsonDiffs
from binlane.binlog.types.literals import identifier
from binlane.errors import DriftError
from binlane.model import Item, RowCounts, plural
from binlane.schema.model import Generated, Key
from binlane.state.records.conflicts import Conflict, ConflictKind, Values

_DUPLICATE: Final = 1062
_REFERENCES: Final = (
    "SELECT unique_constraint_name, constraint_schema, table_name FROM information_schema.referential_constraints "
    "WHERE unique_constraint_schema = %s AND referenced_table_name = %s"
)


@dataclass(slots=True)
class OverwritingRows(SqlRows):
    """For one attempt at one block."""

    fires_triggers: bool = False
    """The channel's own writer fires triggers as well, and the precheck has looked at them."""
    note: Callable[[Conflict], None] = field(kw_only=True)
    """Records a conflict, in the transaction that is open."""
    explained: int = 0
    """Conflicts that an error of the block can come from: all but rows with other values."""
    _written: RowCounts = field(default_factory=RowCounts)
    _seqno: int = 0
    _timestamp: int = 0

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; the row changes that the target has made, which are not the log's where it has drifted."""
        before, self._seqno = self._written, seqno
        SqlRows.write(self, items, seqno)
        after = self._written
        return RowCounts(after.inserts - before.inserts, after.updates - before.updates, after.deletes - before.deletes)

    def write_event(self, table: KnownTable, event: RowsEvent, timestamp: int) -> RowCounts:
        """Write one rows event; the row changes that the log has."""
        counted, self._timestamp = RowCounts(), timestamp
        self._check_writable(table)
        try:
            for change in table.decoder.changes(event):
                self._change(table, change)
                counted += ROW_COUNTS[event.kind](1)
        except ValueError as exc:
            raise no_expression(table, exc) from exc
        return counted

    def _check_writable(self, table: KnownTable) -> None:
        if table.target.triggers and not self.fires_triggers:
            names = ", ".join(trigger.name for trigger in table.target.triggers)
            raise _refused(table, f"its triggers would fire ({names}): drop them on the target until it is rebuilt")
        # the precheck has not seen those that the window itself has made
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
            self._look(table, change.kind, change.before)
            if self._attempt(table, change) == 0:
                self._note(table, change.kind, ConflictKind.MISSING, key_of(table, change.before), None)
            else:
                self._written += RowCounts(deletes=1)
        else:
            self._update(table, change, change.before, change.after)

    def _look(self, table: KnownTable, change: RowsKind, before: Image) -> bool:
        """Note the row if it has other values than the log has before the change. Whether it has."""
        builder = self.builder(table)
        condition, by_key = builder.condition(before)
        if not by_key or next(BeforeImages(self.session, builder).unlike((before,)), None) is None:
            return False
        [row] = rows_where(self.session, table, builder.name, condition)
        self._note(table, change, ConflictKind.DIFFERENT, key_in(table, row), row)
        return True

    def _update(self, table: KnownTable, change: Change, before: Image, after: Image) -> None:
        if self._look(table, change.kind, before) and not is_full(table, after) and is_full(table, before):
            # a part of the row after: it becomes whole on the row before
            as_before = Change(RowsKind.UPDATE, before, before)
            if self._attempt(table, as_before) is None:
                self._make_way(table, before, before, change.kind, in_place=False)
                self._must(table, as_before)
            self._written += RowCounts(updates=1)
        affected = self._attempt(table, change)
        if affected is None:
            self._make_way(table, after, before, change.kind, in_place=False)
            self._must(table, change)
        elif affected == 0:
            self._note(table, change.kind, ConflictKind.MISSING, key_of(table, before), None)
            if not is_full(table, after) and is_full(table, before):
                self._insert(table, before, change.kind)
                self._must(table, change)
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
        """``cause``: the log's change, an update whose row is missing or an insert."""
        insert = Change(RowsKind.INSERT, None, image)
        if self._attempt(table, insert) is None:
            full = is_full(table, image)
            if self._make_way(table, image, None, cause, in_place=full) and full:
                self._must(table, Change(RowsKind.UPDATE, image, image))
                self._written += RowCounts(updates=1)
                return
            self._must(table, insert)
        self._written += RowCounts(inserts=1)

    def _attempt(self, table: KnownTable, change: Change) -> int | None:
        """The rows found; None if a key is taken: the server has undone the statement alone."""
        statement = self._statement(table, change)
        try:
            affected = self.execute(statement, self._timestamp, table.bound.key)
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != _DUPLICATE or not table.bound.primary_key:
                raise
            return None
        if affected != 1 and (affected != 0 or change.before is None or not self._finds_by_key(table, change.before)):
            raise miscounted(statement, table.bound.key, affected, "; rows without a primary key are not overwritten")
        return affected

    def _must(self, table: KnownTable, change: Change) -> None:
        statement = self._statement(table, change)
        affected = self.execute(statement, self._timestamp, table.bound.key)
        if affected != 1:
            raise miscounted(statement, table.bound.key, affected)

    def _statement(self, table: KnownTable, change: Change) -> RowStatement:
        [statement] = self.builder(table).statements(change.kind, (change,))
        return statement

    def _finds_by_key(self, table: KnownTable, image: Image) -> bool:
        return self.builder(table).condition(image)[1]

    def _make_way(self, table: KnownTable, image: Image, own: Image | None, cause: RowsKind, *, in_place: bool) -> bool:
        """Remove the rows that hold keys which ``image`` needs, but not the row ``own`` itself.

        A row with its primary key stays if ``in_place``. Whether there was one with its primary key.
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
                self._check_references(table, removed=not keep)
            if found and not keep:
                deleted = self.session.execute(f"DELETE FROM {builder.name} WHERE {where}")
                if deleted != len(found):
                    raise _refused(table, f"{plural(len(found), 'row')} in the way, {deleted} removed")
                self._written += RowCounts(deletes=deleted)
        return primary

    def _taken(self, table: KnownTable, key: Key, image: Image) -> str | None:
        """What finds the rows that hold the image's values of a key; None if none can, or the log does not tell."""
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

    def _check_references(self, table: KnownTable, *, removed: bool) -> None:
        """Foreign keys would carry the removal, or the change of a key that is not the primary one, to other rows."""
        key = table.bound.key
        for unique, database, child in self.session.rows(_REFERENCES, (key.database, key.table)):
            if removed or unique != "PRIMARY":
                raise _refused(
                    table,
                    f"a row of the target has to be removed, but {database}.{child} refers to the table by a "
                    "foreign key: correct the row by hand",
                )

    def _note(self, table: KnownTable, change: RowsKind, kind: ConflictKind, key: Values, found: Values | None) -> None:
        self.explained += kind is not ConflictKind.DIFFERENT
        self.note(Conflict(self._seqno, table.bound.key, change.value, kind, key, found))


def _refused(table: KnownTable, why: str) -> DriftError:
    return DriftError(f'{table.bound.key}: on_conflict = "overwrite" does not write it: {why}')
