"""Writes rows of one server family to the other: by BINLOG, or by statements where columns are JSON or compressed.

MySQL logs JSON in a binary form, MariaDB as the text that was written. Neither server takes the other's bytes in a row
event; both parse the text in a statement, and then store what a dump would have loaded. MySQL has no compressed
columns and gets their values decompressed. So a payload is split by table, in order, and each part goes to the writer
that writes it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.sql import ROW_COUNTS, SqlRows
from binlane.apply.rows.table_guard import users_tables
from binlane.binlog.partial_updates import with_plain_updates
from binlane.binlog.rows import count_rows
from binlane.binlog.rows_payload import (
    DEFINITION,
    ending_statement,
    events_of,
    is_table_map,
    parse_rows,
    parse_table_map,
    rows_with_tables,
)
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.column_types import by_statements
from binlane.binlog.types.type_codes import ColumnType
from binlane.errors import DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, RowCounts, TableKey

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_LONG_BLOB: Final = 4
"""Bytes of its length field: MariaDB logs JSON like this, as any LONGTEXT or LONGBLOB."""


@dataclass(frozen=True, slots=True)
class _Mapped:
    """A TABLE_MAP of a payload."""

    event: bytes
    table: TableMap
    by_sql: bool


@dataclass(slots=True)
class FamilyRows:
    """Writes ROWS items whose source is of the other family."""

    session: LaneSession
    guard: TableGuard
    _binlog: BinlogRows = field(init=False)
    _sql: SqlRows = field(init=False)
    _known: dict[bytes, tuple[TableMap, bool]] = field(default_factory=dict)
    """By TABLE_MAP without its table id: the parsed event, and whether statements write the table."""

    def __post_init__(self) -> None:
        self._binlog = BinlogRows(self.session, self.guard)
        self._sql = SqlRows(self.session, self.guard)

    def prepare(self, format_event: bytes) -> None:
        """Send the FORMAT_DESCRIPTION of the next block's events; outside of a transaction."""
        self._binlog.prepare(format_event)

    def forget_tables(self) -> None:
        """Read the properties of tables anew."""
        self._known.clear()
        self._binlog.forget_tables()
        self._sql.forget_tables()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; returns their row changes, as counted by the target. Raises both writers' errors."""
        written = RowCounts()
        for by_sql, run in groupby(self._parts(items), key=lambda part: part[0]):
            writer = self._sql if by_sql else self._binlog
            written += writer.write((item for _, item in run), seqno)
        return written

    def are_by_sql(self, payload: bytes) -> bool:
        """Whether statements write any table of the payload."""
        return any(self._mapped(event).by_sql for event in events_of(payload) if is_table_map(event))

    def _parts(self, items: Iterable[Item]) -> Iterator[tuple[bool, Item]]:
        for item in items:
            users_tables(item.payload, self.guard)
            if not self.are_by_sql(item.payload):
                yield False, replace(item, payload=with_plain_updates(item.payload, self.guard.source))
                continue
            total = RowCounts()
            for by_sql, part in self._split(item):
                total += part.rows
                yield by_sql, part
            if total != item.rows:
                raise DriftError(f"expected {item.rows} in an item of the block, decoded {total}")

    def _split(self, item: Item) -> Iterator[tuple[bool, Item]]:
        """The item's rows events, each with its TABLE_MAP, joined as long as they go to the same writer.

        No part is longer than the payload, which fits the target's max_allowed_packet.
        """
        payload, part, rows, current = item.payload, b"", RowCounts(), False
        for table, event in rows_with_tables(payload, self._mapped):
            parsed = parse_rows(event)
            piece = table.event + ending_statement(event)
            if not table.by_sql:
                piece = with_plain_updates(piece, self.guard.source)
            if part and (table.by_sql != current or len(part) + len(piece) > len(payload)):
                yield current, replace(item, payload=part, rows=rows)
                part, rows = b"", RowCounts()
            part, current = part + piece, table.by_sql
            rows += ROW_COUNTS[parsed.kind](count_rows(parsed, table.table))
        if part:
            yield current, replace(item, payload=part, rows=rows)

    def _mapped(self, event: bytes) -> _Mapped:
        known = self._known.get(event[DEFINITION])
        if known is None:
            logged = parse_table_map(event, self.guard.source)
            known = self._known[event[DEFINITION]] = logged, self._is_by_sql(logged)
        return _Mapped(event, *known)

    def _is_by_sql(self, logged: TableMap) -> bool:
        if any(map(by_statements, logged.column_types)):
            return True
        columns = zip(logged.column_types, logged.metadata, strict=True)
        if not any(code == ColumnType.JSON or (code, size) == (ColumnType.BLOB, _LONG_BLOB) for code, size in columns):
            return False
        target = self.guard.target(TableKey(logged.database, logged.table))
        return target is not None and any(column.data_type == "json" for column in target.columns)


def rows_events(payload: bytes, source: Flavor) -> Iterator[tuple[bytes, RowCounts]]:
    """Each rows event of a self-contained payload as a payload of its own, with its row changes."""
    for table_map, event in rows_with_tables(payload, bytes):
        parsed, table = parse_rows(event), parse_table_map(table_map, source)
        yield table_map + ending_statement(event), ROW_COUNTS[parsed.kind](count_rows(parsed, table))
