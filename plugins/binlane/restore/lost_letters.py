"""Rows of a dump that were written in a character set with fewer letters than their columns have.

The server sends a dump program '?' in place of each letter that the program's character set lacks (copy_and_convert()
of both families), and nothing tells it from a question mark: mysqldump of MySQL 5.7 and older programs of MariaDB write
utf8mb3 by default, so of utf8mb4 the letters beyond U+FFFF are gone. A text without '?' has lost nothing.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from binlane.binlog.types.charsets import has_all_letters
from binlane.lazy_dataclass import dataclass
from binlane.restore.definers import GROUPED_NAME
from binlane.restore.inexact_columns import InexactTable, defined_table, name_of, without_strings

_UTF8MB4: Final = "utf8mb4"
_COLUMN: Final = re.compile(
    rb"^[ \t]*" + GROUPED_NAME + rb" (?:(?:(?:var)?char|(?:tiny|medium|long)?text|enum|set)\b(?:\([^()\n]*+\))?"
    rb"(?: ++(?:/\*M!\d++ )?COMPRESSED(?:\*/)?)?(?: ++CHARACTER SET (\w++))?|(json)\b)",
    re.MULTILINE | re.IGNORECASE,
)
"""A column of text, in the servers' own text of a definition, with its character set if it is not the table's."""
_DEFAULT: Final = re.compile(rb"^\)[^\n]*? CHARSET=(\w++)", re.MULTILINE | re.IGNORECASE)
_ROWS: Final = re.compile(rb"(?:INSERT|REPLACE)\s++(?:IGNORE\s++)?INTO\s++" + GROUPED_NAME, re.IGNORECASE)
_NAMES: Final = re.compile(rb"(?:/\*M?!\d*+\s*+)?SET\s++NAMES\s++'?(\w++)", re.IGNORECASE)


@dataclass(slots=True)
class Letters:
    """The columns of text of a dump's tables, by its definitions; its rows are behind these."""

    _columns: dict[tuple[str, bytes], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of each table with columns of text: their names and character sets, until letters of it are lost."""

    def define(self, database: str, statement: bytes) -> None:
        """Take a dump's statement for that database, which may define a table."""
        if (made := defined_table(statement)) is None:
            return
        table, text = made[0], without_strings(made[1])
        default = _DEFAULT.search(text)
        of_table = "" if default is None else default[1].decode()
        found = [
            (name_of(name), _UTF8MB4 if json else charset.decode() or of_table)
            for name, charset, json in _COLUMN.findall(text)
        ]
        self._columns[database, table] = tuple(found)

    def lost(self, database: str, statement: bytes, client: str) -> InexactTable | None:
        """The table of a statement of rows, once, if a letter of it may be lost. ``client``: the dump's character set;
        empty: it has not said."""
        if (rows := _ROWS.match(statement)) is None:
            return None
        if statement.find(b"?", rows.end()) < 0 and (client or statement.isascii()):
            return None
        key = database, rows[1]
        lacks = [
            f"{name} {charset}".rstrip()
            for name, charset in self._columns.get(key, ())
            if not has_all_letters(_usual(client), _usual(charset))
        ]
        if not lacks:
            return None
        del self._columns[key]
        return InexactTable(database, name_of(rows[1]), tuple(lacks), client or "a character set that it does not name")


def names_of(statement: bytes) -> str | None:
    """The character set that a statement SET NAMES of a dump sets; None for another statement."""
    found = _NAMES.match(statement)
    return None if found is None else found[1].decode().lower()


def _usual(charset: str) -> str:
    name = charset.lower()
    return "utf8mb3" if name == "utf8" else name
