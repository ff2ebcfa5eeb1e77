"""Simple transactions found as arrays: their GTID event or BEGIN, row events, XID, and nothing that could mean more.

Most logs are made of little else, and nothing has to be decided about them: whoever walks a log event by event
(``boundaries``) may step over a run of them at once. What is not simple in every detail is left to that walk, so the
rules stand there alone, and this may say "not simple" as often as it likes. One rule finds their ends, for two readers:

- extraction numbers them: ``numbered``, those whose GTID and time are known here, compressed ones among them;
- the plan job sends them to lanes: ``of_one_database``, those of whole statements over tables of one database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.gtids import MariadbExtraFlag, MariadbGtidFlag
from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Words
from binlane.binlog.vector.compiled import AHEAD, kernel, prefetch
from binlane.binlog.vector.decompress import open_payloads
from binlane.binlog.vector.frames import Frames
from binlane.binlog.wire import HEADER, EventType

_T = EventType
_OTHER, _BETWEEN, _MARIADB_GTID, _GTID, _QUERY, _XID, _PAYLOAD, _MAP, _ROWS, _COMPRESSED, _NOTE = range(11)
_ROLES: Final = np.zeros(256, np.uint8)
"""By event type; from ``_MAP`` on those that stand between BEGIN and XID."""
for _role, _codes in {
    _BETWEEN: (
        _T.FORMAT_DESCRIPTION,
        _T.ROTATE,
        _T.STOP,
        _T.PREVIOUS_GTIDS,
        _T.MARIADB_GTID_LIST,
        _T.BINLOG_CHECKPOINT,
    ),
    _MARIADB_GTID: (_T.MARIADB_GTID,),
    _GTID: (_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED),
    _QUERY: (_T.QUERY,),
    _XID: (_T.XID,),
    _PAYLOAD: (_T.TRANSACTION_PAYLOAD,),
    _MAP: (_T.TABLE_MAP,),
    _ROWS: (
        *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
        *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
    ),
    _COMPRESSED: tuple(COMPRESSED_ROWS),
    _NOTE: (_T.ROWS_QUERY, _T.ANNOTATE_ROWS),
}.items():
    _ROLES[list(_codes)] = _role
IS_BETWEEN: Final[Flags] = _ROLES == _BETWEEN
"""By event type: a server's bookkeeping between transactions, which belongs to none."""
IS_INSIDE: Final[Flags] = _ROLES >= _MAP
"""By event type: those from which, inside BEGIN, nothing follows. Most of a log."""

_MOST: Final = 1 << 20
"""Inflated bytes of one payload that is looked into here, at most: of a larger one its first event alone is read."""
_BUDGET: Final = 32 << 20
"""The same of a buffer's payloads together, which are in memory for a moment."""
_CODE_AT: Final = 4
_SERVER_ID_AT: Final = 5
_SIZE_AT: Final = 9
_ROWS_FLAGS_AT: Final = 6
_STMT_END: Final = 1
_TAGGED: Final = int(_T.GTID_TAGGED)
_QUERY_CODE: Final = int(_T.QUERY)
_GROUP_COMMIT: Final = int(MariadbGtidFlag.GROUP_COMMIT_ID)
_ODD_FLAGS: Final = int(
    MariadbGtidFlag.STANDALONE | MariadbGtidFlag.DDL | MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA
)
_MARIADB_HEAD: Final = 13
_THREAD_ID: Final = int(MariadbExtraFlag.THREAD_ID)
_LOGICAL_CLOCK: Final = 2
_NUMBERED: Final = 1
_UNCOUNTED: Final = 0
_BEGIN: Final = np.frombuffer(b"BEGIN", np.uint8)
_HEADER: Final = HEADER.size
_QUERY_HEAD: Final = 13
"""QUERY's post-header since MySQL 5.0; its lengths of database and status variables stand at 8 and 11."""
_TIMES_AT: Final = 42
"""Where MySQL's GTID event has the commit's time, from 8.0.1 on."""
_HAS_ORIGINAL: Final = 1 << 55
_MICROSECONDS: Final = 1_000_000
_UNKNOWN: Final = -2
"""Instead of a commit's time: nothing is known of a GTID event but that it begins a transaction."""
_SEVERAL: Final = -2
"""Instead of a database: there are several, or it is not looked at."""


