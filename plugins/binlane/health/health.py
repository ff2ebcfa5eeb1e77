"""A channel's health, computed from its facts (docs/monitoring.md, Health). No other place decides a state.

Each rule finds one state or none. The order of the rules is the precedence of the states.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum, StrEnum
from math import isinf
from typing import Final

from binlane.errors import SAME_AS_ABOVE
from binlane.health.airflow_runs import Run
from binlane.health.channel_facts import VERIFY_TASK, Facts, Limits
from binlane.health.durations import span
from binlane.health.unshown import told, ways_out
from binlane.health.ways_out import way_out
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.state.records.drills import EQUAL, unproved_text
from binlane.state.records.journal import WHOLE_WINDOW

QUIET_SECONDS: Final = 900.0
"""A window that nobody has worked on for longer is worth a warning; shorter, a run may be between two steps."""

_PLACE: Final = re.compile(r"channel \S+, window \S+, lane \d+, (seqno \S+, (?:GTID \S+, )?source \S+): ")
"""Of a lane's error, in front of its cause."""
_FINDINGS: Final = 3
"""Of a refusal, in the line of a state; the error itself has all."""


class State(StrEnum):
    """What holds of a channel; the most serious comes first."""

    UNREACHABLE = "unreachable"
    """The target cannot be read, or the channel's file is wrong."""
    NEW = "new"
    """The channel is not on the target, or its first copy has not ended."""
    FAILED = "failed"
    """The open window or Airflow's last run has failed, and nothing has succeeded since."""
    DRIFTED = "drifted"
    """Rows or definitions are known to differ."""
    BEHIND = "behind"
    """What the target is known to hold is older than `alert.max_age`."""
    STALLED = "stalled"
    """Airflow does not work: its scheduler shows no sign of life, or no task of the active run does."""
    STOPPING = "stopping"
    """Somebody has requested a stop, and lanes still work."""
    STOPPED = "stopped"
    """As requested; runs apply nothing until the channel is resumed."""
    UNVERIFIED = "unverified"
    """A change has not been verified for longer than `alert.max_unverified`, or all rows for longer than
    `alert.max_full_age`."""
    UNDRILLED = "undrilled"
    """Drills are configured, and the last one was not good, or is older than `alert.max_drill_age`."""
    UNFINISHED = "unfinished"
    """A window is open and nobody works on it."""
    RUNNING = "running"
    """Lanes apply a window, or a run of the DAG is active."""
    IDLE = "idle"
    """Everything up to the watermark is applied."""


class Severity(IntEnum):
    """The exit codes of monitoring plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One state that holds, what it was found by, and what to do."""

    state: State
    severity: Severity
    text: str
    next_step: str = ""
    """Empty if there is nothing to do."""
    without_values: str | None = None
    """The text for those who may not see rows, statements and accounts. None: the text has none of these."""


@dataclass(frozen=True, slots=True)
class Health:
    """All that holds of a channel."""

    channel: str
    findings: tuple[Finding, ...]
    """At least one, the most serious first."""
    facts: Facts | None
    """None if they could not be read."""

    @property
    def state(self) -> State:
        """The most serious one."""
        return self.findings[0].state

    @property
    def severity(self) -> Severity:
        """The highest."""
        return max(each.severity for each in self.findings)

    @property
    def summary(self) -> str:
        """What is wrong, or else what is right: each state with the first line of what was found."""
        told = [each for each in self.findings if each.severity is not Severity.OK] or self.findings
        return "; ".join(f"{each.state}: {(each.text.splitlines() or [''])[0]}" for each in told)


def health_of(facts: Facts, limits: Limits) -> Health:
    """Every state that holds; ``idle`` if none does."""
    found = [finding for rule in _RULES if (finding := rule(facts, limits)) is not None]
    idle = Finding(State.IDLE, Severity.OK, f"everything up to seqno {facts.seqno:,} is applied")
    return Health(facts.channel, tuple(found) or (idle,), facts)


def unknown(
    channel: str,
    problem: str = "",
    state: State = State.UNREACHABLE,
    step: str = "Correct what the message names.",
    error: Exception | None = None,
) -> Health:
    """Of a channel whose facts could not be read. ``state``: UNREACHABLE or NEW. ``problem``: words of binlane's own,
    without a value. ``error``: why; of its text a reader sees nothing, for it may have an account or a value."""
    if error is None:
        return Health(channel, (Finding(state, Severity.UNKNOWN, problem, step),), None)
    name, before = type(error).__name__, f"{problem}; " if problem else ""
    return Health(channel, (Finding(state, Severity.UNKNOWN, f"{before}{name}: {error}", step, before + name),), None)


def _lane_failed(facts: Facts, _: Limits) -> Finding | None:
    """Until the lane has begun again, whoever else is still at work: the other lanes stop at their next block."""
    error = facts.error
    if error is None or (error.is_retried and facts.is_applying):
        return None
    brief = f"lane {error.lane} stopped at seqno {error.seqno:,}"
    # a list of channels has room for the cause, or for the place, which the brief names already
    place = _PLACE.match(error.text)
    text = f"{brief}: {error.text}" if place is None else f"{brief}: {error.text[place.end() :]} ({place[1]})"
    if error.lane == WHOLE_WINDOW:
        brief = "the window was refused"
        text = f"{brief}: {_cause_first(error.text)}"
    return Finding(State.FAILED, Severity.CRITICAL, text, way_out(error.code), brief)


