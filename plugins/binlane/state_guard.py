"""Holds tables of the schema ``binlane`` while binlane's own statements touch them, and names what took their place.

Who may DROP and CREATE there can put a view in a table's place at any moment. A function in it, with its invoker's
privileges, would run as binlane's account, whose privileges reach every database. A server refuses an index hint for a
view before it calls anything (1176, MySQL and MariaDB), and the table that takes the hint is locked against DDL until
the transaction ends. So each statement that reads or updates a table of the state has such a hint, and a statement with
one stands in front of the first INSERT or DELETE of a transaction (``driver.SessionCursor``).

A trigger runs as its definer, but in binlane's session, which it could change.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from binlane.errors import StateSchemaError
from binlane.lazy_dataclass import dataclass
from binlane.model import OWN_SCHEMA

NO_SUCH_KEY: Final = 1176
"""ER_KEY_DOES_NOT_EXIST: also a view's answer to an index hint."""
TABLES: Final = frozenset(
    {
        *("migrations", "channels", "windows", "positions", "epochs", "databases", "progress", "splits", "skips"),
        *("skipped_events", "heartbeats", "ddl", "temporary", "prepared", "prepared_chunks", "conflicts", "errors"),
        *("verifications", "verified_tables", "verified", "suspects", "repairs", "drills", "bootstraps", "restores"),
        *("audit", "bootstrap_objects"),
    }
)
"""Those of ``state.tables``: a name in a row's text holds a table more than needed, and can name no other one."""
_PLACE: Final = f"{OWN_SCHEMA}."
_NAMES: Final = "|".join(sorted(TABLES, key=len, reverse=True))
_NAME: Final = rf"\b{OWN_SCHEMA}\.({_NAMES})\b"
_TOUCHED: Final = re.compile(rf"\b{OWN_SCHEMA}\.`?({_NAMES})\b")
_PLACED: Final = re.compile(rf"{_NAME}(?![.`])(?: AS \w+)?")
"""A table where a statement reads or updates it; behind a name of a column stands a dot."""
_ASKS: Final = re.compile(rf"\s*(?:\(?(?:SELECT|WITH)|UPDATE {OWN_SCHEMA}\.)", re.IGNORECASE)
_WRITES: Final = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE)
_QUOTED: Final = re.compile(r"('[^'\\]*'|`[^`]*`)")
"""A text or a name that ends at the same place in every sql_mode."""
_HINT: Final = " USE INDEX FOR GROUP BY (PRIMARY)"
"""The one that leaves a server its choice of an index, but for GROUP BY."""
_LONGEST: Final = 1 << 13
"""Characters of a statement that gets a hint: binlane's own about its state are shorter."""
_LOST: Final = "`The schema binlane is lost` in docs/recovery.md"


@dataclass(frozen=True, slots=True)
class Touched:
    """The tables of the state that a statement reads or writes."""

    tables: frozenset[str] = frozenset()
    is_hinted: bool = False
    """Whether the statement has the hint itself; another one must stand in front of it."""
    locks: bool = False
    """Whether the one in front asks for the lock of who writes. Two requests for one table, with a DDL that waits
    between them, would be a deadlock."""


NOTHING: Final = Touched()


def hinted(statement: str) -> tuple[str, Touched]:
    """A statement, before its values are in it, with the hint where the grammar has a place for it: in SELECT and
    UPDATE; and the tables of the state that it touches, none in one that is no SELECT, INSERT, REPLACE, UPDATE or
    DELETE."""
    if _PLACE not in statement:
        return statement, NOTHING
    if len(statement) > _LONGEST:
        return statement, _in_front(statement)
    return _hinted(statement)


@functools.lru_cache(maxsize=1024)
def _hinted(statement: str) -> tuple[str, Touched]:
    if _ASKS.match(statement) is None:
        return statement, _in_front(statement)
    parts = _QUOTED.split(statement)
    if any(mark in part for part in parts[::2] for mark in "'`\"\\"):
        return statement, _in_front(statement)
    _unquote(parts)
    tables = set[str]()
    for at in range(0, len(parts), 2):
        tables |= {match[1] for match in _PLACED.finditer(parts[at])}
        parts[at] = _PLACED.sub(lambda match: match[0] + _HINT, parts[at])
    return "".join(parts), Touched(frozenset(tables), is_hinted=True)


def _unquote(parts: list[str]) -> None:
    """Take the quotes from a table's name, which SQLAlchemy sets around ``databases``: a reserved word, and a name
    behind a dot all the same."""
    at = 1
    while at < len(parts):
        if parts[at][0] == "`" and parts[at][1:-1] in TABLES and parts[at - 1].endswith(_PLACE):
            parts[at - 1 : at + 2] = [parts[at - 1] + parts[at][1:-1] + parts[at + 1]]
        else:
            at += 2


def _in_front(statement: str) -> Touched:
    writes = _WRITES.match(statement) is not None
    if not writes and _ASKS.match(statement) is None:
        return NOTHING
    return Touched(frozenset(_TOUCHED.findall(statement)), locks=writes)


def hold(touched: Touched) -> str:
    """The statement that holds the tables until the transaction's end; ends with ``NO_SUCH_KEY`` for a view."""
    hints = ", ".join(f"{OWN_SCHEMA}.{name} USE INDEX ()" for name in sorted(touched.tables))
    return f"SELECT 1 FROM {hints} LIMIT 0{' FOR UPDATE' if touched.locks else ''}"


def view_in_place(table: str) -> StateSchemaError:
    """The error of a view that has the name of a table of the state."""
    return StateSchemaError(
        f"target: {OWN_SCHEMA}.{table}: expected a table, found a view, whose functions would run as binlane's "
        f"account; nothing was read from it. Find out who has made it, and take CREATE VIEW and DROP on "
        f"`{OWN_SCHEMA}`.* from that account; then DROP VIEW {OWN_SCHEMA}.{table}, give the table its name again by "
        f"RENAME TABLE if it is there under another one (otherwise see {_LOST}), and run again"
    )


def trigger_of(table: str, name: str) -> StateSchemaError:
    """The error of a trigger of a table of the state."""
    spelled = name.replace("`", "``")
    return StateSchemaError(
        f"target: {OWN_SCHEMA}.{table}: expected a table without triggers, found one of the name {name!r}, which would "
        f"run in binlane's session; nothing was changed. Find out who has made it, and take TRIGGER on "
        f"`{OWN_SCHEMA}`.* from that account; then DROP TRIGGER {OWN_SCHEMA}.`{spelled}`, and run again"
    )
