"""The rules of a channel for the log's content: filter, renames, collations."""

from __future__ import annotations

from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.plan.transaction.collations import AS_NAMED, Collations
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.selection import EVERYTHING, Selection


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """``[filter]``, ``[rename]`` and ``[collations]``; without rules everything is applied as it was logged."""

    selection: Selection = EVERYTHING
    """Which rows and statements are taken."""
    renaming: Renaming = AS_THEY_ARE
    """Names of databases on the target."""
    collations: Collations = AS_NAMED
    """Collations on the target in place of those that it lacks."""


AS_LOGGED: Final = ChannelRules()