@dataclass(frozen=True, slots=True)
class SimpleTransactions:
    """Simple transactions among a buffer's events; one entry each, in the log's order."""

    first: Ints
    """Number of the first event."""
    last: Ints
    """Number of the XID event, or of the payload."""
    run_end: Ints
    """The first entry behind the run of transactions that stand directly behind each other."""

    def run_at(self, event: int) -> slice:
        """The entries of the run that begins at an event, none if no simple transaction begins there."""
        at = int(np.searchsorted(self.first, event))
        if at == self.first.size or self.first[at] != event:
            return slice(at, at)
        return slice(at, int(self.run_end[at]))


@dataclass(frozen=True, slots=True)
class NumberedTransactions(SimpleTransactions):
    """Simple transactions with what their GTID events say."""

    time: NDArray[np.float64]
    """Commit time, in seconds since the epoch."""
    follows: Flags
    """The GTID is the next one after that of the entry before: of one server and, in MariaDB, of one domain."""

    def lines(self, entries: slice) -> Iterator[tuple[int, int]]:
        """First and last entry of each stretch of GTIDs that follow each other."""
        breaks = (np.flatnonzero(~self.follows[entries.start + 1 : entries.stop]) + entries.start + 1).tolist()
        yield from zip([entries.start, *breaks], [*(one - 1 for one in breaks), entries.stop - 1], strict=True)


@dataclass(frozen=True, slots=True)
class DatabaseTransactions(SimpleTransactions):
    """Simple transactions over tables of one database each."""

    database: NDArray[np.int32]
    """Its number."""


def numbered(frames: Frames, query_head: int, *, looks_inside: bool = True) -> NumberedTransactions:
    """Those whose GTID event is of a kind that is known here; ``query_head`` is the length of QUERY's post-header.

    ``looks_inside``: compressed ones are simple only if they begin with BEGIN, not if any payload will do.
    """
    is_whole = _begun(frames) if looks_inside else frames.type_code == _T.TRANSACTION_PAYLOAD
    room = int(np.count_nonzero(frames.type_code == _T.XID) + np.count_nonzero(is_whole))
    first, last = np.empty(room, np.int64), np.empty(room, np.int64)
    # one more: a transaction that has begun writes here before its end is seen
    time, line = np.empty(room + 1, np.int64), np.empty((room + 1, 4), np.uint64)
    count = _find_numbered(
        frames.data, frames.offset, frames.type_code, frames.size, frames.header_length, frames.checksum_length,
        query_head == _QUERY_HEAD, is_whole, first, last, time, line,
    )  # fmt: skip
    first, last, time, line = first[:count], last[:count], time[:count], line[:count]
    seconds = np.where(time < 0, frames.timestamp[first].astype(np.float64), time / _MICROSECONDS)
    follows = np.zeros(first.size, np.bool_)
    # MySQL counts; of a MariaDB domain the newest counts, whatever came before it; anonymous ones are in no set
    counts = line[1:, 2] == _NUMBERED
    follows[1:] = (line[1:, :3] == line[:-1, :3]).all(axis=1) & (~counts | (line[1:, 3] - line[:-1, 3] == 1))
    return NumberedTransactions(first, last, _run_end(first, last), seconds, follows)


def of_one_database(
    frames: Frames, query_head: int, number: NDArray[np.int32], database_of_table: NDArray[np.int32]
) -> DatabaseTransactions:
    """Those of whole statements that change rows of one database's tables and are not compressed.

    ``number``: each event's table; ``database_of_table``: each table's database.
    """
    room = int(np.count_nonzero(frames.type_code == _T.XID)) if frames.header_length == HEADER.size else 0
    first, last, database = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    count = 0
    if room:
        count = _find_of_one_database(
            frames.data, frames.offset, frames.type_code, frames.size, frames.checksum_length,
            query_head == _QUERY_HEAD, number, database_of_table, first, last, database,
        )  # fmt: skip
    first, last = first[:count], last[:count]
    return DatabaseTransactions(first, last, _run_end(first, last), database[:count])


