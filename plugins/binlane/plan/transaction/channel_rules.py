"""The rules of a channel for the log's content: filter, renames, collations."""

from __future__ import annotations

from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.collations import AS_NAMED, Collations
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.selection import EVERYTHING, Extent, Selection

_NO_SOURCE: Final = "no database of the source becomes this one by [rename]"


@dataclass(frozen=True, slots=True)
class ChannelRules:
    """``[filter]``, ``[rename]`` and ``[collations]``; without rules everything is applied as it was logged."""

    selection: Selection = EVERYTHING
    """Which rows and statements are taken."""
    renaming: Renaming = AS_THEY_ARE
    """Names of databases on the target."""
    collations: Collations = AS_NAMED
    """Collations on the target in place of those that it lacks."""

    @property
    def promises(self) -> bool:
        """Whether the rules say of a statement what it may be about: databases, tables or kinds."""
        return self.selection.looks_at_statements or bool(self.renaming)

    def takes_unread(self, kind: str) -> bool:
        """Whether statements are applied that binlane does not read: the channel's file allows them by this name of
        ``logged_kinds.unread_kind``, and promises nothing."""
        return kind in self.selection.allowed and not self.promises

    @property
    def selects(self) -> bool:
        """Whether some tables of the target are not the channel's."""
        return self.selection.selects or bool(self.renaming)

    def left_out(self, key: TableKey) -> str | None:
        """The rule that leaves out a table, by its name on the target; None if it is taken."""
        database = self.renaming.source(key.database)
        return _NO_SOURCE if database is None else self.selection.table(TableKey(database, key.table))

    def left_out_whole(self, database: str) -> str | None:
        """The rule that leaves out all tables of a database, by its name on the target; None if it takes some."""
        name = self.renaming.source(database)
        if name is None:
            return _NO_SOURCE
        extent, rule = self.selection.database(name)
        return rule if extent is Extent.NONE else None


AS_LOGGED: Final = ChannelRules()
