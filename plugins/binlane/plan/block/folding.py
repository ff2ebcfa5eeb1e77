"""One pass of the folding kernel over the rows of some tables."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.row_events import DELETE, INSERT, UPDATE, Rows
from binlane.kernels import folding
from binlane.plan.block.selected_rows import SelectedRows

_KIND_OF_PHASE: Final = np.array([DELETE, INSERT, DELETE, UPDATE, INSERT], np.int64)
"""By phase of the kernel."""


class Folding:
    """The net changes of the selected rows, void for the tables of ``misfits``."""

    def __init__(self, selected: SelectedRows) -> None:
        self.selected = selected
        self.misfits: set[int] = set()
        """Tables whose changes do not fit together."""
        if selected.key_ids:
            self._fold()

    def _fold(self) -> None:
        selected, all_tables, keys = self.selected, self.selected.ranged, self.selected.key_ids
        tables, layouts, counters = selected.columns, all_tables.layouts, all_tables.counters[keys]
        rows, data = 2 * selected.images.shape[0], selected.data
        slots = np.full(1 << (2 * rows + 1).bit_length(), -1, np.int32)
        self._entry_table, hashes, image = np.empty(rows, np.int64), np.empty(rows, np.uint64), np.empty(rows, np.int64)
        # not initialized: the kernel fills an entry when it creates it
        self._before, self._now = np.empty((rows, 2), np.int64), np.empty((rows, 2), np.int64)
        self._kept, was_absent = np.zeros((len(keys), 3), np.int64), np.empty(rows, np.uint8)
        highest, written = np.zeros((len(keys), 2), np.uint64), np.zeros(len(keys), np.uint64)
        misfit = np.zeros(len(keys), np.uint8)
        self._count = folding.fold(
            data, selected.images, selected.table, tables, layouts.rule, layouts.length, all_tables.flags, counters,
            slots, hashes, image, self._entry_table, self._before, self._now, self._kept, highest,
            was_absent, misfit,
        )  # fmt: skip
        self._left, unsure = np.empty(self._count, np.int64), np.zeros(len(keys), np.uint8)
        folding.judge(
            data, self._count, self._entry_table, self._before, self._now, tables, layouts.rule, layouts.length,
            all_tables.flags, counters, was_absent, self._left, written, unsure,
        )  # fmt: skip
        # a before-image and an after-image from two events may be too long for one event
        length = (self._before[:, 1] - self._before[:, 0] + self._now[:, 1] - self._now[:, 0])[: self._count]
        too_long = length > selected.room
        self._left[(self._left == folding.UPDATE) & too_long] = folding.SPLIT
        # the highest AUTO_INCREMENT value was inserted and deleted: write both, so that the target's counter moves
        self._restored = highest[:, 1] > np.maximum(highest[:, 0], written)
        self.misfits = {keys[table] for table in np.flatnonzero(misfit).tolist()} | {
            keys[table]
            for table in np.flatnonzero(self._restored).tolist()
            if unsure[table] or self._stays(int(self._kept[table, 2]))
        }

    def _stays(self, entry: int) -> bool:
        """Whether the entry's row exists on the target after the deletes."""
        return int(self._before[entry, 0]) >= 0 and int(self._left[entry]) not in (folding.DELETE, folding.SPLIT)

    def rows_left(self) -> Rows:
        """The remaining changes by table and phase; within a phase in the order of their keys' first events."""
        left, tables = self._left, self._entry_table[: self._count]
        ends = np.zeros(len(self.selected.key_ids) * folding.PHASES, np.int64)
        count = folding.places(left, tables, self._restored, ends)
        bucket, images = np.empty(count, np.int64), np.full((count, 4), -1, np.int64)
        folding.arrange(left, tables, self._before, self._now, self._restored, self._kept, ends, bucket, images)
        table, phase = np.divmod(bucket, folding.PHASES)
        return Rows(table, _KIND_OF_PHASE[phase], images)
