"""A window's plan as the apply step reads it: blocks from its lane files, their transactions from its segments."""

from __future__ import annotations

import posixpath
from collections.abc import Generator, Iterator
from contextlib import closing

from binlane.errors import PlanError
from binlane.model import BlockHeader, plural
from binlane.plan.routing import Routing
from binlane.plan.segment.pieces import Described, describe, pieces
from binlane.plan.window_plan import Block, WindowPlan
from binlane.work import files
from binlane.work.ahead import ahead
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneRow, blocks_of, read_rows
from binlane.work.plan_inputs import check_content, read_inputs, segment_bytes


class PlannedLanes:
    """The lane files of a plan, as the apply step reads them; a file's digest is compared before its first block."""

    def __init__(self, folder: WorkFolder, plan: WindowPlan) -> None:
        self._folder = folder
        self._plan = plan

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        """The blocks of ``lane`` that end behind ``after``, in order, read ahead.

        Raises PlanError for a file that is missing or not the one that the plan names.
        """
        with closing(ahead(self._rows(lane, after))) as rows:
            yield from blocks_of(rows)

    def _rows(self, lane: int, after: int) -> Generator[tuple[bytes, LaneRow]]:
        for file in self._plan.files[lane]:
            if file.last_seqno > after:
                yield from read_rows(self._folder, file.name, after, file.blake3)

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        """The transactions of ``block``, one of the lane's, built anew from the window's segments.

        Raises PlanError if a segment is missing or changed, or they hold other transactions than the block.
        """
        window = WorkFolder(posixpath.dirname(self._folder.uri))
        inputs = read_inputs(window)
        routing = Routing.from_json(self._folder.read(files.CONTEXT), f"{self._folder.uri}/{files.CONTEXT}")
        found = 0
        for segment in inputs.manifest.segments:
            if segment.first_seqno <= block.last_seqno and block.first_seqno <= segment.last_seqno:
                with segment_bytes(window, segment) as data:
                    check_content(window.uri, segment, data)
                    groups = inputs.groups(window, routing, segment, data)
                    for piece in pieces(data, segment, routing, inputs.settings, groups, lane, block):
                        found += 1
                        yield piece
        if found != block.transactions:
            raise PlanError(
                f"{self._folder.uri}, lane {lane}: expected {plural(block.transactions, 'transaction')} from seqno "
                f"{block.first_seqno} to {block.last_seqno}, the window's segments have {found}; its files do "
                "not fit each other: remove its folder and run the extract step again: it reads the same"
            )

    def describe(self, first: int, last: int) -> Iterator[Described]:
        """The window's transactions ``first`` to ``last``: who applies them, and what they change."""
        window = WorkFolder(posixpath.dirname(self._folder.uri))
        inputs = read_inputs(window)
        routing = Routing.from_json(self._folder.read(files.CONTEXT), f"{self._folder.uri}/{files.CONTEXT}")
        for segment in inputs.manifest.segments:
            if segment.first_seqno <= last and first <= segment.last_seqno:
                with segment_bytes(window, segment) as data:
                    groups = inputs.groups(window, routing, segment, data)
                    yield from describe(data, segment, routing, inputs.settings, groups, first, last)
