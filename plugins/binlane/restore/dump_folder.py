"""Reads a folder of mydumper: one file for each definition, files of rows for each table, and ``metadata``.

A database's name is that of its CREATE DATABASE: newer versions name the files of some ``mydumper_1``. Each statement
of a file ends with a semicolon and the end of its line; mydumper puts a blank between the two inside of bodies.
(mydumper/mydumper, 0.10 to 1.0: src/mydumper/mydumper_jobs.c, mydumper_working_thread.c.)
"""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import open_regular
from binlane.restore.definers import GROUPED_NAME, definers_in
from binlane.restore.dump_contents import DumpContents, DumpedTable, dumped_table, kinds_of
from binlane.restore.dump_file import DumpFile, DumpPlace, decoded, divided, shown_part
from binlane.restore.inexact_columns import InexactTable, inexact_table
from binlane.source.copy_times import CopyTimes

_METADATA: Final = "metadata"
_LARGEST_METADATA: Final = 256 << 20
"""Bytes: a hundred for each of two million tables."""
_END: Final = b";\n"
_CREATE: Final = "-schema-create"
_SUFFIX: Final = re.compile(r"\.sql(?:\.gz|\.zst)?\Z")
_DATABASE: Final = re.compile(rb"CREATE DATABASE (?:/\*!\d+ IF NOT EXISTS ?\*/ |IF NOT EXISTS )?" + GROUPED_NAME)
_SOURCE: Final = re.compile(
    r"^SHOW MASTER STATUS:\n\tLog: ([^\n]+)\n\tPos: (\d{1,20})\n(\tGTID:)?",
    re.MULTILINE,
)
"""Of version 0.10; its GTIDs end in front of an empty line."""
_EMPTY: Final = re.compile(r"\n[ \t]*\n")
_BEGUN: Final = re.compile(r"Started dump at: *([^\n]*)")
_ENDED: Final = re.compile(r"Finished dump at: *([^\n]*)")
_SECTION: Final = re.compile(r"^\[(?:source|master)\]\n", re.MULTILINE)
_FILE: Final = re.compile(r"^[# ]*(?:SOURCE_LOG_FILE|File) *= *\"?([^\"\n]+?)\"?$", re.MULTILINE)
_OFFSET: Final = re.compile(r"^[# ]*(?:SOURCE_LOG_POS|Position) *= *\"?(\d{1,20})\"?$", re.MULTILINE)
_GTIDS: Final = re.compile(r"^[# ]*executed_gtid_set *= *\"?([^\"]*?)\"?$", re.MULTILINE | re.IGNORECASE)
_TABLE: Final = re.compile(r"^\[[`\"]([^\n]+)[`\"]\]\n", re.MULTILINE)
_BETWEEN: Final = re.compile(r"[`\"]\.[`\"]")
_ROWS: Final = re.compile(r"^rows *= *(\d{1,20})$", re.MULTILINE)
_REAL: Final = re.compile(r"^real_table_name *= *([^\n]+)$", re.MULTILINE)
_ZONE: Final = re.compile(rb"SET (?:SESSION )?TIME_ZONE *= *'\+00:00'", re.IGNORECASE)
_ROWS_OF: Final = re.compile(rb"(?:INSERT|REPLACE)\b", re.IGNORECASE)
_ROWS_SESSION: Final = (
    b"SET NAMES binary",
    b"SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
    b"SET FOREIGN_KEY_CHECKS=0, UNIQUE_CHECKS=0",
)
_KINDS: Final = ("-schema", "-schema-sequence", "", "-schema-post", "-schema-view", "-schema-triggers")
"""What the name of a file ends with, in the order of a load: rows come in front of their table's triggers."""
_LONGEST: Final = tuple(sorted(_KINDS, key=len, reverse=True))
_OF_PROGRAMS: Final = frozenset({"-schema-post", "-schema-view", "-schema-triggers"})
_OPTIONAL: Final = ("triggers", "routines", "events")
"""Kinds of objects that mydumper leaves out without an option of that name."""
_NOT_RECORDED: Final = (
    "mydumper records neither the sql_mode of routines, triggers and events nor the time zone of events: they have the "
    "target's usual sql_mode, and UTC"
)


