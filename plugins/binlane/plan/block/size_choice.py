"""What ``blocks.reduce = "auto"`` and ``blocks.transactions = "auto"`` stand for in one window."""

from __future__ import annotations

from binlane.choices import Reduce
from binlane.lazy_dataclass import dataclass

USUAL_TRANSACTIONS = 1000
"""Source transactions in a block of usual size: with fewer, commits and round trips begin to count (20 ms for all lanes
of a durable target)."""


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """What was chosen for a window, and why."""

    reduce: Reduce
    transactions: int
    """Source transactions in a block, at most."""
    because: str
    """The reason, for the plan and the board."""

    def __str__(self) -> str:
        return f'reduce = "{self.reduce}", transactions = {self.transactions:,}: {self.because}'
