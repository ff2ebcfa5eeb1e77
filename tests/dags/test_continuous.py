"""A channel whose schedule is "continuous": windows back to back in one task, on real servers."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.dagrun import DagRun

from binlane import airflow_plugin
from binlane.connections import environment_resolver
from binlane.errors import ConfigError
from binlane.health.health import Health, Severity
from binlane.orchestration.airflow import follow_task, replicate_dag
from binlane.orchestration.commands.operate import stop
from binlane.orchestration.commands.run import init
from binlane.servers.engines import engine_of
from binlane.state.records.journal import read_status
from lab.compare import compare
from lab.servers import PrivateServer, private_server
from tests.dags.scene import CHANNEL, ROOT, last_event, last_note, shop, write_channel
from tests.waiting import wait_until

pytestmark = pytest.mark.trial

CONTINUOUS = CHANNEL + '[window]\nschedule = "continuous"\n'
_BUNDLE = "dags-folder"
"""Airflow's own name of the folder of DAGs."""


def test_its_dag_has_one_task_for_windows_and_begins_anew_whenever_it_has_ended(tmp_path: Path) -> None:
    dag = shop(tmp_path, CONTINUOUS)
    assert sorted(dag.task_ids) == ["follow_source", "verify_target"]
    assert (type(dag.timetable).__name__, dag.max_active_runs) == ("ContinuousTimetable", 1)
    assert set(dag.params) == {"verify", "verify_only", "verify_accounts", "lanes", "block_size"}
    assert dag.params.get_param("verify").schema["enum"] == ["none", "slice", "full"]


def test_the_rows_of_windows_whose_folders_are_gone_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r'verify\.after_window: expected "none", "slice" or "full" for a channel with'
    ):
        shop(tmp_path, CONTINUOUS + '[verify]\nafter_window = "window"\n')


class Scene:
    """A source with a table, an empty target, and a channel of the name ``shop`` between them."""

    def __init__(self, source: PrivateServer, target: PrivateServer, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.source, self.target = source, target
        for name, server in (("source", source), ("target", target)):
            url = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/?get_server_public_key=true"
            patch.setenv(f"AIRFLOW_CONN_{name.upper()}", url)
        patch.setenv("BINLANE_WORK", str(folder / "work"))
        self.file = write_channel(folder, text=CONTINUOUS)
        self.dags = self.file.parents[1]
        shutil.copy(ROOT / "dags" / "replicate.py", self.dags)
        init("shop", self.file.parent, "now")
        source.query("CREATE DATABASE a")
        source.query("CREATE TABLE a.t (id INT PRIMARY KEY, v INT)")

    def run(self) -> DagRun:
        """A run of the channel's DAG in this process."""
        bag = DagBag(self.dags, bundle_name=_BUNDLE)
        # a run is one of a registered DAG
        DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
        sync_bag_to_db(bag, _BUNDLE, None)
        run: DagRun = bag.dags["replicate_shop"].test()
        return run

    @property
    def seqno(self) -> int:
        return read_status(engine_of(environment_resolver()("target")), "shop").channel.watermark.seqno


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata_database: None) -> Iterator[Scene]:
    with (
        private_server(tmp_path / "source", name="source", durable=False) as source,
        private_server(tmp_path / "target", name="target", durable=False) as target,
    ):
        yield Scene(source, target, tmp_path, monkeypatch)


@contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """``act`` in a thread while a run goes on; the run then ends as if its task were told to."""

    def until_end() -> None:
        try:
            act()
        finally:
            replicate_dag._INTERRUPTED.set()

    thread = threading.Thread(target=until_end)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        replicate_dag._INTERRUPTED.clear()


class _EndAtFirstPause(threading.Event):
    """A run that is told to end as soon as it has nothing to do, however long a busy machine takes until then."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


def test_a_run_takes_windows_as_the_source_writes_and_tells_the_last_watermark(scene: Scene) -> None:
    def write() -> None:
        for number in range(3):
            before = scene.seqno
            scene.source.query(f"INSERT INTO a.t VALUES ({number}, 1)")
            wait_until(lambda: scene.seqno > before)  # noqa: B023 -- called in this turn alone

    with beside(write):
        run = scene.run()
    assert str(run.state) == "success"
    assert compare(scene.source, scene.target).differences == ()
    assert last_event().extra["seqno"] == scene.seqno == 5
    said = last_note() or ""
    assert said.startswith(("3 windows; the last: seqno 5 to 5: ", "4 windows; the last: seqno 5 to 5: "))
    assert "\nhealth: " in said


def test_a_run_of_a_stopped_channel_is_skipped_and_one_that_has_nothing_to_do_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside(lambda: wait_until(lambda: scene.seqno == 2)):
        scene.run()
    event = last_event().id
    monkeypatch.setattr(replicate_dag, "_INTERRUPTED", _EndAtFirstPause())
    assert str(scene.run().state) == "success"
    assert last_event().id == event
    assert (last_note() or "").startswith("nothing to apply\n\nhealth: ")
    stop("shop", scene.file.parent, now=True, places={})
    monkeypatch.setattr(replicate_dag, "_INTERRUPTED", _EndAtFirstPause())
    run = scene.run()
    assert {ti.task_id: str(ti.state) for ti in run.get_task_instances()} == {
        "follow_source": "skipped",
        "verify_target": "skipped",
    }
    assert (last_note() or "").startswith("skipped: the channel is stopped\n\nhealth: stopped")


def test_an_error_that_stays_fails_the_run_behind_a_pause(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_task, "LONGEST_PAUSE", 1.0)
    with beside(lambda: wait_until(lambda: scene.seqno == 2)):
        scene.run()
    scene.target.query("DROP TABLE a.t")
    scene.source.query("INSERT INTO a.t VALUES (1, 1)")
    began, told = time.monotonic(), list[Health]()
    monkeypatch.setattr(follow_task, "measure_health", told.append)
    run = scene.run()
    assert str(run.state) == "failed"
    assert [each.severity for each in told] == [Severity.CRITICAL]
    assert time.monotonic() - began > 1
    assert "a.t" in (last_note() or "")


def test_a_run_whose_last_attempt_failed_is_no_success_and_stays_in_sight_while_the_channel_is_stopped(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicate_dag, "_INTERRUPTED", _EndAtFirstPause())
    with monkeypatch.context() as away:
        away.setenv("AIRFLOW_CONN_SOURCE", "mysql://nobody:nothing@127.0.0.1:9/")
        run = scene.run()
    follow = run.get_task_instance("follow_source")
    assert follow is not None
    assert (str(run.state), str(follow.state), follow.try_number) == ("failed", "failed", 1)
    assert "127.0.0.1:9" in (last_note() or "")
    stop("shop", scene.file.parent, now=True, places={})
    monkeypatch.setattr(replicate_dag, "_INTERRUPTED", _EndAtFirstPause())
    assert str(scene.run().state) == "success"
    assert [each.run_id for each in airflow_plugin._runs("replicate_shop").ended] == [run.run_id]
