"""What ``binlane inspect`` was asked for: transactions of some databases and tables.

Files need not be read for them of which the index of their archive says that nothing of these databases is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from binlane.binlog.row_values import Absent, Image
from binlane.errors import BinlogError, ConfigError, SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.orchestration.commands.inspection.rows import LoggedStatement, LoggedTable, Shown, plain_texts
from binlane.plan.transaction.decode import Part, RowsPart, StatementPart
from binlane.rename_rules import lower
from binlane.restore.archive_index import ArchiveIndex, IndexedFile
from binlane.restore.ruled_out import is_as_indexed
from binlane.source.archive import ArchiveSource
from binlane.sql.parse.facts import StatementFacts, StatementKind

_GLOB: Final = frozenset("*?[")
_FIRST: Final = "@1"
"""The column that the filter of a file's keys knows."""


@dataclass(frozen=True, slots=True)
class Searched:
    """Databases, and tables as ``database.table``, by the log's names; ``*`` and ``?`` as in a shell. Letter case does
    not count."""

    databases: tuple[str, ...]
    tables: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = ()
    """Columns and values that a row has, before or behind a change, all of them."""
    _indexes: dict[Path, ArchiveIndex | None] = field(default_factory=dict)
    """By folder; None for one that is no archive of one log."""

    @classmethod
    def of(cls, databases: Sequence[str], tables: Sequence[str], where: Sequence[str] = ()) -> Searched | None:
        """None if nothing was asked for. ``where``: ``column=value``. Raises ConfigError for a table without its
        database, and for values without a table or a column."""
        for pattern in tables:
            if "." not in pattern:
                raise ConfigError(f"--table: expected database.table, got {pattern!r}")
        values = tuple((column, value) for column, _, value in (each.partition("=") for each in where))
        for text, (column, _) in zip(where, values, strict=True):
            if not column or "=" not in text:
                raise ConfigError(f"--where: expected column=value, such as id=42, got {text!r}")
        if values and not tables:
            raise ConfigError("--where: expected --table with it, whose column it names, got none")
        if not databases and not tables:
            return None
        return cls(tuple(map(lower, databases)), tuple(map(lower, tables)), values)

    def shows(self, parts: Iterable[Part], shown: Iterable[Shown]) -> bool:
        """Whether a transaction may concern what was asked for. A statement that is not read may concern anything.
        ``shown``: what is inside of it, with values as text. Raises BinlogError for rows that cannot be decoded."""
        are_there = False
        for part in parts:
            if isinstance(part, StatementPart) and self._may_concern(part.facts):
                return True
            are_there |= isinstance(part, RowsPart) and self.has_table(part.table.key)
        if not are_there or not self.values:
            return are_there
        return any(not isinstance(one, LoggedStatement) and self._is_asked_for(one) for one in shown)

    def rows_of(self, shown: Iterable[Shown], others: Iterable[Shown]) -> Iterator[Shown]:
        """Of ``others``, which are the same changes and statements in another form or in the same: the row changes that
        were asked for, and all statements. ``shown``: with values as text."""
        return (other for one, other in zip(shown, others, strict=True) if self._is_asked_for(one))

    def _is_asked_for(self, shown: Shown) -> bool:
        if isinstance(shown, LoggedStatement):
            return True
        table, change = shown
        if not self.has_table(TableKey(table.table.database, table.table.table)):
            return False
        images = (image for image in (change.before, change.after) if image is not None)
        return not self.values or any(self._fits(table, image) for image in images)

    def _fits(self, table: LoggedTable, image: Image) -> bool:
        texts = dict[str, tuple[str, ...]]()
        for number, (column, value) in enumerate(zip(table.columns, image, strict=True), 1):
            if not isinstance(value, Absent):
                texts[column.label] = texts[f"@{number}"] = plain_texts(column, value)
        return all(value in texts.get(column, ()) for column, value in self.values)

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
        if found is None or found.of_any:
            return None
        plain = frozenset(each for each in self._of_databases() if _GLOB.isdisjoint(each))
        if any(map(self._has_database, found.names)):
            if self._may_have_row(index, found):
                return None
            # its tables are in the log, as the index says
            plain = frozenset()
        try:
            return found if is_as_indexed(source, found, plain) else None
        except (SourceError, BinlogError):
            # whoever reads it says what is wrong with it
            return None

    def _may_have_row(self, index: ArchiveIndex, facts: IndexedFile) -> bool:
        """Whether a file that may concern the tables may have the row that was asked for, by its first column."""
        values = [value for column, value in self.values if column == _FIRST]
        is_plain = all(_GLOB.isdisjoint(each) for each in self.tables)
        if not values or self.databases or not is_plain or any(map(self._has_database, facts.named)):
            return True
        keys = index.keys_of(facts)
        return keys is None or any(all(keys.may_have(table, value) for value in values) for table in self.tables)

    def _index_of(self, folder: Path) -> ArchiveIndex | None:
        if folder not in self._indexes:
            try:
                found = ArchiveIndex(ArchiveSource(str(folder)))
            except (SourceError, BinlogError):
                found = None
            self._indexes[folder] = None if found is None or found.is_empty else found
        return self._indexes[folder]