@dataclass(frozen=True, slots=True)
class DumpFolder:
    """A folder of mydumper; its files are plain, .gz or .zst."""

    path: Path
    wanted: frozenset[str]
    """The databases that are restored; files of others are not read."""

    def statements(self, usual_mode: str) -> Iterator[bytes]:
        """Every statement without its end, behind USE of its database. ``usual_mode``: the sql_mode for routines,
        views, triggers and events, of which mydumper records none. Raises ConfigError for a file that cannot be read,
        and for rows whose times are of no known zone."""
        wanted = self._wanted()
        for name, files in zip(wanted.values(), self._files(wanted), strict=True):
            yield from self._divided(files[_CREATE][0])
            yield b"USE " + _quoted(name)
            for kind in _KINDS:
                for file in files[kind]:
                    yield from _ROWS_SESSION if kind not in _OF_PROGRAMS else _programs_session(usual_mode)
                    yield from self._rows(file) if kind == "" else self._divided(file)

    def place(self) -> DumpPlace:
        """What the dump has recorded of itself. Raises ConfigError for a dump that was not written to its end, and for
        one whose files are not all there."""
        text = self._metadata()
        if "Finished dump at" not in text:
            raise ConfigError(
                f"--from {self.path}: expected `Finished dump at` in its file metadata, found none: the dump was cut; "
                "take a whole one"
            )
        wanted = self._wanted()
        self._require_files(wanted)
        files = self._files(wanted)
        size = sum(self._size(file) for each in files for kind in _KINDS for file in each[kind])
        programs = [file for each in files for kind in _OF_PROGRAMS for file in each[kind]]
        definers, kinds = set[str](), set[str]()
        for made in chain.from_iterable(map(self._divided, programs)):
            definers |= definers_in(made)
            kinds |= kinds_of([made])
        position, gtids = _position(text)
        databases = frozenset(self._databases().values())
        inexact, empty = self._tables_of(wanted, files)
        # a table between them may have any name
        times = CopyTimes.of("".join(_BEGUN.findall(text)[:1]), "".join(_ENDED.findall(text)[-1:]))
        lacks = tuple(kind for kind in _OPTIONAL if kind not in kinds)
        contents = DumpContents(
            () if any(each[""] for each in files) else tuple(empty),
            tuple((name, lacks) for name in wanted.values() if lacks),
            " ".join(f"--{kind}" for kind in _OPTIONAL),
        )
        return DumpPlace(
            position, "".join(gtids.split()), databases, size, frozenset(definers), inexact=tuple(inexact), times=times,
            contents=contents, beliefs=(_NOT_RECORDED,) if kinds else (),
        )  # fmt: skip

    def _tables_of(
        self, wanted: Mapping[str, str], files: Iterable[Mapping[str, list[Path]]]
    ) -> tuple[list[InexactTable], list[DumpedTable]]:
        """Tables whose values are not exact, and all tables, as if they had no rows."""
        inexact, empty = list[InexactTable](), list[DumpedTable]()
        for each, name in zip(files, wanted.values(), strict=True):
            for text in chain.from_iterable(map(self._divided, each["-schema"])):
                if (table := inexact_table(name, text)) is not None:
                    inexact.append(table)
                if (made := dumped_table(name, text)) is not None:
                    empty.append(DumpedTable(name, made.table, lacks_rows=True))
        return inexact, empty

    @property
    def digest(self) -> str:
        """Of the files' names and sizes, and of what the dump has recorded."""
        files = sorted((file.name, self._size(file)) for file in self._all())
        return hashlib.sha256(repr(files).encode() + self._metadata().encode()).hexdigest()

    @property
    def counted_in(self) -> str:
        """Where ``row_counts`` are recorded."""
        return f"file {_METADATA}"

    def server(self) -> str:
        """Empty: mydumper records no version of the server."""
        return ""

    def row_counts(self) -> Mapping[tuple[str, str], int]:
        """How many rows each table has in the dump, by database and table; versions before 0.12 record none."""
        databases, found = self._wanted(), dict[tuple[str, str], int]()
        for prefix, table, facts in self._tables():
            rows, real = _ROWS.search(facts), _REAL.search(facts)
            if prefix in databases and rows is not None and "is_view" not in facts and "is_sequence" not in facts:
                found[databases[prefix], real[1] if real is not None else table] = int(rows[1])
        return found

    def _wanted(self) -> dict[str, str]:
        """The restored databases by what their files' names begin with. Raises ConfigError if a file may be of two."""
        databases = self._databases()
        found = {prefix: name for prefix, name in databases.items() if name in self.wanted}
        for other in databases:
            if (prefix := next((each for each in _begins(other, ".") if each in found), None)) is not None:
                raise ConfigError(
                    f"--from {self.path}: names of files of database {databases[other]} begin as those of "
                    f"{found[prefix]}: move those of {databases[other]} out of a copy of the folder"
                )
        return found

    def _tables(self) -> Iterator[tuple[str, str, str]]:
        """The sections of tables: what the names of their files begin with, and what is recorded."""
        text = self._metadata()
        for found in _TABLE.finditer(text):
            head, facts = found[1], _section(text, found.end())
            if (between := _BETWEEN.search(head)) is not None:
                yield head[: between.start()], head[between.end() :], facts

    def _metadata(self) -> str:
        try:
            with open_regular(self.path / _METADATA) as file:
                text = file.read(_LARGEST_METADATA + 1)
            if len(text) > _LARGEST_METADATA:
                raise OSError(errno.EFBIG, f"it has more than {_LARGEST_METADATA:,} bytes")
            return text.decode()
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigError(
                f"--from {self.path}: expected a folder of mydumper, with a file metadata, or of MySQL Shell, with a "
                f"file @.json, found none that can be read: {exc.strerror if isinstance(exc, OSError) else exc}; name "
                "a folder that one of the two has written, or a file of mysqldump or mariadb-dump"
            ) from exc

    def _databases(self) -> dict[str, str]:
        """Names of databases by what their files' names begin with."""
        found = dict[str, str]()
        for file in self._all():
            stem = _SUFFIX.sub("", file.name)
            if not stem.endswith(_CREATE) or stem == file.name:
                continue
            head = next(DumpFile(file).pieces(), b"")
            if (made := _DATABASE.search(head)) is None:
                raise self._unknown(file, "CREATE DATABASE", head)
            found[stem.removesuffix(_CREATE)] = decoded(made[1].replace(b"``", b"`"), file)
        if not found:
            raise ConfigError(
                f"--from {self.path}: expected files DATABASE-schema-create.sql, found none: name a folder that "
                "mydumper has written without --no-schemas"
            )
        return found

    def _all(self) -> list[Path]:
        try:
            return sorted(self.path.iterdir())
        except OSError as exc:
            raise ConfigError(f"--from {self.path}: cannot be read: {exc.strerror}; name a dump") from exc

    def _size(self, file: Path) -> int:
        """Raises ConfigError for a name without a file behind it."""
        try:
            return file.stat().st_size
        except OSError as exc:
            raise ConfigError(
                f"--from {file}: cannot be read: {exc.strerror}; put the file there, or take the name out of a copy of "
                "the folder"
            ) from exc

    def _files(self, prefixes: Iterable[str]) -> list[Mapping[str, list[Path]]]:
        """The files of each database by their kind, in one walk: a folder may have hundreds of thousands."""
        found = {prefix: {kind: list[Path]() for kind in (*_KINDS, _CREATE)} for prefix in prefixes}
        for file in self._all():
            stem = _SUFFIX.sub("", file.name)
            if stem == file.name:
                continue
            for prefix in chain(_begins(stem, "."), _begins(stem, "-schema")):
                if prefix in found:
                    kind = (
                        _CREATE if stem == prefix + _CREATE else next(each for each in _LONGEST if stem.endswith(each))
                    )
                    found[prefix][kind].append(file)
        return [*found.values()]

    def _require_files(self, databases: Mapping[str, str]) -> None:
        """Raises ConfigError for a table with rows, as recorded, and no file of them."""
        of_rows = (file.name for file in self._all() if "-schema" not in file.name and _SUFFIX.search(file.name))
        begins = {begin for name in of_rows for begin in _begins(name, ".")}
        for prefix, table, facts in self._tables():
            rows = _ROWS.search(facts)
            if prefix not in databases or rows is None or rows[1] == "0" or "is_view" in facts:
                continue
            if (start := f"{prefix}.{table}") not in begins:
                raise ConfigError(
                    f"--from {self.path}: expected files {start}.*.sql with {rows[1]} rows, found none: the folder is "
                    "not whole, or was written with --load-data or --csv; take a whole one, with rows as INSERT"
                )

    def _divided(self, file: Path) -> Iterator[bytes]:
        return divided(DumpFile(file).pieces(), str(file), _END)

    def _rows(self, file: Path) -> Iterator[bytes]:
        """Statements of a file of rows, whose times are UTC."""
        is_utc = False
        for statement in self._divided(file):
            is_utc = is_utc or _ZONE.search(statement[:200]) is not None
            if not is_utc and _ROWS_OF.match(statement) is not None:
                raise self._unknown(
                    file, "SET TIME_ZONE='+00:00' in front of rows (dump without --skip-tz-utc)", statement
                )
            yield statement

    def _unknown(self, file: Path, expected: str, head: bytes) -> ConfigError:
        return ConfigError(
            f"--from {file}: expected {expected}, found {shown_part(head)}; take a dump that mydumper has written"
        )


