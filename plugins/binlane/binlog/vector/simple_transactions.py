"""Plain transactions found as arrays: a GTID event, rows, XID, and nothing that could mean anything else; or, instead
of rows and XID, all of it compressed.

Most logs are made of little else. Whoever walks a log event by event (``boundaries``) may step over a run of them at
once: all that can follow from them is in the arrays here. What is not plain in every detail is left to that walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from binlane.binlog.gtids import MariadbExtraFlag, MariadbGtidFlag
from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.vector.decompress import open_payloads
from binlane.binlog.vector.frames import Frames, Ints
from binlane.binlog.wire import HEADER, EventType

Int = Any
Array = Any

PASSED: Final = np.ones(256, np.bool_)
"""By type: False for events from which, inside BEGIN, nothing follows: most of a log."""
for _code in (
    EventType.TABLE_MAP,
    EventType.ANNOTATE_ROWS,
    EventType.ROWS_QUERY,
    *range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1),
    *range(EventType.WRITE_ROWS_V2, EventType.DELETE_ROWS_V2 + 1),
    *COMPRESSED_ROWS,
):
    PASSED[_code] = False

_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
_MOST: Final = 1 << 20
"""Inflated bytes of one payload that is looked into here, at most: of a larger one its first event alone is read."""
_BUDGET: Final = 32 << 20
"""The same of a buffer's payloads together, which are in memory for a moment."""
_XID: Final = int(EventType.XID)
_QUERY: Final = int(EventType.QUERY)
_MARIADB_GTID: Final = int(EventType.MARIADB_GTID)
_MYSQL_GTID: Final = int(EventType.GTID)
_ANONYMOUS: Final = int(EventType.ANONYMOUS_GTID)
_SERVER_ID_AT: Final = 5
_GROUP_COMMIT: Final = int(MariadbGtidFlag.GROUP_COMMIT_ID)
_ODD_FLAGS: Final = 0xFF & ~int(
    MariadbGtidFlag.GROUP_COMMIT_ID
    | MariadbGtidFlag.TRANSACTIONAL
    | MariadbGtidFlag.ALLOW_PARALLEL
    | MariadbGtidFlag.WAITED
)
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


@dataclass(frozen=True, slots=True)
class PlainTransactions:
    """The plain transactions among a buffer's events; one entry each, in the log's order."""

    first: Ints
    """Number of the GTID event."""
    last: Ints
    """Number of the XID event, or of the payload."""
    time: NDArray[np.float64]
    """Commit time, in seconds since the epoch."""
    follows: NDArray[np.bool_]
    """The GTID is the next one after that of the entry before: of one server and, in MariaDB, of one domain."""
    run_end: Ints
    """The first entry behind the run of transactions that stand directly behind each other."""

    def run_at(self, event: int) -> slice:
        """The entries of the run that begins at an event, none if no plain transaction begins there."""
        at = int(np.searchsorted(self.first, event))
        if at == self.first.size or self.first[at] != event:
            return slice(at, at)
        return slice(at, int(self.run_end[at]))

    def lines(self, entries: slice) -> Iterator[tuple[int, int]]:
        """First and last entry of each stretch of GTIDs that follow each other."""
        breaks = (np.flatnonzero(~self.follows[entries.start + 1 : entries.stop]) + entries.start + 1).tolist()
        yield from zip([entries.start, *breaks], [*(one - 1 for one in breaks), entries.stop - 1], strict=True)


def plain_transactions(frames: Frames, query_head: int, *, looks_inside: bool = True) -> PlainTransactions:
    """All that there are in ``frames``; ``query_head`` is the length of QUERY's post-header.

    ``looks_inside``: compressed ones are plain only if they begin with BEGIN, not if any payload will do.
    """
    is_payload = frames.type_code == _PAYLOAD
    room = int(np.count_nonzero(frames.type_code == _XID) + np.count_nonzero(is_payload))
    first, last = np.empty(room, np.int64), np.empty(room, np.int64)
    # one more: a transaction that has begun writes here before its end is seen
    time, line = np.empty(room + 1, np.int64), np.empty((room + 1, 4), np.uint64)
    count = _find(
        frames.data, frames.offset, frames.type_code, frames.size, frames.header_length, frames.checksum_length,
        query_head == _QUERY_HEAD, PASSED, _begun(frames) if looks_inside else is_payload, first, last, time, line,
    )  # fmt: skip
    first, last, time, line = first[:count], last[:count], time[:count], line[:count]
    seconds = np.where(time < 0, frames.timestamp[first].astype(np.float64), time / _MICROSECONDS)
    follows = np.zeros(count, np.bool_)
    # MySQL counts; of a MariaDB domain the newest counts, whatever came before it; anonymous ones are in no set
    numbered = line[1:, 2] == _NUMBERED
    follows[1:] = (line[1:, :3] == line[:-1, :3]).all(axis=1) & (~numbered | (line[1:, 3] - line[:-1, 3] == 1))
    ends = np.append(np.flatnonzero(first[1:] != last[:-1] + 1) + 1, count)
    return PlainTransactions(first, last, seconds, follows, ends[np.searchsorted(ends, np.arange(count), "right")])


