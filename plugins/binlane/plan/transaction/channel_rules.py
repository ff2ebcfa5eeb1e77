"""What a channel's file says of the log's content: what is taken, and what it is called on the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.plan.transaction.collations import AS_NAMED, Collations
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.selection import EVERYTHING, Selection


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """``[filter]``, ``[rename]`` and ``[collations]``; without any, everything is applied as it was logged."""

    selection: Selection = EVERYTHING
    """What of the log is taken."""
    renaming: Renaming = AS_THEY_ARE
    """What its databases are called on the target."""
    collations: Collations = AS_NAMED
    """What stands for those of its collations that the target lacks."""


AS_LOGGED: Final = ChannelRules()
