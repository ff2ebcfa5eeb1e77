"""Asks a server how many statements that may change a definition it has begun, and whether one is running."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection, text

from binlane.model import Flavor
from binlane.schema.statement_counts import StatementCounts, may_change_definitions
from binlane.sql.parse.lexer import front_length

_STATUS: Final = "SHOW GLOBAL STATUS WHERE variable_name LIKE 'Com%' OR variable_name LIKE 'Uptime%'"
_PREFIX: Final = "com_"
_WHO: Final = (
    "SELECT UNIX_TIMESTAMP(), CONNECTION_ID(), @@hostname, @@port, @@server_id, CURRENT_USER() "
    "/*!80000 , CURRENT_ROLE() */"
)
"""With the account: another one may see other objects. MySQL has roles since 8.0; MariaDB executes the comment, too."""
_WORD: Final = re.compile(rb"[a-z]+", re.IGNORECASE)
"""The first word of a statement. Conditional comments begin with none."""
_HARMLESS: Final = frozenset(
    {
        *("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "SHOW", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"),
        *("LOAD", "DO", "KILL", "BINLOG", "WITH"),
    }
)
"""CALL is not among them: what the routine executes is not always shown."""


def read_statement_counts(connection: Connection) -> StatementCounts | None:
    """The counts of now; None if the server does not tell them, or is a node of a cluster, which changes definitions by
    other nodes' statements."""
    status = {str(name).lower(): str(value) for name, value in connection.execute(text(_STATUS))}
    counts = {name.removeprefix(_PREFIX): int(value) for name, value in status.items() if name.startswith(_PREFIX)}
    counting = [int(status[name]) for name in ("uptime", "uptime_since_flush_status") if name in status]
    if not counts or len(counting) < 2 or _is_clustered(connection):
        return None
    # asked behind the status: the beginning may seem later than it is, never by a second or more earlier
    now, session, *server = connection.execute(text(_WHO)).one()
    return StatementCounts(
        server=" ".join(map(str, server)),
        at=int(now),
        since=int(now) - min(counting),
        session=int(session),
        counts={kind: count for kind, count in sorted(counts.items()) if may_change_definitions(kind)},
    )


def may_be_changing(connection: Connection) -> bool:
    """Whether another session is at a statement that may change a definition, which was counted when it began.

    The account must have PROCESS: without it only its own sessions are shown.
    """
    rows = connection.execute(text("SHOW FULL PROCESSLIST")).mappings()
    [[own]] = connection.execute(text("SELECT CONNECTION_ID()"))
    others = (row for row in rows if row["Id"] != own)
    return any(row["Info"] is not None and not _is_harmless(str(row["Info"])) for row in others)


def _is_harmless(statement: str) -> bool:
    # what either family takes for the first word: the shorter front
    text = statement.encode("utf-8", "replace")
    word = _WORD.match(text, min(front_length(text, flavor) for flavor in Flavor))
    return word is not None and word.group().decode("ascii").upper() in _HARMLESS


def _is_clustered(connection: Connection) -> bool:
    found = connection.execute(text("SHOW GLOBAL VARIABLES LIKE 'wsrep\\_on'"))
    return any(str(value).upper() == "ON" for _, value in found)
