"""A channel's DAG as data, without Airflow: its steps and their order."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.config import ChannelConfig


def dag_id(channel: str) -> str:
    """The id of a channel's DAG."""
    return f"replicate_{channel}"


def bootstrap_dag_id(channel: str) -> str:
    """The id of the DAG of a channel's first copy."""
    return f"bootstrap_{channel}"


def restore_dag_id(channel: str) -> str:
    """The id of the DAG of a channel's restores."""
    return f"restore_{channel}"


NOTE_KEY: Final = "binlane_note"
"""XCom key of a task's text for the run's note; the plugin writes these texts when the run has ended."""
ERROR_KEY: Final = "binlane_error"
"""As ``NOTE_KEY``, for the error that has ended a task: its result, if it has one, is in the note as well."""
HEALTH_KEY: Final = "binlane_health"
"""As ``NOTE_KEY``, for the channel's health, in one line: of all tasks' the newest is the note's last line."""
LONGEST_NOTE: Final = 4_000
"""Characters of one such text, of which the note shows a part: the scheduler reads it."""


class Kind(StrEnum):
    """Kinds of steps; ``replicate_dag`` has a builder for each."""

    EXTRACT = "extract_segments"
    FILTER = "event_metadata_filter"
    ADOPT = "adopt_plan"
    APPLY = "apply_lane"
    ADVANCE = "advance_watermark"
    VERIFY = "verify_target"
    CONFIRM = "confirm_window"
    FOLLOW = "follow_source"
    """In place of all others but the verification: windows back to back."""


@dataclass(frozen=True, slots=True)
class Step:
    """One task; for ``Kind.APPLY`` one mapped task for each lane."""

    kind: Kind
    retries: int
    after: tuple[Kind, ...] = ()
    runs_after_skip: bool = False
    """Run even if upstream tasks were skipped."""
    doc: str = ""
    timeout: int = 0
    """Seconds that one try may take; 0: no limit."""

    @property
    def task_id(self) -> str:
        """The task's name in the UI."""
        return self.kind.value


RETRIES: Final = 3
"""Retries of every task except the lanes'."""

_DOCS: Final = {
    Kind.EXTRACT: "Reads the source's log from the watermark to the window's end into segments, and numbers its "
    "transactions. Skips the remaining tasks if there is nothing to apply or the window is applied "
    "already; skipped itself if the channel is stopped.",
    Kind.FILTER: "The Spark job: determines each transaction's shard and lane and builds the lanes' blocks and "
    "the plan. Skipped if the window already has a plan: an unfinished window keeps its plan.",
    Kind.ADOPT: "The precheck of source, target and plan; then stores the plan's digest on the target and starts "
    "the lanes. A dry run ends here, with the plan in this task's log.",
    Kind.APPLY: "Applies one lane, block by block; waits for the other lanes at barriers.",
    Kind.ADVANCE: "Moves the watermark to the window's end once every lane has reached it.",
    Kind.VERIFY: "Compares source and target: the window's rows, or all tables, as set in the run's form or the "
    "channel file; skipped if neither sets it. Fails if rows have drifted; the window stays applied.",
    Kind.FOLLOW: "Takes windows back to back for `window.follow_seconds`, each with its own plan, precheck and "
    "watermark; ends behind the window that it has begun. Skipped if the channel is stopped all the time.",
    Kind.CONFIRM: "Always runs, and decides the run's state: fails if a task failed, or if the window is "
    "unfinished although the channel was not stopped, because tasks were skipped or the run was "
    "marked. Writes the channel's health into the run's note. Skipped if the channel is stopped, or "
    "if the window was applied before the run.",
}


def describe(channel: ChannelConfig) -> tuple[Step, ...]:
    """The steps of a window, or of windows back to back, each after its upstream steps."""

    def step(kind: Kind, *after: Kind, retries: int = RETRIES, runs_after_skip: bool = False) -> Step:
        # a verification cannot resume in a task, so with a time limit a long one would never end
        timeout = 0 if kind in (Kind.VERIFY, Kind.FOLLOW) else channel.apply.task_timeout
        return Step(kind, retries, after, runs_after_skip, _DOCS[kind], timeout)

    if channel.window.is_continuous:
        return (step(Kind.FOLLOW, retries=channel.apply.task_retries), step(Kind.VERIFY, Kind.FOLLOW))
    return (
        step(Kind.EXTRACT),
        step(Kind.FILTER, Kind.EXTRACT),
        step(Kind.ADOPT, Kind.FILTER, runs_after_skip=True),
        step(Kind.APPLY, Kind.ADOPT, retries=channel.apply.task_retries),
        step(Kind.ADVANCE, Kind.APPLY),
        step(Kind.VERIFY, Kind.ADVANCE, runs_after_skip=True),
        step(Kind.CONFIRM, Kind.APPLY, Kind.VERIFY),
    )
