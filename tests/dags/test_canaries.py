"""What runs under Airflow leave behind: no password of a server in any spelling, Spark's secret in the channel's file
alone, and the values of rows in the work folder alone.

Every file of the site is read (Airflow's database, the work folder, the channel's files), the tasks' output, the state
on the target, and the arguments and environments of Spark's processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lab.airflow import new_airflow
from lab.servers import PrivateServer, private_server
from tests.dags.test_real_window import ROOT, Runs
from tests.integration.window.conftest import run_on
from tests.security.canary import USER, address, files, leaks, make_account
from tests.spark.open_to_all import Onlooker

pytestmark = [pytest.mark.trial, pytest.mark.timeout(2400)]

SPARK: Final = "sp4rksOwnSecret-9fZ"
ROW: Final = "v4lueOfARow-51kW"
CHANNEL: Final = f'"spark.hadoop.fs.s3a.secret.key" = "{SPARK}"\n'


def test_no_run_leaves_a_secret_behind(tmp_path: Path) -> None:
    """A window, one that is refused for a statement with a row's value, and one whose logins are refused."""
    with (
        private_server(tmp_path / "source", name="canary_source", durable=False) as source,
        private_server(tmp_path / "target", name="canary_target", durable=False) as target,
    ):
        for server in (source, target):
            make_account(server)
        run, texts = _site(source, target, tmp_path / "site"), dict[str, bytes]()

        def asked(name: str) -> int:
            done = run("replicate_demo")
            texts[f"output: {name}"] = (done.stdout + done.stderr).encode()
            return done.returncode

        _begin(run)
        run_on(source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v VARCHAR(99))")
        run_on(source, f"INSERT INTO app.t VALUES (1, '{ROW}')")
        with Onlooker() as onlooker:
            assert asked("applied") == 0, texts["output: applied"].decode()[-3000:]
        texts["arguments and environments of Spark"] = b"\0".join(sorted(onlooker.seen))
        assert target.query("SELECT v FROM app.t") == [(ROW,)]
        run_on(source, "SET binlog_format = STATEMENT", f"INSERT INTO app.t VALUES (2, CONCAT('{ROW}', UUID()))")
        assert asked("refused") != 0
        for server in (source, target):
            run_on(server, f"ALTER USER {USER}@'%' IDENTIFIED BY 'another'", log=False)
        assert asked("not logged in") != 0
        texts |= dict(files(run.folder)) | {"state": _state(target)}
    assert USER.encode() in texts["output: not logged in"]
    assert leaks(texts) == []
    assert [name for name, text in texts.items() if SPARK.encode() in text] == ["dags/channels/demo.toml"]
    assert {name.partition("/")[0] for name, text in texts.items() if ROW.encode() in text} == {"work"}


def _site(source: PrivateServer, target: PrivateServer, folder: Path) -> Runs:
    connections = {
        "binlane_demo_source": address(source),
        "binlane_demo_target": address(target),
        "binlane_spark": '{"conn_type": "spark", "host": "local[2]"}',
    }
    for name in ("dags", "shard_list"):
        shutil.copytree(ROOT / name, folder / name)
    with (folder / "dags" / "channels" / "demo.toml").open("a") as file:
        file.write(CHANNEL)
    (folder / "airflow").mkdir()
    extra = {"BINLANE_WORK": str(folder / "work"), "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags")}
    place = new_airflow(folder / "airflow", connections, extra)
    place.run("db", "migrate")
    return Runs({**os.environ, **place.environment()}, folder)


def _begin(run: Runs) -> None:
    begun = subprocess.run(
        [sys.executable, "-c", "from binlane.cli import program; program()", "init", "demo", "--start", "now"],
        env={**run.environment, "BINLANE_CHANNELS": str(run.folder / "dags" / "channels")},
        cwd=run.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert begun.returncode == 0, begun.stdout + begun.stderr


def _state(server: PrivateServer) -> bytes:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'binlane' ORDER BY 1"
    rows = [row for (name,) in server.query(query) for row in server.query(f"SELECT * FROM binlane.{name}")]
    return "\n".join(str(value) for row in rows for value in row).encode()
