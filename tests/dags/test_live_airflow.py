"""A real Airflow whose scheduler is killed, whose runs are marked failed and whose form stops and resumes a channel.

Invariants 8, 10 and 11. Rows that the test holds locked on the target keep a window in the middle of its lanes for as
long as is needed: nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.airflow import PrivateAirflow, new_airflow
from lab.airflow_api import FINAL_STATES, ApiError
from lab.servers import PrivateServer, private_server
from lab.traffic import Mix
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SLOW_SCHEDULER = Path(__file__).with_name("slow_scheduler.py")
DAG_ID = f"replicate_{CHANNEL}"
SECONDS = 600.0
"""For Airflow, which takes its time; a test has several waits."""
pytestmark = [pytest.mark.trial, pytest.mark.timeout(4 * SECONDS)]
MIX = Mix(cross_database=0.04, reference=0.03, ddl=0.0, accounts=0.006, statements=0.04)
"""Without DDL: only rows are to wait for the test's locks."""
SETTINGS = {
    # a scheduler that was killed is missed after half a minute, and its tasks after five minutes, by default
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "8",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "2",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
}
ENDED = {"success", "failed", "skipped", "upstream_failed"}
"""States of tasks."""
CHANNEL_FILE = """lock_wait_timeout = 600
[alert]
lag_seconds = 1
[spark]
connection = "binlane_spark"
"""
SPARK_SUBMIT = f"""#!{sys.executable}
import re, sys
from pathlib import Path
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import TOKEN, answer
work, properties = (sys.argv[sys.argv.index(name) + 1] for name in ("--work", "--properties-file"))
run_plan_job(WorkFolder(work), InProcess())
answer(work, re.search(re.escape(TOKEN) + "=(.*)", Path(properties).read_text())[1])
"""
"""Stands for Spark, which takes its time to start; a killed plan job has tests of its own."""


@dataclass(slots=True)
class Site:
    """An Airflow with the DAG of one channel, on servers that hold a finished window."""

    airflow: PrivateAirflow
    channel: Channel

    def wait(self, reached: Callable[[], bool]) -> None:
        """Says what Airflow is at if it is in vain."""
        wait_until(reached, seconds=SECONDS, pause=0.2, shown=self.stand)

    def stand(self) -> str:
        """The tasks of runs that have not ended, their processes, and what the scheduler said last."""
        lines = []
        try:
            for run_id in self.airflow.api.running(DAG_ID):
                lines += [f"--- run {run_id}", *self.tasks(run_id)]
        except ApiError as exc:
            lines.append(f"--- {exc}")
        lines += ["--- processes", *self.airflow.task_commands(), "--- callbacks", self.told()]
        return "\n".join([*lines, "--- scheduler", self.airflow.log_tail("scheduler", 40)])

    def tasks(self, run_id: str) -> list[str]:
        """A line for each of a run's tasks."""
        return [
            f"{task['task_id']} {task['map_index']} {task['state']} try {task['try_number']}"
            for task in self.airflow.api.task_instances(DAG_ID, run_id)
        ]

    def trigger(self, **conf: Any) -> str:
        """Start a run up to the log's present end."""
        return self.airflow.api.trigger(DAG_ID, {"until": "now", **conf})

    def ended(self, run_id: str) -> str:
        """The state in which a run ends; its tasks' are shown if the test fails."""
        self.wait(lambda: self.airflow.api.run(DAG_ID, run_id)["state"] in FINAL_STATES)
        print("\n".join(self.tasks(run_id)))  # noqa: T201
        return str(self.airflow.api.run(DAG_ID, run_id)["state"])

    def states(self, run_id: str) -> set[str]:
        """What the run's tasks are at."""
        return {str(task["state"]) for task in self.airflow.api.task_instances(DAG_ID, run_id)}

    def tries(self, run_id: str) -> int:
        """The most tries that a task of the run has had."""
        return max(int(task["try_number"]) for task in self.airflow.api.task_instances(DAG_ID, run_id))

    def told(self) -> str:
        """What the callbacks of late runs have written."""
        logs = self.airflow.home.rglob(f"executor_callbacks/{DAG_ID}/**/*")
        return "".join(file.read_text() for file in logs if file.is_file())

    def finish(self) -> None:
        """End what a test may have left: its tasks, its run and its window."""
        self.airflow.keep("scheduler")
        for run_id in self.airflow.api.running(DAG_ID):
            self.airflow.api.mark(DAG_ID, run_id, "failed")
            self.ended(run_id)
        self.wait(lambda: self.airflow.tasks() == set())
        if self.channel.status.window is not None or self.channel.status.channel.stopped is not None:
            assert self.ended(self.trigger(resume=True)) == "success"

    @contextlib.contextmanager
    def held(self, seed: int) -> Iterator[str]:
        """A run, in the middle of a window of new traffic: a lane waits inside a block for as long as this lasts."""
        self.channel.traffic(120, seed=seed, mix=MIX, creates=True)
        with locked_rows(self.channel.target) as blocked:
            run_id = self.trigger()
            self.wait(blocked)
            yield run_id


