"""The details of a transaction in ``binlane inspect``: statements, and row changes with their values.

Columns without a logged name are ``@1``, ``@2`` ..., unless a window's definitions name them. Transactions that cannot
be applied are shown, too.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from decimal import Decimal
from typing import Final

from binlane.binlog.events import ExecuteLoadQuery, Query
from binlane.binlog.row_values import Absent, Change, Image, RowDecoder
from binlane.binlog.rows import ROWS_KINDS, RowsEvent
from binlane.binlog.rows_payload import parse_rows
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.transactions import Transaction
from binlane.binlog.types.charsets import decode_text, guessed_text
from binlane.binlog.types.collations import charset_name, collation_name
from binlane.binlog.types.columns import Column
from binlane.binlog.types.decimals import spell_decimal
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.literals import identifier, spell
from binlane.binlog.types.readers import Value
from binlane.binlog.wire import EventType, RawEvent
from binlane.errors import BinlogError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.decode import LogFormat
from binlane.plan.transaction.parts import Part, RowsPart
from binlane.schema.logged import compare_table_map, hidden_columns
from binlane.schema.model import Schema
from binlane.shards.renaming import Renaming

_ENDS: Final = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A TABLE_MAP with the decoder of its rows."""

    table: TableMap
    columns: tuple[Column, ...]
    decoder: RowDecoder

    @property
    def name(self) -> str:
        """``database.table``."""
        return f"{self.table.database}.{self.table.table}"

    @property
    def quoted_name(self) -> str:
        """``database.table`` in backticks, for a statement."""
        return f"{identifier(self.table.database)}.{identifier(self.table.table)}"


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement as logged."""

    database: str
    sql: str
    runs: bool = True
    """False for LOAD DATA, whose file is logged in other events."""


Shown = tuple[LoggedTable, Change] | LoggedStatement


@dataclass(slots=True)
class Contents:
    """Yields a transaction's row changes and statements, in order."""

    log: LogFormat
    text: bool = True
    """True: values as text for display; False: values for writing them again (``sql_types.reader_of``)."""
    target: Schema | None = None
    """Names columns that the log does not name."""
    renaming: Renaming = field(default_factory=Renaming)
    _tables: dict[int, LoggedTable] = field(default_factory=dict)

    def of(self, transaction: Transaction) -> Iterator[Shown]:
        """Row changes and statements. Raises BinlogError and UnsupportedEventError if a row cannot be decoded."""
        self._tables.clear()
        for event in transaction.events:
            code = event.header.type_code
            if code == EventType.TABLE_MAP:
                self._map(event)
            elif code in ROWS_KINDS:
                yield from self._rows(event)
            elif code in (EventType.QUERY, EventType.QUERY_COMPRESSED):
                query = self.log.parse(event)
                assert isinstance(query, Query)
                sql = _statement_text(query, event, self.log)
                if sql.upper() not in _ENDS:
                    yield LoggedStatement(query.session(event.header).database or "", sql)
            elif code == EventType.EXECUTE_LOAD_QUERY:
                load = self.log.parse(event)
                assert isinstance(load, ExecuteLoadQuery)
                sql = _statement_text(load.query, event, self.log)
                yield LoggedStatement(load.query.session(event.header).database or "", sql, runs=False)

    def _map(self, event: RawEvent) -> None:
        where, flavor = self.log.where(event), self.log.format.flavor
        table = TableMap.parse(event.body, where, flavor)
        logged = _logged(table, self.log, where, text=self.text)
        if self.target is not None:
            key = TableKey(self.renaming.target(table.database), table.table)
            logged = replace(logged, columns=named(logged, flavor, self.target, key))
        self._tables[table.table_id] = logged

    def _rows(self, event: RawEvent) -> Iterator[Shown]:
        where = self.log.where(event)
        rows = RowsEvent.parse(event.header.type_code, event.body, where)
        table = self._tables.get(rows.table_id)
        if table is None:
            raise BinlogError(f"{where}rows of table id {rows.table_id}, which has no TABLE_MAP in this transaction")
        for change in table.decoder.changes(rows, where):
            yield table, change


