"""A database of a channel as somebody looks for it: up to where it is applied, and when it was found equal."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.choices import VerifyScope
from binlane.state.positions import LanePosition
from binlane.state.records.databases import DatabasePage, DatabaseRecord, InWindow
from binlane.state.records.history import seconds_of
from binlane.state.records.verifications import CleanVerification
from binlane.state.windows import Window


@dataclass(frozen=True, slots=True)
class Verified:
    """The newest verification that found source and target equal and covered the database."""

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
    verified: Verified | None
    drifted: int
    """Rows and definitions of it that are known to differ."""
    rows: int
    """Row changes of ``recent``."""
    recent: tuple[InWindow, ...]
    """The newest windows that change it, newest first."""


def databases_of(page: DatabasePage) -> tuple[Database, ...]:
    """The databases of a page."""
    return tuple(_database(each, page.window, page.positions, page.clean) for each in page.found)


def _database(
    record: DatabaseRecord,
    window: Window | None,
    positions: tuple[LanePosition, ...],
    clean: tuple[CleanVerification, ...],
) -> Database:
    low = min((each.seqno for each in positions), default=0)
    reached = next((each.seqno for each in positions if each.lane == record.lane), low)

    def is_applied(one: InWindow) -> bool:
        return window is None or one.number != window.number or one.seqno <= reached

    return Database(
        record.name,
        record.lane,
        applied=next(filter(is_applied, record.recent), None),
        is_waiting=not all(map(is_applied, record.recent)),
        verified=_verified(record, clean),
        drifted=record.drifted,
        rows=record.rows,
        recent=record.recent,
    )


def _verified(record: DatabaseRecord, clean: tuple[CleanVerification, ...]) -> Verified | None:
    """None while rows of it are known to differ."""
    numbers = {each.number for each in record.recent}
    covering = (each for each in clean if each.kind == VerifyScope.FULL or each.number in numbers)
    newest = next(covering, None)
    if newest is None or record.drifted:
        return None
    return Verified(newest.kind, newest.number, newest.through_seqno, seconds_of(newest.ended_at))