@contextlib.contextmanager
def locked_rows(target: PrivateServer) -> Iterator[Callable[[], bool]]:
    """Lock all rows of a tenant's tables; whether somebody waits for one of them."""
    waiting = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tenant_001'"
    with target.connect() as connection, connection.cursor() as cursor:
        for (name,) in target.query(tables):
            cursor.execute(f"SELECT 1 FROM tenant_001.{name} FOR UPDATE")
        yield lambda: target.query(waiting) != [(0,)]
        connection.rollback()


@pytest.fixture
def site(one_site: Site) -> Iterator[Site]:
    """The site, with no run under way and no window open, whatever the test before has come to."""
    yield one_site
    one_site.finish()


@pytest.fixture(scope="module")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("live")
    with (
        private_server(home / "source", name="live_source", durable=False) as source,
        private_server(home / "target", name="live_target", durable=False) as target,
    ):
        channel = Channel(source, target, home / "project")
        channel.write_channel(CHANNEL_FILE)
        shutil.copy(ROOT / "dags" / "replicate.py", home / "project" / "dags")
        connections = {name.removeprefix("AIRFLOW_CONN_").lower(): value for name, value in channel.environment.items()}
        connections["binlane_spark"] = json.dumps({"conn_type": "spark", "host": "local[2]"})
        (home / "airflow").mkdir()
        submit = home / "programs" / "spark-submit"
        submit.parent.mkdir()
        submit.write_text(SPARK_SUBMIT)
        submit.chmod(0o755)
        places = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "project" / "dags"),
            "PATH": os.pathsep.join([str(submit.parent), os.environ["PATH"]]),
        }
        airflow = new_airflow(home / "airflow", connections, SETTINGS | places)
        try:
            with ThreadPoolExecutor(1) as pool:
                up = pool.submit(started, airflow)
                channel.init()
                channel.traffic(60, tenants=4, mix=MIX, creates=True)
                channel.run()
                up.result()
            yield Site(airflow, channel)
        finally:
            airflow.stop()


def started(airflow: PrivateAirflow) -> None:
    airflow.start()
    airflow.wait_for_dag(DAG_ID)
    airflow.api.unpause(DAG_ID)


def test_a_killed_scheduler_and_its_killed_tasks_leave_a_window_that_the_next_scheduler_ends(site: Site) -> None:
    with site.held(seed=2) as run_id:
        site.airflow.kill("scheduler", and_its_tasks=True)
        assert site.airflow.tasks() == set()
        assert site.airflow.api.run(DAG_ID, run_id)["state"] == "running"
        window = site.channel.status.window
        assert window is not None
        assert window.plan_digest is not None
    site.airflow.launch("scheduler")
    assert site.ended(run_id) == "success"
    site.wait(lambda: f"run {run_id} was queued at" in site.told())
    assert site.channel.status.window is None
    assert site.channel.status.channel.windows == 2
    site.channel.assert_equal()


def test_a_run_that_is_marked_failed_stops_all_its_tasks_and_the_form_stops_at_one_seqno_and_resumes(
    site: Site,
) -> None:
    """Those, too, that have outlived their scheduler while the next one's write beside them."""
    with site.held(seed=3) as run_id:
        site.airflow.kill("scheduler", and_its_tasks=False)
        assert site.airflow.tasks() != set()
        site.airflow.launch("scheduler")
        site.wait(lambda: site.tries(run_id) > 1)
        site.airflow.api.mark(DAG_ID, run_id, "failed")
        site.wait(lambda: site.airflow.tasks() == set())
        window = site.channel.status.window
        assert window is not None
        at = {lane.seqno for lane in site.channel.status.positions}
        assert min(at) < window.bounds.last_seqno
    assert site.ended(run_id) == "failed"
    run_id = site.trigger(stop_at="highest")
    assert site.ended(run_id) == "success"
    status = site.channel.status
    assert {lane.seqno for lane in status.positions} == {max(at)} == {status.channel.watermark.seqno}
    assert status.window is not None
    assert status.window.bounds.window_id == window.bounds.window_id
    run_id = site.trigger(resume=True)
    assert site.ended(run_id) == "success"
    assert site.channel.status.window is None
    assert site.channel.status.channel.stopped is None
    site.channel.assert_equal()


