"""A database of a channel as somebody looks for it: up to where it is applied, and when it was found equal."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from binlane.choices import VerifyScope
from binlane.lazy_dataclass import dataclass
from binlane.state.records.databases import DatabasePage, DatabaseRecord, InWindow
from binlane.state.records.history import seconds_of
from binlane.state.records.verifications import CLEAN, DRIFT, EndedVerification


@dataclass(frozen=True, slots=True)
class LastVerification:
    """The newest verification that has covered the database and found it equal, unless a later one may have found it
    different."""

    kind: str
    """full: every row of the database; window: the rows that window #``number`` touched."""
    number: int | None
    seqno: int
    """The watermark at its begin."""
    at: float
    """Its end, in seconds since the epoch, by the target's clock."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database by its name on the target."""

    name: str
    lane: int | None
    """In the newest window that changes it; None if its transactions were all serialized, or shared with others."""
    applied: InWindow | None
    """Its last applied transaction, with the window's figures; None if none is applied yet."""
    is_waiting: bool
    """The open window has transactions of it that are not all applied."""
    verified: LastVerification | None
    drifted: int
    """Rows and definitions of it that are known to differ."""
    pending: int
    """Rows of it that differed and that the source has changed since."""
    rows: int
    """Row changes of ``recent``."""
    recent: tuple[InWindow, ...]
    """The newest windows that change it, newest first."""


def databases_of(page: DatabasePage) -> tuple[Database, ...]:
    """The databases of a page."""
    return tuple(_database(each, page) for each in page.found)


def _database(record: DatabaseRecord, page: DatabasePage) -> Database:
    window, positions = page.window, page.positions
    low = min((each.seqno for each in positions), default=0)
    reached = next((each.seqno for each in positions if each.lane == record.lane), low)

    def is_applied(one: InWindow) -> bool:
        return window is None or one.number != window.number or one.seqno <= reached

    return Database(
        record.name,
        record.lane,
        applied=next(filter(is_applied, record.recent), None),
        is_waiting=not all(map(is_applied, record.recent)),
        verified=_verified(record, page.verifications, page.suspects),
        drifted=record.drifted,
        pending=record.pending,
        rows=record.rows,
        recent=record.recent,
    )


def _verified(
    record: DatabaseRecord, verifications: Sequence[EndedVerification], suspects: int
) -> LastVerification | None:
    """``verifications``: the newest first. ``suspects``: of the channel now. None while rows of it are known to
    differ."""
    if record.drifted:
        return None
    numbers = {each.number for each in record.recent}
    drifts: list[EndedVerification] = []
    for at, each in enumerate(verifications):
        # what the last verification has left is in the record, as long as nothing has removed suspects since
        is_last = at == 0 and not record.pending and each.suspects == suspects
        covers = not each.scope and (each.kind == VerifyScope.FULL or each.number in numbers)
        if covers and (each.state == CLEAN or (is_last and not each.has_gap)):
            if any(_may_concern(drift, record, each.through_seqno) for drift in drifts):
                return None
            return LastVerification(each.kind, each.number, each.through_seqno, seconds_of(each.ended_at))
        if each.state == DRIFT:
            drifts.append(each)
    return None


def _may_concern(drift: EndedVerification, record: DatabaseRecord, after: int) -> bool:
    """Whether a verification that found drift may have compared the database, which was equal at seqno ``after``. One
    of windows compares the rows of the last one, also again, and those that were changed since."""
    if drift.kind == VerifyScope.FULL:
        return not drift.scope or any(_names(pattern, record.name) for pattern in drift.scope)
    return any(each.number == drift.number or after < each.seqno <= drift.through_seqno for each in record.recent)


def _names(pattern: str, database: str) -> bool:
    """Whether a pattern of databases, or of tables as ``database.table``, can name a table of the database."""
    parts = (pattern, pattern.partition(".")[0], pattern.rpartition(".")[0])
    return any(fnmatchcase(database, part) for part in parts)
