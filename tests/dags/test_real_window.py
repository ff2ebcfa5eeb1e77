"""`airflow dags test` of the demo's DAGs, the first copy's and then the windows': real servers, a real spark-submit.

With one process there are fewer runners than lanes, so a lane that meets a barrier has to carry the others on.
"""

import os
import subprocess
import sys
from pathlib import Path

from binlane.connections import environment_resolver
from binlane.servers.engines import engine_of
from binlane.state.records.journal import read_status
from lab.airflow import new_airflow
from lab.compare import compare
from lab.servers import PrivateServer, private_server
from lab.traffic import run_traffic
from tests.spark.open_to_all import Onlooker

ROOT = Path(__file__).parents[2]


def uri(server: PrivateServer) -> str:
    return f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"


def test_airflow_dags_test_makes_the_first_copy_and_applies_a_whole_window(tmp_path: Path) -> None:
    """Invariants 3 and 10: barriers with one runner at a time, and a second run that has nothing to do."""
    with (
        private_server(tmp_path / "source", name="dags_test_source", durable=False) as source,
        private_server(tmp_path / "target", name="dags_test_target", durable=False) as target,
    ):
        apply_twice(source, target, tmp_path)


def apply_twice(source: PrivateServer, target: PrivateServer, tmp_path: Path) -> None:
    connections = {
        "binlane_demo_source": uri(source),
        "binlane_demo_target": uri(target),
        "binlane_spark": '{"conn_type": "spark", "host": "local[2]"}',
    }
    (tmp_path / "airflow").mkdir()
    place = new_airflow(tmp_path / "airflow", connections, {"BINLANE_WORK": str(tmp_path / "work")})
    environment = {**os.environ, **place.environment()}
    run_traffic(source.connect, tenants=6, transactions=60, seed=2, threads=2)
    place.run("db", "migrate")

    def airflow_runs(dag_id: str, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "dags", "test", dag_id, *arguments],
            env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    airflow_runs("bootstrap_demo", "--conf", '{"users": true}')
    assert read_status(engine_of(environment_resolver(environment)("binlane_demo_target")), "demo").channel.windows == 0
    run_traffic(source.connect, tenants=6, transactions=300, seed=3, threads=2)
    with Onlooker() as onlooker:
        airflow_runs("replicate_demo")
    assert onlooker.shows("event_metadata_filter.py")
    assert [text for text in ("AIRFLOW_", source.password, "spark.ui.enabled") if onlooker.shows(text)] == []
    assert set(onlooker.files.values()) == {0o600}
    assert [path for path in onlooker.files if Path(path).exists()] == []
    airflow_runs("replicate_demo")
    comparison = compare(source, target)
    assert comparison.differences == ()
    assert comparison.tables > 6
    status = read_status(engine_of(environment_resolver(environment)("binlane_demo_target")), "demo")
    assert status.window is None
    assert status.channel.watermark.seqno > 300
    assert status.channel.windows == 1
