"""How far a channel's window is, from the first byte of log on: the step, its share, and the time that is left."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from binlane.health.durations import span
from binlane.lazy_dataclass import dataclass
from binlane.model import plural, size_text
from binlane.state.records.history import Snapshot, seconds_of, seconds_since
from binlane.state.records.progress import RunStep, StepRow
from binlane.state.window_folders import WindowFolders
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job_progress import plan_progress
from binlane.work.slow_folders import answered_in_time

QUIET_SECONDS: Final = 30.0
"""Extraction writes its progress every two seconds, a lane its heartbeat every five: what is older was left by a run
that has ended."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stage:
    """The step that takes time now."""

    step: RunStep
    text: str
    """What is done of how much."""
    share: float | None
    """From 0 to 1; None: not known."""
    left: float | None
    """Seconds that the step will still take at its rate so far; None: not known."""

    @property
    def told(self) -> str:
        """The text with the time that is left."""
        return self.text if self.left is None else f"{self.text}, {span(self.left)} left"


def stage_of(snapshot: Snapshot, folders: WindowFolders) -> Stage | None:
    """The step that the channel's window is in; None if there is none, or nobody works on it. ``folders``: of the
    channel."""
    row, window = snapshot.step, snapshot.status.window
    if row is None:
        return None
    elapsed = max(0.0, snapshot.clock - seconds_of(row.begun_at))
    if row.step is RunStep.EXTRACT:
        # the window is opened when its log is read
        is_alive = seconds_since(seconds_of(row.updated_at), snapshot.clock) <= QUIET_SECONDS
        return _of_bytes(row, elapsed, "reading the log") if is_alive else None
    if window is None or window.bounds.window_id != row.window_id:
        return None
    if row.step is RunStep.PLAN:
        # a window that was refused waits for somebody
        waits = window.plan_digest is not None or snapshot.standing_error is not None
        return None if waits else _planning(lambda: folders.of(row.window_id, window.bounds.work), row, elapsed)
    done = sum(lane.transactions for lane in snapshot.open_positions)
    text = f"{done:,} of {plural(row.total, 'transaction')} applied"
    share = done / row.total if row.total else None
    # the last heartbeat of a lane that has failed is young, too, but the lane's lease is free
    held = [lane.lane for lane in snapshot.open_positions if lane.lane in snapshot.status.holders]
    ages = map(snapshot.silence, held)
    is_alive = any(age is not None and age <= QUIET_SECONDS for age in ages)
    left = _left(done - row.done, row.total - done, elapsed) if is_alive else None
    return Stage(row.step, text, share, left)


def load_stage(row: StepRow, clock: float) -> Stage:
    """The load of a restore's dump, of which this is the row; ``clock``: that of its server."""
    return _of_bytes(row, max(0.0, clock - seconds_of(row.begun_at)), "loading the dump")


def _of_bytes(row: StepRow, elapsed: float, what: str) -> Stage:
    if not row.total:
        return Stage(row.step, f"{what}: {size_text(row.done)} so far", None, None)
    text = f"{what}: {size_text(row.done)} of {size_text(row.total)}"
    return Stage(row.step, text, min(1.0, row.done / row.total), _left(row.done, row.total - row.done, elapsed))


def _planning(folder: Callable[[], WorkFolder], row: StepRow, elapsed: float) -> Stage:
    segments = plural(row.total, "segment")
    try:
        found = answered_in_time(lambda: plan_progress(folder(), row.total))
    # the file system's library is the site's own: one that is missing or fails costs this figure alone
    except Exception as exc:
        log.warning("%s: the plan job's progress cannot be read", row.window_id, exc_info=exc)
        return Stage(row.step, f"plan job: {segments}, progress not known ({type(exc).__name__})", None, None)
    if found is None:  # the folder is not of this machine
        return Stage(row.step, f"plan job: {segments}, progress not known", None, None)
    if not found.is_scanned:
        return Stage(row.step, f"plan job: scanning {segments}", 0.0, None)
    text = f"plan job: {found.built:,} of {segments} built"
    return Stage(row.step, text, found.share, _left(found.share, 1 - found.share, elapsed))


def _left(done: float, rest: float, elapsed: float) -> float | None:
    return elapsed * max(0.0, rest) / done if done > 0 else None
