"""A transaction that changes tables without transactions: no rollback undoes all of it.

On a target that refuses such changes beside others each of them commits by itself, under a GTID
(``apply.nontransactional``). On any other one the transaction is the usual one, behind a note (``apply.change_notes``).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from binlane.apply.block import Outcome, apply_block
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.apply.lane.ways.task import BlockTask


@dataclass(frozen=True, slots=True)
class Nontransactional:
    """The block has one transaction, so that a note, and the question that it may become, is about one."""

    null_is_now: bool = False

    def apply(self, task: BlockTask) -> Outcome:
        """Raises UndecidableError if an earlier attempt may have left changes, and the errors of ``Transaction``."""
        lane = task.lane
        with lane.writer.context.null_is_now() if self.null_is_now else nullcontext():
            return apply_block(
                lane.session, lane.writer, task.place, task.block, task.end,
                lane.ddl_lock_wait_timeout, task.stream.planned, nontransactional=True, may_change=lane.may_change,
            )  # fmt: skip
