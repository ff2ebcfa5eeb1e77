"""Intents: a statement that commits by itself leaves a row before it runs, where the target has no GTID that tells.

``read_intent``, ``write_intent`` and ``forget_intent`` take the lane's own cursor. A row that stands behind a lost
connection is a question, which the target's definitions answer or a person (``decide_ddl``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, delete, select, update

from binlane.errors import PositionError
from binlane.state.tables import NOW, ddl

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

INTENT: Final = "intent"
DONE: Final = "done"
HALF_RUN: Final = "half"
"""In the place of a fingerprint: a statement that failed, and of which the target keeps what it had changed by then."""


@dataclass(frozen=True, slots=True)
class DdlIntent:
    """A statement that may have run."""

    seqno: int
    lane: int
    statement: str
    fingerprint: str
    state: str


def read_intent(cursor: Cursor, channel: str, seqno: int) -> DdlIntent | None:
    """The row of a statement, if there is one."""
    cursor.execute(
        "SELECT seqno, lane, statement, fingerprint, state FROM binlane.ddl WHERE channel = %s AND seqno = %s",
        (channel, seqno),
    )
    row = cursor.fetchone()
    return None if row is None else DdlIntent(*row)


def write_intent(cursor: Cursor, channel: str, seqno: int, lane: int, statement: bytes, fingerprint: str) -> None:
    """Say that a statement is about to run, in the place of what was said of it before."""
    cursor.execute(
        "REPLACE INTO binlane.ddl (channel, seqno, lane, statement, fingerprint, state, at) "
        "VALUES (%s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))",
        (channel, seqno, lane, statement.decode("utf-8", "backslashreplace"), fingerprint, INTENT),
    )


def forget_intent(cursor: Cursor, channel: str, seqno: int) -> None:
    """Drop the row, in the transaction that moves the position behind the statement or once it has not run."""
    cursor.execute("DELETE FROM binlane.ddl WHERE channel = %s AND seqno = %s", (channel, seqno))


def read_undecided(connection: Connection, channel: str) -> tuple[DdlIntent, ...]:
    """Statements of which nobody has said whether they have run."""
    rows = connection.execute(select(ddl).where(ddl.c.channel == channel, ddl.c.state == INTENT).order_by(ddl.c.seqno))
    return tuple(DdlIntent(row.seqno, row.lane, row.statement, row.fingerprint, row.state) for row in rows)


def decide_ddl(engine: Engine, channel: str, seqno: int, *, ran: bool) -> None:
    """A person's answer to UndecidableError: the DDL of ``seqno`` has run, or has not and shall run again.

    Raises PositionError if there is no such question.
    """
    with engine.begin() as connection:
        this = (ddl.c.channel == channel, ddl.c.seqno == seqno, ddl.c.state == INTENT)
        if not ran and connection.execute(select(ddl).where(*this, ddl.c.fingerprint == HALF_RUN)).first():
            raise PositionError(
                f"channel {channel}, seqno {seqno}: a part of it has run, and nothing undoes that: it cannot run "
                "again; bring its rows to what they are on the source and answer --ran"
            )
        if ran:
            answered = connection.execute(update(ddl).where(*this).values(state=DONE, at=NOW))
        else:
            answered = connection.execute(delete(ddl).where(*this))
        if answered.rowcount != 1:
            raise PositionError(f"channel {channel}: no undecided DDL with seqno {seqno}; `binlane status` lists them")
