"""Rows by SQL, one a statement, where rows in the way are replaced and missing ones are made: each is noted.

What the target ends with is the log's after image. A row is refused by name where that cannot be had for certain:
without a primary key, with an image that does not hold all columns, with triggers that would fire, with history, or
where removing a row would reach others through a foreign key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pymysql

from binlane.apply.row_statements import RowStatement
from binlane.apply.sql_rows import ROW_COUNTS, KnownTable, SqlRows, miscounted, no_expression
from binlane.apply.transient import error_code
from binlane.binlog.charsets import decode_text
from binlane.binlog.json_binary import JsonDiffs
from binlane.binlog.rows import RowsEvent, RowsKind
from binlane.binlog.spelling import identifier, spell
from binlane.binlog.values import Absent, Change, Image
from binlane.errors import DriftError
from binlane.model import Item, RowCounts
from binlane.plan.schema import Column as TargetColumn
from binlane.plan.schema import Generated, Key
from binlane.state.conflicts import Conflict, ConflictKind, Values

_DUPLICATE: Final = 1062
_SHOWN: Final = 65_536
"""Characters or bytes of a found value that are kept."""
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WHOLE_BYTES: Final = frozenset(
    {"bit", "vector", "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
"""Types that LEFT() does not take everywhere."""
_REFERENCES: Final = (
    "SELECT unique_constraint_name, constraint_schema, table_name FROM information_schema.referential_constraints "
    "WHERE unique_constraint_schema = %s AND referenced_table_name = %s"
)


@dataclass(slots=True)
class OverwritingRows(SqlRows):
    """For one attempt at one block."""

    fires_triggers: bool = False
    """The channel's own writer fires triggers as well, and the precheck has looked at them."""
    conflicts: list[Conflict] = field(default_factory=list)
    """In the order in which they were met."""
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
            raise _refused(table, f"its triggers would fire ({names}): drop them on the target while it is rebuilt")
        if not table.target.transactional:
            raise _refused(table, f"its engine is {table.target.engine}: what the rollback left would be met again")
        if table.target.system_versioned:
            raise _refused(table, "it is system-versioned, and statements would write another history")

    def _change(self, table: KnownTable, change: Change) -> None:
        if change.before is None:
            assert change.after is not None
            self._insert(table, change.after, RowsKind.INSERT)
        elif change.after is None:
            if self._attempt(table, change) == 0:
                self._note(table, change.kind, ConflictKind.MISSING, self._key_of(table, change.before), None)
            else:
                self._written += RowCounts(deletes=1)
        else:
            self._update(table, change, change.before, change.after)

    def _update(self, table: KnownTable, change: Change, before: Image, after: Image) -> None:
        affected = self._attempt(table, change)
        if affected is None:
            self._make_way(table, after, before, change.kind, in_place=False)
            self._must(table, change)
        elif affected == 0:
            self._note(table, change.kind, ConflictKind.MISSING, self._key_of(table, before), None)
            if not _is_full(table, after):
                raise _refused(
                    table,
                    f"the row {self._key_of(table, before)} is missing and the log does not hold all of its columns "
                    "(binlog_row_image = FULL, no binlog_row_value_options)",
                )
            self._insert(table, after, change.kind)
            return
        self._written += RowCounts(updates=1)

    def _insert(self, table: KnownTable, image: Image, cause: RowsKind) -> None:
        """``cause``: the log's change, an update whose row is missing or an insert."""
        insert = Change(RowsKind.INSERT, None, image)
        if self._attempt(table, insert) is None:
            full = _is_full(table, image)
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
            found = self._rows_where(table, where)
            kind = ConflictKind.OVERWRITTEN if key.primary else ConflictKind.EXTRA
            for row in found:
                self._note(table, cause, kind, self._key_in(table, row), row)
            keep = key.primary and in_place
            if found:
                primary = primary or key.primary
                self._check_references(table, removed=not keep)
            if found and not keep:
                deleted = self.session.execute(f"DELETE FROM {builder.name} WHERE {where}")
                if deleted != len(found):
                    raise _refused(table, f"{len(found)} rows were in the way, {deleted} were removed")
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

    def _rows_where(self, table: KnownTable, condition: str) -> list[Values]:
        columns = table.target.columns
        values = ", ".join(_as_hex(column) for column in columns)
        rows = self.session.rows(f"SELECT {values} FROM {self.builder(table).name} WHERE {condition} FOR UPDATE")
        return [
            {column.name: _from_hex(column, value) for column, value in zip(columns, row, strict=True)} for row in rows
        ]

    def _check_references(self, table: KnownTable, *, removed: bool) -> None:
        """Foreign keys would carry the removal, or the change of a key that is not the primary one, to other rows."""
        key = table.bound.key
        for unique, database, child in self.session.rows(_REFERENCES, (key.database, key.table)):
            if removed or unique != "PRIMARY":
                raise _refused(
                    table,
                    f"a row is in the way of another, and {database}.{child} refers to the table: set the row right",
                )

    def _note(self, table: KnownTable, change: RowsKind, kind: ConflictKind, key: Values, found: Values | None) -> None:
        self.conflicts.append(Conflict(self._seqno, table.bound.key, change.value, kind, key, found))

    def _key_of(self, table: KnownTable, image: Image) -> Values:
        values: dict[str, str | None] = {}
        for number in table.bound.primary_key:
            column, value = table.bound.columns[number], image[number]
            if isinstance(value, Absent):
                continue
            text = decode_text(value, column.charset) if isinstance(value, bytes) and column.is_text else None
            if text is None:
                text = f"0x{value.hex().upper()}" if isinstance(value, bytes) else spell(column, value)
            values[column.label] = text
        return values

    def _key_in(self, table: KnownTable, row: Values) -> Values:
        return {name: row[name] for number in table.bound.primary_key for name in [table.target.columns[number].name]}


def _is_full(table: KnownTable, image: Image) -> bool:
    return not any(isinstance(image[number], Absent | JsonDiffs) for number in table.bound.written)


def _as_hex(column: TargetColumn) -> str:
    """An expression that no character set of the connection can change."""
    name = identifier(column.name)
    if column.data_type in _WHOLE_BYTES:
        return f"HEX({name})"
    short = f"LEFT({name}, {_SHOWN + 1})"
    return f"HEX({short})" if column.data_type in _BYTES else f"HEX(CONVERT({short} USING utf8mb4))"


def _from_hex(column: TargetColumn, value: object) -> str | None:
    if value is None:
        return None
    if column.data_type in _BYTES | _WHOLE_BYTES:
        return _cut(f"0x{value}", 2 * _SHOWN + 2)
    return _cut(bytes.fromhex(str(value)).decode("utf-8", "replace"), _SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... (cut)"


def _refused(table: KnownTable, why: str) -> DriftError:
    return DriftError(f'{table.bound.key}: on_conflict = "overwrite" does not write it: {why}')
