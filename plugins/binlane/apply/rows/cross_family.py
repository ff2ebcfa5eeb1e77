"""Rows of one server family for the other: by BINLOG, but for tables with JSON, whose rows are written by statements.

MySQL logs JSON in its binary form, MariaDB as the text that was written. Neither server takes the other's bytes in a
row event; both parse text in a statement, and then hold what a dump would have brought. So a payload is taken apart
by table, in order, and each part goes to the writer that can write it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from binlane.apply.rows.binlog import BinlogRows, check_self_contained
from binlane.apply.rows.sql import ROW_COUNTS, SqlRows
from binlane.binlog.rows import RowsEvent, RowsFlag, count_rows
from binlane.binlog.table_map import ColumnType, TableMap
from binlane.binlog.wire import HEADER, EventType
from binlane.errors import DriftError
from binlane.model import Flavor, Item, ItemKind, RowCounts, TableKey

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_FLAGS_AT: Final = HEADER.size + 6
"""Of a rows event: behind the table's id."""
_LONG_BLOB: Final = 4
"""Bytes of length: MariaDB logs JSON so, and any other LONGTEXT or LONGBLOB."""


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A TABLE_MAP of a payload."""

    event: bytes
    table: TableMap
    by_sql: bool


@dataclass(slots=True)
class FamilyRows:
    """Writes ROWS items of a source of the other family."""

    session: LaneSession
    guard: TableGuard
    _binlog: BinlogRows = field(init=False)
    _sql: SqlRows = field(init=False)
    _known: dict[bytes, tuple[TableMap, bool]] = field(default_factory=dict)
    """By TABLE_MAP without its id; whether statements write the table."""

    def __post_init__(self) -> None:
        self._binlog = BinlogRows(self.session, self.guard)
        self._sql = SqlRows(self.session, self.guard)

    def prepare(self, format_event: bytes) -> None:
        """Tell the session in what format the next block's events are; outside a transaction."""
        self._binlog.prepare(format_event)

    def forget_tables(self) -> None:
        """Look at tables anew."""
        self._known.clear()
        self._binlog.forget_tables()
        self._sql.forget_tables()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; their row changes, as the target has counted them. Errors as both writers'."""
        written = RowCounts()
        for by_sql, run in groupby(self._parts(items), key=lambda part: part[0]):
            writer = self._sql if by_sql else self._binlog
            written += writer.write((item for _, item in run), seqno)
        return written

    def are_by_sql(self, payload: bytes) -> bool:
        """Whether statements write any of a payload's tables."""
        return any(self._lookup(body)[1] for code, body in _events(payload) if code == EventType.TABLE_MAP)

    def _parts(self, items: Iterable[Item]) -> Iterator[tuple[bool, Item]]:
        for item in items:
            check_self_contained(item.payload)
            if not self.are_by_sql(item.payload):
                yield False, item
                continue
            total = RowCounts()
            for by_sql, part in self._taken_apart(item.payload):
                total += part.rows
                yield by_sql, part
            if total != item.rows:
                raise DriftError(f"the rows of an item are {total}, the block says {item.rows}")

    def _taken_apart(self, payload: bytes) -> Iterator[tuple[bool, Item]]:
        """The payload's rows events, each with its TABLE_MAP, joined while they go to one writer.

        No part is longer than the payload, whose length the target takes.
        """
        mapped: dict[bytes, _Mapped] = {}
        part, rows, current = b"", RowCounts(), False
        for event in _whole_events(payload):
            code, body = event[4], memoryview(event)[HEADER.size :]
            if code == EventType.TABLE_MAP:
                mapped[bytes(body[:6])] = _Mapped(event, *self._lookup(bytes(body)))
                continue
            table = mapped[bytes(body[:6])]
            parsed = RowsEvent.parse(code, body)
            piece = table.event + _ending_statement(event)
            if part and (table.by_sql != current or len(part) + len(piece) > len(payload)):
                yield current, Item(ItemKind.ROWS, part, rows)
                part, rows = b"", RowCounts()
            part, current = part + piece, table.by_sql
            rows += ROW_COUNTS[parsed.kind](count_rows(parsed, table.table))
        if part:
            yield current, Item(ItemKind.ROWS, part, rows)

    def _lookup(self, body: bytes) -> tuple[TableMap, bool]:
        known = self._known.get(body[6:])
        if known is None:
            logged = TableMap.parse(memoryview(body), flavor=self.guard.source)
            known = self._known[body[6:]] = logged, self._is_by_sql(logged)
        return known

    def _is_by_sql(self, logged: TableMap) -> bool:
        columns = zip(logged.column_types, logged.metadata, strict=True)
        if not any(code == ColumnType.JSON or (code, size) == (ColumnType.BLOB, _LONG_BLOB) for code, size in columns):
            return False
        target = self.guard.read(TableKey(logged.database, logged.table))
        return target is not None and any(column.data_type == "json" for column in target.columns)


def rows_events(payload: bytes, source: Flavor) -> Iterator[tuple[bytes, RowCounts]]:
    """Each rows event of a self-contained payload as a payload of its own, with its row changes."""
    mapped: dict[bytes, bytes] = {}
    for event in _whole_events(payload):
        body = memoryview(event)[HEADER.size :]
        table_id = bytes(body[:6])
        if event[4] == EventType.TABLE_MAP:
            mapped[table_id] = event
            continue
        parsed = RowsEvent.parse(event[4], body)
        table = TableMap.parse(memoryview(mapped[table_id])[HEADER.size :], flavor=source)
        counts = ROW_COUNTS[parsed.kind](count_rows(parsed, table))
        yield mapped[table_id] + _ending_statement(event), counts


def _whole_events(payload: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(payload):
        size = HEADER.unpack_from(payload, at)[3]
        yield payload[at : at + size]
        at += size


def _events(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Type code and body of each event."""
    return ((event[4], event[HEADER.size :]) for event in _whole_events(payload))


def _ending_statement(event: bytes) -> bytes:
    """The rows event with STMT_END_F: what comes next names its tables again."""
    changed = bytearray(event)
    changed[_FLAGS_AT] |= RowsFlag.STMT_END
    return bytes(changed)
