"""What a channel's health is computed from. Times are seconds since the epoch, by the target's clock unless they say
otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Final

from binlane.health.airflow_runs import AirflowRuns
from binlane.health.progress import Stage, stage_of
from binlane.lazy_dataclass import dataclass
from binlane.model import CLOCKS_DIFFER
from binlane.state.records.history import seconds_since
from binlane.state.records.progress import RunStep
from binlane.state.records.verifications import PENDING, Unshown
from binlane.state.window_folders import WindowFolders

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.state.records.history import Snapshot
    from binlane.state.records.journal import LaneError

VERIFY_TASK: Final = "verify_target"
"""The DAG's task that compares source and target."""
HEARTBEAT_SECONDS: Final = 5.0
"""A lane's holder writes a heartbeat this often; the last may come after the error that ends it."""
ALIVE_SECONDS: Final = 20.0
"""A heartbeat that is older says nothing."""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """The window that is not finished."""

    window_id: str
    is_applied: bool
    """A lane that is not at the window's end has a holder that has shown a sign of life a moment ago."""
    quiet: float
    """Seconds since the last sign of life of a lane, or since the window was opened."""


@dataclass(frozen=True, slots=True)
class LaneStop:
    """The newest error of the open window that its lane has not passed."""

    lane: int
    seqno: int
    text: str
    code: int
    """The server's error number; 0 where the error is binlane's own."""
    is_retried: bool = False
    """The lane's holder has shown a sign of life since, more than one heartbeat later: the lane has begun again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an operator accepts, in seconds; 0: anything."""

    max_age: float
    max_unverified: float
    max_full_age: float = 0
    max_pending: float = 0
    max_drill_age: float = 0

    @classmethod
    def of(cls, channel: ChannelConfig) -> Limits:
        """As the channel file has them."""
        return cls(
            channel.alert.max_age,
            channel.alert.max_unverified,
            channel.alert.max_full_age,
            channel.alert.max_pending,
            channel.alert.max_drill_age,
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """A channel at one moment."""

    channel: str
    clock: float
    created: float
    seqno: int
    """The watermark."""
    committed: float | None
    """When the source committed the transaction at the watermark, by its clock; None before the first transaction."""
    complete: float | None
    """The source's time up to which nothing was missing when a run last found nothing to apply."""
    stopped: str | None
    """Who has requested the channel to stop, when and where."""
    window: OpenWindow | None
    error: LaneStop | None
    drifted: int
    """Rows and definitions that have differed without a later change of the source, and were not found equal since."""
    pending: int
    """Those that differed and that the source had changed since."""
    is_comparable: bool
    """The source is a live server."""
    verified: int
    """The seqno through which every change was compared by verifications; 0: none."""
    unverified_since: float | None
    """When the first change behind it was applied, or the oldest pending row was found; None: all is compared."""
    full_at: float | None
    """When all rows of all tables had last been compared; None: never."""
    compared_at: float | None
    """When the last verification ended, whatever it found."""
    ran_at: float | None
    """When the last window was finished, or a later run found nothing to apply."""
    runs: AirflowRuns | None
    """None outside Airflow."""
    stage: Stage | None = None
    """The step that takes time now."""
    unshown: tuple[Unshown, ...] = ()
    """Those of the pending rows that a later verification may find pending again."""
    uncovered_since: float | None = None
    """When the first change that no verification has compared was applied; None: all are, rows may be pending."""
    pending_since: float | None = None
    """When the oldest of the pending rows was first found different."""
    is_drilled: bool = False
    """The channel's file says what drills restore from."""
    drilled: str | None = None
    """The state of the newest drill that has ended and was not interrupted."""
    drilled_at: float | None = None
    """When the last drill ended that found everything equal, of as many databases as the channel's file says; None:
    never."""
    unproved: tuple[str, ...] = ()
    """The databases whose newest result of a drill is not equal, with that result."""
    crashed: str = ""
    """The last file of the log in which the source has crashed so that its log may lack transactions that it has, if
    all rows have not been compared since."""
    is_continuous: bool = False
    """Its DAG begins the next run as soon as one has ended."""

    @property
    def age(self) -> float:
        """Seconds since the moment of the source up to which the target is known to be complete: the commit of the last
        applied transaction, or a later run that found nothing to apply. Before the first since the channel was
        created."""
        return max(0.0, self.clock - max(self._reached((self.committed, self.complete)), default=self.created))

    @property
    def ahead(self) -> Mapping[str, float]:
        """Stored times that the target's clock has not reached, with the seconds until it does.

        A clock was ahead when they were stored, and they count for nothing. The channel's creation is one of them as
        long as an age goes by it.
        """
        goes_by_creation = not self._reached((self.committed, self.complete)) or not self._reached((self.full_at,))
        times = {
            "the commit of the last applied transaction": self.committed,
            "the time up to which the target is complete": self.complete,
            "the channel's creation": self.created if goes_by_creation else None,
            "the last run": self.ran_at,
            "the last verification": self.compared_at,
            "the last verification of all rows": self.full_at,
            "the last drill that found everything equal": self.drilled_at,
            "the oldest change that is not verified": self.unverified_since,
            "the oldest change that is not compared": self.uncovered_since,
            "the oldest pending row": self.pending_since,
        }
        return {what: time - self.clock for what, time in times.items() if time is not None and self.is_ahead(time)}

    def _reached(self, times: Iterable[float | None]) -> list[float]:
        """Those of the times that the target's clock has reached."""
        return [time for time in times if time is not None and not self.is_ahead(time)]

    def is_ahead(self, time: float) -> bool:
        """Whether a time is from a clock that was ahead of what the target's says now."""
        return time > self.clock + CLOCKS_DIFFER

    @property
    def unverified(self) -> float:
        """Seconds for which an applied change has not been verified; 0 if all of them have been."""
        return 0.0 if self.unverified_since is None else max(0.0, self.clock - self.unverified_since)

    @property
    def uncovered(self) -> float:
        """Seconds for which an applied change has not been compared; 0 if all of them have been."""
        return 0.0 if self.uncovered_since is None else max(0.0, self.clock - self.uncovered_since)

    @property
    def pending_age(self) -> float:
        """Seconds for which the oldest of the pending rows has been known to differ; 0 if there is none."""
        return 0.0 if self.pending_since is None else max(0.0, self.clock - self.pending_since)

    @property
    def full_age(self) -> float:
        """Seconds since all rows were compared; before the first time since the channel was created."""
        return max(0.0, self.clock - max(self._reached((self.full_at,)), default=self.created))

    @property
    def drill_age(self) -> float:
        """Seconds since a drill has found everything equal; before the first since the channel was created."""
        return max(0.0, self.clock - max(self._reached((self.drilled_at,)), default=self.created))

    @property
    def is_between_steps(self) -> bool:
        """Somebody has worked on the open window a moment ago: a run has ended one step and not begun the next."""
        return self.window is not None and self.window.quiet <= ALIVE_SECONDS and self.error is None

    @property
    def is_applying(self) -> bool:
        """A run reads the log, lanes apply the open window, or a run of the DAG that applies windows is worked on."""
        reads = self.stage is not None and self.stage.step is RunStep.EXTRACT
        applies = self.window is not None and self.window.is_applied
        return reads or applies or (self.runs is not None and self.runs.is_applying)


def facts_of(snapshot: Snapshot, channel: ChannelConfig, runs: AirflowRuns | None) -> Facts:
    """What the target says of a channel, and Airflow of its runs."""
    status = snapshot.status
    mark, error = status.channel.watermark, snapshot.standing_error
    return Facts(
        channel=channel.name,
        clock=snapshot.clock,
        created=snapshot.created_at,
        seqno=mark.seqno,
        committed=mark.source_time or None,
        complete=snapshot.complete_through,
        stopped=status.channel.stopped,
        window=_open_window(snapshot),
        error=None if error is None else _lane_stop(snapshot, error),
        drifted=status.drifted,
        pending=status.suspects.get(PENDING, 0),
        is_comparable=channel.source.connection is not None,
        verified=min(snapshot.covered.through, mark.seqno),
        unverified_since=snapshot.unverified_since,
        full_at=snapshot.full_at,
        compared_at=snapshot.compared_at,
        ran_at=_ran_at(snapshot),
        runs=runs,
        stage=stage_of(snapshot, WindowFolders(channel.work.uri, channel.name)),
        unshown=status.unshown,
        uncovered_since=snapshot.uncovered_since,
        pending_since=snapshot.pending_since,
        is_drilled=channel.drill.base is not None,
        drilled=None if snapshot.drills is None else snapshot.drills.state,
        drilled_at=snapshot.drilled_at,
        unproved=() if snapshot.drills is None else tuple(map(str, snapshot.drills.unproved)),
        crashed=snapshot.covered.crashed,
        is_continuous=channel.window.is_continuous,
    )


def _ran_at(snapshot: Snapshot) -> float | None:
    """When the newest window ended, or a later run found nothing: the later one that the clock has reached."""
    newest = next((past.finished_at for past in snapshot.history if past.finished_at is not None), None)
    found = [time for time in (snapshot.complete_at, newest) if time is not None]
    return max((time for time in found if time <= snapshot.clock + CLOCKS_DIFFER), default=max(found, default=None))


def _lane_stop(snapshot: Snapshot, error: LaneError) -> LaneStop:
    silence = snapshot.silence(error.lane)
    is_retried = silence is not None and snapshot.age(error) - silence > HEARTBEAT_SECONDS
    return LaneStop(error.lane, error.seqno, error.text, error.code, is_retried)


def _open_window(snapshot: Snapshot) -> OpenWindow | None:
    window = snapshot.open_window
    if window is None:
        return None
    silences = [(lane, snapshot.silence(lane.lane)) for lane in snapshot.open_positions]
    # the last heartbeat of a lane that has failed is young, too, but the lane's lease is free
    is_applied = any(
        age is not None
        and age <= ALIVE_SECONDS
        and lane.seqno < window.last_seqno
        and lane.lane in snapshot.status.holders
        for lane, age in silences
    )
    opened = seconds_since(window.created_at, snapshot.clock)
    return OpenWindow(window.window_id, is_applied, min(opened, *(age for _, age in silences if age is not None), inf))
