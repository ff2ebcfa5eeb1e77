"""Plain transactions of a whole segment at once: a GTID or BEGIN, row events of one database, XID, and nothing else.

They are nearly all that a multi-tenant log holds, and nothing has to be decided about them. The kernel here only
recognizes that one shape; at the first event that does not fit it stops, and ``transactions`` takes over for one
transaction. So the rules stand in one place, and this one may say "not plain" as often as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.vector.frames import Frames, TableIndex
from binlane.binlog.wire import HEADER, EventType

Ints = NDArray[np.int64]

_OTHER, _SKIP, _MARIADB_GTID, _GTID, _QUERY, _MAP, _ROWS, _NOTE, _XID = range(9)
_KINDS: Final = np.zeros(256, np.uint8)
for _kind, _codes in {
    _SKIP: (
        EventType.FORMAT_DESCRIPTION,
        EventType.ROTATE,
        EventType.STOP,
        EventType.PREVIOUS_GTIDS,
        EventType.MARIADB_GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
    ),
    _MARIADB_GTID: (EventType.MARIADB_GTID,),
    _GTID: (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED),
    _QUERY: (EventType.QUERY,),
    _MAP: (EventType.TABLE_MAP,),
    _ROWS: (
        *range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1),
        *range(EventType.WRITE_ROWS_V2, EventType.DELETE_ROWS_V2 + 1),
    ),
    _NOTE: (EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS),
    _XID: (EventType.XID,),
}.items():
    _KINDS[list(_codes)] = _kind

_NOT_PLAIN_GROUP: Final = 1 | 32 | 64 | 128
"""MariaDB's GTID flags STANDALONE, DDL, PREPARED_XA and COMPLETED_XA."""
_QUERY_HEAD: Final = 13
_BEGIN: Final = np.frombuffer(b"BEGIN", np.uint8)


@dataclass(frozen=True, slots=True)
class PlainRun:
    """Consecutive plain transactions, one array entry each."""

    first: Ints
    """The first event of each."""
    end: Ints
    """One past the last event of each."""
    database: NDArray[np.int32]
    """The number of its database, as ``database_of_table`` gave it."""
    stopped_at: int
    """The event that no plain transaction begins with; the number of events if all were plain."""


class PlainGrouping:
    """Finds the plain transactions of framed events."""

    def __init__(
        self, frames: Frames, index: TableIndex, database_of_table: NDArray[np.int32], log_format: FormatDescription
    ) -> None:
        """``database_of_table``: a database's number for each table number of ``index``."""
        self._frames = frames
        self._number = index.number
        self._database = database_of_table
        ordinary = log_format.post_header_length(EventType.QUERY) == _QUERY_HEAD
        self._is_possible = ordinary and frames.header_length == HEADER.size

    def run(self, event: int) -> PlainRun:
        """The plain transactions from ``event`` on, up to the first that is not."""
        frames = self._frames
        room = (frames.offset.size - event) // 3 + 1 if self._is_possible else 0
        first, end, database = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
        if room == 0:
            return PlainRun(first, end, database, event)
        count, stopped = _plain(
            frames.data, frames.offset, frames.size, frames.type_code, self._number, self._database, event,
            frames.checksum_length, first, end, database,
        )  # fmt: skip
        return PlainRun(first[:count].copy(), end[:count].copy(), database[:count].copy(), int(stopped))


@njit(cache=True, nogil=True)
def _is_begin(data: Any, at: int, end: int) -> bool:
    """Whether the QUERY body in [at, end) holds exactly BEGIN."""
    if end - at < _QUERY_HEAD:
        return False
    status = data[at + 11] | data[at + 12] << 8
    text = at + _QUERY_HEAD + status + data[at + 8] + 1
    if end - text != _BEGIN.size:
        return False
    for byte in range(_BEGIN.size):
        if data[text + byte] != _BEGIN[byte]:
            return False
    return True


@njit(cache=True, nogil=True)
def _after_head(event: int, data: Any, offset: Any, size: Any, kind: Any, tail: int) -> int:
    """The event behind GTID and BEGIN, or -1 if the transaction at ``event`` is not plain."""
    role = _KINDS[kind[event]]
    if role == _MARIADB_GTID:
        if np.int64(size[event]) < 19 + 13 + tail or data[offset[event] + 19 + 12] & _NOT_PLAIN_GROUP:
            return -1
        return event + 1
    if role == _GTID:
        event += 1
    if event == kind.size or _KINDS[kind[event]] != _QUERY:
        return -1
    end = offset[event] + np.int64(size[event]) - tail
    return event + 1 if _is_begin(data, offset[event] + 19, end) else -1


@njit(cache=True, nogil=True)
def _plain(
    data: Any, offset: Any, size: Any, kind: Any, number: Any, database_of: Any, event: int, tail: int,
    first: Any, end: Any, database: Any,
) -> tuple[int, int]:  # fmt: skip
    """Fills the three arrays; returns (transactions, event it stopped at)."""
    count = 0
    while event < kind.size:
        if _KINDS[kind[event]] == _SKIP:
            event += 1
            continue
        at = _after_head(event, data, offset, size, kind, tail)
        if at < 0:
            return count, event
        found, rows, complete = -1, 0, True
        while at < kind.size:
            role = _KINDS[kind[at]]
            if role == _MAP:
                if found >= 0 and database_of[number[at]] != found:
                    return count, event
                found = database_of[number[at]]
                complete = False
            elif role == _ROWS:
                rows += 1
                complete = data[offset[at] + 25] & 1 == 1
            elif role != _NOTE:
                break
            at += 1
        if at == kind.size or _KINDS[kind[at]] != _XID or rows == 0 or not complete:
            return count, event
        first[count], end[count], database[count] = event, at + 1, found
        count += 1
        event = at + 1
    return count, event