def part_changes(
    parts: Iterable[Part], log: LogFormat, after: int = 0
) -> Iterator[tuple[TableKey, LoggedTable, Change]]:
    """Row changes of a transaction's parts, also of an XA COMMIT, with the target's name of the table.

    The first ``after`` changes are left out; events with only such changes are not decoded. Raises as ``Contents``.
    """
    tables: dict[int, LoggedTable] = {}
    left = after
    for part in parts:
        if isinstance(part, RowsPart):
            if part.counts.total <= left:
                left -= part.counts.total
                continue
            table = tables.get(id(part.table))
            if table is None:
                table = tables[id(part.table)] = _logged(part.table.table, log, "")
            for change in itertools.islice(table.decoder.changes(parse_rows(part.event)), left, None):
                yield part.table.key, table, change
            left = 0


def named(logged: LoggedTable, source: Flavor, schema: Schema, key: TableKey) -> tuple[Column, ...]:
    """The columns, those without a logged name with that of the target's table.

    Only if it is defined as the rows were logged: a wrong name is worse than a number.
    """
    target = schema.table(key)
    if target is None or compare_table_map(logged.table, source, target, across=source is not schema.flavor):
        return logged.columns
    return tuple(
        replace(column, name=known.name) if column.name is None else column
        for column, known in zip(logged.columns, (*target.columns, *hidden_columns(target)), strict=True)
    )


def cells(table: LoggedTable, image: Image) -> list[str | None]:
    """A row's values for display: strings quoted, NULL as None, "" for a column that is not in the image."""
    return [
        "" if isinstance(value, Absent) else None if value is None else spell(column, _read(value))
        for column, value in zip(table.columns, image, strict=True)
    ]


def plain_texts(column: Column, value: Value) -> tuple[str, ...]:
    """A value as a person types it: strings without quotes, NULL as NULL. Of an integer whose sign the log does not
    tell both that it may be."""
    if value is None:
        return ("NULL",)
    if isinstance(found := _read(value), str):
        return (found,)
    text = spell(column, found)
    return tuple(text.replace("(", "").replace(")", "").split()) if isinstance(found, int) else (text,)


def _read(value: Value) -> Value:
    """Valid UTF-8 as text: a log without binlog_row_metadata = FULL does not distinguish text from bytes."""
    if not isinstance(value, bytes):
        return value
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return value
    return value if any(unicodedata.category(one) == "Cc" and one not in "\t\n\r" for one in text) else text


def _logged(table: TableMap, log: LogFormat, where: str, *, text: bool = True) -> LoggedTable:
    columns = columns_of(table, log.format.flavor)
    return LoggedTable(table, columns, RowDecoder(table, columns, text=text, where=where))


def row_line(shown: Shown) -> str:
    """One line of text."""
    if isinstance(shown, LoggedStatement):
        return shown.sql
    table, change = shown
    images = [
        " ".join(f"{column.label}={spell(column, value)}" for column, value in present(table, image))
        for image in (change.before, change.after)
        if image is not None
    ]
    return f"{table.name} {change.kind.value} {' -> '.join(images)}"


def row_object(shown: Shown) -> dict[str, object]:
    """One JSON object. Bytes are ``{"hex": ...}``, decimals are text; columns that are not in the image are left
    out."""
    if isinstance(shown, LoggedStatement):
        return {"database": shown.database, "statement": shown.sql}
    table, change = shown
    found: dict[str, object] = {"table": table.name, "kind": change.kind.value}
    for name, image in (("before", change.before), ("after", change.after)):
        if image is not None:
            found[name] = {column.label: _json_value(value) for column, value in present(table, image)}
    return found


def present(table: LoggedTable, image: Image) -> list[tuple[Column, Value]]:
    """The columns in an image, with their values."""
    return [
        (column, value) for column, value in zip(table.columns, image, strict=True) if not isinstance(value, Absent)
    ]


def _json_value(value: Value) -> object:
    match value:
        case bytes():
            return {"hex": value.hex()}
        case Decimal():
            return spell_decimal(value)
        case JsonDocument():
            return json_text(value.root)
        case JsonDiffs():
            return {"diffs": [{"kind": d.kind.name.lower(), "path": d.path, "value": d.value} for d in value.diffs]}
    return value


def _statement_text(query: Query, event: RawEvent, log: LogFormat) -> str:
    """The statement as text, decoded by its client's character set; undecodable bytes become escapes."""
    collation = query.session(event.header).charset_client
    name = None if collation is None else collation_name(collation, log.format.flavor)
    text = decode_text(query.sql, None if name is None else charset_name(name)) or guessed_text(query.sql)
    return query.sql.decode("utf-8", "backslashreplace") if text is None else text