def _run_end(first: Ints, last: Ints) -> Ints:
    ends = np.append(np.flatnonzero(first[1:] != last[:-1] + 1) + 1, first.size)
    return ends[np.searchsorted(ends, np.arange(first.size), "right")]


def _begun(frames: Frames) -> Flags:
    """The payloads that are known to begin with BEGIN, an entry an event."""
    begun = np.zeros(frames.offset.size, np.bool_)
    opened = open_payloads(frames, _MOST, _BUDGET)
    if opened is not None:
        _find_begun(opened.data, opened.start, opened.event, begun)
    return begun


@kernel
def _find_begun(data: Bytes, start: Ints, event: Ints, begun: Flags) -> None:
    for place in range(event.size):
        at, end = start[place], start[place + 1]
        if end - at < _HEADER or data[at + _CODE_AT] != _QUERY_CODE:
            continue
        size = np.int64(_number(data, at + _SIZE_AT, 4))
        begun[event[place]] = size <= end - at and _is_begin(data, at + _HEADER, at + size)


@kernel
def _number(data: Bytes, at: int, length: int) -> np.uint64:
    value = np.uint64(0)
    for index in range(length):
        value |= np.uint64(data[at + index]) << np.uint64(8 * index)
    return value


@kernel
def _mariadb(data: Bytes, header: int, at: int, end: int, line: Words) -> bool:
    """Whether the GTID event with its body at [at, end) is of a kind that is known here; fills ``line``.

    Body: number u64, domain u32, flags u8, by a flag a group commit's id u64; since 10.5 extra flags u8 and, by one of
    them, thread u32.
    """
    needed = _MARIADB_HEAD + (8 if data[at + 12] & _GROUP_COMMIT else 0)
    if end - at < needed:
        return False
    # the post-header is filled up with zeros to 19 bytes, which say: nothing extra
    if end - at > needed:
        extra = data[at + needed]
        if extra & ~_THREAD_ID or (extra and end - at < needed + 5):
            return False
    line[0] = _number(data, at + 8, 4)
    line[1] = _number(data, header + _SERVER_ID_AT, 4)
    line[2] = _UNCOUNTED
    line[3] = _number(data, at, 8)
    return True


@kernel
def _mysql(data: Bytes, at: int, end: int, line: Words) -> int:
    """Microseconds of the commit, -1 if the GTID event does not hold them, or ``_UNKNOWN``; fills ``line``.

    Body: flags u8, UUID 16, number i64, kind of clock u8, two clocks i64, commit time 7 bytes with a bit that says
    that another one follows.
    """
    length = end - at
    if length < _TIMES_AT or data[at + 25] != _LOGICAL_CLOCK or data[at + 24] & 0x80:
        return _UNKNOWN
    line[0] = _number(data, at + 1, 8)
    line[1] = _number(data, at + 9, 8)
    line[3] = _number(data, at + 17, 8)
    line[2] = _NUMBERED if line[3] else _UNCOUNTED
    if length == _TIMES_AT:
        return -1
    if length < _TIMES_AT + 7:
        return _UNKNOWN
    time = int(np.int64(_number(data, at + _TIMES_AT, 7)))
    if time & _HAS_ORIGINAL:
        if length < _TIMES_AT + 14:
            return _UNKNOWN
        time &= ~_HAS_ORIGINAL
    return time


@kernel
def _is_begin(data: Bytes, at: int, end: int) -> bool:
    """Whether the QUERY with its body at [at, end) says BEGIN and nothing else."""
    if end - at < _QUERY_HEAD:
        return False
    sql = at + _QUERY_HEAD + np.int64(data[at + 8]) + np.int64(_number(data, at + 11, 2)) + 1
    if end - sql != _BEGIN.size:
        return False
    for index in range(_BEGIN.size):  # numba compiles no generators
        if data[sql + index] != _BEGIN[index]:
            return False
    return True


