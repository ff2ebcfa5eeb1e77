"""Holds tables of the schema ``binlane`` while binlane's own statements touch them, and names what took their place.

Who may DROP and CREATE there can put a view in a table's place at any moment. A function in it, with its invoker's
privileges, would run as binlane's account, whose privileges reach every database. A server refuses an index hint for a
view before it calls anything (1176, MySQL and MariaDB), and the table that takes the hint is locked against DDL until
the transaction ends. So each statement that reads or updates a table of the state has such a hint, and a statement with
one stands in front of the first INSERT or DELETE of a transaction (``driver.SessionCursor``).

A trigger runs as its definer, but in binlane's session, whose settings, user variables and locks it can change, and
keeps changed. Whoever writes a table of the state holds it against CREATE and DROP TRIGGER to the transaction's end: a
look there tells each trigger that has run in the transaction, so every transaction that has written has one before its
COMMIT (``driver.Connection``), in a lane's as a part of its second statement (``state.orders.orders``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
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
        *("audit", "bootstrap_objects", "kept_inputs"),
    }
)
"""Those of ``state.tables``: a name in a row's text holds a table more than needed, and can name no other one."""
_PLACE: Final = f"{OWN_SCHEMA}."
_NAMES: Final = "|".join(sorted(TABLES, key=len, reverse=True))
_NAME: Final = rf"\b{OWN_SCHEMA}\.({_NAMES})\b"
_TOUCHED: Final = re.compile(rf"\b{OWN_SCHEMA}\.`?({_NAMES})\b")
_WRITTEN: Final = re.compile(rf"\b{OWN_SCHEMA}\.`?({_NAMES}|copies_\w+)\b", re.ASCII)
"""And the copies of temporary tables (``state.carried.temporary_tables``)."""
_PLACED: Final = re.compile(rf"{_NAME}(?![.`])(?: AS \w+)?")
"""A table where a statement reads or updates it; behind a name of a column stands a dot."""
_ASKS: Final = re.compile(rf"\s*(?:\(?(?:SELECT|WITH)|UPDATE {OWN_SCHEMA}\.)", re.IGNORECASE)
_WRITES: Final = re.compile(r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.IGNORECASE)
_READS: Final = re.compile(r"\s*+(?:\(\s*+)?(?:SELECT|WITH)\b", re.IGNORECASE)
_LOCKING: Final = (" FOR UPDATE", " LIMIT 0")
_QUOTED: Final = re.compile(r"('[^'\\]*'|`[^`]*`)")
"""A text or a name that ends at the same place in every sql_mode."""
_HINT: Final = " USE INDEX FOR GROUP BY (PRIMARY)"
"""The one that leaves a server its choice of an index, but for GROUP BY."""
_LONGEST: Final = 1 << 13
"""Characters of a statement that gets a hint: binlane's own about its state are shorter."""
_LOST: Final = "`The schema binlane is lost` in docs/recovery.md"
# by the table's name, with which a MariaDB server opens that table alone (``view_guard``); the introducer is needed in
# a lane's session, whose statements may set ``collation_connection``
TRIGGER_OF: Final = (
    f"FROM information_schema.triggers WHERE event_object_schema = _ascii'{OWN_SCHEMA}' AND event_object_table = _ascii"
)
_LOOKED: Final = re.compile(rf"{re.escape(TRIGGER_OF)}'(\w+)'")
NO_LIMIT: Final = "LIMIT 18446744073709551615"
"""With it the session's ``sql_select_limit``, which a trigger may have set, cuts nothing."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The tables of the state that a statement reads or writes."""

    tables: frozenset[str] = frozenset()
    is_hinted: bool = False
    """Whether the statement has the hint itself; another one must stand in front of it."""
    locks: bool = False
    """Whether the one in front asks for the lock of who writes. Two requests for one table, with a DDL that waits
    between them, would be a deadlock."""
    written: frozenset[str] = frozenset()
    """Those whose triggers the statement may fire, copies of temporary tables as well."""
    looked: frozenset[str] = frozenset()
    """Those whose triggers it asks for."""


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
    touched = frozenset(tables)
    written = touched if _WRITES.match(statement) is not None else frozenset[str]()
    looked = frozenset(_LOOKED.findall(statement))
    return "".join(parts), Touched(touched, is_hinted=True, written=written, looked=looked)


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
    written = frozenset(_WRITTEN.findall(statement)) if writes else frozenset[str]()
    return Touched(frozenset(_TOUCHED.findall(statement)), locks=writes, written=written)


def hold(touched: Touched) -> str:
    """The statement that holds the tables until the transaction's end; ends with ``NO_SUCH_KEY`` for a view."""
    hints = ", ".join(f"{OWN_SCHEMA}.{name} USE INDEX ()" for name in sorted(touched.tables))
    return f"SELECT 1 FROM {hints} LIMIT 0{' FOR UPDATE' if touched.locks else ''}"


def look(tables: Iterable[str]) -> str:
    """The query for triggers of tables: their number, and a table and a trigger of them. One row, whatever the
    session's settings."""
    columns = "event_object_table, trigger_name"
    queries = " UNION ALL ".join(f"SELECT {columns} {TRIGGER_OF}'{name}'" for name in sorted(tables))
    return f"SELECT COUNT(*), MIN(event_object_table), MIN(trigger_name) FROM ({queries}) AS triggers LIMIT 1"


def opens_a_snapshot(statement: str) -> bool:
    """Whether a transaction may see everything as of this statement of its from now on, on MySQL also the catalogue."""
    return _READS.match(statement) is not None and not statement.endswith(_LOCKING)


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
