"""Writes runs of plain transactions, as arrays, into a lane's blocks; ``LaneWriter`` takes them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import Ints
from binlane.model import RowCounts
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.builder import BlockBuilder, LoggedEvent
from binlane.plan.block.row_range import FoldTables, RowRange
from binlane.plan.segment.columns import DELETE, INSERT, MAP, NONE, UPDATE, Run, SegmentColumns
from binlane.plan.segment.lane_writer import LaneSink, LaneWriter
from binlane.plan.segment.row_modes import NO_MODE, RowModes
from binlane.plan.transaction.event_format import translation

_PIECE: Final = 4 << 20
"""Bytes of events copied from the segment at once."""


class RunWriter(LaneWriter):
    """A writer that also takes runs of plain transactions."""

    def __init__(
        self,
        sinks: Mapping[int, LaneSink],
        builder: BlockBuilder,
        edges: LaneEdges,
        columns: SegmentColumns,
        tables: FoldTables | None = None,
        modes: RowModes | None = None,
    ) -> None:
        """``tables``: the segment's tables, if its events are folded without a copy. ``modes``: of the segment's rows;
        None: no table sees them."""
        rules = None if modes is None else modes.rules
        super().__init__(sinks, builder, edges, translation(columns.log.target), rules)
        self._columns, self._tables, self._row_modes = columns, tables, modes

    def add_run(self, run: Run, chosen: Ints) -> None:
        """Take the ``chosen`` transactions of a run."""
        stretches = self._edges.stretches(run.seqno + chosen)
        for part in np.split(chosen, np.flatnonzero(np.diff(stretches)) + 1):
            self._enter(self._edges.stretch(run.seqno + int(part[0])))
            self._add_between(run, part)

    def _add_between(self, run: Run, chosen: Ints) -> None:
        """Take the ``chosen`` transactions of a run, with no barrier's edge between them."""
        columns, builder = self._columns, self._builder
        first, end = run.first[chosen], run.end[chosen]
        size = np.concatenate(([0], np.cumsum(columns.before[end] - columns.before[first])))
        large = np.flatnonzero(builder.are_large(np.diff(size)))
        times = columns.commit_times(first) if builder.limits.seconds else None
        modes = None if self._row_modes is None else self._row_modes.of_events(first, end)
        at = 0
        while at < chosen.size:
            head = columns.header(run.seqno + int(chosen[at]), int(first[at]))
            self._write(builder.end_before(head.commit_time))
            following = int(np.searchsorted(large, at))
            barred = int(large[following]) if following < large.size else chosen.size
            if barred == at:
                mode = self._seen(None if modes is None or modes[at] == NO_MODE else int(modes[at]))
                events = self._events(first[at : at + 1], end[at : at + 1])
                self._write(builder.stream(head, self._logged(events, mode)))
                at += 1
                continue
            transactions_left, bytes_left = builder.room()
            full = int(np.searchsorted(size, size[at] + bytes_left))
            after = min(max(full, at + 1), at + transactions_left, barred)
            if times is not None:
                late = np.flatnonzero(times[at:after] > builder.deadline(head.commit_time))
                after = at + int(late[0]) if late.size else after
            for part, mode in _of_one_mode(None if modes is None else modes[at:after]):
                builder.compute_in(self._seen(mode))
                self._take(self._events(first[at:after][part], end[at:after][part]))
            last = columns.header(run.seqno + int(chosen[after - 1]), int(first[after - 1]))
            self._write(builder.end_transactions(head, last, after - at))
            at = after

    def _seen(self, mode: int | None) -> int | None:
        return mode if mode is None or self._row_modes is None else self._row_modes.seen(mode)

    def _events(self, first: Ints, end: Ints) -> Ints:
        """The TABLE_MAP and rows events of transactions with the events [first, end)."""
        events = _ranges(first, end)
        wanted: Ints = events[self._columns.role[events] != NONE]
        return wanted

    def _take(self, events: Ints) -> None:
        """Give the builder events of whole statements: at once if they fit its BINLOG statement, else one by one."""
        columns, builder = self._columns, self._builder
        size = np.cumsum(columns.stripped[events])
        ends = np.flatnonzero(columns.ends_statement[events])
        at = 0
        while at < events.size:
            done = int(size[at - 1]) if at else 0
            fit = int(np.searchsorted(size[ends], done + builder.payload_room, "right"))
            after = int(ends[fit - 1]) + 1 if fit else 0
            if after > at and self._add_whole(events[at:after]):
                at = after
            if at < events.size:
                after = int(ends[np.searchsorted(ends, at)]) + 1
                for part in self._logged(events[at:after]):
                    builder.add_event(part.event, part.counts, part.where)
                at = after

    def _add_whole(self, events: Ints) -> bool:
        columns = self._columns
        largest = int(columns.stripped[events].max())
        if self._tables is not None:
            return self._builder.add_row_range(RowRange(self._tables, events), largest)
        changes = events[columns.role[events] >= INSERT]
        kind = columns.role[changes].astype(np.int64) - INSERT
        counts = RowCounts(*np.bincount(kind, columns.rows[changes], minlength=3).astype(np.int64).tolist())
        return self._builder.add_whole(columns.events(events), largest, counts)

    def _logged(self, events: Ints, mode: int | None = None) -> Iterator[LoggedEvent]:
        """The events one by one, with some megabytes of them in memory at once; ``mode`` as ``compute_in``."""
        columns = self._columns
        size = np.concatenate(([0], np.cumsum(columns.stripped[events])))
        at = 0
        while at < events.size:
            after = max(at + 1, int(np.searchsorted(size, size[at] + _PIECE, "right")) - 1)
            data = columns.events(events[at:after])
            edges = (size[at : after + 1] - size[at]).tolist()
            for event, (start, end) in zip(events[at:after].tolist(), pairwise(edges), strict=True):
                yield LoggedEvent(data[start:end], self._counts_of(event), self._where(event), mode)
            at = after

    def _counts_of(self, event: int) -> RowCounts | None:
        role, rows = int(self._columns.role[event]), int(self._columns.rows[event])
        if role == MAP:
            return None
        return RowCounts(*(rows if role == kind else 0 for kind in (INSERT, UPDATE, DELETE)))

    def _where(self, event: int) -> str:
        columns = self._columns
        return f"{columns.log.name}:{columns.log.source_offset(columns.frames.begin(event))}: "


def _of_one_mode(modes: Ints | None) -> Iterator[tuple[slice, int | None]]:
    """The transactions in parts that may be folded together, each with its modes; those that see none go with the ones
    in front of them."""
    seeing = np.empty(0, np.int64) if modes is None else np.flatnonzero(modes != NO_MODE)
    if modes is None or not seeing.size:
        yield slice(None), None
        return
    if seeing[0] > 0:
        yield slice(int(seeing[0])), None
    changes = np.flatnonzero(np.diff(modes[seeing], prepend=NO_MODE))
    for begin, end in pairwise((*seeing[changes].tolist(), modes.size)):
        yield slice(begin, end), int(modes[begin])


def _ranges(first: Ints, end: Ints) -> Ints:
    """The concatenation of all ranges [first, end)."""
    length = end - first
    start = np.concatenate(([0], np.cumsum(length)[:-1]))
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(first - start, length)
