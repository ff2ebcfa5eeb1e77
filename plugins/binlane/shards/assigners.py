"""Shard assigners: which databases share a shard, and with it a lane and their commit order.

The lane of a shard is ``shard_list.Partitioner.lane_of``'s: the shard list names it, or a hash of the name does.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final, Protocol

from binlane.choices import Assigner


class ShardAssigner(Protocol):
    """Maps databases to shards. One object serves a whole window."""

    def shard_of(self, database: str) -> str:
        """The shard of a database's changes: the same for the same name in every window of a channel.

        ``database``: its name on the target; for databases joined by foreign keys, the first name of the group, so a
        group always shares a shard. Never called for critical databases of the shard list, ``#GLOBAL`` and
        ``#UNKNOWN``. Transactions of two shards may be applied in any order, unless one transaction changes both
        shards.
        """
        ...


class DatabaseAssigner:
    """A shard is a database, or the group of databases that foreign keys join."""

    def shard_of(self, database: str) -> str:
        """The database itself."""
        return database


ASSIGNERS: Final[Mapping[str, type[ShardAssigner]]] = {Assigner.DATABASE: DatabaseAssigner}
"""Assigners by their word in ``lanes.assigner``."""


def shard_of_group(group: str, critical: Set[str], assigner: ShardAssigner) -> str:
    """The shard of a group of databases. Critical groups and those with a ``#`` are their own shard."""
    return group if group.startswith("#") or group in critical else assigner.shard_of(group)
