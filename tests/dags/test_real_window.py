"""`airflow dags test` of the demo's DAGs, the first copy's and then the windows': real servers, a real spark-submit.

With one process there are fewer runners than lanes, so a lane that meets a barrier has to carry the others on.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from binlane.connections import environment_resolver
from binlane.servers.engines import engine_of
from binlane.state.records.journal import ChannelStatus, read_status
from lab.airflow import new_airflow
from lab.compare import compare
from lab.servers import PrivateServer, private_server
from lab.traffic import run_traffic
from tests.spark.open_to_all import Onlooker

pytestmark = pytest.mark.trial

ROOT = Path(__file__).parents[2]
SLICES = '\n[verify]\nafter_window = "slice"\nslice_seconds = 1\nrows_per_second = 400\n'


def uri(server: PrivateServer) -> str:
    return f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"


def test_airflow_dags_test_makes_the_first_copy_applies_a_whole_window_and_verifies_in_slices(tmp_path: Path) -> None:
    """Invariants 3 and 10: barriers with one runner at a time, and a second run that has nothing to do."""
    with (
        private_server(tmp_path / "source", name="dags_test_source", durable=False) as source,
        private_server(tmp_path / "target", name="dags_test_target", durable=False) as target,
    ):
        run = scene(source, target, tmp_path)
        apply_twice(source, target, run)
        verify_in_slices(target, run)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of DAGs in an Airflow."""

    environment: dict[str, str]
    folder: Path

    def __call__(self, dag_id: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "airflow", "dags", "test", dag_id, *arguments],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def succeed(self, dag_id: str, *arguments: str) -> None:
        done = self(dag_id, *arguments)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    @property
    def status(self) -> ChannelStatus:
        return read_status(engine_of(environment_resolver(self.environment)("binlane_demo_target")), "demo")


def scene(source: PrivateServer, target: PrivateServer, folder: Path) -> Runs:
    """An Airflow whose channel verifies in slices of a second."""
    connections = {
        "binlane_demo_source": uri(source),
        "binlane_demo_target": uri(target),
        "binlane_spark": '{"conn_type": "spark", "host": "local[2]"}',
    }
    for name in ("dags", "shard_list"):
        shutil.copytree(ROOT / name, folder / name)
    with (folder / "dags" / "channels" / "demo.toml").open("a") as file:
        file.write(SLICES)
    (folder / "airflow").mkdir()
    extra = {"BINLANE_WORK": str(folder / "work"), "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags")}
    place = new_airflow(folder / "airflow", connections, extra)
    place.run("db", "migrate")
    return Runs({**os.environ, **place.environment()}, folder)


def apply_twice(source: PrivateServer, target: PrivateServer, run: Runs) -> None:
    run_traffic(source.connect, tenants=6, transactions=60, seed=2, threads=2)
    run.succeed("bootstrap_demo", "--conf", '{"users": true}')
    assert run.status.channel.windows == 0
    run_traffic(source.connect, tenants=6, transactions=300, seed=3, threads=2)
    with Onlooker() as onlooker:
        run.succeed("replicate_demo")
    assert onlooker.shows("event_metadata_filter.py")
    assert [text for text in ("AIRFLOW_", source.password, "spark.ui.enabled") if onlooker.shows(text)] == []
    assert set(onlooker.files.values()) == {0o600}
    assert [path for path in onlooker.files if Path(path).exists()] == []
    assert verifications(target) == [("window", "clean"), ("full", "running")]
    run.succeed("replicate_demo")
    comparison = compare(source, target)
    assert comparison.differences == ()
    assert comparison.tables > 6
    assert run.status.window is None
    assert run.status.channel.watermark.seqno > 300
    assert run.status.channel.windows == 1


def verify_in_slices(target: PrivateServer, run: Runs) -> None:
    """Runs without a window go on with the rows, and the slice that ends with drift fails its run."""
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.execute("DELETE FROM tenant_006.customers ORDER BY id LIMIT 1") == 1
    slices = 2
    while (done := run("replicate_demo")).returncode == 0:
        slices += 1
        assert verifications(target).count(("full", "running")) == 1
        assert slices < 9
    assert "tenant_006.customers, primary key id=" in done.stdout + done.stderr
    assert verifications(target).count(("full", "drift")) == 1
    assert run.status.window is None


def verifications(target: PrivateServer) -> list[tuple[Any, ...]]:
    return target.query("SELECT kind, state FROM binlane.verifications ORDER BY id")
