"""Every state of a channel, which of two is shown, and that no screen is greener than the facts."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import pytest

from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.health.channel_facts import Facts, LaneStop, Limits, OpenWindow
from binlane.health.health import Health, Severity, State, health_of, unknown
from binlane.health.progress import Stage
from binlane.model import TableKey, size_text
from binlane.state.records.journal import WHOLE_WINDOW
from binlane.state.records.progress import RunStep
from binlane.state.records.verifications import BY_FOREIGN_KEYS, BY_STATEMENTS, Unshown

NOW = 1_000_000.0
DAY = 86_400.0
LIMITS = Limits(max_age=DAY, max_unverified=7 * DAY, max_full_age=31 * DAY, max_pending=DAY, max_drill_age=7 * DAY)
HEALTHY = Facts(
    channel="shop", clock=NOW, created=NOW - 90 * DAY, seqno=131, committed=NOW - 60, complete=None, stopped=None,
    window=None, error=None, drifted=0, pending=0, is_comparable=True, verified=131,
    unverified_since=NOW - DAY, full_at=NOW - DAY, compared_at=NOW - DAY,
    ran_at=NOW - 50, runs=None,
)  # fmt: skip
APPLIED = OpenWindow("w1", is_applied=True, quiet=3.0)
LEFT = OpenWindow("w1", is_applied=False, quiet=60.0)
FORGOTTEN = OpenWindow("w1", is_applied=False, quiet=3_600.0)
ERROR = LaneStop(lane=1, seqno=140, text="DriftError: duplicate entry\nand more", code=1062)
RETRIED = replace(ERROR, is_retried=True)


READING = Stage(RunStep.EXTRACT, "reading the log: 1.0 GiB of 4.0 GiB", 0.25, 180.0)
FILTERING = Stage(RunStep.PLAN, "plan job: 1 of 4 segments built", 0.6, 9.0)


def of(**changes: Any) -> Health:
    return health_of(replace(HEALTHY, **changes), LIMITS)


def run(
    state: str, *failed: str, ended: float | None = NOW - 10, paused: bool = False, applies: bool = True
) -> AirflowRuns:
    if state in ("failed", "success"):
        return AirflowRuns(paused, ended=(Run("r1", state, NOW - 100, ended, failed),))
    return AirflowRuns(paused, active=Run("r2", state, NOW - 5, None, (), applies))


FAILED = run("failed", "extract_segments").ended
RUNNING = Run("r2", "running", NOW - 5, None)
QUEUED = replace(RUNNING, state="queued")
VERIFYING = replace(RUNNING, applies=False)
LONG_AGO = replace(FAILED[0], ended_at=NOW - 3 * 3_600)
NOT_COMPARED = Run("r3", "failed", NOW - 5, NOW - 2, ("verify_target",), applies=False)


def states(health: Health) -> list[str]:
    return [each.state.value for each in health.findings]


@pytest.mark.parametrize(
    ("changes", "expected", "severity"),
    [
        pytest.param({}, ["idle"], 0, id="nothing to do"),
        pytest.param(
            {"committed": None, "created": NOW - 60, "unverified_since": None, "full_at": None}, ["idle"], 0,
            id="a new channel",
        ),
        pytest.param({"window": APPLIED}, ["running"], 0, id="lanes alive"),
        pytest.param({"window": LEFT, "runs": run("running")}, ["running"], 0, id="between two steps of a run"),
        pytest.param({"runs": run("queued")}, ["running"], 0, id="a run that is about to begin"),
        pytest.param({"runs": run("queued", paused=True)}, ["idle"], 0, id="a queued run of a paused DAG waits"),
        pytest.param({"runs": run("success")}, ["idle"], 0, id="the last run ended well"),
        pytest.param({"stage": READING}, ["running"], 0, id="a run outside Airflow that reads the log"),
        pytest.param({"window": LEFT, "stage": FILTERING}, ["unfinished"], 0, id="a plan job that nobody may run"),
        pytest.param({"window": LEFT}, ["unfinished"], 0, id="a window that was just left"),
        pytest.param({"window": replace(LEFT, quiet=0.4)}, ["running"], 0, id="between two steps"),
        pytest.param({"window": FORGOTTEN}, ["unfinished"], 1, id="a window that was left"),
        pytest.param({"stopped": "now, by x", "window": APPLIED}, ["stopping", "running"], 1, id="stopping"),
        pytest.param({"stopped": "now, by x", "window": FORGOTTEN}, ["stopped"], 1, id="stopped inside a window"),
        pytest.param({"stopped": "now, by x", "runs": run("running")}, ["stopped", "running"], 1, id="verified"),
        pytest.param({"committed": NOW - DAY - 1}, ["behind"], 2, id="behind, and nobody runs the channel"),
        pytest.param({"committed": None, "created": NOW - DAY - 1}, ["behind"], 2, id="created, and never run"),
        pytest.param({"committed": NOW - 9 * DAY, "complete": NOW - 60}, ["idle"], 0, id="an idle source that is read"),
        pytest.param(
            {"committed": NOW - 9 * DAY, "complete": NOW - 2 * DAY}, ["behind"], 2, id="an idle source that is not read"
        ),
        pytest.param({"committed": NOW - DAY - 1, "window": APPLIED}, ["behind", "running"], 2, id="behind, running"),
        pytest.param({"committed": NOW - DAY - 1, "stopped": "now"}, ["behind", "stopped"], 2, id="behind, stopped"),
        pytest.param(
            {"committed": NOW - DAY - 1, "runs": run("success", paused=True)}, ["behind"], 2, id="behind, paused"
        ),
        pytest.param({"crashed": "binlog.000120"}, ["unverified"], 1, id="a crash of the source"),
        pytest.param({"crashed": "binlog.000120", "is_comparable": False}, ["idle"], 0, id="nobody to compare with"),
        pytest.param({"drifted": 5_947}, ["drifted"], 2, id="drift"),
        pytest.param({"drifted": 1, "window": APPLIED}, ["drifted", "running"], 2, id="drift while running"),
        pytest.param({"drifted": 1, "stopped": "now"}, ["drifted", "stopped"], 2, id="drift while stopped"),
        pytest.param({"pending": 9}, ["idle"], 0, id="rows that the source has changed since are not known to differ"),
        pytest.param({"window": LEFT, "error": ERROR}, ["failed", "unfinished"], 2, id="a lane failed"),
        pytest.param({"window": APPLIED, "error": ERROR}, ["failed", "running"], 2, id="a lane failed, others work"),
        pytest.param(
            {"window": LEFT, "error": ERROR, "runs": run("running", paused=True)}, ["failed", "unfinished"], 2,
            id="a lane failed, and its run is paused",
        ),
        pytest.param({"window": APPLIED, "error": RETRIED}, ["running"], 0, id="a lane failed and is tried again"),
        pytest.param({"window": LEFT, "error": RETRIED}, ["failed", "unfinished"], 2, id="tried again, and left"),
        pytest.param(
            {"window": LEFT, "error": ERROR, "stopped": "now"}, ["failed", "stopped"], 2, id="a lane failed, stopped"
        ),
        pytest.param({"runs": run("failed", "extract_segments")}, ["failed"], 2, id="a run failed"),
        pytest.param(
            {"runs": run("failed", "extract_segments"), "ran_at": NOW - 5}, ["idle"], 0,
            id="a run failed, and the command line has finished a window since",
        ),
        pytest.param(
            {"runs": run("failed", "extract_segments", ended=None), "ran_at": NOW - 5}, ["failed"], 2,
            id="a run failed, and nobody knows when",
        ),
        pytest.param(
            {"runs": run("failed", "extract_segments"), "compared_at": NOW - 5}, ["failed"], 2,
            id="a verification recovers no window",
        ),
        pytest.param({"runs": run("failed", "verify_target")}, ["failed"], 2, id="a verification failed"),
        pytest.param(
            {"runs": run("failed", "verify_target"), "ran_at": NOW - 5}, ["failed"], 2,
            id="a window recovers no verification",
        ),
        pytest.param(
            {"runs": run("failed", "verify_target"), "compared_at": NOW - 5}, ["idle"], 0,
            id="a verification failed, and a later one did not",
        ),
        pytest.param({"runs": run("failed", "verify_target"), "drifted": 3}, ["drifted"], 2, id="failed by drift"),
        pytest.param(
            {"runs": AirflowRuns(ended=FAILED, active=VERIFYING)}, ["failed", "running"], 2,
            id="a run that verifies hides no failure",
        ),
        pytest.param(
            {"runs": AirflowRuns(ended=FAILED, active=replace(VERIFYING, state="queued"))}, ["failed", "running"], 2,
            id="nor one that will verify",
        ),
        pytest.param(
            {"runs": AirflowRuns(is_paused=True, ended=FAILED, active=QUEUED)}, ["failed"], 2,
            id="a queued run of a paused DAG hides no failure",
        ),
        pytest.param({"runs": AirflowRuns(ended=FAILED, active=QUEUED)}, ["running"], 0, id="a run that tries again"),
        pytest.param(
            {"runs": AirflowRuns(ended=FAILED, active=RUNNING), "is_continuous": True}, ["failed", "running"], 2,
            id="of a continuous DAG a run is always active",
        ),
        pytest.param(
            {"runs": AirflowRuns(ended=(LONG_AGO,), clock=NOW - 3 * 3_600 + 10), "ran_at": NOW - 50}, ["failed"], 2,
            id="a run that failed since, by a clock that is behind the target's",
        ),
        pytest.param(
            {"runs": AirflowRuns(ended=(LONG_AGO,), clock=NOW), "ran_at": NOW - 50}, ["idle"], 0,
            id="a later run ended well",
        ),
        pytest.param(
            {"runs": AirflowRuns(ended=FAILED), "ran_at": NOW + 3_600}, ["failed", "behind"], 2,
            id="a run that ended well while a clock was ahead",
        ),
        pytest.param(
            {"runs": AirflowRuns(ended=(NOT_COMPARED, *FAILED)), "compared_at": NOW}, ["failed"], 2,
            id="a verification that succeeds hides no failure before the one that failed",
        ),
        pytest.param(
            {"runs": AirflowRuns(active=VERIFYING), "window": FORGOTTEN}, ["unfinished", "running"], 1,
            id="a verification finishes no window",
        ),
        pytest.param(
            {"runs": AirflowRuns(active=RUNNING, silent=1_000.0)}, ["stalled"], 1, id="no task of the run works",
        ),
        pytest.param({"runs": AirflowRuns(active=RUNNING, silent=800.0)}, ["running"], 0, id="tasks wait for a retry"),
        pytest.param(
            {"runs": AirflowRuns(ended=FAILED, active=RUNNING, silent=1_000.0)}, ["failed", "stalled"], 2,
            id="a run that no task works for hides no failure",
        ),
        pytest.param(
            {"runs": AirflowRuns(active=RUNNING, silent=100.0, scheduler_silent=100.0)}, ["stalled"], 2,
            id="no scheduler, and a run between two tasks",
        ),
        pytest.param(
            {"runs": AirflowRuns(active=RUNNING, silent=3.0, scheduler_silent=100.0)}, ["stalled", "running"], 2,
            id="no scheduler, and a task that still works",
        ),
        pytest.param(
            {"runs": AirflowRuns(scheduler_silent=inf), "window": APPLIED}, ["stalled", "running"], 2,
            id="no scheduler ever",
        ),
        pytest.param(
            {"runs": AirflowRuns(is_paused=True, active=QUEUED, scheduler_silent=100.0)}, ["idle"], 0,
            id="a paused DAG needs no scheduler",
        ),
        pytest.param({"unverified_since": NOW - 8 * DAY}, ["unverified"], 1, id="a change not verified for long"),
        pytest.param({"unverified_since": None}, ["idle"], 0, id="every change is verified"),
        pytest.param({"unverified_since": None, "full_at": None}, ["unverified"], 1, id="not all rows, ever"),
        pytest.param({"unverified_since": None, "full_at": NOW - 32 * DAY}, ["unverified"], 1, id="not for long"),
        pytest.param(
            {"unverified_since": 0.0, "full_at": None, "is_comparable": False}, ["idle"], 0,
            id="an archive cannot be compared",
        ),
        pytest.param(
            {"unverified_since": 0.0, "window": APPLIED}, ["unverified", "running"], 1, id="unverified, running"
        ),
    ],
)  # fmt: skip
def test_each_state_is_found(changes: dict[str, Any], expected: list[str], severity: int) -> None:
    found = of(**changes)
    assert (states(found), found.severity, found.state) == (expected, severity, expected[0])


def every() -> Iterator[dict[str, Any]]:
    windows = (None, APPLIED, LEFT, FORGOTTEN)
    runs = (None, run("running"), run("success"), run("failed", "apply_lane"), run("failed", "verify_target"))
    for values in product(windows, runs, (0, 3), (None, "now, by x"), (60.0, 2 * DAY), (DAY, None), (None, ERROR)):
        window, last, drifted, stopped, age, equal, error = values
        yield {
            "window": window, "runs": last, "drifted": drifted, "stopped": stopped, "committed": NOW - age,
            "unverified_since": 0.0 if equal is None else NOW - equal, "error": error if window is not None else None,
        }  # fmt: skip


def test_no_screen_is_greener_than_the_facts() -> None:
    """Every combination: what is wrong is named, the worst first, and good only if nothing is wrong."""
    for facts in every():
        found = of(**facts)
        named = set(states(found))
        assert ("drifted" in named) is bool(facts["drifted"])
        assert ("behind" in named) is (facts["committed"] < NOW - DAY)
        assert bool(named & {"stopped", "stopping"}) is (facts["stopped"] is not None)
        assert ("unverified" in named) is (facts["unverified_since"] == 0.0)
        order = list(State)
        assert states(found) == sorted(states(found), key=lambda state: order.index(State(state)))
        severities = [each.severity for each in found.findings]
        assert severities[0] == found.severity == max(severities)
        if found.severity is Severity.OK:
            assert named <= {"idle", "running", "unfinished"}
        for each in found.findings:
            assert each.next_step or each.severity is Severity.OK


def test_an_unreadable_channel_is_never_healthy() -> None:
    for state in (State.NEW, State.UNREACHABLE):
        found = unknown("shop", "the target does not answer", state)
        assert (found.state, found.severity, found.facts) == (state, Severity.UNKNOWN, None)
        assert found.findings[0].next_step


def test_limits_of_zero_ask_for_nothing() -> None:
    facts = replace(HEALTHY, committed=1.0, unverified_since=0.0, full_at=None)
    assert states(health_of(facts, Limits(0, 0))) == ["idle"]


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"stopped": "now"}, "binlane resume shop"),
        ({"window": APPLIED}, "positions move"),
        ({"runs": run("success", paused=True)}, "Unpause the DAG"),
        ({}, "binlane run shop"),
    ],
)
def test_being_behind_says_what_to_do_about_it(changes: dict[str, Any], step: str) -> None:
    assert step in of(committed=NOW - 2 * DAY, **changes).findings[0].next_step


def test_of_a_refusal_with_many_findings_the_first_are_told() -> None:
    """All of them are below, in the error itself."""
    lines = ["PrecheckError: precheck failed: 6 findings; nothing was written:", "a: x", "the same of: b; c"]
    text = "\n".join((*lines, "d: x", "e: x", "f: x"))
    failed = of(window=LEFT, error=LaneStop(WHOLE_WINDOW, 0, text, 0)).findings[0]
    told = "a: x d: x e: x (PrecheckError: precheck failed: 6 findings; nothing was written)"
    assert failed.text == f"the window was refused: {told}"


@pytest.mark.parametrize("gtid", ["GTID 0-11-140, ", "GTID 63c0fb98-ebb8:6249, ", ""])
def test_the_cause_of_an_error_is_told_before_its_place(gtid: str) -> None:
    place = f"seqno 140..140, {gtid}source binlog.000001:33120"
    text = f"channel shop, window 000000000132-560d6b6c, lane 1, {place}: 1050 Table 'audit' already exists"
    failed = of(window=LEFT, error=replace(ERROR, text=text)).findings[0]
    assert failed.text == f"lane 1 stopped at seqno 140: 1050 Table 'audit' already exists ({place})"


def test_an_error_is_told_with_its_way_out() -> None:
    failed = of(window=LEFT, error=ERROR).findings[0]
    assert failed.text == "lane 1 stopped at seqno 140: DriftError: duplicate entry\nand more"
    assert "correct the row" in failed.next_step


def test_a_row_without_its_parent_is_told_with_the_filter_that_may_leave_the_parent_out() -> None:
    failed = of(window=LEFT, error=replace(ERROR, code=1452)).findings[0]
    assert "ALTER TABLE .. DROP FOREIGN KEY on the target, or take both tables" in failed.next_step


def test_what_runs_is_told_with_the_time_that_is_left() -> None:
    assert of(stage=READING).summary == "running: reading the log: 1.0 GiB of 4.0 GiB, 3 min left"
    told = of(window=APPLIED, stage=replace(FILTERING, text="3 of 4 transactions applied", left=None)).summary
    assert told == "running: window w1: 3 of 4 transactions applied"


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (3 << 40, "3.0 TiB")]
)
def test_sizes_are_in_the_largest_unit_that_fits(size: int, text: str) -> None:
    assert size_text(size) == text


UNSHOWN = (
    Unshown(TableKey("crm", "counters"), BY_STATEMENTS, 17, "1970-01-03 00:00:00.000000"),
    Unshown(TableKey("crm", "lines"), BY_FOREIGN_KEYS, 2, "1970-01-04 00:00:00.000000"),
)


def test_rows_that_no_verification_settles_are_named_with_the_cause_and_what_to_do() -> None:
    aged = {"unverified_since": NOW - 8 * DAY, "pending": 19, "unshown": UNSHOWN}
    found = of(**aged)
    assert states(found) == ["unverified"]
    text, step = found.findings[0].text, found.findings[0].next_step
    assert text.startswith("17 rows pending since 1970-01-03 00:00:00 UTC in crm.counters, which statements change")
    assert step.startswith("Log rows instead (binlog_format = ROW on the source)")
    assert "Verify while no parent row is deleted" in step
    # a change that nobody has compared is the worse one
    behind = of(**aged, uncovered_since=NOW - 8 * DAY).findings[0]
    assert "have not been verified" in behind.text
    assert states(of(**aged | {"unverified_since": NOW - DAY})) == ["idle"]


def test_rows_that_stay_pending_are_told_of_after_a_time() -> None:
    assert of(pending=2, pending_since=NOW - DAY + 60).state is State.IDLE
    found = of(pending=2, pending_since=NOW - 2 * DAY)
    assert (found.state, found.severity) == (State.UNVERIFIED, Severity.WARNING)
    assert "2 rows or definitions pending, the oldest for 2 d" in found.findings[0].text
    no_limit = replace(LIMITS, max_pending=0)
    assert health_of(replace(HEALTHY, pending=2, pending_since=NOW - 2 * DAY), no_limit).state is State.IDLE


TIMES = ("committed", "complete", "ran_at", "compared_at", "full_at", "unverified_since", "uncovered_since")


@pytest.mark.parametrize("name", [*TIMES, "pending_since"])
def test_a_time_that_the_clock_has_not_reached_is_a_finding_and_counts_for_nothing(name: str) -> None:
    found = of(**{name: NOW + 30 * DAY})
    [finding] = [each for each in found.findings if "ahead of the target's clock" in each.text]
    assert (finding.state, finding.severity) == (State.BEHIND, Severity.WARNING)
    assert "30 d" in finding.text
    assert of(**{name: NOW + 30}).findings != found.findings, "clocks differ by seconds"


def test_a_channel_is_as_old_as_its_newest_time_that_the_clock_has_reached() -> None:
    ahead = NOW + 30 * DAY
    assert replace(HEALTHY, committed=ahead, complete=NOW - 2 * DAY).age == 2 * DAY
    assert replace(HEALTHY, committed=NOW - 3 * DAY, complete=ahead).age == 3 * DAY
    assert replace(HEALTHY, committed=ahead, complete=None).age == NOW - HEALTHY.created
    assert "behind" in states(of(committed=ahead, complete=NOW - 2 * DAY))
    assert replace(HEALTHY, full_at=ahead).full_age == NOW - HEALTHY.created
    # the creation counts as long as an age goes by it
    assert "behind" in states(of(created=ahead, full_at=None))
    assert "behind" in states(of(created=ahead, committed=None, complete=None))
    assert "behind" not in states(of(created=ahead, full_at=NOW - DAY, committed=NOW - 60, complete=NOW - 60))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["idle"]),
        ({"is_drilled": True}, ["undrilled"]),
        ({"is_drilled": True, "created": NOW - DAY}, ["idle"]),
        ({"is_drilled": True, "drilled": "equal", "drilled_at": NOW - DAY}, ["idle"]),
        ({"is_drilled": True, "drilled": "equal", "drilled_at": NOW - 8 * DAY}, ["undrilled"]),
        ({"is_drilled": True, "drilled": "failed", "drilled_at": NOW - DAY}, ["undrilled"]),
        ({"is_drilled": True, "drilled": "incomplete", "drilled_at": NOW - DAY}, ["undrilled"]),
        (
            {"is_drilled": True, "drilled": "equal", "drilled_at": NOW, "unproved": ("a (failed, drill 3)",)},
            ["undrilled"],
        ),
        ({"is_drilled": False, "drilled": "failed", "unproved": ("a (failed, drill 3)",)}, ["idle"]),
    ],
)
def test_restores_are_to_be_proved_by_drills(changes: dict[str, Any], expected: list[str]) -> None:
    assert states(of(**changes)) == expected
    assert states(health_of(replace(HEALTHY, **changes), Limits(0, 0))) == ["idle"]