@pytest.mark.parametrize("place", ["judging", "queueing"])
def test_a_mark_that_the_scheduler_writes_over_ends_the_run_all_the_same(
    site: Site, tmp_path: Path, place: str
) -> None:
    """The run is judged, or its next tries are queued, by what was read before the mark."""
    slow = (sys.executable, str(SLOW_SCHEDULER), place, str(tmp_path))
    with site.held(seed=7) as run_id:
        site.airflow.kill("scheduler", and_its_tasks=True)
        site.airflow.launch("scheduler", slow)
        try:
            site.wait((tmp_path / "held").exists)
            site.airflow.api.mark(DAG_ID, run_id, "failed")
        finally:
            (tmp_path / "go").touch()
        # rows are locked: no lane can come to its end
        site.wait(lambda: site.states(run_id) <= ENDED)
        site.wait(lambda: site.airflow.tasks() == set())
        assert site.ended(run_id) == "failed"
        assert site.channel.status.window is not None
    # this scheduler goes on in the next test
    shutil.rmtree(tmp_path)


def test_a_task_whose_supervisor_is_killed_ends_though_it_waits_for_a_lock(site: Site) -> None:
    with site.held(seed=8) as run_id:
        orphans = site.airflow.tasks()
        supervisors = {site.airflow.parent(pid) for pid in orphans}
        for pid in supervisors:
            os.kill(pid, signal.SIGKILL)
        site.wait(lambda: not orphans & site.airflow.tasks())
        window = site.channel.status.window
        assert window is not None
        assert min(lane.seqno for lane in site.channel.status.positions) < window.bounds.last_seqno
    # what was not heard of is tried again
    assert site.ended(run_id) == "success"
    assert site.channel.status.window is None
    site.channel.assert_equal()


@pytest.mark.parametrize(
    ("breaks", "typed"),
    [
        pytest.param("ALTER TABLE tenant_001.orders ADD extra INT", "DROP COLUMN extra", id="a column was added"),
        pytest.param("DROP TABLE tenant_001.orders", "recopy", id="a table was dropped"),
    ],
)
def test_cleared_tasks_go_on_behind_what_the_message_names(site: Site, breaks: str, typed: str) -> None:
    channel = site.channel
    channel.traffic(40, tenants=4, seed=31, mix=MIX, creates=True)
    run_on(channel.target, "SET SESSION foreign_key_checks = 0", breaks, log=False)
    run_id = site.trigger()
    assert site.ended(run_id) == "failed"
    note = re.sub(r"\\(?=[^\w\s])", "", site.airflow.api.run(DAG_ID, run_id)["note"])
    if typed == "recopy":
        step = re.search(r"`binlane (recopy [^`]+)`", note)
        assert step is not None
        assert channel.cli(*step[1].split(), "--yes") == 0
    else:
        step = re.search(r"on the target: (ALTER TABLE .+?) \[", note)
        assert step is not None
        assert typed in step[1].replace("`", "")
        run_on(channel.target, step[1], log=False)
    cleared = {"dry_run": False, "only_failed": True, "dag_run_id": run_id, "reset_dag_runs": True}
    site.airflow.api.call("POST", f"/api/v2/dags/{DAG_ID}/clearTaskInstances", cleared)
    assert site.ended(run_id) == "success"
    assert channel.status.window is None
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    channel.assert_equal()


def test_the_boards_verification_is_a_run_that_applies_nothing(site: Site) -> None:
    site.channel.traffic(20, tenants=4, seed=4, mix=MIX, creates=True)
    before = site.channel.status.channel
    asked = site.airflow.api.call("POST", f"/binlane/api/channels/{CHANNEL}/verify", {"full": True})
    (run_id,) = re.findall(r"run (\S+) of", asked["message"])
    assert site.ended(run_id) == "success"
    found = site.airflow.api.xcom(DAG_ID, run_id, "verify_target")
    # what was written since is pending
    assert (found["kind"], found["state"], found["through_seqno"]) == ("full", "pending", before.watermark.seqno)
    note, health = site.airflow.api.run(DAG_ID, run_id)["note"].split("\n\nhealth: ")
    assert (note, health.partition(":")[0]) == (found["note"], "idle")
    after = site.channel.status
    assert (after.channel.watermark, after.channel.windows) == (before.watermark, before.windows)
    assert after.window is None


def test_a_window_that_a_shell_has_applied_is_an_event_of_the_channels_asset(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, api = site.channel, site.airflow.api
    file = channel.channels / f"{CHANNEL}.toml"
    text = file.read_text()
    scheme, _, place = api.url.partition("://")
    monkeypatch.setitem(channel.environment, "AIRFLOW_CONN_SITE", f"{scheme}://{api.user}:{api.password}@{place}/")
    channel.traffic(20, tenants=4, seed=91, mix=MIX, creates=True)
    try:
        file.write_text(f'{text}\n[announce]\nairflow = "site"\n')
        assert channel.cli("run", CHANNEL, "--engine", "local") == 0
    finally:
        file.write_text(text)
    mark = channel.status.channel.watermark
    [event, *_] = api.call("GET", "/api/v2/assets/events?limit=1&order_by=-timestamp")["asset_events"]
    assert (event["name"], event["extra"]["seqno"]) == (f"binlane_{CHANNEL}", mark.seqno)
    assert event["extra"]["gtid"] == mark.gtid_set
