"""Restores in a real Airflow: the form is triggered, and the plan approved or rejected, by its REST API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.orchestration.airflow.restore_dag import APPROVE, PLAN, RESTORE
from lab.airflow import VIEWER, PrivateAirflow, new_airflow
from lab.airflow_api import FINAL_STATES, ApiError
from lab.servers import private_server
from lab.site import DAG_FILE
from tests.integration.restore.scene import DATABASE, OTHER, Scene, contents, scene_of
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.waiting import wait_until

DAG_ID: Final = f"restore_{CHANNEL}"
SECONDS: Final = 600.0
"""For Airflow, which takes its time; a test has several waits."""
pytestmark = pytest.mark.timeout(4 * SECONDS)
FORM: Final = {"databases": DATABASE, "base": "one.sql", "before": f"DROP DATABASE {DATABASE}", "restore_as": "back"}
PAUSED: Final = ("awaiting_input", "deferred")
"""States of a task that waits for a person: of Airflow 3.3, and before."""
SETTINGS: Final = {"AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5", "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "True"}


@dataclass(frozen=True, slots=True)
class Site:
    """An Airflow that runs, with a channel whose source has lost a database."""

    airflow: PrivateAirflow
    scene: Scene

    def wait(self, reached: Any) -> None:
        wait_until(reached, seconds=SECONDS, pause=0.5, shown=lambda: self.airflow.log_tail("scheduler", 40))

    def planned(self, **form: Any) -> tuple[str, dict[str, Any]]:
        """A triggered run whose plan waits for a person, and what that person is shown."""
        run_id = self.airflow.api.trigger(DAG_ID, FORM | form)
        details = f"/api/v2/dags/{DAG_ID}/dagRuns/{run_id}/hitlDetails"
        found: list[dict[str, Any]] = []

        def waits() -> bool:
            found[:] = self.airflow.api.call("GET", details)["hitl_details"]
            is_paused = bool(found) and found[0]["task_instance"]["state"] in PAUSED and self.is_known(run_id)
            return is_paused or self.airflow.api.run(DAG_ID, run_id)["state"] in FINAL_STATES

        self.wait(waits)
        assert found, self.error(run_id, PLAN)
        return run_id, found[0]

    def is_known(self, run_id: str) -> bool:
        """Whether the scheduler knows that the task's process has ended. Of an answer before that, Airflow 3.3.2 holds
        that end for one of the task, and fails it; a person takes longer."""
        log = (self.airflow.home / "logs" / "scheduler.log").read_text("utf-8", "replace")
        event = "Received executor event with state success for task instance"
        return any(event in line and APPROVE in line and run_id in line for line in log.splitlines())

    def answer(self, run_id: str, word: str) -> None:
        path = f"/api/v2/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/{APPROVE}/-1/hitlDetails"
        self.airflow.api.call("PATCH", path, {"chosen_options": [word], "params_input": {}})

    def ended(self, run_id: str) -> tuple[str, dict[str, str]]:
        """The run's state, and its tasks'."""
        self.wait(lambda: self.airflow.api.run(DAG_ID, run_id)["state"] in FINAL_STATES)
        tasks = self.airflow.api.task_instances(DAG_ID, run_id)
        for each in tasks:
            if each["state"] == "failed":
                print(self.airflow.api.log(DAG_ID, run_id, each["task_id"], each["try_number"]))  # noqa: T201
        return self.airflow.api.run(DAG_ID, run_id)["state"], {each["task_id"]: each["state"] for each in tasks}

    def error(self, run_id: str, task: str) -> str:
        return self.airflow.api.log(DAG_ID, run_id, task, 1)

    def left(self) -> tuple[set[str], list[Path]]:
        """Databases of the target that a restore may have made, and files of restores."""
        return self.scene.databases(), sorted((self.scene.channel.channels.parent / "restores").glob("*"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with (
        private_server(tmp_path / "source", name="approvals_source", durable=False) as source,
        private_server(tmp_path / "target", name="approvals_target", durable=False) as target,
    ):
        channel = Channel(source, target, tmp_path / "project")
        channel.write_channel(f'[restore]\nbases = ["{channel.project}"]\n')
        dags = channel.channels.parent
        (dags / "binlane.py").write_text(DAG_FILE)
        connections = {name.removeprefix("AIRFLOW_CONN_").lower(): uri for name, uri in channel.environment.items()}
        home = tmp_path / "airflow"
        home.mkdir()
        airflow = new_airflow(home, connections, SETTINGS | {"AIRFLOW__CORE__DAGS_FOLDER": str(dags)})
        try:
            with ThreadPoolExecutor(1) as pool:
                up = pool.submit(airflow.start)
                scene = scene_of(channel)
                up.result()
            airflow.wait_for_dag(DAG_ID)
            yield Site(airflow, scene)
        finally:
            airflow.stop()


def test_a_plan_waits_for_a_person_and_what_is_carried_out_is_that_plan(site: Site) -> None:
    scene, api = site.scene, site.airflow.api
    with pytest.raises(ApiError, match=" 400 "):
        api.trigger(DAG_ID, {**FORM, "log": "another_connection"})
    rejected(site)
    changed(site)
    run_id, asked = site.planned()
    assert (asked["options"], DATABASE in asked["subject"]) == (["Approve", "Reject"], True)
    for said in (f"{DATABASE} as back on target_server", "around the end", f"DROP DATABASE {DATABASE}", "digest"):
        assert said in re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", asked["body"])
    assert asked["params"] == {}
    # who may only read answers for nobody
    viewer = replace(site, airflow=replace_account(site.airflow))
    with pytest.raises(ApiError, match=" 403 "):
        viewer.answer(run_id, "Approve")
    # what comes to the log behind the end is no other plan
    run_on(scene.source, f"INSERT INTO {OTHER}.a (v) VALUES ('later')")
    site.answer(run_id, "Approve")
    assert site.ended(run_id) == ("success", {PLAN: "success", APPROVE: "success", RESTORE: "success"})
    assert contents(scene.channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    digest = api.xcom(DAG_ID, run_id, PLAN)["digest"]
    assert digest in asked["body"]
    assert api.xcom(DAG_ID, run_id, RESTORE)["digest"] == digest
    cleared(site, run_id)


def replace_account(airflow: PrivateAirflow) -> Any:
    """The Airflow as the account sees it that may only read."""

    class Seen:
        api = replace(airflow.api, user=VIEWER, _token=None)

    return Seen()


def rejected(site: Site) -> None:
    run_id, _ = site.planned()
    site.answer(run_id, "Reject")
    assert site.ended(run_id) == ("success", {PLAN: "success", APPROVE: "success", RESTORE: "skipped"})
    assert site.left() == (set(), [])
    assert site.scene.channel.target.query("SHOW DATABASES LIKE 'binlane'") == []


def changed(site: Site) -> None:
    """Between the plan and its approval the name was taken."""
    run_id, _ = site.planned()
    run_on(site.scene.channel.target, "CREATE DATABASE back", log=False)
    site.answer(run_id, "Approve")
    assert site.ended(run_id)[0] == "failed"
    assert "back" in site.error(run_id, RESTORE)
    run_on(site.scene.channel.target, "DROP DATABASE back", log=False)
    assert site.left() == (set(), [])


def cleared(site: Site, run_id: str) -> None:
    """A task that is run again has nothing to do."""
    before = contents(site.scene.channel.target, "back")
    asked = {
        "dry_run": False,
        "only_failed": False,
        "dag_run_id": run_id,
        "task_ids": [RESTORE],
        "reset_dag_runs": True,
    }
    site.airflow.api.call("POST", f"/api/v2/dags/{DAG_ID}/clearTaskInstances", asked)
    assert site.ended(run_id)[0] == "success"
    tries = {task["task_id"]: task["try_number"] for task in site.airflow.api.task_instances(DAG_ID, run_id)}
    assert tries[RESTORE] == 2
    assert contents(site.scene.channel.target, "back") == before
