"""What a run does with the answers of its steps."""

import contextlib
import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowSkipException

from binlane.bootstrap.first_copy import Options, Outcome
from binlane.errors import (
    BinlaneError,
    PrecheckError,
    StopRequestedError,
    TargetUnavailableError,
)
from binlane.model import LogPosition
from binlane.orchestration.airflow import replicate_dag
from binlane.orchestration.commands.copies import bootstrap
from binlane.orchestration.request import WindowRequest
from binlane.state.channels import Watermark
from binlane.state.records.bootstraps import CopyResult
from tests.dags.scene import HEALTH, ROOT, Run, Steps, last_event, last_note, run_window, shop, stand_in

__all__ = ["run_window"]


def stopped(*_: Any) -> dict[str, Any]:
    raise StopRequestedError("was asked to stop")


def test_a_window_goes_from_the_log_to_the_watermark(run_window: Run) -> None:
    steps = Steps({})
    state, tasks = run_window(steps)
    assert (state, tasks.pop("verify_target"), set(tasks.values())) == ("success", "skipped", {"success"})
    assert {"apply_lane lane 0: a0", "apply_lane lane 1: a1", "apply_lane lane 2: a2"} < set(tasks)
    # as Airflow names who runs dag.test()
    request = WindowRequest("now", by="dag_test, in Airflow")
    assert steps.calls[:2] == [("extract", "source-pw", "disabled", request), ("adopt_plan", "/w/w1")]
    assert sorted(steps.calls[2:5]) == [("apply_lane", "/w/w1/plan.json", lane) for lane in range(3)]
    assert steps.calls[5:] == [("advance", "/w/w1/plan.json")]


@pytest.mark.parametrize(("answer", "confirmed"), [({"empty": True}, "success"), ({"finished": True}, "skipped")])
def test_a_window_with_nothing_to_do_is_a_success_that_skips_the_rest(
    run_window: Run, answer: dict[str, Any], confirmed: str
) -> None:
    steps = Steps(answer)
    state, tasks = run_window(steps)
    assert (state, len(steps.calls)) == ("success", 1)
    assert (tasks.pop("extract_segments"), tasks.pop("confirm_window")) == ("success", confirmed)
    assert set(tasks.values()) == {"skipped"}


def test_a_dry_run_ends_after_the_plan(run_window: Run) -> None:
    steps = Steps({}, lanes=0)
    state, tasks = run_window(steps, dry_run=True)
    assert (state, tasks["adopt_plan"], tasks["advance_watermark"]) == ("success", "success", "skipped")
    assert [call[0] for call in steps.calls] == ["extract", "adopt_plan"]


@pytest.mark.parametrize(
    ("window", "kind", "drift", "expected"),
    [
        pytest.param({}, "window", "2 drift", ("failed", "failed", ["window"]), id="drift"),
        pytest.param({"empty": True}, "full", "", ("success", "success", ["full"]), id="nothing to apply"),
    ],
)
def test_a_window_is_verified_as_the_form_says_and_drift_fails_the_run_behind_its_watermark(
    run_window: Run,
    monkeypatch: pytest.MonkeyPatch,
    window: dict[str, Any],
    kind: str,
    drift: str,
    expected: tuple[str, str, list[str]],
) -> None:
    verified, steps = stand_in(monkeypatch, drift), Steps(window)
    state, tasks = run_window(steps, verify=kind)
    assert (state, tasks["verify_target"], verified.asked) == expected
    assert tasks["advance_watermark"] == ("success" if drift else "skipped")


