"""What a dump says of its own contents: tables without rows or with some of them, tables that no snapshot holds, and
kinds of objects that its program was not asked for.

mysqldump and mariadb-dump write a comment in front of the routines, the events and the rows that they were asked for,
also if there are none (client/mysqldump.cc of both families: dump_routines_for_db, dump_events_for_db, dump_table);
triggers have none. Comments are told apart from what stands inside of statements by who reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Final

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.restore.definers import GROUPED_NAME, made_kind
from binlane.restore.inexact_columns import defined_table, name_of
from binlane.safe_text import shown

_ENGINE: Final = re.compile(rb"^\)[^\n]*? ?ENGINE=(\w++)", re.MULTILINE | re.IGNORECASE)
"""Behind the columns, in the servers' own text of a definition."""
_ROWS: Final = re.compile(rb"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+" + GROUPED_NAME, re.IGNORECASE)
_DATA: Final = re.compile(rb"-- Dumping data for table " + GROUPED_NAME)
_WHERE: Final = re.compile(rb"-- WHERE: *([^\n]*)")
_ASKED: Final = re.compile(rb"-- Dumping (routines|events) for database '([^\n]*)'")
_SNAPSHOTS: Final = frozenset({"innodb", "innobase", "rocksdb", "tokudb"})
_NO_ROWS: Final = frozenset({"mrg_myisam", "merge", "blackhole"})
"""Engines that keep no rows: dump programs write none of them."""
_KINDS: Final[Mapping[bytes, str]] = {
    b"TRIGGER": "triggers", b"PROCEDURE": "routines", b"FUNCTION": "routines", b"PACKAGE": "routines",
    b"EVENT": "events",
}  # fmt: skip
_OF_DATABASE: Final = ("routines", "events")
_MOST: Final = 20
"""Names of tables or databases that one belief has."""
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class DumpedTable:
    """A table of a dump of which something has to be said."""

    database: str
    table: str
    engine: str = ""
    """One without snapshots, as its definition has it."""
    lacks_rows: bool = False
    where: str = ""
    """Which rows the dump has; empty: all."""

    @property
    def is_usual(self) -> bool:
        """Whether there is nothing to say."""
        return not (self.engine or self.lacks_rows or self.where)

    def __str__(self) -> str:
        return shown(f"{self.database}.{self.table}")


