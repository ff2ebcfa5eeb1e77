"""The files of a MySQL Shell dump folder: what its JSON files say, proved against what is there.

JSON files name everything: ``@.json`` the dump, ``@.done.json`` (which is written last) its files of rows with their
sizes, one for each database its tables and views, one for each table its columns and how their values are written.
Names of files are made of those of the objects, which the JSON files have as well, so a name is never guessed.
(mysql/mysql-shell, 8.0.22 to 9.6: modules/util/dump/dumper.cc, modules/util/load/dump_reader.cc.)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Final

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import open_regular
from binlane.restore.definers import GROUPED_NAME
from binlane.restore.shell_metadata import Metadata
from binlane.restore.shell_rows import DECODERS, RowsOfTable
from binlane.safe_text import shown

ROOT: Final = "@.json"
DONE: Final = "@.done.json"
_VERSION: Final = re.compile(r"[12]\.\d{1,9}\.\d{1,9}")
"""Of the folder's form."""
_CAPABILITIES: Final = frozenset({"partition_awareness", "multifile_schema_ddl"})
"""What a reader has to know, by the dump's own word; these are known here."""
_FORM: Final[Mapping[str, str]] = {
    "defaultCharacterSet": "utf8mb4", "fieldsTerminatedBy": "\t", "fieldsEnclosedBy": "", "fieldsEscapedBy": "\\",
    "linesTerminatedBy": "\n",
}  # fmt: skip
"""Of files of rows, unless the dump was made with another dialect."""
_QUALIFIED: Final = re.compile(
    r"(?:" + GROUPED_NAME.decode() + r"|([^`.]+))(?:\.(?:" + GROUPED_NAME.decode() + r"|([^`.]+))(?:\..*)?)?", re.DOTALL
)
"""A database, and a table of it, in an option."""
_OFFSET: Final = 8
"""Bytes of an entry in an .idx file: how many bytes of rows come before, the last one all of them."""
_WHOLE: Final = "take a whole dump, with its files as MySQL Shell has written them"


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A table's files."""

    rows: RowsOfTable
    definition: str
    triggers: str | None
    chunks: Sequence[tuple[str, int]]
    """Files of rows, and their sizes without compression."""


@dataclass(frozen=True, slots=True)
class DatabaseFiles:
    """A database's files."""

    name: str
    scripts: Sequence[str]
    """CREATE DATABASE, then its routines and events."""
    tables: Sequence[TableFiles]
    views: Sequence[tuple[str, str]]
    """Of each view the definition, and the stand-in until all of them can be made."""

    @property
    def definitions(self) -> Iterator[str]:
        """All files of statements."""
        tables = ((table.definition, table.triggers) for table in self.tables)
        return (name for name in (*self.scripts, *chain(*tables), *chain(*self.views)) if name is not None)


