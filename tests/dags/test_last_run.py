"""Which of Airflow's runs the health is computed from: the newest that says something of windows."""

from __future__ import annotations

import datetime as dt
from math import inf
from typing import Any

import pytest
from airflow.jobs.job import Job
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from sqlalchemy import delete, insert, select, update

from binlane import airflow_plugin
from binlane.errors import DriftError, StopRequestedError
from binlane.health.airflow_runs import AirflowRuns
from tests.dags.scene import Run, Steps, run_window, stand_in

__all__ = ["run_window"]


def is_stopped(*_: Any) -> dict[str, Any]:
    raise StopRequestedError("was asked to stop")


def runs() -> AirflowRuns:
    return airflow_plugin._runs("replicate_demo")


def ended() -> list[tuple[str, bool]]:
    return [(run.state, run.applies) for run in runs().ended]


def test_a_run_that_succeeds_and_has_applied_or_asked_nothing_hides_no_earlier_failure(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_lane(*_: Any) -> dict[str, Any]:
        raise DriftError("lane 0, seqno 7: a row is missing")

    failing = Steps({})
    monkeypatch.setattr(failing, "apply_lane", apply_lane)
    assert run_window(failing)[0] == "failed"
    failed = runs().ended
    assert ended() == [("failed", True)]
    assert failed[0].failed_tasks == ("apply_lane",)

    dry = Steps({"dry_run": True})
    monkeypatch.setattr(dry, "adopt_plan", lambda *_: {"plan": None, "lanes": []})
    assert run_window(dry, dry_run=True)[0] == "success"
    assert runs().ended == failed

    stopped = Steps({})
    monkeypatch.setattr(stopped, "extract", is_stopped)
    assert run_window(stopped)[0] == "success"
    assert runs().ended == failed

    # of a backfill, or up to a time that the watermark has passed; also one that verifies besides
    passed = Steps({"window": None, "work": None, "finished": True})
    assert run_window(passed)[0] == "success"
    assert runs().ended == failed
    stand_in(monkeypatch, "")
    assert run_window(passed, verify="full")[0] == "success"
    assert runs().ended == failed

    assert run_window(Steps({}), verify="window", verify_only=True)[0] == "success"
    assert runs().ended == failed

    stand_in(monkeypatch, "2 drift")
    assert run_window(Steps({}), verify="window", verify_only=True)[0] == "failed"
    assert ended() == [("failed", False), ("failed", True)]
    assert runs().ended[1:] == failed

    done = Steps({})
    monkeypatch.setattr(done, "advance", lambda *_: {"note": "done"})
    assert run_window(done)[0] == "success"
    assert ended() == [("success", True)]


def begun(run_id: str, state: DagRunState, **conf: Any) -> None:
    """A run of the DAG that was queued 500 s ago."""
    now = dt.datetime.now(dt.UTC)
    with create_session() as session:
        dag = session.scalars(select(DagRun).where(DagRun.dag_id == "replicate_demo").limit(1)).one()
        run = DagRun(dag_id=dag.dag_id, run_id=run_id, conf=conf, run_type="manual", state=state, run_after=now)
        run.created_dag_version_id = dag.created_dag_version_id
        run.queued_at = now - dt.timedelta(seconds=500)
        session.add(run)


def pause(is_paused: bool) -> None:
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == "replicate_demo").values(is_paused=is_paused))


def test_a_run_that_has_not_ended_hides_no_earlier_failure(run_window: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Steps({})
    monkeypatch.setattr(failing, "extract", lambda *_: 1 / 0)
    assert run_window(failing)[0] == "failed"
    pause(False)
    failed = runs().ended
    assert [run.state for run in failed] == ["failed"]
    for number in range(2 * airflow_plugin._BATCH):
        begun(f"dry_{number}", DagRunState.SUCCESS, dry_run=True)
    begun("verifies", DagRunState.QUEUED, verify="window", verify_only=True)
    found = runs()
    assert (found.ended, found.is_worked_on, found.is_applying) == (failed, True, False)
    assert found.last == failed[0]
    begun("applies", DagRunState.QUEUED)
    begun("verifies_later", DagRunState.QUEUED, verify="window", verify_only=True)
    found = runs()
    assert found.active is not None
    assert (found.ended, found.active.run_id, found.is_applying) == (failed, "applies", True)
    assert found.silent is not None
    assert 499 < found.silent < 899
    pause(True)
    assert (runs().is_paused, runs().is_worked_on, runs().last) == (True, False, failed[0])


@pytest.mark.usefixtures("metadata_database")
def test_the_scheduler_is_dead_by_airflow_s_own_limit() -> None:
    def heartbeat(seconds: float) -> None:
        with create_session() as session:
            session.execute(delete(Job))
            beat = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)
            session.execute(insert(Job).values(job_type="SchedulerJob", state="running", latest_heartbeat=beat))

    with create_session() as session:
        session.execute(delete(Job))
    assert airflow_plugin._scheduler_silent() == inf
    heartbeat(1)
    assert airflow_plugin._scheduler_silent() is None
    heartbeat(3_600)
    silent = airflow_plugin._scheduler_silent()
    assert silent is not None
    assert 3_599 < silent < 3_700
