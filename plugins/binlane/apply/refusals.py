"""Errors of a target before any block: unreachable, access denied, no state tables."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pymysql
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from binlane.answers import unusable
from binlane.apply.session.retry_verdicts import Verdict, driver_error, error_code, error_text, judge
from binlane.connections import WITH_TLS, login_advice
from binlane.errors import BinlaneError, TargetError, TargetUnavailableError

_NOT_LET_IN: Final = frozenset({1045, 1698})
DENIED: Final = frozenset({1044, 1142, 1143, 1227, 1410})
"""A privilege is missing."""
_UNTRUSTED: Final = frozenset({1418, 1419})
"""A function or trigger, with a binary log."""
_NO_TABLES: Final = frozenset({1049, 1146})
_LOCKED: Final = frozenset({1205, 1213})
_READ_ONLY: Final[Mapping[str, str]] = {"super": "super_read_only", "": "read_only"}
"""The setting, by a word of the server's text."""
_IS_READ_ONLY: Final = frozenset({1290, 1836})
_FULL: Final = frozenset({3, 1021, 1026, 1114})
"""A table, its file or the server's disk. 3 is the number of errors of the servers' file library."""
_TABLE_FULL: Final = 1114
_FREE_SPACE: Final = "free space on the target, then run again: what is committed stays, and nothing is half applied"
_NO_SPACE: Final = re.compile(r"\b(?:errno|errcode): 28\b|no space left on device", re.IGNORECASE)
"""ENOSPC in the text of any error, such as 1005 (cannot create the table)."""


@contextlib.contextmanager
def driver_errors() -> Iterator[None]:
    """Raises SQLAlchemy's errors as the driver's own."""
    try:
        yield
    except DBAPIError as exc:
        raise driver_error(exc) from exc


@contextlib.contextmanager
def target_errors(name: str) -> Iterator[None]:
    """Raises the driver's errors as TargetUnavailableError or TargetError, and answers that cannot be used as
    UnusableAnswerError, which name the server."""
    try:
        yield
    except (DBAPIError, PendingRollbackError, pymysql.err.MySQLError) as exc:
        said = f"{name}: the server says: {error_text(exc)} ({error_code(exc)})"
        if judge(exc) is Verdict.RETRY:
            way_out = (
                transient_advice(exc)
                or account_advice(exc)
                or "check host and port, then run again when the server answers"
            )
            raise TargetUnavailableError(f"{said}; {way_out}") from exc
        raise TargetError(f"{said}; {account_advice(exc) or _advice(error_code(exc))}") from exc
    except BinlaneError:
        raise
    except Exception as exc:
        if (answer := unusable(exc, name)) is not None:
            raise answer from exc
        raise


def transient_advice(error: BaseException) -> str:
    """The next step for a transient error whose cause somebody has to end on the target; empty for all others."""
    code, said = error_code(error), error_text(error).lower()
    if code in _LOCKED:
        return (
            "another session has locked what this step needs, such as a lane in a long block, a transaction that was "
            "left open (information_schema.innodb_trx lists them), LOCK TABLES or FLUSH TABLES WITH READ LOCK: wait "
            "until it has ended, or find it by SHOW FULL PROCESSLIST on the target and KILL it; then run again"
        )
    if code in _IS_READ_ONLY and ("read-only" in said or "read only" in said or "read_only" in said):
        setting = next(name for word, name in _READ_ONLY.items() if word in said)
        return f"SET GLOBAL {setting} = OFF on the target, unless it is a replica, then run again"
    return ""


def account_advice(error: BaseException) -> str:
    """``login_advice`` of an error."""
    return login_advice(error_code(error), error_text(error))


def space_advice(code: int, said: str) -> str:
    """The next step where the target has no space for what is written, which says nothing about the transaction; empty
    for all other errors."""
    if code not in _FULL and not _NO_SPACE.search(said):
        return ""
    return f"{_FREE_SPACE}{'; a MEMORY table needs a larger max_heap_table_size' if code == _TABLE_FULL else ''}"


def lacks_state(error: TargetError) -> bool:
    """Whether the target has answered that it does not have the tables of the schema ``binlane``."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError | pymysql.err.MySQLError) and error_code(cause) in _NO_TABLES


def _advice(code: int) -> str:
    if code in _UNTRUSTED:
        return "SET GLOBAL log_bin_trust_function_creators = ON on the target, then run again"
    if code in _NOT_LET_IN:
        return f"check user and password of the connection; {WITH_TLS}"
    if code in DENIED:
        return "GRANT the account what the server names (docs/accounts.md has the statements), then run again"
    if code in _NO_TABLES:
        return (
            "the channel has not begun: `binlane bootstrap CHANNEL` copies the data and begins it, "
            "`binlane init CHANNEL` begins it without a copy (if the schema was lost, first read "
            "`The schema binlane is lost` in docs/recovery.md)"
        )
    if code in _FULL:
        return _FREE_SPACE
    return "look at the target, then run again: what is committed stays, and nothing is half applied"
