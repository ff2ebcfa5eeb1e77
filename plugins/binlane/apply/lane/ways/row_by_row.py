"""A block whose rows differ on the target, written again row by row, as the channel's conflict policy says."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.apply.block import Obstacle, Outcome, rewrite_block
from binlane.apply.lane.ways.task import FailedBlock
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.apply.lane.ways.task import BlockTask


@dataclass(frozen=True, slots=True)
class RowByRow:
    """Takes the rest of the failed block's items, to count them, and builds its transactions again from the segment."""

    null_is_now: bool = False

    def apply(self, task: BlockTask) -> Outcome:
        """Raises the block's error if the policy does not help, and the errors of any block."""
        assert task.cause is not None
        lane, block = task.lane, replace(task.block, items=task.items)
        again = lane.rewrite(FailedBlock(task.place, block, task.end, task.stream.planned, task.cause))
        if task.items.needs_note():
            return Obstacle.NOTE
        with lane.writer.context.null_is_now() if self.null_is_now else nullcontext():
            return rewrite_block(
                lane.session, again.writer, task.place, again.block, task.end, again.planned, again.write
            )
