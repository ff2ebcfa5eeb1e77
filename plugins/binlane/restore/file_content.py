"""What one file of a log holds, whoever asks: its tables by the megabyte, and which databases its statements name.

Whether a file holds nothing of a database is read from here, so what is not understood counts for every database:
only row changes, whose TABLE_MAP names the table, and DDL of whose text every name is known, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.query import Query
from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector import frames as vector
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.vector.frames import Frames, TableLayouts, frame
from binlane.binlog.vector.inflated_segment import inflated
from binlane.binlog.wire import HEADER, Buffer, EventType, RawEvent
from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.plan.transaction.decode import statement_facts
from binlane.restore.file_keys import KeyCollector
from binlane.source.end_position import first_of
from binlane.source.identity import described
from binlane.source.protocol import LOG_START, LogChunk
from binlane.source.segments import FramedEvents
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
_IS_QUERY: Final = np.zeros(256, np.bool_)
_IS_QUERY[list(_QUERIES)] = True
_PACKED: Final = np.zeros(256, np.bool_)
"""By event type: those whose rows are not in the log as they are."""
_PACKED[[_T.TRANSACTION_PAYLOAD, *COMPRESSED_ROWS]] = True
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
_MOST: Final = 4 << 20
"""Bytes of the definitions that are known at the beginning of a chunk: parsed, they may take fifty times as much."""
_ID: Final = 6
"""Bytes of the table id in TABLE_MAP's body: a server gives a table another one whenever it opens it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """About a megabyte of a file: [start, end)."""

    start: int
    end: int
    tables: Ints
    """The numbers in ``FileContent.tables`` of those with a TABLE_MAP or rows, ascending."""
    rows: Ints
    """Row changes of each."""
    transactions: dict[str, int]
    """Transactions that change rows, by database; none in a log without GTID events."""


