"""What Airflow has of a channel: the runs that its health is computed from, and whether Airflow works on them."""

from __future__ import annotations

from typing import Final

from binlane.lazy_dataclass import dataclass

_QUIET_SECONDS: Final = 900.0
"""A run whose tasks show no sign of life for longer waits for somebody: Airflow itself ends a task without heartbeats
after 5 minutes (`task_instance_heartbeat_timeout`), and one that no worker takes after 10 (`task_queued_timeout`)."""
_TASK_SECONDS: Final = 60.0
"""A task's supervisor writes a heartbeat every few seconds."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a channel's DAG. Times are Airflow's, in seconds since the epoch."""

    run_id: str
    state: str
    started_at: float | None
    ended_at: float | None
    failed_tasks: tuple[str, ...] = ()
    applies: bool = True
    """False: it only verifies, or is a dry run."""
    error: str = ""
    """The first lines of the error of a failed task; empty: none was stored."""


@dataclass(frozen=True, slots=True)
class AirflowRuns:
    """Airflow's runs of a channel's DAG."""

    is_paused: bool = False
    ended: tuple[Run, ...] = ()
    """The newest ended run that applies windows; before it the newest failed one that only verifies, if that is newer.
    No other run says anything: a dry run applies nothing, one whose end the watermark had passed before reads nothing,
    and a successful verification proves nothing of windows."""
    active: Run | None = None
    """The newest queued or running one: of those that apply windows, if there is one."""
    silent: float | None = None
    """Seconds since an active run or one of its tasks has shown a sign of life; None: not known."""
    scheduler_silent: float | None = None
    """Seconds since the scheduler's last heartbeat, infinite if there was none; None: it is alive, or nobody has
    asked."""
    clock: float | None = None
    """The time of the machine that has asked Airflow, in seconds since the epoch; None: that of the target."""

    @property
    def is_worked_on(self) -> bool:
        """Whether tasks of the active run work, or will without anybody's help. Airflow starts no task of a paused DAG,
        not even of a run that has begun; tasks that still work show by their lanes' heartbeats."""
        if self.active is None or self.is_paused:
            return False
        return self.silent is None or self.silent <= (
            _QUIET_SECONDS if self.scheduler_silent is None else _TASK_SECONDS
        )

    @property
    def is_applying(self) -> bool:
        """As ``is_worked_on``, of a run that applies windows."""
        return self.is_worked_on and self.active is not None and self.active.applies

    @property
    def last(self) -> Run | None:
        """The run to show: the active one while it applies windows, else the last that says something of them."""
        return next(iter(self.ended), self.active) if not self.is_applying else self.active


def silence(seen: float, clock: float) -> float:
    """Seconds since a sign of life, by a clock that may have been set back since."""
    # whoever parses a DAG loads no driver
    from binlane.state.records.history import seconds_since

    return seconds_since(seen, clock)
