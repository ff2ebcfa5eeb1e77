"""Writes new database names into the TABLE_MAPs of a whole segment, together with ``frames.strip_events``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import Frames
from binlane.binlog.wire import HEADER
from binlane.kernels import copying

NAME_AT: Final = 8
"""Offset of the length of the database's name in a TABLE_MAP's body, behind table id and flags; one byte."""


class NewNames:
    """New database names for a segment's TABLE_MAPs."""

    def __init__(
        self, frames: Frames, tables: Sequence[TableMap], changed: Sequence[bool], number: NDArray[np.int32]
    ) -> None:
        """``tables``: with their new names; ``changed``: whether a table has a new name; ``number``: the table of each
        TABLE_MAP, for other events a number outside ``tables``."""
        self._frames = frames
        self.changed = tuple(changed)
        names = [table.raw_database for table in tables]
        self._data = np.frombuffer(b"".join(names), np.uint8)
        self._edges = np.concatenate(([0], np.cumsum([len(name) for name in names]))).astype(np.int64)
        table = np.where((number >= 0) & (number < len(names)), number, len(names))
        place = np.where(np.append(np.array(changed, np.bool_), False), np.arange(len(names) + 1), -1)
        self._which = place[table].astype(np.int64)
        """Each event's index in the edges; -1: the event stays unchanged."""
        self.longer = np.zeros(self._which.size, np.int64)
        """Bytes that each event grows by."""
        events = np.flatnonzero(self._which >= 0)
        old = frames.data[frames.offset[events].astype(np.int64) + HEADER.size + NAME_AT].astype(np.int64)
        self.longer[events] = np.diff(self._edges)[self._which[events]] - old

    def strip(self, events: Ints) -> bytes:
        """As ``frames.strip_events``, with the new names."""
        frames, wanted = self._frames, np.ascontiguousarray(events, np.int64)
        if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < frames.offset.size:
            raise ValueError(f"event numbers {wanted.min()} to {wanted.max()} of {frames.offset.size} events")
        size = int(frames.size[wanted].sum(dtype=np.int64)) - frames.checksum_length * wanted.size
        out = np.empty(size + int(self.longer[wanted].sum()), np.uint8)
        copying.strip_renamed(
            *(frames.data, frames.offset, frames.size, wanted, HEADER.size, frames.checksum_length),
            *(self._which, self._data, self._edges, out),
        )
        return out.tobytes()
