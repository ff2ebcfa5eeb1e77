"""Row events of many statements as few statements: each TABLE_MAP once, at the front, and STMT_END_F on the last event.

The server opens and locks a statement's tables at its first rows event and closes them at STMT_END_F; sent as the
source logged them, a BINLOG statement of a megabyte does so some thousand times. What a joined statement must hold to,
since the server goes by its first rows event (``Rows_log_event::do_apply_event`` in both servers'
``sql/log_event*.cc``):

- flags of rows events are the same in all of it: they turn checks of foreign and unique keys off;
- a table has one definition in it, and a table id one table;
- with both checks off MariaDB holds the rows of an INSERT into an empty table back until the statement's end
  (MDEV-515), where an UPDATE of the same statement would not find them: such statements stay as they were logged.

The rows events keep their order and, but for STMT_END_F and perhaps their table id, their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.frames import Frames, frame, gather, index_rows
from binlane.binlog.rows import RowsFlag
from binlane.binlog.wire import HEADER, EventType

Ints = NDArray[np.int64]

_NAME: Final = "block"
_ID_BYTES: Final = 6
_FLAGS_AT: Final = HEADER.size + _ID_BYTES
_UNCHECKED: Final = np.uint16(RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.RELAXED_UNIQUE_CHECKS)
TABLES: Final = 200
"""Tables that one statement opens, at most, unless the source's own opened more."""


def joined(payload: bytes) -> bytes:
    """TABLE_MAP and rows events without checksums, whole statements, as few statements; never longer than before.

    Maps that no rows event uses are left out. Raises BinlogError for events that are damaged.
    """
    frames = frame(payload, 0, 0)
    frames.check(_NAME)
    events = _Events(payload, frames)
    if events.rows.size == 0:
        return payload
    return b"".join(events.statement(part) for part in events.parts())


@dataclass(frozen=True, slots=True)
class _Table:
    """What a TABLE_MAP says: the table under its id."""

    number: int
    """The first TABLE_MAP that says the same, whatever its id."""
    table_id: bytes
    name: bytes
    """Database and table, with their lengths."""


class _Events:
    def __init__(self, payload: bytes, frames: Frames) -> None:
        self._payload, self._frames = payload, frames
        index = index_rows(frames, _NAME)
        self.rows = np.flatnonzero((index.number >= 0) & (frames.type_code != EventType.TABLE_MAP))
        """The rows events."""
        self._tables = tuple(_tables(frames, index.first.tolist()))
        self._map_event = index.first
        canonical = np.array([table.number for table in self._tables], np.int64)
        self._own = index.number[self.rows].astype(np.int64)
        """For each rows event its TABLE_MAP's number."""
        self._table = canonical[self._own]
        at = frames.offset[self.rows] + _FLAGS_AT
        self._flags = frames.data[at].astype(np.uint16) | frames.data[at + 1].astype(np.uint16) << 8

    def parts(self) -> Iterator[slice]:
        """Rows events that may share a statement, as slices of ``rows``."""
        flags = self._flags & ~np.uint16(RowsFlag.STMT_END)
        whole = slice(0, self.rows.size)
        unchecked = flags & _UNCHECKED == _UNCHECKED
        if np.all(flags == flags[0]) and not unchecked[0] and self._may_share(self._used(whole)):
            yield whole
            return
        ends = (np.flatnonzero(self._flags & RowsFlag.STMT_END) + 1).tolist()
        start, held = 0, dict[int, int]()
        for first, end in zip([0, *ends[:-1]], ends, strict=True):
            added = self._used(slice(first, end))
            both = added | held
            if held and (flags[start] != flags[first] or unchecked[first] or not self._may_share(both)):
                yield slice(start, first)
                start, both = first, added
            held = both
        yield slice(start, self.rows.size)

    def _used(self, part: slice) -> dict[int, int]:
        """Each definition that the rows events use, in order, with the TABLE_MAP that it is first used by."""
        tables, own = self._table[part], self._own[part]
        used, first = np.unique(tables, return_index=True)
        order = np.argsort(first)
        return dict(zip(used[order].tolist(), own[first[order]].tolist(), strict=True))

    def _may_share(self, used: Mapping[int, int]) -> bool:
        """Whether no table has two definitions and no table id two tables."""
        tables = [self._tables[own] for own in used.values()]
        names, ids = {table.name for table in tables}, {table.table_id for table in tables}
        return len(names) == len(ids) == len(tables) <= TABLES

    def statement(self, part: slice) -> bytes:
        """One statement: the TABLE_MAPs of its rows events in the order of their use, then these."""
        frames, rows, used = self._frames, self.rows[part], self._used(part)
        maps = self._map_event[list(used.values())]
        events = np.concatenate((maps, rows))
        size = frames.size[events].astype(np.int64)
        out = np.frombuffer(bytearray(gather(self._payload, frames.offset[events], size)), np.uint8)
        at = (np.cumsum(size) - size)[maps.size :]
        out[at + _FLAGS_AT] &= ~np.uint8(RowsFlag.STMT_END)
        out[at[-1] + _FLAGS_AT] |= np.uint8(RowsFlag.STMT_END)
        meant = np.array([used.get(number, -1) for number in range(len(self._tables))])[self._table[part]]
        for place in np.flatnonzero(self._own[part] != meant).tolist():
            start = int(at[place]) + HEADER.size
            out[start : start + _ID_BYTES] = np.frombuffer(self._tables[int(meant[place])].table_id, np.uint8)
        return out.tobytes()


def _tables(frames: Frames, events: list[int]) -> Iterator[_Table]:
    numbers: dict[bytes, int] = {}
    for number, event in enumerate(events):
        body = bytes(frames.body(event))
        database_end = 9 + body[8] + 1
        name = body[8 : database_end + body[database_end] + 1]
        yield _Table(numbers.setdefault(body[_ID_BYTES:], number), body[:_ID_BYTES], name)
