"""The rows of some tables of a range of row events, as arrays, and the events that hold what is left of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from binlane.binlog.rows import ROWS_KINDS, RowsKind
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import Frames, strip_events
from binlane.binlog.vector.row_events import DELETE, INSERT, KINDS, UPDATE, Fronts, Rows, payloads, row_counts
from binlane.binlog.wire import EventType
from binlane.kernels import folding
from binlane.model import RowCounts, TableKey
from binlane.plan.block.deal import Deal
from binlane.plan.block.row_range import RowRange

_EVENT_BYTES: Final = 128 << 10
"""Approximate bytes of row images in one synthesized event."""
_HEAD_BYTES: Final = 2 << 10
"""Upper bound of the bytes in front of an event's images: its header, its flags, two bitmaps of 4,096 columns."""
_IS_V2: Final = np.zeros(256, np.bool_)
_IS_V2[[EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2]] = True
_KIND_OF: Final = np.zeros(256, np.int64)
"""The kind of rows in ``row_events`` for each type of rows event."""
for _code, _kind in ROWS_KINDS.items():
    _KIND_OF[_code] = {RowsKind.DELETE: DELETE, RowsKind.UPDATE: UPDATE, RowsKind.INSERT: INSERT}[_kind]


class SelectedRows:
    """The rows of the tables ``key_ids`` in a range. All images have all columns."""

    def __init__(
        self,
        row_range: RowRange,
        frames: Frames,
        maps: tuple[Ints, Ints],
        key_ids: Sequence[int],
        rows: tuple[Ints, Ints],
        largest_bytes: int,
    ) -> None:
        """``frames``: the range's. ``maps``: the table numbers in order of appearance, and the first event of each.
        ``rows``: the number of rows of each event, and their images, as ``row_images`` gives them. ``largest_bytes``:
        most bytes of events in one BINLOG statement."""
        self.key_ids, self.ranged, self.data = key_ids, row_range.tables, frames.data
        if not key_ids:
            return
        tables, (used, first), (counts, images) = row_range.tables, maps, rows
        newest = dict(zip(tables.key_of[used].tolist(), range(used.size), strict=True))
        """The last TABLE_MAP of each key, as an index into ``used``."""
        last = np.array([newest[key] for key in key_ids], np.int64)
        place = np.full(len(tables.keys), -1, np.int64)
        place[key_ids] = np.arange(len(key_ids))
        local = np.repeat(place[tables.key_of[tables.number[row_range.events]]], counts)
        codes = np.repeat(frames.type_code, counts)
        mine = local >= 0
        if not mine.all():
            local, codes, images = local[mine], codes[mine], images[mine]
        self.table, self._codes, self.images = local, codes, images
        of_map = tables.layouts.tables[used[last]]
        self.columns = np.column_stack((of_map[:, :2], tables.flag_at[key_ids], tables.ends[key_ids]))
        """For the kernels: first rule, width, first flag, and ``ends`` of each table."""
        # the room for one event's images in the largest BINLOG statement, behind TABLE_MAP and header
        map_events = row_range.events[first[last]]
        self._maps = strip_events(tables.frames, map_events)
        self._map_size = RowRange(tables, map_events).lengths()
        self.room = largest_bytes - int(self._map_size.max()) - _HEAD_BYTES
        # the kernels take contiguous arrays
        self._width = np.ascontiguousarray(of_map[:, 1])

    def saved(self, written: Rows) -> dict[TableKey, RowCounts]:
        """Row changes written minus read, by table."""
        tables, keys = len(self.key_ids), self.ranged.keys
        read = np.bincount(self.table * KINDS + _KIND_OF[self._codes], minlength=tables * KINDS).reshape(-1, KINDS)
        more = written.counts(written.table, tables) - read
        return {keys[key]: row_counts(counts) for key, counts in zip(self.key_ids, more, strict=True)}

    def payloads(self, rows: Rows, payload_bytes: int) -> Iterator[tuple[bytes, RowCounts]]:
        """BINLOG payloads of some of the tables' rows, of about ``payload_bytes`` at most."""
        # events get the version of the first rows event of their table in the log
        seen, first = np.unique(self.table, return_index=True)
        is_v2 = np.zeros(len(self.key_ids), np.bool_)
        is_v2[seen] = _IS_V2[self._codes[first]]
        fronts = Fronts(self._maps, self._map_size, self._width, is_v2)
        return payloads(self.data, fronts, rows, min(_EVENT_BYTES, self.room), payload_bytes)

    def by_key(self) -> Rows:
        """All rows in order; an update of the primary key as a delete and an insert."""
        most, layouts = 2 * self.table.size, self.ranged.layouts
        table, kind = np.empty(most, np.int64), np.empty(most, np.int64)
        images = np.empty((most, 4), np.int64)
        count = folding.by_key(
            self.data, self.images, _KIND_OF[self._codes], self.table, self.columns, layouts.rule, layouts.length,
            self.ranged.flags, table, kind, images,
        )  # fmt: skip
        return Rows(table[:count], kind[:count], images[:count])

    def lanes_of(self, rows: Rows, deal: Deal) -> Ints:
        """The lane of each row by its primary key."""
        keys = [self.ranged.keys[key] for key in self.key_ids]
        seeds = np.array([zlib.crc32(str(key).encode()) for key in keys], np.int64)
        columns = [deal.ranged_column(key) for key in keys]
        ranged, flags = np.array([-1 if one is None else one for one in columns], np.int64), self.ranged.flags.copy()
        flags[(self.columns[:, 2] + ranged)[ranged >= 0]] &= ~np.uint8(folding.PRIMARY)
        found, layouts = np.empty(rows.table.size, np.int64), self.ranged.layouts
        folding.lanes_of(
            self.data, rows.images, rows.table, self.columns, layouts.rule, layouts.length, flags, ranged, seeds,
            deal.lanes, found,
        )  # fmt: skip
        return found
