"""What ``binlane inspect`` was asked for: transactions of some databases and tables.

Files need not be read for them of which the index of their archive says that nothing of these databases is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from binlane.errors import BinlogError, ConfigError, SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.decode import Part, RowsPart, StatementPart
from binlane.rename_rules import lower
from binlane.restore.archive_index import ArchiveIndex, IndexedFile
from binlane.restore.ruled_out import is_as_indexed
from binlane.source.archive import ArchiveSource
from binlane.sql.parse.facts import StatementFacts, StatementKind

_GLOB: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Searched:
    """Databases, and tables as ``database.table``, by the log's names; ``*`` and ``?`` as in a shell. Letter case does
    not count."""

    databases: tuple[str, ...]
    tables: tuple[str, ...]
    _indexes: dict[Path, ArchiveIndex | None] = field(default_factory=dict)
    """By folder; None for one that is no archive of one log."""

    @classmethod
    def of(cls, databases: Sequence[str], tables: Sequence[str]) -> Searched | None:
        """None if nothing was asked for. Raises ConfigError for a table without its database."""
        for pattern in tables:
            if "." not in pattern:
                raise ConfigError(f"--table: expected database.table, got {pattern!r}")
        return cls(tuple(map(lower, databases)), tuple(map(lower, tables))) if databases or tables else None

    def shows(self, parts: Iterable[Part]) -> bool:
        """Whether a transaction may concern what was asked for. A statement that is not read may concern anything."""
        for part in parts:
            if isinstance(part, RowsPart):
                if self.has_table(part.table.key):
                    return True
            elif isinstance(part, StatementPart) and self._may_concern(part.facts):
                return True
        return False

    def _may_concern(self, facts: StatementFacts) -> bool:
        if facts.kind is StatementKind.TRANSACTION:
            return False
        if facts.kind is StatementKind.UNKNOWN or not facts.databases:
            return True
        others = facts.databases - {key.database for key in facts.tables}
        return any(map(self.has_table, facts.tables)) or any(map(self._has_database, others))

    def has_table(self, key: TableKey) -> bool:
        """Whether a table was asked for."""
        database, table = lower(key.database), lower(f"{key.database}.{key.table}")
        return any(fnmatchcase(database, each) for each in self.databases) or any(
            fnmatchcase(table, each) for each in self.tables
        )

    def _has_database(self, database: str) -> bool:
        """Whether something of the database was asked for."""
        name = lower(database)
        return any(fnmatchcase(name, each) for each in self._of_databases())

    def _of_databases(self) -> tuple[str, ...]:
        return (*self.databases, *(each.partition(".")[0] for each in self.tables))

    def passed_over(self, path: Path) -> IndexedFile | None:
        """The index of a file in which nothing of this is; None if there is none, or it is not this file's."""
        index = self._index_of(path.absolute().parent)
        if index is None:
            return None
        source, found = ArchiveSource(str(path.absolute().parent)), index.of_stored(path.name)
        if found is None or found.of_any or any(map(self._has_database, found.names)):
            return None
        plain = frozenset(each for each in self._of_databases() if _GLOB.isdisjoint(each))
        try:
            return found if is_as_indexed(source, found, plain) else None
        except (SourceError, BinlogError):
            # whoever reads it says what is wrong with it
            return None

    def _index_of(self, folder: Path) -> ArchiveIndex | None:
        if folder not in self._indexes:
            try:
                found = ArchiveIndex(ArchiveSource(str(folder)))
            except (SourceError, BinlogError):
                found = None
            self._indexes[folder] = None if found is None or found.is_empty else found
        return self._indexes[folder]
