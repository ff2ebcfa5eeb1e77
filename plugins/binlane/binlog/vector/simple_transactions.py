"""Simple transactions found as arrays: their GTID event or BEGIN, row events, XID, and nothing that could mean more.

Most logs are made of little else, and nothing has to be decided about them: whoever walks a log event by event
(``boundaries``) may step over a run of them at once. What is not simple in every detail is left to that walk, so the
rules stand there alone, and this may say "not simple" as often as it likes. One rule finds their ends, for two readers:

- extraction numbers them: ``numbered``, those whose GTID and time are known here, compressed ones among them;
- the plan job sends them to lanes: ``of_one_database``, those of whole statements over tables of one database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.vector.decompress import open_payloads
from binlane.binlog.vector.frames import Frames
from binlane.binlog.wire import HEADER, EventType
from binlane.kernels import transactions as kernels
from binlane.lazy_dataclass import dataclass

_T = EventType
_ROLES: Final = np.zeros(256, np.uint8)
"""By event type; from ``MAP`` on those that stand between BEGIN and XID."""
for _role, _codes in {
    kernels.BETWEEN: (
        _T.FORMAT_DESCRIPTION,
        _T.ROTATE,
        _T.STOP,
        _T.PREVIOUS_GTIDS,
        _T.MARIADB_GTID_LIST,
        _T.BINLOG_CHECKPOINT,
    ),
    kernels.MARIADB_GTID: (_T.MARIADB_GTID,),
    kernels.GTID: (_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED),
    kernels.QUERY: (_T.QUERY,),
    kernels.XID: (_T.XID,),
    kernels.PAYLOAD: (_T.TRANSACTION_PAYLOAD,),
    kernels.MAP: (_T.TABLE_MAP,),
    kernels.ROWS: (
        *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
        *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
    ),
    kernels.COMPRESSED: tuple(COMPRESSED_ROWS),
    kernels.NOTE: (_T.ROWS_QUERY, _T.ANNOTATE_ROWS),
}.items():
    _ROLES[list(_codes)] = _role
IS_BETWEEN: Final[Flags] = _ROLES == kernels.BETWEEN
"""By event type: a server's bookkeeping between transactions, which belongs to none."""
IS_INSIDE: Final[Flags] = _ROLES >= kernels.MAP
"""By event type: those from which, inside BEGIN, nothing follows. Most of a log."""

_MOST: Final = 1 << 20
"""Inflated bytes of one payload that is looked into here, at most: of a larger one its first event alone is read."""
_BUDGET: Final = 32 << 20
"""The same of a buffer's payloads together, which are in memory for a moment."""
_QUERY_HEAD: Final = 13
"""QUERY's post-header since MySQL 5.0, which the kernels know."""
_MICROSECONDS: Final = 1_000_000


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
    count = kernels.find_numbered(
        frames.data, frames.offset, frames.type_code, frames.size, _ROLES, HEADER.size, frames.checksum_length,
        query_head == _QUERY_HEAD, is_whole, first, last, time, line,
    )  # fmt: skip
    first, last, time, line = first[:count], last[:count], time[:count], line[:count]
    seconds = np.where(time < 0, frames.timestamp[first].astype(np.float64), time / _MICROSECONDS)
    follows = np.zeros(first.size, np.bool_)
    # anonymous ones, number 0, are in no set
    is_next = (line[1:, 3] - line[:-1, 3] == 1) | (line[1:, 3] == 0)
    follows[1:] = (line[1:, :3] == line[:-1, :3]).all(axis=1) & is_next
    return NumberedTransactions(first, last, _run_end(first, last), seconds, follows)


def of_one_database(
    frames: Frames, query_head: int, number: NDArray[np.int32], database_of_table: NDArray[np.int32]
) -> DatabaseTransactions:
    """Those of whole statements that change rows of one database's tables and are not compressed.

    ``number``: each event's table; ``database_of_table``: each table's database.
    """
    room = int(np.count_nonzero(frames.type_code == _T.XID))
    first, last, database = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    count = 0
    if room:
        count = kernels.find_of_one_database(
            frames.data, frames.offset, frames.type_code, frames.size, _ROLES, frames.checksum_length,
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
        kernels.find_begun(opened.data, opened.start, opened.event, begun)
    return begun