def _begins(name: str, end: str) -> Iterator[str]:
    """What stands in front of each ``end`` in a name."""
    at = name.find(end)
    while at >= 0:
        yield name[:at]
        at = name.find(end, at + 1)


def _programs_session(mode: str) -> tuple[bytes, ...]:
    return b"SET NAMES utf8mb4", f"SET SQL_MODE='{mode}'".encode()


def _position(text: str) -> tuple[str, str]:
    """``file:offset`` and the GTIDs; what is not recorded is empty."""
    if (old := _SOURCE.search(text)) is not None:
        empty = _EMPTY.search(text, old.end())
        behind = text[old.end() : None if empty is None else empty.start()]
        return f"{old[1]}:{old[2]}", "" if old[3] is None else behind
    section = _SECTION.search(text)
    facts = "" if section is None else _section(text, section.end())
    file, offset, gtids = (pattern.search(facts) for pattern in (_FILE, _OFFSET, _GTIDS))
    position = "" if file is None or offset is None else f"{file[1]}:{offset[1]}"
    return position, "" if gtids is None else gtids[1]


def _section(text: str, begin: int) -> str:
    """The lines of a section, up to the next one's head."""
    end = text.find("\n[", begin - 1)
    return text[begin : end + 1] if end >= 0 else text[begin:]


def _quoted(name: str) -> bytes:
    return b"`" + name.replace("`", "``").encode() + b"`"
