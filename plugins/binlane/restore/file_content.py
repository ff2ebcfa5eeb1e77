"""What one file of a log holds, whoever asks: its tables by the megabyte, and which databases its statements name.

Whether a file holds nothing of a database is read from here, so what is not understood counts for every database:
only row changes, whose TABLE_MAP names the table, and DDL of whose text every name is known, do not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.query import Query
from binlane.binlog.rows import ROWS_KINDS
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector import frames as vector
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.vector.frames import Frames, frame
from binlane.binlog.vector.inflated_segment import inflated
from binlane.binlog.wire import HEADER, EventType, RawEvent
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.plan.transaction.decode import statement_facts
from binlane.source.end_position import first_of
from binlane.source.identity import described
from binlane.source.protocol import LOG_START, LogChunk
from binlane.sql.parse.facts import StatementKind

_T = EventType
_PIECE: Final = 1 << 20
"""Bytes of log, at least, whose tables are counted together."""
_GTIDS: Final = (_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED, _T.MARIADB_GTID)
_BEGINS: Final = np.zeros(256, np.bool_)
"""By event type: the first event of a transaction, in logs with GTID events."""
_BEGINS[list(_GTIDS)] = True
_ROWS: Final = np.zeros(256, np.bool_)
_ROWS[list(ROWS_KINDS)] = True
_QUERIES: Final = (_T.QUERY, _T.QUERY_COMPRESSED)
_KNOWN: Final = _BEGINS | _ROWS
"""By event type: those that change nothing, or whose tables a TABLE_MAP names, or whose statement is read here."""
_KNOWN[
    [
        *(*_QUERIES, _T.TABLE_MAP, _T.XID, _T.ROWS_QUERY, _T.ANNOTATE_ROWS, _T.FORMAT_DESCRIPTION, _T.ROTATE),
        *(_T.PREVIOUS_GTIDS, _T.MARIADB_GTID_LIST, _T.BINLOG_CHECKPOINT),
    ]
] = True
_IN_STATEMENT: Final = _ROWS.copy()
"""By event type: those of a statement in row format."""
_IN_STATEMENT[[_T.TABLE_MAP, _T.ROWS_QUERY, _T.ANNOTATE_ROWS]] = True
_QUERY_HEAD: Final = 13
"""QUERY's post-header since MySQL 5.0."""
_DATABASE_AT, _STATUS_AT = 8, 11
"""In it: the lengths of the database's name and of the status variables."""
_FRAMES: Final = (b"BEGIN", b"COMMIT")
_TABLES: Final = 50_000
"""TABLE_MAPs that are known by their bytes, at most: parsing each one again would be most of the time."""


