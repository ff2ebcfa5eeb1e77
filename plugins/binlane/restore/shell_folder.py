"""Reads a dump folder of MySQL Shell (util.dumpInstance, util.dumpSchemas, util.dumpTables).

Definitions are scripts for the servers' client, rows files for LOAD DATA. Their statements go the way of all dumps'.
(mysql/mysql-shell, 8.0.22 to 9.6: modules/util/dump/schema_dumper.cc, modules/util/load/dump_loader.cc.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.restore.definers import definers_in
from binlane.restore.dump_contents import DumpContents, DumpedTable, dumped_table
from binlane.restore.dump_file import DumpFile, DumpPlace, divided
from binlane.restore.inexact_columns import InexactTable, inexact_table
from binlane.restore.shell_contents import DONE, DatabaseFiles, ShellContents, database_of
from binlane.safe_text import shown
from binlane.source.copy_times import CopyTimes

_SELECTION: Final = ("Tables", "Triggers", "Routines", "Events")
"""Kinds of objects that options include or exclude by name."""
_SWITCHES: Final = ("triggers", "routines", "events")
_CHANGED: Final[Mapping[str, str]] = {
    "strip_definers": "views and programs have lost their DEFINER and are SQL SECURITY INVOKER: they become those of "
    "binlane's own account",
    "force_innodb": "tables of other engines have become InnoDB's",
}
"""What options of compatibility do to definitions that a restore makes."""
_SESSION: Final = (
    b"SET NAMES utf8mb4",
    b"SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
    b"SET FOREIGN_KEY_CHECKS=0, UNIQUE_CHECKS=0",
    b"SET TIME_ZONE='+00:00'",
)
"""That of MySQL Shell's own load."""


@dataclass(frozen=True, slots=True)
class ShellFolder:
    """A dump folder of MySQL Shell; its files of rows are plain, .gz or .zst."""

    path: Path
    wanted: frozenset[str]
    """The databases that are restored; files of others are not read."""

    @property
    def counted_in(self) -> str:
        """Where ``row_counts`` are recorded."""
        return DONE

    def statements(self, usual_mode: str) -> Iterator[bytes]:
        """In the order of a load: the definitions of all databases, then rows, then what could run, or read other
        databases. ``usual_mode`` is not needed: the dump records each program's. Raises ConfigError."""
        databases = ShellContents(self.path).databases(self.wanted)
        for database in databases:
            yield from self._scripts(database, database.scripts)
            yield from self._scripts(database, [table.definition for table in database.tables])
            yield from self._scripts(database, [stand_in for _, stand_in in database.views])
        for database in databases:
            for table in database.tables:
                yield f"USE {identifier(database.name)}".encode()
                yield from _SESSION
                for name, size in table.chunks:
                    file = self.path / name
                    yield from table.rows.statements(DumpFile(file).pieces(), str(file), size)
        for database in databases:
            yield from self._scripts(database, [definition for definition, _ in database.views])
            yield from self._scripts(database, [table.triggers for table in database.tables])

    def place(self) -> DumpPlace:
        """What the dump has recorded of itself. Raises ConfigError for a dump that was not written to its end, for one
        whose files are not all there, and for one of a part of the rows, or of rows of different moments."""
        contents = ShellContents(self.path)
        root, done = contents.root, contents.done
        databases = contents.databases(self.wanted)
        size, definers, inexact = 0, set[str](), list[InexactTable]()
        tables = list[DumpedTable]()
        for database in databases:
            size += sum(bytes_ for table in database.tables for _, bytes_ in table.chunks)
            for name in database.definitions:
                size += contents.files[name]
                for text in self._divided(name):
                    definers |= definers_in(text)
                    if (table := inexact_table(database.name, text)) is not None:
                        inexact.append(table)
                    if (made := dumped_table(database.name, text)) is not None and not made.is_usual:
                        tables.append(made)
        file = root.text("binlogFile")
        return DumpPlace(
            f"{file}:{root.number('binlogPosition')}" if file else "", "".join(root.text("gtidExecuted").split()),
            frozenset(root.texts("schemas")), size, frozenset(definers), inexact=tuple(inexact),
            times=CopyTimes.of(root.text("begin"), done.text("end")), contents=DumpContents(tuple(tables)),
            beliefs=tuple(self.beliefs()),
        )  # fmt: skip

    @property
    def digest(self) -> str:
        """Of the files' names and sizes, and of what the dump has recorded."""
        contents = ShellContents(self.path)
        recorded = sorted(contents.files.items()), contents.root.value, contents.done.value
        return hashlib.sha256(repr(recorded).encode()).hexdigest()

    def server(self) -> str:
        """The version of the server that was dumped. Raises ConfigError."""
        return ShellContents(self.path).root.text("serverVersion")

    def row_counts(self) -> Mapping[tuple[str, str], int]:
        """How many rows each table has in the dump, by database and table; versions before 8.2 record none."""
        recorded = ShellContents(self.path).done.part("tableRows")
        counts = {name: recorded.part(name) for name in recorded.value if name in self.wanted}
        return {(name, table): rows.number(table) for name, rows in counts.items() for table in rows.value}

    def beliefs(self) -> list[str]:
        """What the dump's options have left out or changed. Raises ConfigError."""
        root = ShellContents(self.path).root
        options, found = root.part("options"), list[str]()
        given = [f"{name}: false" for name in _SWITCHES if not options.flag(name, default=True)]
        for kind in _SELECTION:
            for key in (f"exclude{kind}", f"include{kind}"):
                names = [name for name in options.texts(key) if database_of(name) in (*self.wanted, "")]
                given += [f"{key}: {shown(', '.join(names))}"] if names else []
        if root.text("origin") == "dumpTables":
            given.append("util.dumpTables, of single tables")
        if given:
            found.append(
                f"what the dump has left out is not restored (it was made with {'; '.join(given)}): a change in the "
                "log of a table that it lacks stops the restore by the table's name; take another dump, or name the "
                "tables (--table)"
            )
        if options.flag("skipConsistencyChecks", default=False):
            found.append("no definition was changed while the dump was made: it was made with skipConsistencyChecks")
        changes = [_CHANGED[name] for name in root.texts("compatibilityOptions") if name in _CHANGED]
        if root.flag("mdsCompatibility", default=False):
            changes.append("options of tables and databases that a managed service does not take are left out (ocimds)")
        if changes:
            found.append(
                f"the dump's definitions are not those of its server: {'; '.join(changes)}; where that matters, dump "
                "without compatibility and ocimds"
            )
        return found

    def _scripts(self, database: DatabaseFiles, names: Sequence[str | None]) -> Iterator[bytes]:
        for name in filter(None, names):
            if name != database.scripts[0]:  # it makes the database
                yield f"USE {identifier(database.name)}".encode()
            yield from _SESSION
            yield from self._divided(name)

    def _divided(self, name: str) -> Iterator[bytes]:
        return divided(DumpFile(self.path / name).pieces(), str(self.path / name))
