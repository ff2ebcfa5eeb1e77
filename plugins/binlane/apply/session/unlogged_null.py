"""NULL for a TIMESTAMP that must not be NULL, in a statement whose log does not tell what that means.

MySQL logs ``explicit_defaults_for_timestamp`` with definitions that name the type TIMESTAMP, and with nothing else.
With OFF the NULL becomes the current time. With ON it is

- error 1048: a statement that ended without an error on the source and with 1048 here, where the variable is ON, had
  it OFF there, if the column is the same. Nothing else makes it succeed;
- or, where the session is not strict and several rows may be concerned (INSERT of many rows, INSERT .. SELECT, UPDATE,
  INSERT IGNORE, LOAD DATA .. SET), 0 with the warning 1048: then either may have happened on the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.retry_verdicts import error_code
from binlane.errors import ApplyError
from binlane.model import Flavor
from binlane.plan.transaction.decode import statement_facts
from binlane.sessions.pins import MOST_WARNINGS
from binlane.sql.parse.facts import StatementKind

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession
    from binlane.model import Item

_BAD_NULL: Final = 1048


class UnloggedNullError(pymysql.err.IntegrityError):
    """Error 1048 of a statement that ended without an error on the source, and that might be right with OFF."""


def refused_null(error: pymysql.err.MySQLError, item: Item, session: LaneSession) -> pymysql.err.MySQLError:
    """The error, as an UnloggedNullError if it is one. MariaDB's servers never give it for a TIMESTAMP."""
    if session.flavor is not Flavor.MYSQL or error_code(error) != _BAD_NULL or not _is_unlogged(item):
        return error
    return UnloggedNullError(*error.args)


def check_nulls(item: Item, session: LaneSession) -> None:
    """Raises ApplyError for a statement that has just run with ON, if it stored 0 for NULL in a TIMESTAMP.

    What a trigger or function does with NULLs gives a statement no warnings.
    """
    if not session.warnings or session.flavor is not Flavor.MYSQL or not _is_unlogged(item):
        return
    shown = session.shown_warnings()
    texts = [str(text) for _, code, text in shown if int(code) == _BAD_NULL]
    are_all = len(shown) < MOST_WARNINGS
    if are_all and not texts:
        return
    for column in _timestamps(item, session):
        # the words around the name are in the language of lc_messages
        if not are_all or any(f"'{column}'" in text for text in texts):
            raise ApplyError(("" if are_all else _BEHIND) + _DOUBT.format(column=column))


_ALL: Final = (
    "SELECT DISTINCT column_name FROM information_schema.columns WHERE data_type = 'timestamp' AND is_nullable = 'NO'"
)
_BEHIND: Final = "more warnings than a server keeps, behind which there may be "
_DOUBT: Final = (
    "NULL for the TIMESTAMP column {column}, which must not be NULL: the current time if the source's session had "
    "explicit_defaults_for_timestamp = OFF, and 0000-00-00 if it had ON; MySQL does not log which. If it had OFF, SET "
    "GLOBAL explicit_defaults_for_timestamp = OFF on the target and run the channel again; if ON, set "
    "apply.allow_unsafe in the channel's file"
)


def _is_unlogged(item: Item) -> bool:
    """Whether the item is a statement that ended without an error, and the log does not have the variable with it."""
    context = item.context
    return context is not None and context.error_code == 0 and context.explicit_defaults_for_timestamp is None


def _timestamps(item: Item, session: LaneSession) -> list[str]:
    """The TIMESTAMP columns that must not be NULL, of the tables and views that a statement writes."""
    assert item.context is not None
    facts = statement_facts(item.payload, item.context, session.flavor)
    if facts.kind is StatementKind.UNKNOWN:
        return [str(name) for (name,) in session.rows(_ALL)]
    found = []
    for table in sorted(facts.written, key=str):
        name = ".".join(f"`{part.replace('`', '``')}`" for part in (table.database, table.table))
        for column, kind, null, *_ in session.rows(f"SHOW COLUMNS FROM {name}"):
            if str(kind).startswith("timestamp") and null == "NO":
                found.append(str(column))
    return found