@dataclass(slots=True)
class Piece:
    """About a megabyte of a file: [start, end)."""

    start: int
    end: int
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Row changes, by the number of the table in ``FileContent.tables``; those behind the end have none."""
    transactions: Counter[str] = field(default_factory=Counter)
    """Transactions that change rows, by database; none in a log without GTID events."""


class FileContent:
    """Give it a file's chunks in order."""

    def __init__(self, log: str) -> None:
        """``log``: its name, for messages."""
        self.pieces: list[Piece] = []
        self.tables: dict[tuple[str, str], int] = {}
        """The tables of its TABLE_MAPs, by database and name; their numbers."""
        self.named: set[str] = set()
        """Databases that DDL names."""
        self.of_any = 0
        """Events whose databases are not known: they may be of any."""
        self.last_type = 0
        """Of the last event."""
        self.last_time = 0
        """Of the last event, in seconds since the epoch."""
        self._log, self._name, self._format = log, "", FormatDescription("")
        self._maps: list[bytes] = []
        """TABLE_MAPs of the statement that goes on in the next chunk."""
        self._has_begun = False
        """A transaction has begun, by its GTID event."""
        self._open: set[str] = set()
        """The databases that the last transaction has changed so far."""
        self._known: dict[bytes, tuple[TableMap, int]] = {}
        """TABLE_MAPs with the number of their table."""

    def take(self, chunk: LogChunk) -> None:
        """Raises BinlogError."""
        if chunk.offset == LOG_START:
            self._name = f"{self._log}/{chunk.file}"
            self._format = described(chunk.data, self._name)
            return
        carried = self._maps
        data = b"".join((*carried, chunk.data)) if carried else chunk.data
        frames = frame(data, 0, self._format.checksum.length)
        frames.check(self._name)
        if frames.offset.size == len(carried):
            return
        self.last_type, self.last_time = int(frames.type_code[-1]), int(frames.timestamp[-1])
        self._maps = _maps_of_open_statement(frames)
        if (laid_out := inflated(frames)) is not None:
            # the maps in front are no compressed events, and stay there
            frames = frame(laid_out.data, 0, frames.checksum_length)
        self.of_any += int(np.count_nonzero(~_KNOWN[frames.type_code]))
        for event in self._statements(frames).tolist():
            self._query(frames.raw(event))
        self._count(frames, len(carried), self._piece(chunk.offset, chunk.offset + len(chunk.data)))

    def _piece(self, start: int, end: int) -> Piece:
        if not self.pieces or self.pieces[-1].end - self.pieces[-1].start >= _PIECE:
            self.pieces.append(Piece(start, end))
        self.pieces[-1].end = end
        return self.pieces[-1]

    def _count(self, frames: Frames, carried: int, piece: Piece) -> None:
        """The tables and row changes of a chunk, without the first ``carried`` events."""
        index = vector.index_rows(frames, self._name)
        known = [self._table(frames.body(event)) for event in index.first.tolist()]
        tables = [table for table, _ in known]
        if tables:
            numbers = np.array([number for _, number in known])
            self._count_rows(frames, index.number, tables, numbers, piece)
        names = list(dict.fromkeys(table.database for table in tables))
        place = {name: at for at, name in enumerate(names)}
        begun = np.cumsum(_BEGINS[frames.type_code])
        mapped = np.flatnonzero(frames.type_code == _T.TABLE_MAP)
        mapped = mapped[mapped >= carried]
        # which transaction, counted from the open one, changes which database
        changes = np.zeros((int(begun[-1]) + 1, len(names)), np.bool_)
        database = np.array([place[table.database] for table in tables], np.int64)
        changes[begun[mapped], database[index.number[mapped]]] = True
        changes[0, [place[name] for name in self._open if name in place]] = False
        first = 0 if self._has_begun else 1
        for name, count in zip(names, changes[first:].sum(axis=0).tolist(), strict=True):
            if count:
                piece.transactions[name] += count
        last = {names[at] for at in np.flatnonzero(changes[-1]).tolist()}
        self._open = last if begun[-1] else self._open | last
        self._has_begun |= bool(begun[-1])

    def _count_rows(
        self, frames: Frames, number: NDArray[np.int32], tables: list[TableMap], numbers: Ints, piece: Piece
    ) -> None:
        counts = vector.count_events(frames, number, tables, vector.table_layouts(tables), self._name)
        rows = np.flatnonzero(_ROWS[frames.type_code])
        sums = np.bincount(numbers[number[rows]], counts[rows], len(self.tables)).astype(np.int64)
        sums[: piece.rows.size] += piece.rows
        piece.rows = sums

    def _table(self, body: memoryview) -> tuple[TableMap, int]:
        found = self._known.get(key := bytes(body))
        if found is None:
            if len(self._known) == _TABLES:
                self._known.clear()
            table = TableMap.parse(body, self._name, self._format.flavor)
            number = self.tables.setdefault((table.database, table.table), len(self.tables))
            found = self._known[key] = table, number
        return found

    def _statements(self, frames: Frames) -> Ints:
        """The QUERY events that are not BEGIN or COMMIT."""
        events = np.flatnonzero(np.isin(frames.type_code, _QUERIES))
        if self._format.post_header_length(_T.QUERY) != _QUERY_HEAD:
            return events
        return events[~_is_frame(frames, events)]

    def _query(self, event: RawEvent) -> None:
        parsed = parse_body(event, self._format, self._name)
        assert isinstance(parsed, Query)
        if parsed.sql in _FRAMES:
            return
        databases = ddl_databases(parsed, event, self._format.flavor)
        if databases is None:
            self.of_any += 1
        else:
            self.named |= databases


def ddl_databases(query: Query, event: RawEvent, flavor: Flavor) -> frozenset[str] | None:
    """The databases of a DDL that concerns no other; None for every other statement: rows that it changes by a trigger
    or a function are not in its text."""
    facts = statement_facts(query.sql, query.session(event.header), flavor)
    is_plain = facts.kind is StatementKind.DDL and facts.databases and facts.reason is None
    runs = facts.create_select or facts.routines_used or facts.functions
    is_open = facts.temporary or facts.created_temporary is not None or query.gtid_extra_flags
    if not is_plain or runs or is_open or query.too_many_databases:
        return None
    return facts.databases | facts.references | frozenset(query.updated_databases or ())


def _is_frame(frames: Frames, events: Ints) -> Flags:
    """Whether QUERY events are BEGIN or COMMIT as servers write them."""
    data, found = frames.data, np.zeros(events.size, np.bool_)
    body = frames.offset[events] + HEADER.size
    end = frames.offset[events] + frames.size[events].astype(np.int64) - frames.checksum_length
    plain = np.flatnonzero((frames.type_code[events] == _T.QUERY) & (end - body >= _QUERY_HEAD))
    body, end = body[plain], end[plain]
    status = data[body + _STATUS_AT].astype(np.int64) + (data[body + _STATUS_AT + 1].astype(np.int64) << 8)
    begin = body + _QUERY_HEAD + status + data[body + _DATABASE_AT] + 1
    for text in _FRAMES:
        alike = np.flatnonzero(end - begin == len(text))
        letters = data[begin[alike][:, None] + np.arange(len(text))]
        found[plain[alike[(letters == np.frombuffer(text, np.uint8)).all(axis=1)]]] = True
    return found


def _maps_of_open_statement(frames: Frames) -> list[bytes]:
    """The TABLE_MAPs behind the last statement's end."""
    kinds = frames.type_code
    # the last event that stands outside of statements, then the last end behind it
    others = kinds.size - 1 - first_of(~_IN_STATEMENT[kinds[::-1]])
    behind = np.arange(others + 1, kinds.size)
    rows = behind[_ROWS[kinds[behind]]]
    ends = rows[frames.ends_statement(rows)]
    maps = behind[kinds[behind] == _T.TABLE_MAP]
    view = frames.data.data
    return [
        bytes(view[frames.begin(each) : frames.begin(each) + int(frames.size[each])])
        for each in maps[maps > (int(ends[-1]) if ends.size else -1)].tolist()
    ]
