"""Chooses ``blocks.reduce`` and ``blocks.transactions`` where the channel says "auto", by what the scan saw.

The constants were measured (decision 13). The target gets the same rows whatever is chosen; only the number of commits,
of tables opened and of rows written differs.
"""

from __future__ import annotations

from typing import Final

from binlane.choices import Reduce
from binlane.model import plural
from binlane.plan.block.size_choice import USUAL_TRANSACTIONS, SizeChoice
from binlane.plan.routing import Routing
from binlane.plan.segment.table_changes import Changes
from binlane.plan.settings import PlanSettings

FEWEST_TRANSACTIONS: Final = 4 * USUAL_TRANSACTIONS
"""Of a lane between two barriers: with fewer, a lane has a handful of blocks, and folding them again costs the plan
job as much as it saves the target."""
FEW_CHANGES: Final = 20
"""Row changes for each table that a block opens: below, a target spends more on opening tables than on rows."""
EXISTING_SHARE: Final = 0.25
"""Updates and deletes among the row changes: below, most rows are new, and folding over blocks removes few of them."""
MOST_TRANSACTIONS: Final = 10_000
"""Of a block that is chosen larger than usual: a stop, a skip or an error inside it applies them one by one."""


def size_choice(settings: PlanSettings, transactions: int, changes: Changes, routing: Routing) -> SizeChoice | None:
    """What to take for a window of so many transactions; None if the channel's file says both."""
    given = settings.block_transactions
    if not settings.chooses_size:
        return None
    reduce, because = Reduce(settings.reduce), "blocks.reduce is set"
    small = _why_small_steps(settings)
    if reduce is Reduce.AUTO:
        reduce, because = _reduce(settings, transactions, changes, routing, small)
    if given is not None:
        return SizeChoice(reduce, given, because)
    size = USUAL_TRANSACTIONS
    is_folded = reduce in (Reduce.BLOCK, Reduce.WINDOW)
    if is_folded and small is None and 0 < changes.rows < FEW_CHANGES * changes.opened:
        # with "window" for the plan job: each table of a block costs it as much, and it folds the blocks again
        size = min(MOST_TRANSACTIONS, -(-FEW_CHANGES * changes.opened // changes.rows) * USUAL_TRANSACTIONS)
        if reduce is Reduce.BLOCK:
            because += f"; {_opened(changes)}"
    return SizeChoice(reduce, size, because)


def _reduce(
    settings: PlanSettings, transactions: int, changes: Changes, routing: Routing, small: str | None
) -> tuple[Reduce, str]:
    if settings.block_transactions is not None:
        return Reduce.BLOCK, "blocks.transactions is set"
    if small is not None:
        return Reduce.BLOCK, small
    if routing.division is not None:
        return Reduce.BLOCK, "all lanes share the blocks of divided shards"
    stretches = 2 * len(routing.barriers) + 1
    of_a_lane = transactions // (stretches * routing.lanes)
    if of_a_lane < FEWEST_TRANSACTIONS:
        return Reduce.BLOCK, f"about {plural(of_a_lane, 'transaction')} of a lane between two barriers"
    if changes.rows < FEW_CHANGES * changes.opened:
        return Reduce.WINDOW, _opened(changes)
    share = changes.existing / max(changes.rows, 1)
    chosen = Reduce.WINDOW if share >= EXISTING_SHARE else Reduce.BLOCK
    return chosen, f"{share:.0%} of the row changes are updates and deletes"


def _opened(changes: Changes) -> str:
    a_table = changes.rows / max(changes.opened, 1)
    return f"{a_table:.1f} row changes for each table that a block of {USUAL_TRANSACTIONS:,} transactions opens"


def _why_small_steps(settings: PlanSettings) -> str | None:
    """Why blocks stay small: what the channel says of its readers and of its target; None if they may grow."""
    if settings.small_blocks is not None:
        return settings.small_blocks
    if settings.level.serial:
        return f'lanes.consistency = "{settings.consistency}": readers see each block'
    return "blocks.seconds is set" if settings.block_seconds else None