def _begun(frames: Frames) -> NDArray[np.bool_]:
    """The payloads that are known to begin with BEGIN, an entry an event."""
    begun = np.zeros(frames.offset.size, np.bool_)
    opened = open_payloads(frames, _MOST, _BUDGET)
    if opened is not None:
        _find_begun(opened.data, opened.start, opened.event, begun)
    return begun


@njit(cache=True, nogil=True)
def _find_begun(data: Array, start: Array, event: Array, begun: Array) -> None:
    for place in range(event.size):
        at, end = start[place], start[place + 1]
        if end - at < _HEADER or data[at + 4] != _QUERY:
            continue
        size = np.int64(_number(data, at + 9, 4))
        begun[event[place]] = size <= end - at and _is_begin(data, at + _HEADER, at + size)


@njit(cache=True, nogil=True)
def _number(data: Array, at: Int, length: Int) -> Int:
    value = np.uint64(0)
    for index in range(length):
        value |= np.uint64(data[at + index]) << np.uint64(8 * index)
    return value


@njit(cache=True, nogil=True)
def _mariadb(data: Array, header: Int, at: Int, end: Int, line: Array) -> bool:
    """Whether the GTID event with its body at [at, end) begins a transaction without anything special; fills ``line``.

    Body: number u64, domain u32, flags u8, by a flag a group commit's id u64; since 10.5 extra flags u8 and, by one of
    them, thread u32.
    """
    if end - at < 13:
        return False
    flags = data[at + 12]
    needed = 13 + (8 if flags & _GROUP_COMMIT else 0)
    if flags & _ODD_FLAGS or end - at < needed:
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


@njit(cache=True, nogil=True)
def _mysql(data: Array, at: Int, end: Int, line: Array) -> Int:
    """Microseconds of the commit, -1 if the GTID event does not hold them, -2 if it is none of those known here.

    Body: flags u8, UUID 16, number i64, kind of clock u8, two clocks i64, commit time 7 bytes with a bit that says
    that another one follows.
    """
    length = end - at
    if length < _TIMES_AT or data[at + 25] != _LOGICAL_CLOCK or data[at + 24] & 0x80:
        return -2
    line[0] = _number(data, at + 1, 8)
    line[1] = _number(data, at + 9, 8)
    line[3] = _number(data, at + 17, 8)
    line[2] = _NUMBERED if line[3] else _UNCOUNTED
    if length == _TIMES_AT:
        return -1
    if length < _TIMES_AT + 7:
        return -2
    time = np.int64(_number(data, at + _TIMES_AT, 7))
    if time & _HAS_ORIGINAL:
        if length < _TIMES_AT + 14:
            return -2
        time &= ~_HAS_ORIGINAL
    return time


@njit(cache=True, nogil=True)
def _is_begin(data: Array, at: Int, end: Int) -> bool:
    """Whether the QUERY with its body at [at, end) says BEGIN and nothing else."""
    if end - at < _QUERY_HEAD:
        return False
    sql = at + _QUERY_HEAD + np.int64(data[at + 8]) + np.int64(_number(data, at + 11, 2)) + 1
    if end - sql != _BEGIN.size:
        return False
    for index in range(_BEGIN.size):  # numba compiles no generators
        if data[sql + index] != _BEGIN[index]:
            sql = -1
            break
    return bool(sql >= 0)


@njit(cache=True, nogil=True)
def _find(
    data: Array,
    offset: Array,
    kind: Array,
    size: Array,
    header_length: Int,
    tail: Int,
    knows_query: bool,
    looked_at: Array,
    begun: Array,
    first: Array,
    last: Array,
    time: Array,
    line: Array,
) -> Int:
    """Fills the last four arrays; returns how many there are."""
    count, opened, needs_begin = 0, -1, False
    for event in range(offset.size):
        code = kind[event]
        if not looked_at[code]:
            continue
        at, end = offset[event] + header_length, offset[event] + size[event] - tail
        if (code == _XID and opened >= 0 and not needs_begin) or (begun[event] and opened == event - 1 and needs_begin):
            first[count], last[count] = opened, event
            count, opened = count + 1, -1
        elif code == _QUERY and opened >= 0 and needs_begin and opened == event - 1:
            needs_begin = False
            if not _is_begin(data, at, end):
                opened = -1
        else:
            opened = -1
            if code == _MARIADB_GTID:
                needs_begin = False
                if _mariadb(data, offset[event], at, end, line[count]):
                    opened, time[count] = event, -1
            elif (code in (_MYSQL_GTID, _ANONYMOUS)) and knows_query:
                found = _mysql(data, at, end, line[count])
                if found != -2:
                    opened, time[count], needs_begin = event, found, True
    return count
