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
from binlane.binlog.types.columns import Column
from binlane.errors import BinlogError, ConfigError, SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, plural
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
_MOST_SHOWN: Final = 8
"""Columns of a table that a message names."""


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
    _noted: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    """The columns that were looked at last, by table."""
    _found: set[str] = field(default_factory=set)
    """Columns of ``values`` that a table has had."""
    _lacking: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Table and column of ``values`` that it has not had: in which file, and its columns there."""

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

    def shows(self, parts: Iterable[Part], shown: Iterable[Shown], file: str = "") -> bool:
        """Whether a transaction may concern what was asked for. A statement that is not read may concern anything.
        ``shown``: what is inside of it, with values as text; ``file``: the log's. Raises BinlogError for rows that
        cannot be decoded."""
        are_there = False
        for part in parts:
            if isinstance(part, StatementPart) and self._may_concern(part.facts):
                return True
            are_there |= isinstance(part, RowsPart) and self.has_table(part.table.key)
        if not are_there or not self.values:
            return are_there
        return any(not isinstance(one, LoggedStatement) and self._is_asked_for(one, file) for one in shown)

    def require_columns(self) -> None:
        """To be called behind the last file. Raises ConfigError if rows that were looked at have no column of a name
        that was asked for: whether they have its value is not known."""
        for (table, column), (file, columns) in sorted(self._lacking.items()):
            # a table may get a column or lose it, and of several each may have other ones: no row of an image without
            # the column has its value, if that image has names, or the column was asked for by its number
            is_known = column in self._found and (column.startswith("@") or not _without_names(columns))
            if not is_known:
                raise ConfigError(
                    f"--where: expected the column {column!r} in {table}, found {_listed(columns)} in {file}: rows of "
                    f"this table were not searched there; name the column by its number (--where {_FIRST}=..), or name "
                    "with --channel a channel whose target has the table as it was logged"
                )

    def rows_of(self, shown: Iterable[Shown], others: Iterable[Shown]) -> Iterator[Shown]:
        """Of ``others``, which are the same changes and statements in another form or in the same: the row changes that
        were asked for, and all statements. ``shown``: with values as text."""
        return (other for one, other in zip(shown, others, strict=True) if self._is_asked_for(one))

    def _is_asked_for(self, shown: Shown, file: str = "") -> bool:
        if isinstance(shown, LoggedStatement):
            return True
        table, change = shown
        if not self.has_table(TableKey(table.table.database, table.table.table)):
            return False
        if not self.values:
            return True
        self._note_columns(table, file)
        images = (image for image in (change.before, change.after) if image is not None)
        return any(self._fits(table, image) for image in images)

    def _note_columns(self, table: LoggedTable, file: str) -> None:
        if self._noted.get(table.name) is table.columns:
            return
        self._noted[table.name] = table.columns
        columns = tuple(column.label for column in table.columns)
        for wanted, _ in self.values:
            if wanted in columns or wanted in (f"@{number}" for number in range(1, len(columns) + 1)):
                self._found.add(wanted)
            elif (key := (table.name, wanted)) not in self._lacking or _without_names(columns):
                self._lacking[key] = file, columns

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
        return any(fnmatchcase(name, each) for each in self.databases) or any(
            _may_begin(f"{name}.", each) for each in self.tables
        )

    def _plain_databases(self) -> frozenset[str]:
        """Databases that were asked for by their whole names. In ``a.b.c`` it is not known which dot ends one."""
        plain = [each for each in self.tables if _GLOB.isdisjoint(each)]
        parts = (each[:at] for each in plain for at, sign in enumerate(each) if sign == "." and at)
        return frozenset((*(each for each in self.databases if _GLOB.isdisjoint(each)), *parts))

    def passed_over(self, path: Path) -> IndexedFile | None:
        """The index of a file in which nothing of this is; None if there is none, or it is not this file's."""
        index = self._index_of(path.absolute().parent)
        if index is None:
            return None
        source, found = ArchiveSource(str(path.absolute().parent)), index.of_stored(path.name)
        if found is None or found.of_any:
            return None
        plain = self._plain_databases()
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


def _may_begin(text: str, pattern: str) -> bool:
    """Whether a pattern holds for some text that begins with ``text``."""
    return any(fnmatchcase(text, pattern[:end]) for end in range(1, len(pattern) + 1))


def _without_names(columns: Iterable[str]) -> bool:
    """Whether a column is known by its number alone."""
    return any(each.startswith("@") for each in columns)


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(columns[:_MOST_SHOWN])
    return f"{shown} .. ({plural(len(columns), 'column')})" if len(columns) > _MOST_SHOWN else shown
