"""A block's transactions, one by one: each becomes a block of its own, and takes a way of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from binlane.apply.lane.ways.task import BlockTask, Stream
from binlane.errors import PlanError
from binlane.model import RowCounts
from binlane.state.splits import is_split

if TYPE_CHECKING:
    from binlane.plan.window_plan import Block


class Pieces:
    """For a stop or a position inside a block, a transaction to skip, and one that goes only by itself."""

    def stream(self, task: BlockTask) -> Stream:
        """The lane's blocks from its position on, with the block's transactions in the block's place.

        Consumes the block. Raises PlanError if the lane stands inside a block that was never taken apart.
        """
        lane, place, header = task.lane, task.place, task.block.header
        if place.expected >= header.first_seqno and not is_split(lane.session.cursor, place.key, place.lane, header):
            raise PlanError(
                f"{lane.where(place.lane)}: a block of seqnos {header.first_seqno}..{header.last_seqno} "
                f"does not follow the position {place.expected}; the state or the plan's files were changed by "
                "hand"
            )
        planned = sum((item.rows for item in task.block.items), RowCounts())
        return Stream(chain(self._pieces(task), lane.source.blocks(place.lane, header.last_seqno)), planned)

    def _pieces(self, task: BlockTask) -> Iterator[Block]:
        header = task.block.header
        for piece in task.lane.source.pieces(task.place.lane, header):
            if piece.header.last_seqno > task.place.expected:
                yield piece if piece.planned is not None else replace(piece, planned=header)
