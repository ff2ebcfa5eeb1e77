"""Shard assignment: which databases share a shard, and so a lane and an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from binlane.choices import Assigner


class ShardAssigner(Protocol):
    """Makes shards of databases. One object decides a whole window."""

    def shard_of(self, database: str) -> str:
        """The shard of a database's changes; equal for equal names, in every window of a channel.

        ``database``: as the target names it, and for databases that foreign keys join, the first of them: so they share
        a shard whatever this says. Databases that the shard list calls critical, ``#GLOBAL`` and ``#UNKNOWN`` are not
        asked for. Transactions of two shards may be applied in any order unless one transaction changes both.
        """
        ...


class DatabaseAssigner:
    """A shard is a database, or the group of databases that foreign keys join."""

    def shard_of(self, database: str) -> str:
        """The database itself."""
        return database


ASSIGNERS: Final[Mapping[str, type[ShardAssigner]]] = {Assigner.DATABASE: DatabaseAssigner}
"""By the word of ``lanes.assigner``."""
