"""Statements for which a MariaDB server opens views, and the clause with which binlane sends them.

A MariaDB server that opens a view calls the stored functions in it whose values its text needs: in ``ROUND(x, f())``,
also for SHOW CREATE VIEW and for many views of information_schema. A function with ``SQL SECURITY INVOKER`` would
change data as binlane's account. In a read-only transaction the server refuses it (1792), and neither a function nor a
procedure behind it can end one; information_schema has the view without what needs the function. MySQL calls none.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from binlane.sessions.pins import Server, pin_names

REFUSED: Final = 1792
"""ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: the view has a function that may change data."""
WHY: Final = (
    "the view has a stored function that changes data, and MariaDB may call it, as this account, for whoever looks at "
    "the view: take the changes out of the function, or the function out of the view, or drop the view here and create "
    "it by hand on both servers"
)
_SCHEMA: Final = "information_schema."
_ASKS: Final = re.compile(r"\s*+(?:\(\s*+)?(?:SELECT|WITH)\b", re.IGNORECASE)
_SHOWS: Final = re.compile(
    r"\s*SHOW\s+(?:CREATE\s+(?:TABLE|VIEW|SEQUENCE)|FULL|EXTENDED|COLUMNS|FIELDS|INDEX|INDEXES|KEYS|TABLES?|TRIGGERS)\b",
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"information_schema\.(?!(?:schemata|plugins|engines|processlist|innodb_\w+|applicable_roles|routines|parameters|"
    r"events|collation\w*|disks|all_plugins)\b|triggers WHERE event_object_schema = _ascii'binlane' AND "
    r"event_object_table = _ascii'\w+')",
    re.IGNORECASE,
)
"""All but views that open nothing, and the triggers of one table, which its asker holds (``state_guard``)."""
_OF_TABLE: Final = re.compile(
    r"SHOW (?:CREATE TABLE|FULL COLUMNS FROM) (`(?:[^`]|``)+`\.`(?:[^`]|``)+`)|"
    r".* FROM information_schema\.\w+ .*?table_schema = '(.*?)' AND (?:\w+\.)?table_name = ('.*)",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"'([^'\\]+)'(?: (?!OR\b).*)?", re.DOTALL)
_FIXED: Final = frozenset(
    {
        "tx_isolation",
        "tx_read_only",
        "wait_timeout",
        "query_cache_type",
        "system_versioning_asof",
        "character_set_filesystem",
    }
)
"""Pinned variables that SET STATEMENT does not take (1971), or not with their own value."""


def opens_views(statement: str) -> bool:
    """Whether a server may open views for a statement of binlane's own."""
    if _SHOWS.match(statement) is not None:
        return True
    return _SCHEMA in statement and _ASKS.match(statement) is not None and _OPENS.search(statement) is not None


def table_asked_for(statement: str) -> str | None:
    """The one table or view that the server opens for a statement that asks for it by its name, "" for a name with
    quotes in it; None for all other statements."""
    asked = _OF_TABLE.fullmatch(statement)
    if asked is None or asked[1] is not None:
        return None if asked is None else asked[1]
    name = _PLAIN.fullmatch(asked[3])
    if name is None or not asked[2] or any(mark in asked[2] for mark in "'\\"):
        return ""
    database, table = (each.replace("`", "``") for each in (asked[2], name[1]))
    return f"`{database}`.`{table}`"


@functools.lru_cache(maxsize=64)
def guard(server: Server, without: frozenset[str], *, restores: bool) -> str:
    """What stands in front of a statement that opens views. ``restores``: give the session's variables their values
    back behind it, which a function may have set; all but those of ``without``."""
    names = [name for name in pin_names(server) if name not in without | _FIXED] if restores else []
    return f"SET STATEMENT {', '.join(['tx_read_only = 1', *(f'{name} = @@SESSION.{name}' for name in names)])} FOR "
