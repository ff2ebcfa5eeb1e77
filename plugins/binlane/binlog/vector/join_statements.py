"""Joins the row events of many statements into few: each TABLE_MAP once, at the front, and STMT_END_F on the last
event.

The server opens and locks a statement's tables at its first rows event and closes them at STMT_END_F. In a BINLOG
statement of one megabyte of events as logged, it would do so some thousand times. The server takes flags and tables of
a statement from its first rows event (``Rows_log_event::do_apply_event`` in both servers' ``sql/log_event*.cc``), so in
a joined statement:

- all rows events have the same flags, which switch checks of foreign and unique keys off;
- a table has one definition, and a table id one table;
- with both checks off MariaDB delays the rows of an INSERT into an empty table until the statement's end (MDEV-515), so
  that an UPDATE in the same statement would not find them: such statements are not joined.

The rows events keep their order and, except for STMT_END_F and perhaps their table id, their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final

import numpy as np

from binlane.binlog.rows import RowsFlag
from binlane.binlog.table_map import FLAGS_IN_BODY
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import Frames, frame, gather, index_rows
from binlane.binlog.wire import HEADER, EventType
from binlane.lazy_dataclass import dataclass

_NAME: Final = "block"
_UNCHECKED: Final = int(RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.RELAXED_UNIQUE_CHECKS)
TABLES: Final = 32
"""Maximum tables of a joined statement; a statement of the source may have more."""


def joined(payload: bytes) -> bytes:
    """Join the statements of a payload of TABLE_MAP and rows events without checksums; the result is never longer.

    TABLE_MAPs without rows events are left out. Raises BinlogError for damaged events.
    """
    frames = frame(payload, 0, 0)
    frames.check(_NAME)
    events = _Events(payload, frames)
    if events.rows.size == 0:
        return payload
    return b"".join(events.statement(part) for part in events.parts())


class _Events:
    def __init__(self, payload: bytes, frames: Frames) -> None:
        self._payload, self._frames = payload, frames
        index = index_rows(frames, _NAME)
        self.rows = np.flatnonzero((index.number >= 0) & (frames.type_code != EventType.TABLE_MAP))
        """The rows events."""
        self._map_event = index.first
        self._names = [_name(frames.body(event)) for event in index.first.tolist()]
        self._table = index.number[self.rows].astype(np.int64)
        """For each rows event the number of its table's definition."""
        at = frames.offset[self.rows] + HEADER.size
        self._id = _little(frames, at, FLAGS_IN_BODY)
        self._flags = _little(frames, at + FLAGS_IN_BODY, 2)

    def parts(self) -> Iterator[slice]:
        """Rows events that may share a statement, as slices of ``rows``."""
        flags = self._flags & ~int(RowsFlag.STMT_END)
        unchecked = flags & _UNCHECKED == _UNCHECKED
        if np.all(flags == flags[0]) and not unchecked[0] and self._share_all():
            yield slice(0, self.rows.size)
            return
        ends = (np.flatnonzero(self._flags & RowsFlag.STMT_END) + 1).tolist()
        tables, ids = self._table.tolist(), self._id.tolist()
        start, held = 0, _Opened()
        for first, end in zip([0, *ends[:-1]], ends, strict=True):
            own = dict(zip(reversed(tables[first:end]), reversed(ids[first:end]), strict=True))
            more = {table: table_id for table, table_id in own.items() if table not in held.ids}
            names = {self._names[table] for table in more}
            if held.ids and (flags[start] != flags[first] or unchecked[first] or not held.takes(more, names)):
                yield slice(start, first)
                start, held = first, _Opened()
                more, names = own, {self._names[table] for table in own}
            held.open(more, names)
        yield slice(start, self.rows.size)

    def _share_all(self) -> bool:
        used, first = np.unique(self._table, return_index=True)
        return _Opened().takes(
            dict(zip(used.tolist(), self._id[first].tolist(), strict=True)), {self._names[table] for table in used}
        )

    def statement(self, part: slice) -> bytes:
        """One statement: the TABLE_MAPs of its rows events in the order of their use, then the rows events."""
        frames, rows = self._frames, self.rows[part]
        used, first, which = np.unique(self._table[part], return_index=True, return_inverse=True)
        order = np.argsort(first)
        events = np.concatenate((self._map_event[used[order]], rows))
        size = frames.size[events].astype(np.int64)
        out = np.frombuffer(bytearray(gather(self._payload, frames.offset[events], size)), np.uint8)
        at = np.cumsum(size) - size + HEADER.size
        # each table gets its first table id
        ids = self._id[part][first]
        meant = np.concatenate((ids[order], ids[which]))
        for byte in range(FLAGS_IN_BODY):
            out[at + byte] = meant >> 8 * byte & 0xFF
        flags = at[order.size :] + FLAGS_IN_BODY
        out[flags] &= ~np.uint8(RowsFlag.STMT_END)
        out[flags[-1]] |= np.uint8(RowsFlag.STMT_END)
        return out.tobytes()


@dataclass(slots=True)
class _Opened:
    """The tables of a statement."""

    ids: dict[int, int] = field(default_factory=dict)
    """Table id by number of the definition."""
    names: set[bytes] = field(default_factory=set)

    def takes(self, more: Mapping[int, int], names: AbstractSet[bytes]) -> bool:
        """Whether ``more`` fits: no table gets two definitions, and no table id two tables."""
        names, ids = self.names | names, {*self.ids.values(), *more.values()}
        return len(names) == len(ids) == len(self.ids) + len(more) <= TABLES

    def open(self, more: Mapping[int, int], names: AbstractSet[bytes]) -> None:
        """Add tables to the statement."""
        self.ids |= more
        self.names |= names


def _little(frames: Frames, at: Ints, length: int) -> Ints:
    """The little-endian numbers at these offsets."""
    value = np.zeros(at.size, np.int64)
    for byte in range(length):
        value |= frames.data[at + byte].astype(np.int64) << 8 * byte
    return value


def _name(body: memoryview) -> bytes:
    """Database and table of a TABLE_MAP, with their lengths."""
    database_end = 9 + body[8] + 1
    return bytes(body[8 : database_end + body[database_end] + 1])
