"""Reads tables of users: never a view that has taken a table's place.

Who may CREATE and RENAME in a database of a server can put a view in a table's place at any moment, and a dump can give
a view a table's name. A function in it, with its invoker's privileges, would run as binlane's account. What it changes
would be committed; in a read-only session it could still read for somebody else, end sessions and change the server. A
server refuses an index hint for a view before it calls anything (1176, MySQL and MariaDB). So each query of binlane's
own has one behind the table of a user, in every session and whichever cursor sends it (``driver.Connection.query``). A
statement that writes such a table stands behind one that holds it (``apply.session.held_table``).
"""

from __future__ import annotations

import re
from typing import Final

from binlane.errors import TableMismatchError

_HINT: Final = " USE INDEX FOR GROUP BY ()"
"""The one that leaves a server its choice of an index, but for GROUP BY; also for a table that has none."""
_ASKS: Final = re.compile(r"\s*+(?:\(\s*+)?SELECT\b", re.IGNORECASE)
_NAME: Final = r"`(?:[^`]|``)+`(?!`)"
_TEXT: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*" """.strip()
_PARTS: Final = re.compile(
    rf"{_TEXT}|\bFROM\s+({_NAME}\.{_NAME})(?: FOR SYSTEM_TIME ALL)?(\s+(?:USE|FORCE)\s+INDEX\b)?|{_NAME}",
    re.DOTALL,
)
"""Texts and names in front of the table, and the table; ``identifier`` has spelled it, which it does for users'
alone."""


def hinted_table(statement: str) -> tuple[str, str]:
    """A query with the hint behind the table of a user that it reads, and that table; "" if there is none, or the query
    has a hint of its own.

    binlane reads one such table in a query. What stands behind it are values of rows, in which nothing is looked for.
    """
    if "`.`" not in statement or _ASKS.match(statement) is None:
        return statement, ""
    table = next((found for found in _PARTS.finditer(statement) if found[1] is not None), None)
    if table is None or table[2] is not None:
        return statement, ""
    return f"{statement[: table.end()]}{_HINT}{statement[table.end() :]}", table[1]


def hold(table: str) -> str:
    """The statement that holds a table until the transaction's end; ends with ``NO_SUCH_KEY`` for a view."""
    return f"SELECT 1 FROM {table} USE INDEX () LIMIT 0"


def view_in_place(table: str) -> TableMismatchError:
    """The error of a view that has the name of a user's table."""
    return TableMismatchError(
        f"{table}: expected a table, found a view, which another session has put in its place; "
        "nothing was written to it: find out who, put the table back, then run again"
    )
