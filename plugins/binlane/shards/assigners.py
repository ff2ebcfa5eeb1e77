"""Shard assignment: what a transaction's shards are called. Apart from the filter, so that it can be exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from binlane.choices import Assigner
from binlane.errors import ConfigError
from binlane.shards.event_filter import TransactionShards


class ShardAssigner(Protocol):
    """From what the filter found to shard ids."""

    name: ClassVar[str]

    def assign(self, transaction: TransactionShards) -> frozenset[str]:
        """Shard ids. ``#GLOBAL`` and ``#UNKNOWN`` stay what they are; an empty set stays empty."""
        ...


@dataclass(frozen=True, slots=True)
class DatabaseAssigner:
    """A shard is a database, or the group of databases that foreign keys join."""

    name: ClassVar[str] = Assigner.DATABASE

    def assign(self, transaction: TransactionShards) -> frozenset[str]:
        """The databases themselves."""
        return transaction.shards


ASSIGNERS: Final[Mapping[str, type[ShardAssigner]]] = {DatabaseAssigner.name: DatabaseAssigner}
"""By the name that a channel uses."""


def assigner_class(name: str) -> type[ShardAssigner]:
    """The assigner of that name. Raises ConfigError that lists the known ones."""
    try:
        return ASSIGNERS[name]
    except KeyError:
        known = ", ".join(sorted(ASSIGNERS))
        raise ConfigError(f"unknown shard assigner {name!r}; known: {known}") from None