def _cause_first(text: str) -> str:
    """One line, as a summary has no other: the first findings of a refusal in front of the sentence that counts all."""
    heading, *findings = text.splitlines() or [""]
    if not findings or not heading.endswith(":"):
        return " ".join((heading, *findings))
    told = [each for each in findings if not each.startswith(SAME_AS_ABOVE)]
    return f"{' '.join(told[:_FINDINGS])} ({heading.removesuffix(':')})"


def _run_failed(facts: Facts, _: Limits) -> Finding | None:
    """Only as long as nothing has succeeded since. A failed comparison is superseded by a later one, everything else
    by a later run that finished a window or found nothing to apply."""
    # of a continuous DAG a run is active all the time, whatever becomes of it
    if facts.runs is None or facts.error is not None or (facts.is_applying and not facts.is_continuous):
        return None
    run = next((each for each in facts.runs.ended if _stands(each, facts)), None)
    if run is None:
        return None
    where = f" at {', '.join(run.failed_tasks)}" if run.failed_tasks else ""
    brief = f"the last run in Airflow, {run.run_id}, failed{where}"
    if not run.error:
        step = "The failed task's log has the reason and what to do. Then clear the task, or run the channel again."
        return Finding(State.FAILED, Severity.CRITICAL, brief, step)
    step = "Do what the message says. Then clear the failed task, or run the channel again."
    return Finding(State.FAILED, Severity.CRITICAL, f"{_cause_first(run.error)} ({brief})", step, brief)


def _stands(run: Run, facts: Facts) -> bool:
    """Whether the run has failed, and nothing has succeeded since."""
    if run.state != "failed":
        return False
    only_compared = set(run.failed_tasks) == {VERIFY_TASK}
    if only_compared and facts.drifted:
        return False  # this is why it failed
    since = facts.compared_at if only_compared else facts.ran_at
    if since is None or run.ended_at is None or facts.is_ahead(since):
        return True
    # the target's clock and Airflow's may differ, so each tells how long ago it was
    ago = facts.clock if facts.runs is None or facts.runs.clock is None else facts.runs.clock
    return facts.clock - since >= ago - run.ended_at


def _drifted(facts: Facts, _: Limits) -> Finding | None:
    if not facts.drifted:
        return None
    return Finding(
        State.DRIFTED,
        Severity.CRITICAL,
        f"{plural(facts.drifted, 'row or definition', 'rows or definitions')} known to differ from the source",
        f"`binlane verify {facts.channel} --repair` verifies again, shows what would correct the rows, and asks first.",
    )


def _behind(facts: Facts, limits: Limits) -> Finding | None:
    if not limits.max_age or facts.age <= limits.max_age:
        return None
    text = f"applied up to {span(facts.age)} ago, the limit is {span(limits.max_age)}"
    return Finding(State.BEHIND, Severity.CRITICAL, text, _catch_up(facts))


def _ahead(facts: Facts, _: Limits) -> Finding | None:
    """A clock that was ahead once would hide for as long how old the target is."""
    if not facts.ahead:
        return None
    what, seconds = max(facts.ahead.items(), key=lambda each: each[1])
    text = f"{what} is {span(seconds)} ahead of the target's clock and does not count: a clock was, or is, wrong"
    step = (
        "Compare the clocks of source and target, and correct the wrong one; the next run that applies a transaction, "
        f"or finds none, and the next `binlane verify {facts.channel} --full` store right times."
    )
    return Finding(State.BEHIND, Severity.WARNING, text, step)


def _catch_up(facts: Facts) -> str:
    if facts.stopped is not None:
        return f"`binlane resume {facts.channel}`, then run the channel again."
    if facts.is_applying:
        return "A run is active: look whether the lanes' positions move."
    if facts.runs is not None and facts.runs.is_paused:
        return "Unpause the DAG in Airflow."
    return f"Find out why no run applies windows, or run `binlane run {facts.channel}`."


def _stalled(facts: Facts, _: Limits) -> Finding | None:
    """Not of a paused DAG: nobody expects Airflow to run it."""
    runs = facts.runs
    if runs is None or runs.is_paused:
        return None
    if (silent := runs.scheduler_silent) is not None:
        last = "has never shown a sign of life" if isinf(silent) else f"has shown no sign of life for {span(silent)}"
        text = f"Airflow's scheduler {last}: it begins no run and no task"
        return Finding(State.STALLED, Severity.CRITICAL, text, "Start Airflow's scheduler; its log says why it ended.")
    if runs.active is None or runs.is_worked_on or runs.silent is None:
        return None
    text = f"run {runs.active.run_id} is {runs.active.state}, and no task of it has worked for {span(runs.silent)}"
    step = "Look at the run's tasks in Airflow: does a worker of their queue run, and has their pool a free slot?"
    return Finding(State.STALLED, Severity.WARNING, text, step)


