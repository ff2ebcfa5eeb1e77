"""The transactions of a log as a restore counts and shows them: the row changes and statements of some databases.

Most of a log is transactions of row changes alone (``binlog.vector.simple_transactions``). They come as arrays, a run
of them at a time, and are read event by event only where a person sees them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.boundaries import Boundaries, Place, State
from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.gtids import Gtid, MariadbGtid
from binlane.binlog.payload import unpack
from binlane.binlog.query import ExecuteLoadQuery, Query
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, count_rows
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector import frames as vector
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.vector.decompress import open_payloads
from binlane.binlog.vector.frames import Frames, frame
from binlane.binlog.vector.simple_transactions import numbered
from binlane.binlog.wire import HEADER, EventType, RawEvent
from binlane.errors import BinlogError
from binlane.lazy_dataclass import dataclass
from binlane.model import Item, ItemKind, LogPosition, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource, LogChunk
from binlane.source.proved import proved
from binlane.source.segments import FramedEvents
from binlane.sql.charset import decoded
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.shared_reading import AmbiguousTextError, Reader, as_read_by_source

_T = EventType
_GTIDS: Final = frozenset({_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED, _T.MARIADB_GTID})
_QUERIES: Final = frozenset({_T.QUERY, _T.QUERY_COMPRESSED, _T.EXECUTE_LOAD_QUERY})
_FRAMES: Final = (b"BEGIN", b"COMMIT", b"ROLLBACK", b"XA", b"SAVEPOINT")
_NAME_AT: Final = 8
"""In TABLE_MAP's body, behind table id and flags: the length of the database's name, then the name."""
_NUMBER_AT: Final = {_T.MARIADB_GTID: 0, _T.GTID: 17}
"""In the body of a GTID event: eight bytes with the transaction's number."""

_PAYLOAD: Final = 4 << 20
"""Inflated bytes of a payload that is looked into with others of its chunk, at most; larger ones alone."""
_PAYLOADS: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class DatabaseChange:
    """A statement that makes or drops a whole database."""

    database: str
    is_dropped: bool
    """What was there is gone: DROP DATABASE, CREATE OR REPLACE DATABASE."""
    is_made: bool
    is_only_if_missing: bool
    """IF NOT EXISTS: what was there may still be."""


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """A transaction in the log."""

    start: LogPosition
    end: LogPosition
    gtid: str
    time: float
    rows: tuple[tuple[str, int], ...]
    """Row changes of the databases, by table."""
    statements: tuple[str, ...]
    """Statements that concern the databases, as their server has executed them."""
    concerns: bool
    """Whether it concerns one of the databases."""
    changes: tuple[DatabaseChange, ...] = ()
    """Of the databases."""
    delay: float = 0.0
    """Seconds from its commit on the server that has executed it first to ``time``, that of the server whose log this
    is; 0 where the log does not tell."""


@dataclass(frozen=True, slots=True)
class RowTransactions:
    """A run of transactions of one file, each directly behind the one before, that change rows and nothing else; one
    entry each."""

    file: str
    start: Ints
    """Offsets in the file."""
    end: Ints
    time: NDArray[np.float64]
    """Of the commit, in seconds since the epoch."""
    number: NDArray[np.uint64]
    """The last part of the GTID; 0 without one."""
    rows: Ints
    """Row changes of the databases."""
    concerns: Flags
    """Whether it concerns one of the databases."""
    read: Callable[[int], LoggedTransaction]
    """One of them as a whole, by its entry."""

    def first(self, count: int) -> RowTransactions:
        """The first ones."""
        return RowTransactions(
            self.file, self.start[:count], self.end[:count], self.time[:count], self.number[:count],
            self.rows[:count], self.concerns[:count], self.read,
        )  # fmt: skip


def logged_transactions(
    source: EventSource,
    start: Start,
    databases: frozenset[str],
    passes: Callable[[RowTransactions], int],
    add_bytes: Callable[[int], None],
) -> Generator[LoggedTransaction | RowTransactions, None, None]:
    """Every transaction behind ``start``, in the log's order.

    ``passes``: how many of a run's first transactions may come together; the next one comes alone. ``add_bytes`` gets
    the bytes that are read. Raises as ``proved``.
    """
    reader = TransactionReader(source.name, databases, passes)
    with contextlib.closing(proved(source, start)) as chunks:
        for chunk in chunks:
            if chunk.offset != LOG_START:
                add_bytes(len(chunk.data))
            yield from reader.take(chunk)


