"""Reads a window's plan for the apply step: blocks from its lane files, their transactions from its segments."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from binlane.errors import PlanError
from binlane.model import BlockHeader, plural
from binlane.plan.block.builder import BlockLimits
from binlane.plan.block.computed_modes import ComputedModes
from binlane.plan.block.reduce import Reducer
from binlane.plan.routing import Routing
from binlane.plan.segment.pieces import DescribedTransaction, Share, lanes_with_changes, piece, summary
from binlane.plan.segment.reader import RoutedTransaction, SegmentReader
from binlane.plan.window_plan import Block, WindowPlan
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneRow, blocks_of, read_rows
from binlane.work.plan_inputs import Inputs, read_inputs, segment_bytes
from binlane.work.read_ahead import ahead

if TYPE_CHECKING:
    from binlane.plan.segment.timestamp_defaults import TimestampDefaults


class PlannedLanes:
    """The lane files of a plan. A file's digest is compared before its first block is returned."""

    def __init__(self, folder: WorkFolder, plan: WindowPlan) -> None:
        self._folder = folder
        self.plan = plan

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        """The blocks of ``lane`` that end after ``after``, in order, read ahead.

        Raises PlanError for a file that is missing or does not match the plan.
        """
        with closing(ahead(self._rows(lane, after))) as rows:
            yield from blocks_of(rows)

    def _rows(self, lane: int, after: int) -> Generator[tuple[bytes, LaneRow]]:
        for file in self.plan.files[lane]:
            if file.last_seqno > after:
                yield from read_rows(self._folder, file.name, after, file.blake3)

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        """The transactions of ``block``, one of the lane's, built again from the window's segments.

        Raises PlanError if a segment is missing or changed, or if the segments do not hold the block's transactions.
        """
        version, found = self._inputs.settings.target_version, 0
        lanes = self.sharing(lane)
        for each in self._read(block.first_seqno, block.last_seqno, block):
            if each.lane in lanes:
                found += 1
                share = self._share(lane, each)
                yield piece(
                    *(each.header, each.parts, each.log, self._limits, version),
                    *(block, share, self._modes),
                )
        if found != block.transactions:
            raise PlanError(
                f"{self._folder.uri}, lane {lane}: expected {plural(block.transactions, 'transaction')} from "
                f"seqno {block.first_seqno} to {block.last_seqno}, the window's segments have {found}: its files "
                "do not match; remove its folder and run the extract step again: it reads the same part of the "
                "log"
            )

    def makes_null_now(self, first: int, last: int) -> bool:
        """See ``LaneSource``. The first call reads all segments of the window."""
        return self._timestamp_defaults.among(first, last)

    def sharing(self, lane: int) -> tuple[int, ...]:
        """The lanes that apply the lane's transactions: itself, or all parallel lanes if shards are divided."""
        return self._routing.lanes_of(self._routing.queue_of(lane))

    def lanes_of(self, first: int, last: int) -> dict[int, tuple[int, ...]]:
        """The lanes that apply changes of each transaction ``first`` to ``last``, ascending; at least one."""
        found = dict[int, tuple[int, ...]]()
        for each in self._read(first, last):
            share, lanes = self._share(each.lane, each), tuple[int, ...]()
            if share is not None:
                lanes = lanes_with_changes(each.header, each.parts, each.log, self._limits, share)
            found[each.seqno] = lanes or (each.lane,)
        return found

    def _share(self, lane: int, transaction: RoutedTransaction) -> Share | None:
        """A lane's share of a transaction; None if a lane applies all of it."""
        lanes = self.sharing(lane)
        if self._dealer is None or len(lanes) == 1:
            return None
        return Share(lane, lanes, transaction.lane, self._dealer)

    def describe(self, first: int, last: int) -> Iterator[DescribedTransaction]:
        """The window's transactions ``first`` to ``last``, with their lanes and changes.

        Raises PlanError if a segment is missing or changed.
        """
        for each in self._read(first, last):
            yield DescribedTransaction(each.seqno, each.lane, summary(each.parts))

    def _read(self, first: int, last: int, block: BlockHeader | None = None) -> Iterator[RoutedTransaction]:
        return read_transactions(self._window, self._inputs, self._routing, first, last, block)

    @cached_property
    def _routing(self) -> Routing:
        return Routing.from_json(self._folder.read(files.CONTEXT), f"{self._folder.uri}/{files.CONTEXT}")

    @cached_property
    def _limits(self) -> BlockLimits:
        return replace(
            self._inputs.settings.limits,
            bound=self._inputs.bound(self._routing),
            chains=self._inputs.chains(self._routing),
        )

    @cached_property
    def _modes(self) -> ComputedModes | None:
        return self._inputs.modes(self._routing)

    @cached_property
    def _timestamp_defaults(self) -> TimestampDefaults:
        # few windows need it
        from binlane.plan.segment.timestamp_defaults import TimestampDefaults

        found = TimestampDefaults()
        for segment in self._inputs.manifest.segments:
            with segment_bytes(self._window, segment) as data:
                found.take(data, segment)
        return found

    @cached_property
    def _dealer(self) -> Reducer | None:
        """Deals the changes of single transactions, in order; None if no shard is divided."""
        reducer = self._inputs.reducer(self._routing)
        if reducer is None or self._routing.division is None:
            return None
        return replace(reducer, deal=self._routing.division.deal, folds=False)

    @property
    def _window(self) -> WorkFolder:
        return self._folder.window

    @cached_property
    def _inputs(self) -> Inputs:
        return read_inputs(self._window)


def read_transactions(
    window: WorkFolder,
    inputs: Inputs,
    routing: Routing,
    first: int,
    last: int,
    block: BlockHeader | None = None,
    *,
    verifies: bool = True,
) -> Iterator[RoutedTransaction]:
    """A window's transactions ``first`` to ``last``, read again from its segments, each with its parts and its lane.

    ``block`` begins at ``first`` or before it; nothing before the block is read. ``verifies``: raise PlanError for a
    segment whose bytes have changed since extraction.
    """
    for segment in inputs.manifest.segments:
        if segment.first_seqno <= last and first <= segment.last_seqno:
            with segment_bytes(window, segment, verifies=verifies) as data:
                groups = inputs.groups(window, routing, segment, data)
                yield from SegmentReader(data, segment, routing, inputs.settings, groups).read(first, last, block)