@kernel
def _next(
    data: Bytes, role: int, at: int, end: int, knows_query: bool, event: int, opened: int, needs_begin: bool
) -> tuple[int, bool, bool]:
    """What an event with its body at [at, end) does to the simple transaction that is open, -1 if none is.

    Returns the first event of the one that is open behind it, whether that needs a BEGIN next, and whether the event
    ends the one that was open before it. The event is no payload, but one that is a whole transaction.
    """
    follows_gtid = needs_begin and opened == event - 1
    if (role == _XID and opened >= 0 and not needs_begin) or (role == _PAYLOAD and follows_gtid):
        return -1, False, True
    if role == _QUERY and knows_query and (follows_gtid or opened < 0) and _is_begin(data, at, end):
        # with none open: no GTIDs in this log
        return (opened if follows_gtid else event), False, False
    if role == _MARIADB_GTID and end - at >= _MARIADB_HEAD and not data[at + 12] & _ODD_FLAGS:
        return event, False, False
    if role == _GTID and knows_query:
        return event, True, False
    return -1, False, False


@kernel
def _find_numbered(
    data: Bytes, offset: Ints, kind: Bytes, size: NDArray[np.uint32], header_length: int, tail: int, knows_query: bool,
    is_whole: Flags, first: Ints, last: Ints, time: Ints, line: Words,
) -> int:  # fmt: skip
    """Fills the last four arrays; returns how many there are. ``is_whole``: payloads that are a transaction."""
    count, opened, needs_begin = 0, -1, False
    for event in range(offset.size):
        role = _ROLES[kind[event]]
        if role >= _MAP:
            continue
        if role == _PAYLOAD and not is_whole[event]:
            role = _OTHER
        at, end = offset[event] + header_length, offset[event] + size[event] - tail
        begun = opened
        opened, needs_begin, is_end = _next(data, role, at, end, knows_query, event, begun, needs_begin)
        if is_end and time[count] != _UNKNOWN:
            first[count], last[count] = begun, event
            count += 1
        elif opened == event:
            time[count] = _UNKNOWN
            if role == _MARIADB_GTID and _mariadb(data, offset[event], at, end, line[count]):
                time[count] = -1
            elif role == _GTID and kind[event] != _TAGGED:
                time[count] = _mysql(data, at, end, line[count])
    return count


@kernel
def _find_of_one_database(
    data: Bytes, offset: Ints, kind: Bytes, size: NDArray[np.uint32], tail: int, knows_query: bool,
    number: NDArray[np.int32], database_of: NDArray[np.int32], first: Ints, last: Ints, database: NDArray[np.int32],
) -> int:  # fmt: skip
    """Fills the last three arrays; returns how many there are. The rows events are as long as their heads."""
    count, opened, needs_begin = 0, -1, False
    found, rows, is_whole = -1, 0, True
    for event in range(offset.size):
        prefetch(data, offset[min(event + AHEAD, offset.size - 1)] + _HEADER)
        role = _ROLES[kind[event]]
        if role == _MAP:
            named, is_whole = database_of[number[event]], False
            if found == -1:
                found = named
            elif found != named:
                found = _SEVERAL
        elif role == _ROWS:
            rows += 1
            is_whole = data[offset[event] + _HEADER + _ROWS_FLAGS_AT] & _STMT_END == _STMT_END
        elif role == _COMPRESSED:
            found = _SEVERAL
        elif role < _MAP:
            if role == _PAYLOAD:
                role = _OTHER
            at, end = offset[event] + _HEADER, offset[event] + size[event] - tail
            begun = opened
            opened, needs_begin, is_end = _next(data, role, at, end, knows_query, event, begun, needs_begin)
            if is_end and rows and is_whole and found >= 0:
                first[count], last[count], database[count] = begun, event, found
                count += 1
            elif opened == event:
                found, rows, is_whole = -1, 0, True
    return count
