"""A channel for the board: its status, the target's clock, and its windows, newest first."""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, Row, select, text

from binlane.lazy_dataclass import dataclass
from binlane.model import CLOCKS_DIFFER, FolderRecord, LogPosition, RowCounts
from binlane.plan.window_facts import WindowFacts
from binlane.state.channels import read_channel
from binlane.state.json_columns import optional_value_of
from binlane.state.orders.skips import Skip, read_newest_skips
from binlane.state.positions import LanePosition
from binlane.state.records.coverage import CoverageRow, first_uncovered
from binlane.state.records.journal import ChannelStatus, LaneError, read_status, standing_error
from binlane.state.records.progress import StepRow, read_step
from binlane.state.records.verifications import (
    PastVerification,
    last_ended,
    read_verifications,
    unfinished_round,
)
from binlane.state.tables import channels, windows
from binlane.state.windows import folder_record

if TYPE_CHECKING:
    from binlane.state.records.drills import LastDrills

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
    work: FolderRecord
    summary: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A channel at one moment of the target's clock. Times are seconds since the epoch."""

    clock: float
    created_at: float
    complete_at: float | None
    """When a run last found nothing to apply."""
    complete_through: float | None
    """The source's time up to which nothing was missing then."""
    status: ChannelStatus
    history: tuple[PastWindow, ...]
    """The newest windows, the open one included."""
    skips: tuple[Skip, ...] = ()
    """Orders to skip transactions, carried out or not, newest first."""
    more_skips: bool = False
    """Whether there are older skips."""
    verifications: tuple[PastVerification, ...] = ()
    """The last verifications, newest first."""
    standing_error: LaneError | None = None
    """The newest error of the open window that its lane has not passed."""
    compared_at: float | None = None
    """When the last verification ended."""
    covered: CoverageRow = field(default_factory=CoverageRow)
    """What verifications have compared."""
    unverified_since: float | None = None
    """When the first window with a change that no verification has compared was finished, or a pending row was first
    found different; None: there is no such change and no such row."""
    uncovered_since: float | None = None
    """When the first window with a change that no verification has compared was finished."""
    pending_since: float | None = None
    """When the oldest of the pending rows was first found different."""
    full_at: float | None = None
    """When all rows of all tables had last been compared."""
    drills: LastDrills | None = None
    """The newest drills with a result; None: there is none."""
    round: PastVerification | None = None
    """The unfinished verification of all rows, which the next one continues."""
    step: StepRow | None = None
    """The step that the channel's window is in; a killed run leaves the row behind."""

    @property
    def drilled_at(self) -> float | None:
        """When the last drill ended that found everything equal, of as many databases as the channel's file says."""
        return None if self.drills is None else _optional_seconds(self.drills.equal_at)

    @property
    def open_window(self) -> PastWindow | None:
        """The open window with its times; None also if the history was read before it was opened."""
        window = self.status.window
        if window is None:
            return None
        return next((past for past in self.history if past.window_id == window.bounds.window_id), None)

    @property
    def open_positions(self) -> tuple[LanePosition, ...]:
        """The lanes of the open window; before it has a plan, the rows are those of the window before."""
        window = self.status.window
        if window is None or window.plan_digest is None:
            return ()
        return tuple(lane for lane in self.status.positions if lane.window_id == window.bounds.window_id)

    def silence(self, lane: int) -> float | None:
        """Seconds since the lane's holder has shown a sign of life in the open window; None if none did."""
        window = self.open_window
        for beat in self.status.heartbeats:
            if beat.lane != lane or window is None:
                continue
            # the lease tells without a clock
            holds = self.status.holders.get(lane) == beat.connection_id
            if holds or seconds_of(beat.beat_at) >= window.created_at:
                return seconds_since(seconds_of(beat.beat_at), self.clock)
        return None

    def age(self, error: LaneError) -> float:
        """Seconds since the error was recorded."""
        return seconds_since(seconds_of(error.at), self.clock)


