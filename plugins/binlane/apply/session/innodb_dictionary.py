"""What InnoDB's own dictionary tells of the target's tables: how names are stored, and the foreign keys that refer to a
table.

The catalogue shows an account the tables alone that it may use. A row that is removed takes its children along whether
the account may see them or not, so the dictionary is asked as well, for which the account needs PROCESS.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.retry_verdicts import error_code
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.servers.names import is_named

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_DENIED: Final = frozenset({1142, 1227})
"""The account lacks a privilege."""
_PLAIN: Final = re.compile(r"[0-9A-Za-z_]")
_STORED: Final = r"@(?:[0-9a-f]{4}|[0-9a-z]{2})"
"""A character of another kind: four hex digits, or two of its place in a table of letters (``é`` is ``@0p``)."""
_SEES_ALL: Final = re.compile(r"GRANT (?:[^`]*\bSELECT\b|ALL PRIVILEGES)[^`]* ON \*\.\* ")
_VISIBLE: Final = (
    "SELECT table_schema, table_name, referenced_column_name FROM information_schema.key_column_usage "
    f"WHERE {is_named('referenced_table_schema', '%s')} AND {is_named('referenced_table_name', '%s')} ORDER BY 1, 2"
)
_STORED_KEYS: Final = (
    "SELECT f.for_name, f.ref_name, c.ref_col_name FROM information_schema.{prefix}foreign f "
    "JOIN information_schema.{prefix}foreign_cols c ON c.id = f.id WHERE f.ref_name LIKE %s ORDER BY 1"
)


@dataclass(frozen=True, slots=True)
class ChildColumn:
    """A column of a table that a foreign key refers to."""

    child: str
    """The table that has the key, for messages."""
    column: str
    """The column of its parent, in lower case."""


def stored_pattern(name: str) -> str:
    """A regular expression for a name as InnoDB stores it, to be matched without regard to case.

    MySQL 8 spells the names of foreign keys' tables as they are.
    """
    return "".join(char if _PLAIN.match(char) else f"(?:{_STORED}|{re.escape(char)})" for char in name)


def stored_like(name: str) -> str:
    """A pattern of LIKE that such a name matches, and others, too."""
    return "".join(char if _PLAIN.match(char) else "%" for char in name)


def child_columns(session: LaneSession, parent: TableKey) -> tuple[ChildColumn, ...] | None:
    """All columns of a table that foreign keys of the target refer to; None if the account cannot know, because it
    neither sees all databases nor has PROCESS."""
    rows = session.rows(_VISIBLE, (*3 * (parent.database,), *3 * (parent.table,)))
    seen = [ChildColumn(f"{database}.{table}", str(column).lower()) for database, table, column in rows]
    try:
        hidden = _stored_keys(session, parent)
    except pymysql.err.MySQLError as exc:
        if error_code(exc) not in _DENIED:
            raise
        if not _sees_all(session):
            return None
        hidden = []
    return tuple(dict.fromkeys((*seen, *hidden)))


def _stored_keys(session: LaneSession, parent: TableKey) -> list[ChildColumn]:
    is_new = session.flavor is Flavor.MYSQL and session.version >= (8, 0, 0)
    query = _STORED_KEYS.format(prefix="innodb_" if is_new else "innodb_sys_")
    names = parent.database, parent.table
    like = "/".join(map(stored_like, names))
    pattern = re.compile("/".join(map(stored_pattern, names)), re.IGNORECASE)
    return [
        ChildColumn(str(child).replace("/", ".", 1), str(column).lower())
        for child, stored, column in session.rows(query, (like,))
        if pattern.fullmatch(str(stored))
    ]


def _sees_all(session: LaneSession) -> bool:
    """Whether the catalogue shows the account all databases: partial revokes of MySQL hide some."""
    lines = [str(row[0]) for row in session.rows("SHOW GRANTS")]
    return any(_SEES_ALL.match(line) for line in lines) and not any(line.startswith("REVOKE ") for line in lines)
