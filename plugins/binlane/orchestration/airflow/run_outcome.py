"""Decides whether a run has reached its goal. Airflow counts a run whose last tasks are skipped as a success,
whoever skipped them; a run whose window is still open must fail."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from binlane.apply.target_state import target_state
from binlane.choices import VerifyScope
from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.health.health import unknown
from binlane.health.look import look_at
from binlane.lazy_dataclass import dataclass
from binlane.orchestration.airflow.dag_shape import Kind
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints, Resolver
    from binlane.health.health import Health

_FAILED: Final = frozenset(("failed", "upstream_failed"))
_MAPPED: Final = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The results of a run's tasks."""

    states: Mapping[str, str | None]
    """State by task; the name of a mapped task ends in ``_`` and its index, as in Airflow."""
    window: Mapping[str, Any] | None
    """The return value of extract_segments: empty for a stopped channel, and for a run that only verifies."""
    advanced: Mapping[str, Any] | None
    """The return value of advance_watermark."""
    dry_run: bool
    verification: str
    """The requested verification."""
    verifies_only: bool

    def failed(self) -> list[str]:
        """The names of tasks that failed or were marked failed, and of those that were not begun for that."""
        failed = {_task(name) for name, state in self.states.items() if state in _FAILED}
        return sorted(failed - {Kind.CONFIRM.value})

    def first_failed(self) -> list[str]:
        """The same without tasks that were not begun, if there are others."""
        failed = {_task(name) for name, state in self.states.items() if state == "failed"} - {Kind.CONFIRM.value}
        return sorted(failed) or self.failed()

    @property
    def is_of_stopped_channel(self) -> bool:
        """Whether there was nothing to do for the run, because the channel is stopped."""
        return self.window is not None and not self.window and not self.verifies_only

    @property
    def is_passed(self) -> bool:
        """Whether the watermark had passed the run's end before: it has asked the source nothing, and its success says
        nothing of the channel."""
        return bool(self.window) and self.window is not None and bool(self.window["finished"])

    def problem(self) -> str | None:
        """Why the run has not reached its goal; None if it has, or if the window's row on the target has to decide."""
        if failed := self.failed():
            return f"failed or ended early: {', '.join(failed)}"
        if self.is_of_stopped_channel:
            return None
        if self.window is None or not self._is(Kind.EXTRACT, "success"):
            return f"{Kind.EXTRACT.value} ended before it had read the log"
        if self._verification_is_due() and self._is(Kind.VERIFY, "skipped"):
            return f"{Kind.VERIFY.value} was requested but was skipped"
        if self._has_work() and self.dry_run and not self._is(Kind.ADOPT, "success"):
            return f"{Kind.ADOPT.value} ended before it had shown the plan"
        return None

    @property
    def undecided(self) -> str | None:
        """The window whose row on the target decides whether the run has reached its goal."""
        if not self._has_work() or self.dry_run or self._has_advanced():
            return None
        assert self.window is not None
        return str(self.window["window"])

    def _has_work(self) -> bool:
        window = self.window
        return window is not None and bool(window) and not window["empty"] and not window["finished"]

    def _has_advanced(self) -> bool:
        return self.advanced is not None and self._is(Kind.ADVANCE, "success")

    def _verification_is_due(self) -> bool:
        if self.verifies_only:
            return True
        is_open = self.advanced is not None and bool(self.advanced.get("is_open"))
        if not self.window or self.dry_run or is_open:
            return False
        without_window = (VerifyScope.FULL, VerifyScope.SLICE)
        return self.verification in without_window or (self.verification == VerifyScope.WINDOW and self._has_work())

    def _is(self, kind: Kind, state: str) -> bool:
        return self.states.get(kind.value) == state


def _task(name: str) -> str:
    return name if name in set(Kind) else _MAPPED.sub("", name)


def failed_run(run_id: str, tasks: Iterable[str]) -> AirflowRuns:
    """A run that is about to fail at these tasks, as the health sees it."""
    return AirflowRuns(ended=(Run(run_id, "failed", None, None, tuple(tasks)),))


def health_after(channel: ChannelConfig, resolve: Resolver, failed: AirflowRuns | None) -> Health:
    """The channel's health at the end of a run. ``failed``: the run, if it ends so. No error of this look decides the
    run's state."""
    try:
        return look_at(channel, resolve, runs=failed).health
    except Exception as exc:
        return unknown(channel.name, error=exc)


def open_window(channel: str, endpoints: Endpoints, window_id: str) -> str | None:
    """A message about an unfinished window on the target; None if the window is finished."""
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        window = read_window(connection, channel, window_id)
    if window is None:
        return f"window {window_id}: {endpoints.target} does not have it"
    if window.is_finished:
        return None
    bounds = window.bounds
    return (
        f"window {window_id}, seqnos {bounds.first_seqno:,} to {bounds.last_seqno:,}, is unfinished: tasks of "
        "this run were skipped or marked; the next run continues it"
    )
