"""Changes of tables without transactions, which no rollback undoes: a note before, a question after a crash.

Nothing that commits together with such a change tells whether it was made. MyISAM writes its rows before the server
logs the statement, and the number of its rows, without which they are lost, behind that. So the lane notes what it is
about to change, in a transaction of its own, in ``binlane.ddl``, and the transaction that moves the position removes
the note. An attempt that finds a note asks the operator, unless the target itself proves the outcome: by its GTIDs,
while the server that was changing the rows still runs (``apply.nontransactional``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.rollback import undo_all
from binlane.binlog.rows_payload import check_self_contained
from binlane.errors import UndecidableError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind
from binlane.state.records.ddl_intents import (
    AGAIN,
    ASKED,
    BEGUN,
    DONE,
    KEPT,
    TOGETHER,
    DdlIntent,
    forget_intent,
    write_intent,
)

if TYPE_CHECKING:
    from binlane.apply.ddl.outcome import DdlPlace
    from binlane.apply.session.connection import LaneSession

WHOLE: Final = -1
"""The unit of a note of a whole transaction."""
_STARTED: Final = (
    "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, UNIX_TIMESTAMP() - variable_value) "
    "FROM {}.global_status WHERE variable_name = 'uptime'"
)
"""Both times are those of the query, so that their difference is the same as long as the server runs."""
_SHOWN: Final = 1000
"""Characters of a description of what was changed."""


@dataclass(frozen=True, slots=True)
class ChangeNote:
    """What a note says: see ``ddl_intents.KEPT``."""

    unit: int
    """Number of the statement or rows event in its transaction, or ``WHOLE``."""
    attempt: int
    """How often an operator has let it run again, after the target had logged it."""
    server: str
    """Which start of which server was about to change rows."""
    state: str

    @classmethod
    def of(cls, stored: DdlIntent | None) -> ChangeNote | None:
        """None if it is no such note, but one of a DDL."""
        if stored is None or not stored.fingerprint.startswith(f"{KEPT}:"):
            return None
        _, unit, attempt, server = stored.fingerprint.split(":")
        return cls(int(unit), int(attempt), server, stored.state)


def running_server(session: LaneSession) -> str:
    """Which server this is, and since when it runs."""
    session.own_clock()
    schema = "information_schema" if session.flavor is Flavor.MARIADB else "performance_schema"
    return hashlib.sha256(repr(session.rows(_STARTED.format(schema))).encode()).hexdigest()[:32]


def write_note(
    session: LaneSession, place: DdlPlace, note: ChangeNote, items: Iterable[Item], *, is_question: bool = False
) -> None:
    """Store the note, outside of a transaction."""
    session.own_clock()
    fingerprint = f"{KEPT}:{note.unit}:{note.attempt}:{note.server}"
    state = ASKED if is_question else note.state
    write_intent(session.cursor, place.key.channel, place.seqno, place.lane, described(items), fingerprint, state)


def begin_whole(
    session: LaneSession, place: DdlPlace, note: ChangeNote | None, items: Iterable[Item], unit: int = WHOLE
) -> bool:
    """Note the changes of a transaction, or of all that one transaction of the target holds; False if the operator says
    that they have been made. Raises UndecidableError if they may have been."""
    if note is not None and note.state == DONE and note.unit == unit == WHOLE:
        return False
    items = tuple(items)
    if note is not None and note.state != AGAIN:
        raise ask(session, place, note, items)
    write_note(session, place, ChangeNote(unit, 0, running_server(session), BEGUN), items)
    return True


def ask(session: LaneSession, place: DdlPlace, note: ChangeNote, items: Iterable[Item]) -> UndecidableError:
    """Let the note wait for the operator, and the question."""
    items = tuple(items)
    write_note(session, place, note, items, is_question=True)
    order = f"`binlane decide {place.key.channel} {place.seqno} --{{}}`".format
    if note.unit >= 0:
        what = f"the target was restarted at or behind change {note.unit + 1} of it, below, and the rows of that one"
        ran = f"make that change by hand as far as it is missing and record {order('ran')}; or "
    else:
        what = "its changes were interrupted; those of transactional tables were rolled back, the others"
        ran = f"make all its changes by hand, those of transactional tables as well, and record {order('ran')}; or "
    if note.unit == TOGETHER:
        ran = ""
    return UndecidableError(
        f"this transaction changes tables without transactions; {what} may be there in full, in part or not at all. "
        "Look at these rows on the target (CHECK TABLE first: a killed server leaves such tables damaged), and compare "
        "them with the source's log. Then "
        f"{ran}undo by hand what is there (of CREATE TABLE .. SELECT the rows alone: the table stays) "
        f"and record {order('not-ran')}, so that it is applied again. Then run the "
        "lane again:\n" + described(items).decode("utf-8", "replace")
    )


def undo_noted(
    session: LaneSession, error: BaseException | None, place: DdlPlace, behind_ddl: Iterable[Item] | None = None
) -> bool:
    """Roll back a transaction with a note behind the error, and remove the note if the target has kept nothing; whether
    it was removed. Raises nothing.

    ``behind_ddl``: the changes, if a DDL has run before them, of which this note alone tells: they begin again.
    """
    try:
        if not undo_all(session, error):
            return False
        if behind_ddl is None:
            forget_intent(session.cursor, place.key.channel, place.seqno)
        else:
            write_note(session, place, ChangeNote(WHOLE, 0, running_server(session), AGAIN), behind_ddl)
    except (pymysql.err.Error, OSError):
        # the ROLLBACK has failed, or the connection since: the note stays
        session.close()
        return False
    return True


def described(items: Iterable[Item]) -> bytes:
    """The statements and the tables of the rows, for a person."""
    parts, size = list[str](), 0
    for item in items:
        if item.kind is ItemKind.FILE or size > _SHOWN:
            continue
        if item.kind is ItemKind.ROWS:
            text = f"rows of {', '.join(sorted(map(str, check_self_contained(item.payload))))}"
            text += f" ({item.rows})" if item.rows.total else ""
        else:
            text = item.payload[:_SHOWN].decode("utf-8", "backslashreplace")
        if not parts or parts[-1] != text:
            parts.append(text)
            size += len(text)
    return "; ".join(parts)[:_SHOWN].encode()
