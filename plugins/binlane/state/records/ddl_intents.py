"""DDL intents: a row written before a statement with an implicit commit, but on MySQL with GTIDs, and before changes
that no rollback undoes.

``read_intent``, ``write_intent`` and ``forget_intent`` take the lane's own cursor. If a row is left after a lost
connection, the statement may or may not have run: the target's definitions decide, together with its GTIDs if it has
any, or else an operator (``decide_ddl``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, delete, select, update

from binlane.errors import PositionError
from binlane.lazy_dataclass import dataclass
from binlane.safe_text import shown
from binlane.state.stored_values import checked
from binlane.state.tables import NOW, UTC_NOW, ddl

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

INTENT: Final = "intent"
BEGUN: Final = "begun"
"""As ``INTENT``, on a target that decides by itself."""
ASKED: Final = "asked"
"""An operator was asked whether it has run. Nothing runs until the answer, or until the target's state has given one
after all (``resume``)."""
DONE: Final = "done"
HALF_RUN: Final = "half"
"""In place of a fingerprint: the statement failed, and the target keeps a part of its changes."""

REFUSED: Final = "refused"
"""In place of a fingerprint: the target has refused the statement, but run and logged a part of it."""
KEPT: Final = "kept"
"""First word of what is in place of a fingerprint before changes of tables without transactions: behind it their
number, the attempt and the server, with colons between them (``apply.change_notes``)."""
TOGETHER: Final = -2
"""The number of a ``KEPT`` note of all transactions of a barrier that is one transaction on the target. Its temporary
tables are made by running it: it cannot count as applied by hand."""
AGAIN: Final = "again"
"""``KEPT``, when an operator has answered that the changes have not been made."""

SHOWN: Final = 1_000
"""Characters of a statement that an operator is asked about."""


@dataclass(frozen=True, slots=True)
class DdlIntent:
    """A statement that may have run."""

    seqno: int
    lane: int
    statement: str
    fingerprint: str
    state: str

    @property
    def text(self) -> str:
        """The statement as people are shown it, without what may be a password."""
        return shown(self.statement, SHOWN)


def read_intent(cursor: Cursor, channel: str, seqno: int) -> DdlIntent | None:
    """The intent of a statement; None if there is none."""
    cursor.execute(
        "SELECT seqno, lane, statement, fingerprint, state FROM binlane.ddl WHERE channel = %s AND seqno = %s",
        (channel, seqno),
    )
    row = cursor.fetchone()
    if row is None:
        return None
    columns = (ddl.c.seqno, ddl.c.lane, ddl.c.statement, ddl.c.fingerprint, ddl.c.state)
    return DdlIntent(*map(checked, columns, row))


def write_intent(
    cursor: Cursor, channel: str, seqno: int, lane: int, statement: bytes, fingerprint: str, state: str = INTENT
) -> None:
    """Record that a statement is about to run; replaces an earlier intent of its seqno. ``state``: INTENT or BEGUN."""
    cursor.execute(
        "REPLACE INTO binlane.ddl (channel, seqno, lane, statement, fingerprint, state, at) "
        f"VALUES (%s, %s, %s, %s, %s, %s, {UTC_NOW})",
        (channel, seqno, lane, statement.decode("utf-8", "backslashreplace"), fingerprint, state),
    )


def ask_operator(cursor: Cursor, channel: str, seqno: int) -> None:
    """Let an operator decide: from now on ``decide_ddl`` takes an answer."""
    cursor.execute(
        "UPDATE binlane.ddl SET state = %s WHERE channel = %s AND seqno = %s AND state <> %s",
        (ASKED, channel, seqno, DONE),
    )


def resume(cursor: Cursor, channel: str, seqno: int) -> bool:
    """Withdraw the question, since the statement runs again: no answer may come while it does. False if it was answered
    before."""
    cursor.execute(
        "UPDATE binlane.ddl SET state = %s WHERE channel = %s AND seqno = %s AND state = %s",
        (INTENT, channel, seqno, ASKED),
    )
    return cursor.rowcount == 1


def forget_intent(cursor: Cursor, channel: str, seqno: int) -> None:
    """Delete the intent, in the transaction that moves the position past the statement, or after it was refused."""
    cursor.execute("DELETE FROM binlane.ddl WHERE channel = %s AND seqno = %s", (channel, seqno))


def kept_seqnos(cursor: Cursor, channel: str) -> frozenset[tuple[int, int]]:
    """Lane and seqno of each transaction with a ``KEPT`` row."""
    cursor.execute(
        "SELECT lane, seqno FROM binlane.ddl WHERE channel = %s AND fingerprint LIKE %s", (channel, f"{KEPT}:%")
    )
    return frozenset((int(lane), int(seqno)) for lane, seqno in cursor.fetchall())


def read_undecided(connection: Connection, channel: str) -> tuple[DdlIntent, ...]:
    """Intents that wait for an operator's decision."""
    rows = connection.execute(select(ddl).where(ddl.c.channel == channel, ddl.c.state == ASKED).order_by(ddl.c.seqno))
    return tuple(DdlIntent(row.seqno, row.lane, row.statement, row.fingerprint, row.state) for row in rows)


def decide_ddl(engine: Engine, channel: str, seqno: int, *, ran: bool) -> None:
    """Record an operator's answer to UndecidableError: the DDL of ``seqno`` has run, or has not and shall run again.

    Raises PositionError if no decision is pending for ``seqno``.
    """
    with engine.begin() as connection:
        this = (ddl.c.channel == channel, ddl.c.seqno == seqno, ddl.c.state == ASKED)
        is_whole_barrier = ddl.c.fingerprint.like(f"{KEPT}:{TOGETHER}:%")
        if ran and connection.execute(select(ddl).where(*this, is_whole_barrier)).first():
            raise PositionError(
                f"channel {channel}, seqno {seqno}: its temporary tables are made by running it, so it cannot count as "
                "applied; undo by hand what is there of it and answer --not-ran"
            )
        if not ran and connection.execute(select(ddl).where(*this, ddl.c.fingerprint == HALF_RUN)).first():
            raise PositionError(
                f"channel {channel}, seqno {seqno}: a part of the statement has run and cannot be rolled back, so it "
                "cannot run again; make its rows equal to the source's and answer --ran"
            )
        is_kept = ddl.c.fingerprint.like(f"{KEPT}:%")
        if not ran and connection.execute(select(ddl).where(*this, is_kept)).first():
            # its number is needed: the target may have logged the change and lost its rows
            answered = connection.execute(update(ddl).where(*this).values(state=AGAIN, at=NOW))
        elif ran:
            answered = connection.execute(update(ddl).where(*this).values(state=DONE, at=NOW))
        else:
            answered = connection.execute(delete(ddl).where(*this))
        if answered.rowcount != 1:
            raise PositionError(
                f"channel {channel}: no undecided DDL with seqno {seqno}; `binlane status {channel}` lists them. "
                "Of a statement that may have run, the next run of the channel finds out, or asks: run it first"
            )
