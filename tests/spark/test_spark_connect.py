"""The plan job on a real Spark Connect server, whose session stays from window to window."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from binlane.config import ChannelConfig, load_channel
from binlane.errors import PlanError, SparkServerError
from binlane.orchestration.plan_job.engines import PLAN_ENGINES
from binlane.spark_engine import plan_on_server
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.spark_connect import private_connect_server
from tests.spark.filter_task import Told, task
from tests.spark.test_event_metadata_filter import fill, outcome

pytestmark = [
    pytest.mark.trial,
    pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH: no Spark to test with"),
]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


def connection(remote: str) -> str:
    """Airflow's connection of a server's URL."""
    place, _, token = remote.removeprefix("sc://").partition("/;token=")
    host, _, port = place.partition(":")
    return json.dumps({"conn_type": "spark_connect", "host": host, "port": int(port), "password": token})


@pytest.fixture
def channel(tmp_path: Path) -> ChannelConfig:
    file = tmp_path / "channels" / "orders.toml"
    file.parent.mkdir()
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n[spark]\nconnection = "made_up_server"\n')
    return load_channel(file, {})


def test_windows_in_turn_get_the_same_files_as_here(
    tmp_path: Path, remote: str, channel: ChannelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = WorkFolder(str(tmp_path / "here"))
    fill(here, reduce="window")
    run_plan_job(here, InProcess())
    expected = outcome(tmp_path / "here")
    monkeypatch.setenv("AIRFLOW_CONN_MADE_UP_SERVER", connection(remote))
    for name in ("first", "second"):
        folder, told = WorkFolder(str(tmp_path / name)), Told()
        fill(folder, reduce="window")
        task(channel, folder.uri).execute(told.context)
        assert outcome(tmp_path / name) == expected
        assert told.values["engine"] == "spark, Spark Connect"
    monkeypatch.setenv("SPARK_REMOTE", remote)
    folder = WorkFolder(str(tmp_path / "by the command line"))
    fill(folder, reduce="window")
    PLAN_ENGINES["spark"](channel, folder)
    assert outcome(tmp_path / "by the command line") == expected


def test_an_executor_s_error_fails_the_task_at_once(
    tmp_path: Path, remote: str, channel: ChannelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    fill(folder)
    segment = tmp_path / "work" / "segments" / "000018.binlog"
    segment.write_bytes(segment.read_bytes()[:-9] + bytes(9))
    monkeypatch.setenv("SPARK_REMOTE", remote)
    with pytest.raises(PlanError, match=r"^\S+000018.binlog: expected BLAKE3 .* it reads the same\S*"):
        PLAN_ENGINES["spark"](channel, folder)
    monkeypatch.setenv("AIRFLOW_CONN_MADE_UP_SERVER", connection(remote))
    with pytest.raises(AirflowFailException, match=r"^PlanError: \S+000018.binlog: "):
        task(channel, folder.uri).execute(Told().context)


def test_a_private_server_runs_nothing_of_another_account_of_the_machine(tmp_path: Path, remote: str) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    fill(folder)
    place = remote.partition("/;")[0]
    for other in (place, f"{place}/;token=another"):
        with pytest.raises(SparkServerError, match=r"authentication token|UNAUTHENTICATED"):
            plan_on_server(other, folder, "orders")


def test_a_server_that_does_not_answer_is_tried_again_and_its_token_is_not_shown(
    tmp_path: Path, channel: ChannelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    fill(folder)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1/;token=secret")
    with pytest.raises(SparkServerError, match=r"^Spark Connect server sc://127\.0\.0\.1:1: .* refused") as raised:
        PLAN_ENGINES["spark"](channel, folder)
    assert raised.value.retryable
    assert "secret" not in str(raised.value)


def test_the_task_runs_the_job_in_processes_of_its_own(tmp_path: Path, channel: ChannelConfig) -> None:
    here, there, told = WorkFolder(str(tmp_path / "here")), WorkFolder(str(tmp_path / "there")), Told()
    for folder in (here, there):
        fill(folder)
    run_plan_job(here, InProcess())
    task(channel, there.uri, "local").execute(told.context)
    assert outcome(tmp_path / "there") == outcome(tmp_path / "here")
    assert told.values["engine"].startswith("local, on ")
