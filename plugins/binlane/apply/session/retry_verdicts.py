"""Verdicts on the target's errors: retry, drift of its rows, or fatal.

Numbers: MySQL and MariaDB server error references; 2xxx are the client's own. An unlisted error stops all lanes.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import pymysql
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from binlane.errors import DriftError
from binlane.safe_text import one_line


class Verdict(Enum):
    """Reaction to an error, once the position has been read again."""

    RETRY = "retry"
    DRIFT = "drift"
    FATAL = "fatal"


_LOST: Final = frozenset(
    {
        1053,  # server shutdown in progress
        1158, 1159, 1160, 1161,  # network errors and timeouts
        1317, 1927, 1969, 4031,  # interrupted, connection killed or timed out
        2006, 2013, 2055,  # gone away, lost
    }
)  # fmt: skip
"""Errors of a statement that the server has not answered, whatever it is."""
DEFINITION_CHANGED: Final = 1412
"""A table has a definition that is newer than the transaction's first read. MariaDB meets it where a statement adds a
partition for history (``PARTITION BY SYSTEM_TIME ... AUTO``): another transaction finds the partition."""
TRANSIENT: Final = _LOST | frozenset(
    {
        1020,  # MariaDB's innodb_snapshot_isolation: the row was changed since the transaction's first read
        1040,  # too many connections
        1047,  # a Galera node that is not ready
        1180,  # error during COMMIT: the position shows the outcome
        1203,  # too many connections of this account
        1205,  # lock wait timeout, of a row or of a table's metadata
        1213,  # deadlock: all of it was rolled back
        DEFINITION_CHANGED,
        1429, 2002, 2003,  # cannot connect
        3101,  # a group replication plugin rolled the transaction back
        # read-only, while a failover is going on
        1290, 1792, 1836,
    }
)  # fmt: skip
_SPENT: Final = 1226
_OF_CONNECTIONS: Final = "max_user_connections"
"""The limit of an account, in the error for any of its limits, that another session's end makes room under. A lane's
session may open a second one at any statement, to look at what is a view or missing."""
DRIFT: Final = frozenset({1032, 1062})
"""Key not found and duplicate key: rows differ from what the source's log expects."""
NO_GEOMETRY: Final = 1416
"""A value of a geometry column is no geometry."""
LOCKED: Final = frozenset({1205, 1213, 3058})
"""Lock wait timeout and deadlock; 3058 is MySQL's for named locks."""


def judge(error: BaseException) -> Verdict:
    """The verdict on an error of the driver or the operating system."""
    code = error_code(error)
    has_no_room = code == _SPENT and _OF_CONNECTIONS in error_text(error)
    if is_lost(error) or has_no_room or code in TRANSIENT:
        return Verdict.RETRY
    return Verdict.DRIFT if code in DRIFT else Verdict.FATAL


def is_drift(error: BaseException) -> bool:
    """Whether rows of the target differ from those that the log expects."""
    return isinstance(error, DriftError) or judge(error) is Verdict.DRIFT


def is_lost(error: BaseException) -> bool:
    """Whether a statement got no answer because of its connection: it says nothing about the statement."""
    if isinstance(error, OSError | PendingRollbackError):
        # SQLAlchemy's second one: for a statement on a connection that was lost before
        return True
    original = driver_error(error)
    if isinstance(original, pymysql.err.InterfaceError):
        # PyMySQL raises it for any call on a connection that it has closed
        return True
    code = error_code(error)
    # 0: a packet out of sequence, since the connection ended in the middle of an answer
    return code in _LOST or (code == 0 and isinstance(original, pymysql.err.InternalError))


def driver_error(error: BaseException) -> BaseException:
    """The driver's own exception, taken out of SQLAlchemy's."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig
    return error


def error_code(error: BaseException) -> int:
    """The server's or client's error number, 0 if there is none."""
    arguments = driver_error(error).args
    if arguments and type(arguments[0]) is int:
        return arguments[0]
    return 0


def error_text(error: BaseException) -> str:
    """The message without its number, in one line: a SIGNAL of the log's may have its text."""
    arguments = driver_error(error).args
    return one_line(str(arguments[1]) if len(arguments) > 1 else str(driver_error(error)))