def _stopped(facts: Facts, _: Limits) -> Finding | None:
    if facts.stopped is None:
        return None
    state = State.STOPPING if facts.window is not None and facts.window.is_applied else State.STOPPED
    step = f"`binlane resume {facts.channel}` cancels the stop; the next run then continues."
    return Finding(state, Severity.WARNING, facts.stopped, step)


def _unverified(facts: Facts, limits: Limits) -> Finding | None:
    if not facts.is_comparable:
        return None
    if limits.max_full_age and facts.crashed:
        text = (
            f"the source crashed in {facts.crashed}, and its log may lack transactions that it has (sync_binlog): no "
            "verification has compared all rows since"
        )
        return Finding(State.UNVERIFIED, Severity.WARNING, text, f"`binlane verify {facts.channel} --full`.")
    if limits.max_unverified and facts.unverified > limits.max_unverified >= facts.uncovered and facts.unshown:
        return Finding(
            State.UNVERIFIED,
            Severity.WARNING,
            told(facts.unshown, facts.channel)[0],
            ways_out(facts.unshown, facts.channel),
        )
    if limits.max_unverified and facts.unverified > limits.max_unverified:
        pending = f", {plural(facts.pending, 'row')} pending" if facts.pending else ""
        text = (
            f"changes applied {span(facts.unverified)} ago have not been verified: verified through seqno "
            f"{facts.verified:,} of {facts.seqno:,}{pending}"
        )
        step = f"`binlane verify {facts.channel}`, then, if windows are left, `--full`; or set verify.after_window."
        return Finding(State.UNVERIFIED, Severity.WARNING, text, step)
    if limits.max_pending and facts.pending_age > limits.max_pending:
        text = (
            f"{plural(facts.pending, 'row or definition', 'rows or definitions')} pending, the oldest for "
            f"{span(facts.pending_age)}: different on the target, and perhaps only because the source has changed since"
        )
        step = (
            ways_out(facts.unshown, facts.channel)
            or f"`binlane verify {facts.channel}` behind the next window compares them again."
        )
        return Finding(State.UNVERIFIED, Severity.WARNING, text, step)
    if limits.max_full_age and facts.full_age > limits.max_full_age:
        since = "since the channel was created" if facts.full_at is None else "since the last full verification"
        text = f"no verification has compared all rows for {span(facts.full_age)}, {since}"
        step = f"`binlane verify {facts.channel} --full`; for a large target in slices (`--for`, verify.after_window)."
        return Finding(State.UNVERIFIED, Severity.WARNING, text, step)
    return None


def _undrilled(facts: Facts, limits: Limits) -> Finding | None:
    if not facts.is_drilled or not limits.max_drill_age:
        return None
    said = [f"the last drill was not good: {facts.drilled}"] if facts.drilled not in (None, EQUAL) else []
    said += [unproved_text(facts.unproved)] if facts.unproved else []
    if said:
        step = (
            f"`binlane drill {facts.channel} --list --json` says what differs, or what is wrong with the archive; the "
            "next drill without --seed restores these databases first."
        )
        return Finding(State.UNDRILLED, Severity.WARNING, "; ".join(said), step)
    if facts.drill_age <= limits.max_drill_age:
        return None
    since = "since the channel was created" if facts.drilled_at is None else "since the last good drill"
    text = f"no drill has proved that restores work for {span(facts.drill_age)}, {since}"
    return Finding(State.UNDRILLED, Severity.WARNING, text, f"`binlane drill {facts.channel}`.")


def _unfinished(facts: Facts, _: Limits) -> Finding | None:
    window = facts.window
    if window is None or facts.is_applying or facts.is_between_steps or facts.stopped is not None:
        return None
    severity = Severity.WARNING if window.quiet > QUIET_SECONDS else Severity.OK
    text = f"window {window.window_id} is open, and nobody has worked on it for {span(window.quiet)}"
    step = f"The next run continues it from the lanes' positions: `binlane run {facts.channel}`."
    return Finding(State.UNFINISHED, severity, text, step)


def _running(facts: Facts, _: Limits) -> Finding | None:
    window, runs = facts.window, facts.runs
    if not facts.is_applying:
        if window is not None and facts.is_between_steps and facts.stopped is None:
            return Finding(State.RUNNING, Severity.OK, f"window {window.window_id}: between two steps of a run")
        if runs is None or runs.active is None or not runs.is_worked_on:
            return None
        return Finding(State.RUNNING, Severity.OK, f"run {runs.active.run_id} is active, and applies no window")
    what = facts.stage.told if facts.stage is not None else "a run is active"
    return Finding(State.RUNNING, Severity.OK, what if window is None else f"window {window.window_id}: {what}")


_RULES: Final[tuple[Callable[[Facts, Limits], Finding | None], ...]] = (
    _lane_failed,
    _run_failed,
    _drifted,
    _behind,
    _ahead,
    _stalled,
    _stopped,
    _unverified,
    _undrilled,
    _unfinished,
    _running,
)
