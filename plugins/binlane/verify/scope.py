"""The tables that a verification was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from binlane.errors import ConfigError
from binlane.model import TableKey


@dataclass(frozen=True, slots=True)
class Scope:
    """Databases, and tables as ``database.table``, by the target's names; ``*`` and ``?`` as in a shell. Empty: all."""

    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not self.databases and not self.tables

    def has(self, table: TableKey) -> bool:
        """Whether a table is part of it."""
        return (
            self.is_all
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
        return (*self.databases, *self.tables)
