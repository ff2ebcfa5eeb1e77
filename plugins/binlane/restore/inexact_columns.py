"""Tables of a dump whose rows its text does not preserve: what a restore says of them.

Both servers print six digits of a FLOAT, and dump programs write what they print; with decimals of its own (FLOAT(7,3))
it has them all. A JSON document of MySQL has types that its text does not show: a DECIMAL, a date, bytes. MariaDB's
JSON is text, and no definition of it has the word. Of a system-versioned table dump programs write the rows of the
moment alone, without their times: the target begins each when it is loaded. (With the history, or with times in columns
of their own, a load ends: ``require_unchanged``.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from binlane.bootstrap.copy_checks import VERSIONED
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.restore.definers import GROUPED_NAME
from binlane.safe_text import shown

_TABLE: Final = re.compile(
    rb"CREATE\s++TABLE\s++(?:(?:/\*!\d++\s*+)?IF\s++NOT\s++EXISTS\s*+(?:\*/\s*+)?)?" + GROUPED_NAME
)
_COLUMN: Final = re.compile(rb"^[ \t]*" + GROUPED_NAME + rb" (float(?![\w(])|json\b)", re.MULTILINE | re.IGNORECASE)
"""Dump programs write the servers' own text of a definition, a line for each column."""
_VERSIONED: Final = re.compile(rb"\bWITH\s++SYSTEM\s++VERSIONING\b", re.IGNORECASE)
"""Wherever it stands: a comment with these words names its table, too, and none is overlooked."""
_QUOTED: Final = re.compile(rb"`[^`]*+`|'(?:[^'\\]++|\\.){0,4096}'?", re.DOTALL)
"""A quoted name, or a string. What has no end is taken, too: else each escaped quote in it would be tried for one."""
_MOST: Final = 20
"""Tables that are named."""


@dataclass(frozen=True, slots=True)
class InexactTable:
    """Such a table of a dump."""

    database: str
    table: str
    columns: tuple[str, ...]
    """Each as its name and type, or character set; behind them VERSIONED, if the table has a history."""
    rows_in: str = ""
    """The character set of its rows, if that lacks letters of these columns."""

    def __str__(self) -> str:
        rows = f"; rows in {self.rows_in}" if self.rows_in else ""
        return shown(f"{self.database}.{self.table} ({', '.join(self.columns)}{rows})")


def inexact_table(database: str, statement: bytes) -> InexactTable | None:
    """Of a dump's statement for that database; None if it defines no such table."""
    if (made := defined_table(statement)) is None:
        return None
    columns = [f"{name_of(name)} {kind.decode().upper()}" for name, kind in _COLUMN.findall(made[1])]
    if _VERSIONED.search(made[1]) is not None:
        columns.append(VERSIONED)
    return InexactTable(database, name_of(made[0]), tuple(columns)) if columns else None


def defined_table(statement: bytes) -> tuple[bytes, bytes] | None:
    """The name of the table that a dump's statement defines, as it stands between its quotes, and what follows it; None
    if it defines none."""
    made = _TABLE.match(statement)
    return None if made is None else (made[1], statement[made.end() :])


def without_strings(definition: bytes) -> bytes:
    """A definition with empty strings in place of its strings: comments, defaults and members of ENUM."""
    return _QUOTED.sub(lambda found: b"''" if found[0].startswith(b"'") else found[0], definition)


def inexact_notices(tables: Collection[InexactTable]) -> list[str]:
    """What people are told of them."""
    typed = [each for each in tables if not each.rows_in]
    lost = [each for each in tables if each.rows_in]
    return [
        f"{_named(some)}: {why}"
        for some, why in (
            (
                typed,
                "the text of a dump has six digits of a FLOAT, not the types inside of a JSON document (a DECIMAL, a "
                "date), and of a system-versioned table the rows of its moment alone, which begin when they are "
                "loaded: rows that the log does not write again have what the text says, and without a key a change "
                "of such a row may not find it (1032); where that matters, begin with a physical copy (`binlane init "
                "CHANNEL --start`)",
            ),
            (
                lost,
                "the dump was written in a character set that lacks letters of these columns, and has '?' in place of "
                "each: rows that the log does not write again have it, too, two keys may be one (1062), and without a "
                "key a change of such a row may not find it (1032); dump again with --default-character-set=utf8mb4, "
                "or begin with a physical copy (`binlane init CHANNEL --start`)",
            ),
        )
        if some
    ]


def _named(tables: Sequence[InexactTable]) -> str:
    more = f" and {plural(len(tables) - _MOST, 'more table')}" if len(tables) > _MOST else ""
    return f"{', '.join(map(str, tables[:_MOST]))}{more}"


def name_of(quoted: bytes) -> str:
    """A name between its quotes, for people."""
    return quoted.replace(b"``", b"`").decode("utf-8", "replace")
