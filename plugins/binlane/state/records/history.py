"""A channel for the board: its status, the target's clock, and its windows, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, Engine, Row, select

from binlane.model import LogPosition, RowCounts
from binlane.plan.window_facts import WindowFacts
from binlane.state.channels import read_channel
from binlane.state.json_columns import optional_value_of
from binlane.state.orders.skips import Skip, read_newest_skips
from binlane.state.records.journal import ChannelStatus, read_status
from binlane.state.records.verifications import PastVerification, read_verifications
from binlane.state.tables import NOW, windows

DEFAULT_WINDOWS: Final = 24
SKIPS: Final = 50
VERIFICATIONS: Final = 5


@dataclass(frozen=True, slots=True)
class PastWindow:
    """A window's row, open or finished, with its times. Times are seconds since the epoch."""

    window_id: str
    number: int
    state: str
    first_seqno: int
    last_seqno: int
    end: LogPosition
    end_gtid_set: str
    end_time: float
    """Source commit time of the window's last transaction."""
    created_at: float
    """By the target's clock, as ``finished_at``."""
    finished_at: float | None
    lanes: int | None
    plan_digest: str | None
    totals: RowCounts | None
    facts: WindowFacts | None
    """None before the window has a plan."""
    work: str
    """URI of the window's folder; empty if it was removed."""
    summary: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A channel at one moment of the target's clock."""

    clock: float
    status: ChannelStatus
    history: tuple[PastWindow, ...]
    """The newest windows, the open one included."""
    skips: tuple[Skip, ...] = ()
    """Orders to skip transactions, carried out or not, newest first."""
    more_skips: bool = False
    """Whether there are older skips."""
    verifications: tuple[PastVerification, ...] = ()
    """The last verifications, newest first."""


def read_snapshot(engine: Engine, channel: str, *, last_windows: int = DEFAULT_WINDOWS) -> Snapshot:
    """The channel now. Raises PositionError if there is no such channel."""
    status = read_status(engine, channel)
    with engine.connect() as connection:
        clock = _seconds(connection.execute(select(NOW)).scalar_one())
        skips = read_newest_skips(connection, channel, SKIPS + 1)
        return Snapshot(
            clock=clock,
            status=status,
            history=read_history(connection, channel, limit=last_windows),
            skips=skips[:SKIPS],
            more_skips=len(skips) > SKIPS,
            verifications=read_verifications(connection, channel, VERIFICATIONS),
        )


def read_history(
    connection: Connection, channel: str, *, limit: int, before: int | None = None
) -> tuple[PastWindow, ...]:
    """The channel's windows, newest first; ``before``: only those with a smaller number."""
    query = select(windows).where(windows.c.channel == channel).order_by(windows.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(windows.c.number < before)
    return tuple(_past_window(row) for row in connection.execute(query))


def read_past_window(connection: Connection, channel: str, window_id: str) -> PastWindow | None:
    """One window; None if there is none with this id. Raises PositionError if there is no such channel."""
    read_channel(connection, channel)
    query = select(windows).where(windows.c.channel == channel, windows.c.window_id == window_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _past_window(row)


def seconds_of(text: str) -> float:
    """A time of the state's tables (UTC, by the target's clock) in seconds since the epoch."""
    return _seconds(datetime.fromisoformat(text))


def _seconds(moment: datetime | str) -> float:
    # an expression has no column type, so the driver does not convert it
    known = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return known.replace(tzinfo=UTC).timestamp()


def _past_window(row: Row[tuple[object, ...]]) -> PastWindow:
    return PastWindow(
        window_id=row.window_id,
        number=row.number,
        state=row.state,
        first_seqno=row.first_seqno,
        last_seqno=row.last_seqno,
        end=LogPosition(row.end_file, row.end_offset),
        end_gtid_set=row.end_gtid_set,
        end_time=row.end_time,
        created_at=_seconds(row.created_at),
        finished_at=None if row.finished_at is None else _seconds(row.finished_at),
        lanes=row.lanes,
        plan_digest=row.plan_digest,
        totals=optional_value_of(RowCounts, row.totals, windows.c.totals),
        facts=None if row.facts is None else WindowFacts.from_json(row.facts),
        work=row.work,
        summary=row.summary,
    )