class TransactionReader:
    """Give it a log's chunks in order; see ``logged_transactions``."""

    def __init__(self, log: str, databases: frozenset[str], passes: Callable[[RowTransactions], int]) -> None:
        """``log``: its name, for messages."""
        self._log, self._databases, self._passes = log, databases, passes
        self._name, self._format = "", FormatDescription("")
        self._boundaries = Boundaries(self._format, "")
        self._reading: _Reading | None = None

    def take(
        self, chunk: LogChunk, framed: FramedEvents | None = None
    ) -> Iterator[LoggedTransaction | RowTransactions]:
        """The transactions that end in a chunk. ``framed``: its events, where they are known. Raises BinlogError."""
        if chunk.offset == LOG_START:
            self._name = f"{self._log}/{chunk.file}"
            self._format = described(chunk.data, self._name)
            self._boundaries = Boundaries(self._format, self._name)
            return
        if framed is None:
            frames = frame(chunk.data, 0, self._format.checksum.length)
            frames.check(self._name)
            query_head = self._format.post_header_length(_T.QUERY)
            framed = FramedEvents(frames, numbered(frames, query_head, looks_inside=False))
        frames = framed.frames
        simple = _Simple.of(framed, self._format, self._name, self._databases)
        index = 0
        while index < frames.offset.size:
            if self._boundaries.state is State.OUTSIDE and (entries := simple.run_at(index)).start < entries.stop:
                run = simple.transactions(entries, chunk)
                if (count := self._passes(run)) > 0:
                    yield run.first(count)
                    index = int(simple.last[entries.start + count - 1]) + 1
                    continue
            event = frames.raw(index, chunk.offset)
            index += 1
            place = self._boundaries.feed(event)
            if place is Place.OUTSIDE:
                continue
            if self._reading is None:
                self._reading = _Reading.of(event, self._format, self._name, self._databases, chunk.file)
            self._reading.take(event)
            if place is Place.END:
                yield self._reading.transaction(event)
                self._reading = None


@dataclass(frozen=True, slots=True)
class _Simple:
    """The simple transactions of a chunk."""

    frames: Frames
    log_format: FormatDescription
    name: str
    databases: frozenset[str]
    first: Ints
    """Number of the first event; one entry a transaction, here and below."""
    last: Ints
    run_end: Ints
    time: NDArray[np.float64]
    number: NDArray[np.uint64]
    rows: Ints
    concerns: Flags
    odd: Ints
    """Entries that are read event by event: compressed ones of the databases, and rows that cannot be counted, which
    are an error only in the databases of the restore."""

    @classmethod
    def of(cls, framed: FramedEvents, log_format: FormatDescription, name: str, databases: frozenset[str]) -> _Simple:
        frames, simple = framed.frames, framed.simple
        is_odd = _payloads_of(frames, databases)[simple.last]
        behind = simple.last + 1
        rows = np.zeros(simple.first.size, np.int64)
        concerns = np.zeros(simple.first.size, np.bool_)
        if databases:
            mapped = _sums(_maps_of(frames, databases))
            concerns = mapped[behind] > mapped[simple.first]
        counted = concerns & ~is_odd
        if counted.any():
            try:
                changes = _sums(
                    _row_changes(frames, log_format, name, databases, simple.first[counted], behind[counted])
                )
            except BinlogError:
                is_odd |= concerns
            else:
                rows = changes[behind] - changes[simple.first]
        return cls(
            frames, log_format, name, databases, simple.first, simple.last, simple.run_end, simple.time,
            _numbers(frames, simple.first), rows, concerns, np.flatnonzero(is_odd),
        )  # fmt: skip

    def run_at(self, event: int) -> slice:
        """The entries of the run that begins at an event; none if no simple transaction begins there."""
        at = int(np.searchsorted(self.first, event))
        if at == self.first.size or self.first[at] != event:
            return slice(at, at)
        odd = int(np.searchsorted(self.odd, at))
        end = int(self.run_end[at])
        return slice(at, end if odd == self.odd.size else min(end, int(self.odd[odd])))

    def transactions(self, entries: slice, chunk: LogChunk) -> RowTransactions:
        """Of a run."""
        first, last = self.first[entries], self.last[entries]

        def read(entry: int) -> LoggedTransaction:
            events = [self.frames.raw(each, chunk.offset) for each in range(int(first[entry]), int(last[entry]) + 1)]
            reading = _Reading.of(events[0], self.log_format, self.name, self.databases, chunk.file)
            for event in events:
                reading.take(event)
            return reading.transaction(events[-1])

        offset, size = self.frames.offset, self.frames.size
        return RowTransactions(
            chunk.file, chunk.offset + offset[first], chunk.offset + offset[last] + size[last], self.time[entries],
            self.number[entries], self.rows[entries], self.concerns[entries], read,
        )  # fmt: skip


