"""The tables that a verification was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey


@dataclass(frozen=True, slots=True)
class Scope:
    """Databases, tables as ``database.table``, and shards, by the target's names; ``*`` and ``?`` as in a shell.
    Empty: all."""

    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    members: frozenset[str] = frozenset()
    """The databases of ``shards`` (``resolved``)."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not self.databases and not self.tables and not self.shards

    def resolved(self, shard_of: Mapping[str, str]) -> Scope:
        """With the databases of its shards. ``shard_of``: the shard of every database.

        Raises ConfigError for a shard that no database belongs to.
        """
        for pattern in self.shards:
            if not any(fnmatchcase(shard, pattern) for shard in shard_of.values()):
                raise ConfigError(
                    f"--shard: expected the shard of a database of the target, got {pattern!r}; without an assigner of "
                    "your own a shard is a database, or the first name of those that foreign keys join"
                )
        is_member = {shard for shard in shard_of.values() if any(fnmatchcase(shard, each) for each in self.shards)}
        return replace(self, members=frozenset(name for name, shard in shard_of.items() if shard in is_member))

    def has(self, table: TableKey) -> bool:
        """Whether a table is part of it."""
        return (
            self.is_all
            or table.database in self.members
            or any(fnmatchcase(table.database, pattern) for pattern in self.databases)
            or any(fnmatchcase(str(table), pattern) for pattern in self.tables)
        )

    def check(self) -> None:
        """Raises ConfigError for a table without its database."""
        for pattern in self.tables:
            if "." not in pattern:
                raise ConfigError(f"--table: expected database.table, got {pattern!r}")

    @property
    def words(self) -> tuple[str, ...]:
        """As it is stored with a verification."""
        return (*self.databases, *self.tables, *(f"shard {shard}" for shard in self.shards))