@dataclass(frozen=True, slots=True)
class DumpContents:
    """What a dump says of its contents."""

    tables: tuple[DumpedTable, ...] = ()
    """Those of which something has to be said."""
    left_out: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Databases, and the kinds of objects of which the dump has none and no word that it was asked for them."""
    options: str = "--routines --events"
    """With which the dump has those kinds."""

    def require_all_rows(self, base: str, databases: Collection[str], tables: Collection[str]) -> None:
        """Raises ConfigError for a table, of those that are restored (``tables``: all, if empty), of which the dump has
        some rows alone."""
        for each in self._restored(databases, tables):
            if each.where:
                raise ConfigError(
                    f"--from {base}: expected all rows of {each}, found some of them (--where: "
                    f"{shown(each.where)[:_SHOWN]}): changes in the log of the other ones would not find them; dump "
                    "without --where"
                )

    def beliefs(self, databases: Collection[str], tables: Collection[str]) -> list[str]:
        """What is believed of these databases, or of these tables of the only one."""
        restored = [*self._restored(databases, tables)]
        found = list[str]()
        if not tables:
            by_kinds = dict[tuple[str, ...], list[str]]()
            for database, kinds in self.left_out:
                if database in databases:
                    by_kinds.setdefault(kinds, []).append(shown(database))
            found += [
                f"no {' and no '.join(kinds)} belong to {_some(names, 'database')}: the dump has none, and no word "
                f"that it was asked for them ({self.options}); dump with these options, or make them by hand in what "
                "is restored"
                for kinds, names in by_kinds.items()
            ]
        if lacking := [str(each) for each in restored if each.lacks_rows]:
            found.append(
                f"no rows belong to {_some(lacking, 'table')}: the dump has none, and no word that it was asked for "
                "them, as with --no-data and --ignore-table-data: a change in the log of a row that was there does "
                "not find it (1032), or makes another one; dump without these options"
            )
        if changing := [f"{each} ({shown(each.engine)})" for each in restored if each.engine]:
            found.append(
                f"nothing was written to {_some(changing, 'table')} while the dump was made: no snapshot holds these "
                "engines, so with --single-transaction their rows may be of a later moment than the dump's place, and "
                "what was written in between is applied twice; dump while nothing writes to them, or by mysqldump with "
                "--lock-all-tables in place of --single-transaction"
            )
        return found

    def _restored(self, databases: Collection[str], tables: Collection[str]) -> Iterable[DumpedTable]:
        return (each for each in self.tables if each.database in databases and (not tables or each.table in tables))


@dataclass(slots=True)
class ContentsReader:
    """Reads a dump's comments and statements in their order."""

    _tables: dict[tuple[str, str], DumpedTable] = field(default_factory=dict)
    _asked: set[tuple[str, str]] = field(default_factory=set)
    _filled: tuple[str, str] = ("", "")
    """The table whose rows follow."""

    def comments(self, database: str, parts: Iterable[bytes]) -> None:
        """Comments between statements, in the database that is used there."""
        for part in parts:
            if (asked := _ASKED.match(part)) is not None:
                self._asked.add((asked[1].decode(), _text(asked[2])))
            elif (data := _DATA.match(part)) is not None:
                self._fill(database, data[1])
            elif (where := _WHERE.match(part)) is not None and self._filled in self._tables:
                self._tables[self._filled] = replace(self._tables[self._filled], where=_text(where[1]) or "?")

    def statement(self, database: str, text: bytes) -> None:
        """A statement of that database."""
        if (rows := _ROWS.match(text)) is not None:
            self._fill(database, rows[1])
        elif (table := dumped_table(database, text)) is not None:
            is_empty = _engine(text) in _NO_ROWS
            self._tables[database, table.table] = replace(table, lacks_rows=not is_empty)
        elif (kind := _KINDS.get(made_kind(text))) is not None:
            self._asked.add((kind, database))

    def _fill(self, database: str, quoted: bytes) -> None:
        self._filled = database, name_of(quoted)
        if (table := self._tables.get(self._filled)) is not None and table.lacks_rows:
            self._tables[self._filled] = replace(table, lacks_rows=False)

    def contents(self, databases: Collection[str]) -> DumpContents:
        """Of these databases of the dump."""
        kinds = {each: tuple(kind for kind in _OF_DATABASE if (kind, each) not in self._asked) for each in databases}
        return DumpContents(
            tuple(table for table in self._tables.values() if not table.is_usual),
            tuple((database, lacks) for database, lacks in sorted(kinds.items()) if lacks),
        )


def dumped_table(database: str, statement: bytes) -> DumpedTable | None:
    """The table that a statement defines, with its engine if that has no snapshots; None for another statement."""
    if (made := defined_table(statement)) is None:
        return None
    engine = _engine(statement)
    unheld = engine if engine and engine not in _SNAPSHOTS | _NO_ROWS else ""
    return DumpedTable(database, name_of(made[0]), unheld)


def kinds_of(statements: Iterable[bytes]) -> set[str]:
    """The kinds of programs that statements make: triggers, routines, events."""
    return {kind for text in statements if (kind := _KINDS.get(made_kind(text))) is not None}


def _engine(definition: bytes) -> str:
    found = _ENGINE.search(definition)
    return "" if found is None else found[1].decode("latin-1").lower()


def _some(names: Collection[str], noun: str) -> str:
    more = f" and {plural(len(names) - _MOST, f'more {noun}')}" if len(names) > _MOST else ""
    return f"{', '.join([*names][:_MOST])}{more}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