def _sums(values: NDArray[np.int64] | Flags) -> Ints:
    """Entry n: the sum of the first n values."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))


def _maps_of(frames: Frames, databases: Collection[str]) -> Flags:
    """Whether an event is a TABLE_MAP of one of the databases."""
    found = np.zeros(frames.offset.size, np.bool_)
    maps = np.flatnonzero(frames.type_code == _T.TABLE_MAP)
    body = frames.offset[maps] + HEADER.size
    room = frames.size[maps].astype(np.int64) - HEADER.size - frames.checksum_length - _NAME_AT - 1
    maps, body, room = maps[room >= 0], body[room >= 0], room[room >= 0]
    length = frames.data[body + _NAME_AT].astype(np.int64)
    for name in {each.encode() for each in databases}:
        alike = np.flatnonzero((length == len(name)) & (room >= len(name)))
        places = (body[alike] + _NAME_AT + 1)[:, None] + np.arange(len(name))
        found[maps[alike[(frames.data[places] == np.frombuffer(name, np.uint8)).all(axis=1)]]] = True
    return found


def _payloads_of(frames: Frames, databases: Collection[str]) -> Flags:
    """Whether an event is a TRANSACTION_PAYLOAD that may be of one of the databases: what it holds would have the
    name as it is."""
    if not databases:
        return np.zeros(frames.offset.size, np.bool_)
    found: Flags = frames.type_code == _T.TRANSACTION_PAYLOAD
    opened = open_payloads(frames, _PAYLOAD, _PAYLOADS) if found.any() else None
    if opened is None:
        return found
    found[opened.event] = False
    data = opened.data.tobytes()
    for name in databases:
        at = data.find(name.encode())
        while at >= 0:
            payload = int(np.searchsorted(opened.start, at, "right")) - 1
            found[opened.event[payload]] = True
            at = data.find(name.encode(), int(opened.start[payload + 1]))
    return found


def _row_changes(
    frames: Frames, log_format: FormatDescription, name: str, databases: Collection[str], first: Ints, behind: Ints
) -> Ints:
    """Row changes of the databases, by event, in the transactions from ``first`` to in front of ``behind``."""
    edges = np.zeros(frames.offset.size + 1, np.int64)
    edges[first] += 1
    edges[behind] -= 1
    events = np.flatnonzero(np.cumsum(edges[:-1]))
    inner = frames.select(events)
    index = vector.index_rows(inner, name)
    tables = vector.table_maps(inner, index, name, log_format.flavor)
    counts = vector.count_rows(inner, index, tables, name)
    # the last entry is that of events without a table, whose number is -1
    wanted = np.array([*(table.database in databases for table in tables), False])
    found = np.zeros(frames.offset.size, np.int64)
    found[events] = np.where(wanted[index.number], counts, 0)
    return found


def _numbers(frames: Frames, first: Ints) -> NDArray[np.uint64]:
    """The numbers of the GTIDs in these events; 0 for other events."""
    found = np.zeros(first.size, np.uint64)
    for kind, at in _NUMBER_AT.items():
        gtids = np.flatnonzero(frames.type_code[first] == kind)
        places = (frames.offset[first[gtids]] + HEADER.size + at)[:, None] + np.arange(8)
        found[gtids] = frames.data[places].view("<u8").ravel()
    return found


@dataclass(slots=True)
class _Reading:
    """The transaction that is being read."""

    log_format: FormatDescription
    name: str
    databases: frozenset[str]
    file: str
    offset: int
    gtid: str
    time: float
    delay: float
    _maps: dict[int, TableMap | None] = field(default_factory=dict)
    _rows: Counter[str] = field(default_factory=Counter)
    _statements: list[str] = field(default_factory=list)
    _changes: list[DatabaseChange] = field(default_factory=list)

    @classmethod
    def of(
        cls, event: RawEvent, log_format: FormatDescription, name: str, databases: frozenset[str], file: str
    ) -> _Reading:
        gtid, time, delay = "", float(event.header.timestamp), 0.0
        if event.header.type_code in _GTIDS:
            parsed = parse_body(event, log_format, name)
            if isinstance(parsed, MariadbGtid):
                gtid = parsed.name(event.header.server_id)
            elif isinstance(parsed, Gtid):
                gtid = "" if event.header.type_code == _T.ANONYMOUS_GTID else str(parsed)
                if parsed.immediate_commit_timestamp is not None:
                    time = parsed.immediate_commit_timestamp / 1_000_000
                    first = parsed.original_commit_timestamp
                    delay = 0.0 if not first else time - first / 1_000_000
        return cls(log_format, name, databases, file, int(event.offset), gtid, time, delay)

    def take(self, event: RawEvent) -> None:
        code = event.header.type_code
        if code == _T.TABLE_MAP:
            table = TableMap.parse(event.body, self.name, self.log_format.flavor)
            self._maps[table.table_id] = table if table.database in self.databases else None
        elif code in ROWS_KINDS:
            if any(table is not None for table in self._maps.values()):
                rows = RowsEvent.parse(code, event.body, self.name)
                table_of = self._maps.get(rows.table_id)
                if table_of is not None:
                    self._rows[f"{table_of.database}.{table_of.table}"] += count_rows(rows, table_of, self.name)
        elif code in _QUERIES:
            self._query(event)
        elif code == _T.TRANSACTION_PAYLOAD:
            for inner in unpack(event, self.name):
                self.take(inner)

    def _query(self, event: RawEvent) -> None:
        parsed = parse_body(event, self.log_format, self.name)
        query = parsed.query if isinstance(parsed, ExecuteLoadQuery) else parsed
        assert isinstance(query, Query)
        if query.sql.startswith(_FRAMES):
            return
        session = query.session(event.header)
        # most statements are of other databases
        if session.database not in self.databases and not any(_may_name(query.sql, each) for each in self.databases):
            return
        sql = self._executed(query.sql, session)
        facts = statement_facts(sql, session, self.log_format.flavor)
        listed = frozenset(query.updated_databases or ())
        is_unknown = not facts.databases and session.database in self.databases
        if is_unknown or not self.databases.isdisjoint(facts.databases | listed):
            self._statements.append(decoded(sql, session))
            if facts.kind is StatementKind.DDL:
                self._databases(sql, session)

    def _executed(self, sql: bytes, session: SessionContext) -> bytes:
        """Without conditional comments: dumps have them around DROP DATABASE and IF NOT EXISTS."""
        flavor = self.log_format.flavor
        try:
            return as_read_by_source(sql, session, Reader(flavor, self.log_format.version), flavor)
        except AmbiguousTextError:
            # a window refuses it
            return sql

    def _databases(self, sql: bytes, session: SessionContext) -> None:
        item = Item(ItemKind.DDL, sql, context=session)
        text = LoggedText.of(0, LogPosition(self.file, self.offset), item, self.log_format.flavor)
        if text is None:
            return
        dropped, made = text.dropped_databases, text.made_databases
        for name in sorted((dropped | made) & self.databases):
            self._changes.append(DatabaseChange(name, name in dropped, name in made, text.is_only_if_missing))

    def transaction(self, last: RawEvent) -> LoggedTransaction:
        """Called with the last event."""
        end = int(last.offset) + last.header.event_size
        start, behind = LogPosition(self.file, self.offset), LogPosition(self.file, end)
        concerns = bool(self._rows or self._statements)
        rows = tuple(sorted(self._rows.items()))
        return LoggedTransaction(
            start, behind, self.gtid, self.time, rows, tuple(self._statements), concerns, tuple(self._changes),
            self.delay,
        )  # fmt: skip


def _may_name(sql: bytes, database: str) -> bool:
    """Whether a statement may have the name of a database, in whatever character set and quotes."""
    return not database.isascii() or "`" in database or database.encode() in sql
