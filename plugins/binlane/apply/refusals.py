"""Errors of a target before any block: unreachable, access denied, no state tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

import pymysql
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from binlane.apply.session.retry_verdicts import Verdict, driver_error, error_code, error_text, judge
from binlane.errors import TargetError, TargetUnavailableError

_REFUSED: Final = frozenset({1044, 1045, 1142, 1143, 1227, 1410, 1698, 3118, 4151})
_UNTRUSTED: Final = frozenset({1418, 1419})
"""A function or trigger, with a binary log."""
_NO_TABLES: Final = frozenset({1049, 1146})
_LOCKED: Final = frozenset({1205, 1213})
_READ_ONLY: Final[Mapping[str, str]] = {"super": "super_read_only", "": "read_only"}
"""The setting, by a word of the server's text."""
_IS_READ_ONLY: Final = frozenset({1290, 1836})
_FULL: Final = frozenset({3, 1021, 1026, 1114})
"""A table, its file or the server's disk. 3 is the number of errors of the servers' file library."""


@contextlib.contextmanager
def driver_errors() -> Iterator[None]:
    """Raises SQLAlchemy's errors as the driver's own."""
    try:
        yield
    except DBAPIError as exc:
        raise driver_error(exc) from exc


@contextlib.contextmanager
def target_errors(name: str) -> Iterator[None]:
    """Raises the driver's errors as TargetUnavailableError or TargetError, which name the server."""
    try:
        yield
    except (DBAPIError, PendingRollbackError, pymysql.err.MySQLError) as exc:
        said = f"{name}: the server says: {error_text(exc)} ({error_code(exc)})"
        if judge(exc) is Verdict.RETRY:
            way_out = transient_advice(exc) or "check host and port, then run again when the server answers"
            raise TargetUnavailableError(f"{said}; {way_out}") from exc
        raise TargetError(f"{said}; {_advice(error_code(exc))}") from exc


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


def lacks_state(error: TargetError) -> bool:
    """Whether the target has answered that it does not have the tables of the schema ``binlane``."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError | pymysql.err.MySQLError) and error_code(cause) in _NO_TABLES


def _advice(code: int) -> str:
    if code in _UNTRUSTED:
        return "SET GLOBAL log_bin_trust_function_creators = ON on the target, then run again"
    if code in _REFUSED:
        return "check user and password of the connection, and the account's grants (docs/accounts.md lists them)"
    if code in _NO_TABLES:
        return (
            "run `binlane init` first: it creates the state tables (if all of them were lost, first read "
            "`The schema binlane is lost` in docs/recovery.md)"
        )
    if code in _FULL:
        return "free space on the target, then run again: what is committed stays, and nothing is half applied"
    return "look at the target, then run again: what is committed stays, and nothing is half applied"
