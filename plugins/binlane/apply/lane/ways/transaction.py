"""The usual way: the block and the position in one transaction of the target; a DDL runs before it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.apply.block import Outcome, apply_block
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.apply.lane.ways.task import BlockTask


@dataclass(frozen=True, slots=True)
class Transaction:
    """Ends with ``Obstacle.NOTE`` before a change that no rollback would undo."""

    null_is_now: bool = False

    def apply(self, task: BlockTask) -> Outcome:
        """Raises the driver's errors, DriftError and the other errors of ``BlockWriter.write``."""
        lane = task.lane
        with lane.writer.context.null_is_now() if self.null_is_now else nullcontext():
            return apply_block(
                lane.session, lane.writer, task.place, replace(task.block, items=task.items), task.end,
                lane.ddl_lock_wait_timeout, task.stream.planned, needs_note=task.items.needs_note,
            )  # fmt: skip
