"""Errors of a target before any block: unreachable, access denied, no state tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
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
        if error_code(exc) in _LOCKED:
            raise TargetUnavailableError(
                f"{said}; another session has locked what this step needs, such as a lane in a long block or a "
                "transaction that was left open (information_schema.innodb_trx lists them): run again when it has ended"
            ) from exc
        if judge(exc) is Verdict.RETRY:
            raise TargetUnavailableError(
                f"{said}; check host and port, then run again when the server answers"
            ) from exc
        raise TargetError(f"{said}; {_advice(error_code(exc))}") from exc


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