class _Definitions:
    """Definitions of tables, by the body of their TABLE_MAP without the table id: parsing each one again would be most
    of the time."""

    def __init__(self) -> None:
        self.number: dict[bytes, int] = {}
        self.bytes = 0
        """Of them in the log."""
        self.tables: list[TableMap] = []
        """One entry a definition, here and below."""
        self._table, self._database, self._form = list[int](), list[int](), list[int]()
        self._layouts = vector.table_layouts(())

    def add(self, key: bytes, table: TableMap, number: int, database: int, form: int) -> int:
        """The number of a new definition. ``number``, ``database``, ``form``: of the table, its database and its first
        column."""
        self.number[key] = found = len(self.tables)
        self.bytes += len(key)
        self.tables.append(table)
        self._table.append(number)
        self._database.append(database)
        self._form.append(form)
        return found

    @property
    def table(self) -> Ints:
        """The numbers of the tables."""
        return np.array(self._table, np.int64)

    @property
    def database(self) -> Ints:
        """The numbers of the databases."""
        return np.array(self._database, np.int64)

    @property
    def form(self) -> Ints:
        """The numbers of the forms of the first columns (``KeyCollector``)."""
        return np.array(self._form, np.int64)

    def layouts(self) -> TableLayouts:
        """Of all of them."""
        if self._layouts.tables.shape[0] != len(self.tables):
            self._layouts = vector.table_layouts(self.tables)
        return self._layouts


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
        self._databases: dict[str, int] = {}
        """The databases of the tables; their numbers."""
        self._open: set[int] = set()
        """The databases that the last transaction has changed so far."""
        self._definitions = _Definitions()
        self.keys = KeyCollector()

    def take(self, chunk: LogChunk, framed: FramedEvents | None = None) -> None:
        """``framed``: its events, where they are known. Raises BinlogError."""
        if chunk.offset == LOG_START:
            self._name = f"{self._log}/{chunk.file}"
            self._format = described(chunk.data, self._name)
            return
        frames = self._framed(chunk.data) if framed is None else framed.frames
        parts = _parts(frames, goes_on=bool(self._maps)) if frames.offset.size else [0]
        if not self._maps and len(parts) == 2:
            self._take(frames, 0, chunk.offset)
            return
        whole = memoryview(chunk.data)
        for start, end in pairwise(parts):
            maps, data = self._maps, whole[start:end]
            carried = sum(map(len, maps))
            framed_part = self._framed(b"".join((*maps, data)) if maps else data)
            self._take(framed_part, len(maps), chunk.offset + start - carried)

    def _framed(self, data: Buffer) -> Frames:
        frames = frame(data, 0, self._format.checksum.length)
        frames.check(self._name)
        return frames

    def _take(self, frames: Frames, carried: int, begin: int) -> None:
        """Events, of which the first ``carried`` are the TABLE_MAPs of a statement that goes on. ``begin``: offset in
        the file of where their first byte is, or would be."""
        self.last_type, self.last_time = int(frames.type_code[-1]), int(frames.timestamp[-1])
        self._maps = _maps_of_open_statement(frames)
        cuts = _cuts(frames.offset[carried:], frames.end)
        if (laid_out := inflated(frames)) is not None:
            # the maps in front are no compressed events, and stay there
            frames, cuts[1:-1] = frame(laid_out.data, 0, frames.checksum_length), []
        self.of_any += int(np.count_nonzero(~_KNOWN[frames.type_code]))
        for event in self._statements(frames).tolist():
            self._query(frames.raw(event))
        self._count(frames, carried, cuts, begin)

    def _count(self, frames: Frames, carried: int, cuts: Sequence[int], begin: int) -> None:
        """The tables and row changes, by the piece. ``cuts``: where the pieces begin, and the end."""
        index = vector.index_rows(frames, self._name)
        local = self._defined(frames, index.first)
        # -1, for an event without a table, is the last entry
        number = np.append(local, -1)[index.number].astype(np.int32)
        piece = np.searchsorted(cuts[1:-1], frames.offset, "right")
        tables, counts = self._rows(frames, number, piece, local, len(cuts) - 1)
        changing = self._transactions(frames, number, piece, carried)
        for at, (start, end) in enumerate(pairwise(cuts)):
            there = np.flatnonzero(counts[at] >= 0)
            self.pieces.append(
                Piece(begin + start, begin + end, tables[there], counts[at, there], changing.get(at, {}))
            )

    def _defined(self, frames: Frames, events: Ints) -> Ints:
        """The definitions of these TABLE_MAPs, which are the first ones of each."""
        known, data = self._definitions, frames.data.data
        if known.bytes > _MOST:
            known = self._definitions = _Definitions()
        begins = frames.offset[events] + HEADER.size
        ends = begins + frames.size[events] - HEADER.size - frames.checksum_length
        found = np.empty(events.size, np.int64)
        for at, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
            number = known.number.get(key := bytes(data[begin + _ID : end]))
            if number is None:
                table = TableMap.parse(data[begin:end], self._name, self._format.flavor)
                place = self.tables.setdefault((table.database, table.table), len(self.tables))
                database = self._databases.setdefault(table.database, len(self._databases))
                number = known.add(key, table, place, database, self.keys.form_of(table, self._format.flavor))
            found[at] = number
        return found

    def _rows(
        self, frames: Frames, number: NDArray[np.int32], piece: Ints, local: Ints, pieces: int
    ) -> tuple[Ints, Ints]:
        """The tables of these definitions, and their row changes by piece; -1 for a table that is not in the piece.
        ``number``: the definition of each event."""
        if not local.size:
            return local, np.zeros((pieces, 0), np.int64)
        known = self._definitions
        counts = self._counts(frames, number)
        # a table that is altered has several definitions
        tables = np.unique(known.table[local])
        events = np.flatnonzero(number >= 0)
        place = np.searchsorted(tables, known.table)
        keys, room = piece[events] * tables.size + place[number[events]], pieces * tables.size
        sums = np.bincount(keys, counts[events], room).astype(np.int64)
        sums[np.bincount(keys, minlength=room) == 0] = -1
        return tables, sums.reshape(pieces, tables.size)

    def _counts(self, frames: Frames, number: NDArray[np.int32]) -> Ints:
        """Row changes by event, whose first columns are collected."""
        known = self._definitions
        layouts = known.layouts()
        try:
            counts, images, lacking = vector.row_images(frames, number, layouts, self._name)
        except UnsupportedEventError:
            # of all tables of the chunk, as it is not worth a look which ones
            self.keys.leave_out([known.tables[each] for each in np.unique(number[number >= 0]).tolist()])
            return vector.count_events(frames, number, known.tables, layouts, self._name)
        odd = np.unique(number[lacking])
        if odd.size:
            self.keys.leave_out([known.tables[each] for each in odd.tolist()])
        definition = np.repeat(number, counts).astype(np.int64)
        kept = ~np.isin(definition, odd) if odd.size else slice(None)
        if definition[kept].size:
            self.keys.take(frames.data, known.tables, known.form, definition[kept], images[kept])
        return counts

    def _transactions(
        self, frames: Frames, number: NDArray[np.int32], piece: Ints, carried: int
    ) -> dict[int, dict[str, int]]:
        """How many transactions change rows of each database, by the piece in which they first do."""
        begun = np.cumsum(_BEGINS[frames.type_code])
        mapped = np.flatnonzero(frames.type_code == _T.TABLE_MAP)
        mapped = mapped[mapped >= carried]
        # a transaction, counted from the open one, and a database that it changes
        of, which, room = begun[mapped], self._definitions.database[number[mapped]], len(self._databases)
        keys = of * room + which
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])
        if (of[first][1:] == of[first][:-1]).any():
            _, first = np.unique(keys, return_index=True)
        of, which, mapped = of[first], which[first], mapped[first]
        last = {*which[of == begun[-1]].tolist()}
        is_new = of > 0
        if self._has_begun:
            is_new |= ~np.isin(which, [*self._open])
        self._open = last if begun[-1] else self._open | last
        self._has_begun |= bool(begun[-1])
        pairs, counts = np.unique(piece[mapped[is_new]] * room + which[is_new], return_counts=True)
        names, found = [*self._databases], dict[int, dict[str, int]]()
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            found.setdefault(pair // room, {})[names[pair % room]] = count
        return found

    def _statements(self, frames: Frames) -> Ints:
        """The QUERY events that are not BEGIN or COMMIT."""
        events = np.flatnonzero(_IS_QUERY[frames.type_code])
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


def _cuts(starts: Ints, end: int) -> list[int]:
    """Where the first event of each piece begins, and the end of the last."""
    cuts = [int(starts[0])]
    while (at := int(np.searchsorted(starts, cuts[-1] + _PIECE))) < starts.size:
        cuts.append(int(starts[at]))
    return [*cuts, end]


def _parts(frames: Frames, *, goes_on: bool) -> list[int]:
    """Where parts begin that are taken one by one, and the end. ``goes_on``: the first events are of a statement that
    goes on, and whose TABLE_MAPs have to be put in front of them."""
    starts, at = frames.offset, 0
    if goes_on:
        is_last = ~_IN_STATEMENT[frames.type_code]
        rows = np.flatnonzero(_ROWS[frames.type_code])
        is_last[rows[frames.ends_statement(rows)]] = True
        at = min(first_of(is_last) + 1, starts.size)
    if at == starts.size:
        return [0, frames.end]
    # what is inflated at a time has a limit, and what is beyond it is not read
    rest = _cuts(starts[at:], frames.end) if _PACKED[frames.type_code].any() else [int(starts[at]), frames.end]
    return rest if at == 0 else [0, *rest]


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