class ShellContents:
    """What the folder's JSON files say, proved against its files. Raises ConfigError, also when it is made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.files = {file.name: file.stat().st_size for file in path.iterdir()}
        except OSError as exc:
            raise ConfigError(
                f"--from {exc.filename or path}: cannot be read: {exc.strerror}; put the file there, or take the name "
                "out of a copy of the folder"
            ) from exc

    @functools.cached_property
    def root(self) -> Metadata:
        """``@.json``, of a dump that is one moment of its server, in a form that is known here."""
        root = Metadata.read(self.path / ROOT, _WHOLE)
        if _VERSION.fullmatch(root.text("version")) is None:
            raise root.wrong("version", "1 or 2 as the first number", "another one; take a dump of MySQL Shell 8 or 9")
        for capability in root.parts("capabilities"):
            if (name := capability.text("id")) not in _CAPABILITIES:
                raise ConfigError(
                    f"--from {self.path}: expected a dump that can be read without {shown(name)}, found one that needs "
                    f"it ({shown(capability.text('description'))}); dump with util.dumpInstance or util.dumpSchemas "
                    "into a folder, without the option that brings this"
                )
        if not root.flag("consistent", default=False) or root.flag("gtidExecutedInconsistent", default=False):
            raise ConfigError(
                f"--from {self.path}: expected a dump of one moment, found one whose tables may be of different ones "
                "(consistent: false, or an account that could not lock): no place in the log belongs to it; dump with "
                "consistent: true, which is the default, as an account with RELOAD and BACKUP_ADMIN"
            )
        if not root.flag("tzUtc", default=True):
            raise ConfigError(
                f"--from {self.path}: expected TIMESTAMPs in UTC, found those of an unknown time zone (tzUtc: false); "
                "dump without that option"
            )
        return root

    @functools.cached_property
    def done(self) -> Metadata:
        """``@.done.json``, which MySQL Shell writes when everything else is written."""
        if DONE not in self.files:
            raise ConfigError(
                f"--from {self.path}: expected its file {DONE}, which MySQL Shell writes last, found none: the dump "
                "was cut, or is being made; take a whole one"
            )
        done = Metadata.read(self.path / DONE, _WHOLE)
        if "chunkFileBytes" not in done.value:
            raise ConfigError(
                f"--from {self.path / DONE}: expected chunkFileBytes, the list of its files of rows, found none, so "
                "that a missing file would not be seen; dump with MySQL Shell 8.0.22 or newer"
            )
        return done

    def databases(self, wanted: Collection[str]) -> list[DatabaseFiles]:
        """Those of them that the dump has."""
        names, bases = self.root.texts("schemas"), self.root.part("basenames")
        return [self._database(name, bases.text(name) or name) for name in names if name in wanted]

    def _database(self, name: str, base: str) -> DatabaseFiles:
        known = self._metadata(f"{base}.json", {"schema": name})
        self._require_both(known)
        if libraries := known.texts("libraries"):
            raise ConfigError(
                f"--from {known.file}: expected a database without libraries, of which a restore makes none, found "
                f"{shown(libraries[0])}; dump with libraries: false and without the routines that use them "
                "(excludeRoutines), and make both by hand"
            )
        scripts = [self._named(f"{base}.sql")]
        if known.flag("multifileDdl", default=False):
            routines = [*known.texts("functions"), *known.texts("procedures")]
            for kind, objects in (("routines", routines), ("events", known.texts("events"))):
                scripts += [self._named(f"{base}.{kind}.sql")] if objects else []
        bases = known.part("basenames")
        return DatabaseFiles(
            name,
            scripts,
            [self._table(name, table, bases.text(table) or f"{base}@{table}") for table in known.texts("tables")],
            [self._view(bases.text(view) or f"{base}@{view}") for view in known.texts("views")],
        )

    def _view(self, base: str) -> tuple[str, str]:
        return self._named(f"{base}.sql"), self._named(f"{base}.pre.sql")

    def _table(self, database: str, name: str, base: str) -> TableFiles:
        known = self._metadata(f"{base}.json", {})
        options = known.part("options")
        self._require_names(options, {"schema": database, "table": name})
        self._require_both(known)
        self._require_all_rows(known, database, name)
        if any(options.text(key) != value for key, value in _FORM.items()):
            raise ConfigError(
                f"--from {known.file}: expected rows in utf8mb4, with a tab between values and a backslash in front of "
                "escapes, found another form; dump without dialect, fields*, lines* and defaultCharacterSet"
            )
        decoded = options.part("decodeColumns")
        for column in decoded.value:
            if decoded.text(column) not in DECODERS:
                raise decoded.wrong(column, f"{' or '.join(DECODERS)}", "another function")
        columns = options.texts("columns")
        if not columns:
            raise options.wrong("columns", "the table's columns", "none")
        decoders = [(at, DECODERS[decoded.text(each)]) for at, each in enumerate(columns) if each in decoded.value]
        triggers = f"{base}.triggers.sql"
        if known.texts("triggers"):
            self._named(triggers)
        return TableFiles(
            RowsOfTable(name, columns, decoders),
            self._named(f"{base}.sql"),
            triggers if triggers in self.files else None,
            self._chunks(known, database, name, base),
        )

    def _chunks(self, known: Metadata, database: str, name: str, base: str) -> list[tuple[str, int]]:
        """A table's files of rows: of each partition one, or those that are numbered, of which the last one has a name
        of its own."""
        end, partitions = known.text("extension") or "tsv", known.part("basenames")
        found = list[tuple[str, int]]()
        prefixes = [partitions.text(each) for each in partitions.value] or [base]
        if len({*prefixes}) < len(prefixes):
            raise known.wrong("basenames", "a name of files for each partition", "one name for several")
        for prefix in prefixes:
            found += self._numbered(prefix, end, is_divided=known.flag("chunking", default=False))
        expected = self.done.part("tableDataBytes").part(database).number(name)
        if (size := sum(bytes_ for _, bytes_ in found)) != expected:
            raise ConfigError(
                f"--from {self.path}: expected {expected:,} bytes of rows of {database}.{name}, as tableDataBytes of "
                f"{DONE} says, found {size:,} in its list of files; {_WHOLE}"
            )
        for file, bytes_ in found:
            self._require_size(file, bytes_)
        return found

    def _numbered(self, prefix: str, end: str, *, is_divided: bool) -> Iterator[tuple[str, int]]:
        sizes, whole = self.done.part("chunkFileBytes"), f"{prefix}.{end}"
        if whole in sizes.value:
            # also where files are divided: older versions write so of a table without rows
            yield whole, sizes.number(whole)
            return
        for number in count() if is_divided else ():
            name, last = f"{prefix}@{number}.{end}", f"{prefix}@@{number}.{end}"
            if name in sizes.value:
                yield name, sizes.number(name)
            elif last in sizes.value:
                yield last, sizes.number(last)
                return
            else:
                break
        expected = f"{prefix}@@N.{end}" if is_divided else whole
        raise ConfigError(
            f"--from {self.path}: expected the file {expected} in chunkFileBytes of {DONE}, found none; {_WHOLE}"
        )

    def _require_size(self, file: str, size: int) -> None:
        """Raises ConfigError for a file of rows that is not there, and for one of another size, where that is seen
        without reading it: the load counts its bytes."""
        self._named(file)
        found = size if file.endswith((".gz", ".zst")) else self.files[file]
        if (index := f"{file}.idx") in self.files and found == size:
            found = self._last_offset(index)
        if found != size:
            raise ConfigError(
                f"--from {self.path / file}: expected {size:,} bytes of rows, as chunkFileBytes of {DONE} says, found "
                f"{found:,}: the file was cut, or is of another dump; {_WHOLE}"
            )

    def _last_offset(self, index: str) -> int:
        try:
            with open_regular(self.path / index) as file:
                file.seek(max(0, self.files[index] - _OFFSET))
                return int.from_bytes(file.read(_OFFSET), "big")
        except OSError as exc:
            raise ConfigError(f"--from {self.path / index}: cannot be read: {exc.strerror}; {_WHOLE}") from exc

    def _require_both(self, known: Metadata) -> None:
        """Raises ConfigError for a dump without definitions or without rows."""
        for key, option, what in (("includesDdl", "dataOnly", "definitions"), ("includesData", "ddlOnly", "rows")):
            if not known.flag(key, default=True):
                raise ConfigError(
                    f"--from {known.file}: expected definitions and rows, found no {what} ({option}); dump without "
                    f"{option}"
                )

    @functools.cached_property
    def _partitioned(self) -> frozenset[tuple[str, str] | None]:
        """Tables of which an option names the partitions that were dumped; None for a text that is not read."""
        found = map(_QUALIFIED.fullmatch, self.root.part("options").part("partitions").value)
        return frozenset(None if each is None else _names(each) for each in found)

    def _require_all_rows(self, known: Metadata, database: str, name: str) -> None:
        """Raises ConfigError for a table of which only some rows were dumped."""
        if known.text("where"):
            option = "where"
        elif not {None, (database, name)}.isdisjoint(self._partitioned):
            option = "partitions"
        else:
            return
        raise ConfigError(
            f"--from {known.file}: expected all rows of {database}.{name}, found some of them ({option}): changes in "
            f"the log of the other ones would not find them; dump without {option}"
        )

    def _require_names(self, known: Metadata, names: Mapping[str, str]) -> None:
        for key, name in names.items():
            if known.text(key) != name:
                raise known.wrong(key, f"{shown(name)}, by whose name the file is known", "another name")

    def _metadata(self, name: str, names: Mapping[str, str]) -> Metadata:
        known = Metadata.read(self.path / self._named(name), _WHOLE)
        self._require_names(known, names)
        return known

    def _named(self, name: str) -> str:
        """The name of a file of this folder, and of no other one."""
        if name not in self.files:
            raise ConfigError(
                f"--from {self.path}: expected the file {shown(name)}, found none: the folder is not whole; {_WHOLE}"
            )
        return name


def _names(found: re.Match[str]) -> tuple[str, str]:
    """The database and the table, without their quotes; empty: none."""
    database, table = (
        (quoted or "").replace("``", "`") or plain or "" for quoted, plain in (found.group(1, 2), found.group(3, 4))
    )
    return database, table


def database_of(option: str) -> str:
    """The database that an option names; empty: it is not known."""
    found = _QUALIFIED.fullmatch(option)
    return "" if found is None else _names(found)[0]