def test_a_run_of_a_stopped_channel_is_skipped_with_all_its_tasks_and_says_so(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow has no state "skipped" for runs: one whose tasks are all skipped counts as a success."""
    verified, steps = stand_in(monkeypatch), Steps({})
    monkeypatch.setattr(steps, "extract", stopped)
    state, tasks = run_window(steps, verify="full")
    assert (state, verified.asked, steps.calls) == ("success", [], [])
    assert tasks == dict.fromkeys(tasks, "skipped")
    assert last_note() == f"skipped: was asked to stop\n\n{HEALTH}"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("window", ("success", "success", ["window"])), ("none", ("failed", "upstream_failed", []))],
)
def test_a_run_can_verify_alone_a_stopped_channel_too(
    run_window: Run, monkeypatch: pytest.MonkeyPatch, kind: str, expected: tuple[str, str, list[str]]
) -> None:
    verified, steps = stand_in(monkeypatch), Steps({})
    monkeypatch.setattr(steps, "extract", stopped)
    state, tasks = run_window(steps, verify=kind, verify_only=True, dry_run=True)
    assert (state, tasks["verify_target"], verified.asked) == expected
    assert steps.calls == []


@pytest.mark.parametrize(
    ("params", "advanced", "asked"),
    [
        ({"verify": "window"}, {"note": "done"}, ["window"]),
        ({"verify": "full"}, None, ["full"]),
        ({"verify": "none"}, {"note": "done"}, []),
        ({}, {"note": "done"}, []),
        ({"verify": "full", "dry_run": True}, None, []),
        ({"verify": "full"}, {"note": "stopped on request", "is_open": True}, []),
    ],
)
def test_the_target_is_verified_only_when_asked_and_only_behind_a_whole_window(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    params: dict[str, Any],
    advanced: dict[str, Any] | None,
    asked: list[str],
) -> None:
    verified = stand_in(monkeypatch)
    run = SimpleNamespace(conf=params)
    context = {
        "dag": SimpleNamespace(params=params),
        "dag_run": run,
        "params": params,
        "ti": SimpleNamespace(xcom_pull=lambda **_: advanced, xcom_push=lambda *_: None),
    }
    monkeypatch.setattr(replicate_dag, "get_current_context", lambda: context)
    monkeypatch.setattr(replicate_dag, "endpoints_of", lambda _: None)
    task: Any = shop(tmp_path).get_task("verify_target")
    with contextlib.nullcontext() if asked else pytest.raises(AirflowSkipException):
        task.python_callable()
    assert verified.asked == asked


@pytest.mark.parametrize(
    ("error", "tries", "state"), [(None, 1, "success"), (TargetUnavailableError("gone"), 2, "success"),
                                  (PrecheckError("not empty"), 1, "failed")],
)  # fmt: skip
def test_a_first_copy_is_one_order_that_is_tried_again_where_that_can_help(
    metadata_database: None,
    monkeypatch: pytest.MonkeyPatch,
    error: BinlaneError | None,
    tries: int,
    state: str,
) -> None:
    asked: list[Options] = []
    mark = Watermark(0, LogPosition("b.000001", 4), "0-1-7", 1.5, "f")

    def first_copy(channel: Any, endpoints: Any, options: Options, told: bootstrap.LogLines, by: str | None) -> Outcome:
        asked.append(options)
        told.phase("checks")
        if error is not None and len(asked) == 1:
            raise error
        result = CopyResult(1, 2, 0, 10, 0, 0, (), len(asked), (options.databases, options.users))
        return Outcome("demo", mark, result)

    monkeypatch.setattr(bootstrap, "first_copy", first_copy)
    dag = DagBag(ROOT / "dags").dags["bootstrap_demo"]
    for task in dag.tasks:
        task.retry_delay = dt.timedelta(0)
    conf = {"databases": "tenant_*, shop", "users": True, "replace": True, "jobs": 2}
    run = dag.test(run_conf=conf)
    assert (str(run.state), len(asked)) == (state, tries)
    order = f"bootstrap_demo {run.run_id}"
    expected = Options(("tenant_*", "shop"), users=True, replace=True, jobs=2, order=order)
    assert asked == [expected] * tries
    if state == "success":
        assert last_event().extra == {"seqno": 0, "gtid": "0-1-7", "time": 1.5, "window": None}


def test_a_window_that_has_a_plan_keeps_it(run_window: Run) -> None:
    steps = Steps({"plan": "/w/w1/plan.json"})
    state, tasks = run_window(steps, filter_runs=True)
    assert (state, tasks["event_metadata_filter"], tasks["adopt_plan"]) == ("success", "skipped", "success")
    assert steps.calls[-1] == ("advance", "/w/w1/plan.json")
