"""The ROLLBACK behind an error, and what it leaves: changes of tables without transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.retry_verdicts import error_code

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_NOT_ROLLED_BACK: Final = 1196
"""The warning of a ROLLBACK that leaves changes of non-transactional tables."""
_ROLLS_BACK: Final = frozenset({1020, 1205, 1206, 1213})
"""Errors with which a server may roll back the whole transaction: MariaDB's snapshot isolation, a lock wait with
innodb_rollback_on_timeout, a full table of locks, a deadlock."""


def undo(session: LaneSession) -> None:
    """Roll back after an error, or close the session if that fails: half a block must never be committed."""
    try:
        session.rollback()
    except (pymysql.err.Error, OSError):
        session.close()


def undo_all(session: LaneSession, error: BaseException | None) -> bool:
    """Roll back behind the error; whether nothing has stayed. Raises the driver's errors: it is not known.

    MySQL warns of what stays once, at the statement with whose error it has rolled back the transaction itself, and not
    at the ROLLBACK that comes then. If another statement has run since, the warning is lost, and counts.
    """
    stayed = False
    if error is not None and (code := error_code(error)) in _ROLLS_BACK:
        codes = _warned(session)
        stayed = code not in codes or _NOT_ROLLED_BACK in codes
    session.rollback()
    return not stayed and nothing_stayed(session)


def nothing_stayed(session: LaneSession) -> bool:
    """Whether the ROLLBACK that has just run has undone everything."""
    return _NOT_ROLLED_BACK not in _warned(session)


def _warned(session: LaneSession) -> frozenset[int]:
    return frozenset(int(code) for _, code, _ in session.rows("SHOW WARNINGS"))
