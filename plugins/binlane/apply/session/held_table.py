"""Holds a table of the target until the transaction's end, before binlane's own SQL reads it for writing, or writes it.

A session of the target may put a view in a table's place at any moment. Its functions, those of a CHECK OPTION among
them, would run as binlane's account, and what they change would be committed. A server refuses an index hint for a view
before it calls anything (1176, MySQL and MariaDB), and the table that it takes is locked against DDL until the
transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable

import pymysql

from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.literals import identifier
from binlane.model import TableKey
from binlane.sessions.state_guard import NO_SUCH_KEY
from binlane.sessions.table_hint import hold, view_in_place


def hold_table(execute: Callable[[str], object], key: TableKey) -> None:
    """``execute``: runs a statement in the transaction that is going to write. Raises TableMismatchError for a view."""
    try:
        execute(hold(f"{identifier(key.database)}.{identifier(key.table)}"))
    except pymysql.err.MySQLError as exc:
        if error_code(exc) != NO_SUCH_KEY:
            raise
        raise view_in_place(str(key)) from exc