def read_snapshot(engine: Engine, channel: str, *, last_windows: int = DEFAULT_WINDOWS, rules: str = "") -> Snapshot:
    """The channel now. ``rules``: the digest of its filter and renames, under which verifications count; empty: any.
    Raises PositionError if there is no such channel."""
    # a window reads no snapshot, and loads nothing for it
    from binlane.state.records.drills import last_drills

    status = read_status(engine, channel, rules)
    with engine.connect() as connection:
        clock = clock_of(connection)
        times = connection.execute(
            select(channels.c.created_at, channels.c.complete_at, channels.c.complete_through).where(
                channels.c.channel == channel
            )
        ).one()
        covered = status.covered
        uncovered = _optional_seconds(first_uncovered(connection, channel, covered.through))
        pending = _optional_seconds(status.pending_since)
        marks = (uncovered, pending)
        open_since = [mark for mark in marks if mark is not None]
        skips = read_newest_skips(connection, channel, SKIPS + 1)
        window = status.window
        return Snapshot(
            clock=clock,
            created_at=_seconds(times.created_at),
            complete_at=None if times.complete_at is None else _seconds(times.complete_at),
            complete_through=times.complete_through,
            status=status,
            history=read_history(connection, channel, limit=last_windows),
            skips=skips[:SKIPS],
            more_skips=len(skips) > SKIPS,
            verifications=read_verifications(connection, channel, VERIFICATIONS),
            standing_error=None if window is None else standing_error(connection, channel, window),
            compared_at=_ended(last_ended(connection, channel)),
            covered=covered,
            unverified_since=min(open_since, default=None),
            uncovered_since=uncovered,
            pending_since=pending,
            full_at=_optional_seconds(covered.full_at),
            drills=last_drills(connection, channel),
            round=unfinished_round(connection, channel),
            step=read_step(connection, channel),
        )


def seconds_since(then: float, clock: float) -> float:
    """Seconds from a stored time to that of the clock.

    A time that is farther ahead than clocks differ was stored before the clock was set back: nobody knows how long ago,
    and it counts as long as it is ahead, so that what has ended long ago does not look alive until then.
    """
    apart = clock - then
    return -apart if apart < -CLOCKS_DIFFER else max(0.0, apart)


def clock_of(connection: Connection) -> float:
    """The target's clock, in seconds since the epoch; by a session of ``SessionKind.STATE``, whose time zone is UTC.

    MariaDB's UTC_TIMESTAMP never goes back in a thread of the server, which later connections use, too: behind rows
    that the log gives a time of the future, or behind a clock that was ahead, it stays there.
    """
    return _seconds(connection.execute(text("SELECT SYSDATE(6)")).scalar_one())


def _optional_seconds(at: str | None) -> float | None:
    return None if at is None else seconds_of(at)


def _ended(verification: PastVerification | None) -> float | None:
    return None if verification is None else _optional_seconds(verification.ended_at)


_PAST: Final = tuple(
    windows.c[name]
    for name in (
        *("window_id", "number", "state", "first_seqno", "last_seqno", "end_file", "end_offset", "end_gtid_set"),
        *(
            "end_time",
            "created_at",
            "finished_at",
            "lanes",
            "plan_digest",
            "totals",
            "facts",
            "work",
            "files",
            "summary",
        ),
    )
)
"""What people see of a window: not its start, which is as large as the GTID set and is that of the window before."""


def read_history(
    connection: Connection, channel: str, *, limit: int, before: int | None = None
) -> tuple[PastWindow, ...]:
    """The channel's windows, newest first; ``before``: only those with a smaller number."""
    query = select(*_PAST).where(windows.c.channel == channel).order_by(windows.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(windows.c.number < before)
    return tuple(_past_window(row) for row in connection.execute(query))


def read_past_window(connection: Connection, channel: str, window_id: str) -> PastWindow | None:
    """One window; None if there is none with this id. Raises PositionError if there is no such channel."""
    read_channel(connection, channel)
    query = select(*_PAST).where(windows.c.channel == channel, windows.c.window_id == window_id)
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
        work=folder_record(row.work, row.files),
        summary=row.summary,
    )
