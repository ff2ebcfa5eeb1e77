"""A channel's life in an Airflow: the commands of docs/quickstart.md, its schedule, a backfill, and its removal."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import create_engine, inspect, text

from binlane.model import Flavor
from lab.airflow import PrivateAirflow, new_airflow
from lab.airflow_api import FINAL_STATES
from lab.cluster.processes import postgres, postgres_programs
from lab.compare import compare
from lab.servers import PrivateServer, private_server
from lab.traffic import Mix, run_traffic
from tests.dags.test_live_airflow import SPARK_SUBMIT
from tests.dist.test_quickstart import alike, commands_of, on
from tests.waiting import wait_until

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
REMOVAL: Final = (ROOT / "docs" / "install.md").read_text("utf-8").partition("## Remove it\n")[2].partition("\n## ")[0]
DAG_ID: Final = "replicate_shop"
SECONDS: Final = 600.0
"""For Airflow, which takes its time; a test has several waits."""
pytestmark = pytest.mark.timeout(4 * SECONDS)
MIX: Final = Mix(accounts=0.0)
"""The channel that `binlane new` writes leaves accounts alone."""
SETTINGS: Final = {
    # a DAG file that is new is looked for every five minutes, by default
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "True",
    # installed: Airflow finds the plugin by its entry point
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "none"),
}
HISTORY: Final = frozenset({"log", "dag_warning", "alembic_version", "asset", "asset_event", "callback_request", "job"})
"""Airflow's own, which outlives a DAG that is deleted."""
KEPT: Final = HISTORY | {"asset_active"}
"""The last until its scheduler looks for assets that no DAG has any more, each minute."""


@dataclass(frozen=True, slots=True)
class Site:
    """An Airflow that runs, and two servers."""

    airflow: PrivateAirflow
    source: PrivateServer
    target: PrivateServer

    @property
    def dags(self) -> Path:
        return self.airflow.home / "dags"

    def type(self, command: str) -> str:
        """A command in a shell with the environment of the services; what it prints."""
        done = self._typed(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def patiently(self, command: str) -> None:
        """The same for one that Airflow ends while another of its processes has SQLite's database locked."""
        for _ in range(5):
            done = self._typed(command)
            if "database is locked" not in done.stderr:
                break
        # the try before it has written what there is
        assert done.returncode == 0 or "AlreadyRunningBackfill" in done.stderr, done.stderr

    def _typed(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", f"set -eu -o pipefail\n{on(command, self.source, self.target)}"],
            env={**self.airflow.environment(), "COLUMNS": "200"}, cwd=self.airflow.home,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def wait(self, reached: Any) -> None:
        wait_until(reached, seconds=SECONDS, pause=0.5, shown=lambda: self.airflow.log_tail("scheduler", 40))

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.airflow.api.call("GET", f"/api/v2/dags/{dag_id}/dagRuns?limit=100")[
            "dag_runs"
        ]
        return found

    def succeeded(self, dag_id: str) -> None:
        """Wait until no run of the DAG is under way; each has succeeded."""
        self.wait(lambda: (found := self.runs(dag_id)) and {run["state"] for run in found} <= set(FINAL_STATES))
        failed = [run for run in self.runs(dag_id) if run["state"] != "success"]
        assert failed == [], failed

    def unpaused(self, dag_id: str, *, is_paused: bool = False) -> None:
        self.airflow.api.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": is_paused})

    def paused(self, dag_id: str) -> None:
        """Pause it between two runs: one that has begun would not go on."""

        def between() -> bool:
            self.unpaused(dag_id, is_paused=True)
            if is_quiet := all(run["state"] != "running" for run in self.runs(dag_id)):
                return is_quiet
            self.unpaused(dag_id)
            return False

        self.wait(between)

    def windows(self) -> int:
        return int(self.target.query("SELECT windows FROM binlane.channels")[0][0])

    def write(self, seed: int, transactions: int = 60) -> None:
        run_traffic(self.source.connect, tenants=3, transactions=transactions, threads=2, seed=seed, mix=MIX)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param(
            "postgresql", marks=pytest.mark.skipif(postgres_programs() is None, reason="this machine has no PostgreSQL")
        ),
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    home, extra = tmp_path / "airflow", dict[str, str]()
    (home / "dags").mkdir(parents=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "spark-submit").write_text(SPARK_SUBMIT)
    (programs / "spark-submit").chmod(0o755)
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    # PostgreSQL runs under an account of its own
    for folder in (tmp_path, *tmp_path.parents):
        if not (mode := folder.stat().st_mode) & 0o001:
            folder.chmod(mode | 0o011)
    database = None
    if request.param == "postgresql":
        database, extra["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = postgres(tmp_path / "postgresql")
        database.start()
    places = {"AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"), "PATH": path}
    airflow = new_airflow(home, {}, {**SETTINGS, **places, **extra})
    try:
        with (
            private_server(tmp_path / "source", Flavor.MARIADB, name="source", durable=False) as source,
            private_server(tmp_path / "target", Flavor.MARIADB, name="target", durable=False) as target,
            ThreadPoolExecutor(1) as pool,
        ):
            up = pool.submit(airflow.start)
            found = Site(airflow, source, target)
            found.write(seed=1, transactions=200)
            up.result()
            yield found
            airflow.stop()
    finally:
        airflow.stop()
        if database is not None:
            database.stop()


def test_the_page_leads_to_a_schedule_and_a_backfill_and_what_is_removed_is_gone(
    site: Site, request: pytest.FixtureRequest
) -> None:
    commands = dict(commands_of(PAGE.partition("## In Airflow\n")[2].partition("## Then")[0]))
    (installation, *others) = commands
    assert installation.startswith("pip install ")
    accounts = [each for each in dict(commands_of(PAGE)) if "CREATE USER" in each or each.startswith("binlane grants")]
    doctor, copy = others.index("binlane doctor shop"), others.index("airflow dags trigger bootstrap_shop")
    for command in (*others[:doctor], *accounts):
        site.type(command)
    # an hour is long
    channel = site.dags / "channels" / "shop.toml"
    channel.write_text(channel.read_text().replace('"0 * * * *"', '"* * * * *"'))
    said = {alike(line) for line in site.type(others[doctor]).splitlines()}
    assert [line for line in commands[others[doctor]] if alike(line) not in said] == []
    site.airflow.wait_for_dag("bootstrap_shop")
    form = {"databases": "tenant_*, reference", "jobs": 2}
    if "postgresql" in request.node.name:
        # as the form of the trigger button sends it
        site.airflow.api.trigger("bootstrap_shop", form)
    else:
        site.type(others[copy])
    site.succeeded("bootstrap_shop")
    site.write(seed=2)
    site.type(others[copy + 1])
    assert others[copy + 2 :] == []
    site.wait(lambda: site.windows() > 0 and verified(site))
    site.paused(DAG_ID)
    assert equal(site)
    backfilled(site)
    site.paused(DAG_ID)
    removed(site)


def verified(site: Site) -> bool:
    return ("window", "clean") in site.target.query("SELECT kind, state FROM binlane.verifications")


def equal(site: Site) -> bool:
    return [each for each in compare(site.source, site.target).differences if "replicator" not in each] == []


def backfilled(site: Site) -> None:
    """By Airflow's own command, over intervals that windows have passed and one that none has."""
    site.write(seed=3)
    # the last interval has ended, and has what was written
    end = dt.datetime.now(dt.UTC).replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
    site.wait(lambda: dt.datetime.now(dt.UTC) > end)
    first, last = end - dt.timedelta(minutes=2), end - dt.timedelta(minutes=1)
    times = f"--from-date {first.isoformat()} --to-date {last.isoformat()}"
    site.patiently(f"airflow backfill create --dag-id {DAG_ID} {times} --reprocess-behavior completed")
    site.unpaused(DAG_ID)

    def ran() -> list[str]:
        return [run["state"] for run in site.runs(DAG_ID) if run["run_type"] == "backfill"]

    site.wait(lambda: ran() and set(ran()) <= set(FINAL_STATES))
    assert set(ran()) == {"success"}
    assert equal(site)


def removed(site: Site) -> None:
    """As docs/install.md says; then nothing of the channel is in the folders, the metadata database and the servers."""
    [(work,), *_] = site.target.query("SELECT work FROM binlane.windows")
    for command, _ in commands_of(REMOVAL):
        site.type(command)
    site.airflow.stop()
    shutil.rmtree(Path(work.removeprefix("file://")).parents[2])
    for server in (site.source, site.target):
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("DROP USER replicator")
    with site.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE binlane")
    assert compare(site.source, site.target).differences == ()
    ours = re.compile(r"binlane|shop")
    paths = [path.relative_to(site.airflow.home) for path in site.airflow.home.rglob("*") if ours.search(path.name)]
    # Python's own copy of a DAG file that is gone
    files = [path for path in paths if path.parent.name != "__pycache__"]
    assert {path.parts[0] for path in files} <= {"logs", "binlane-airflow.json"}, files
    assert left_of(site.airflow) <= KEPT


def left_of(airflow: PrivateAirflow) -> set[str]:
    """Tables of Airflow's metadata database that name the channel."""
    engine = create_engine(airflow.environment()["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    found = set()
    with engine.connect() as connection:
        for table in inspect(engine).get_table_names():
            rows = connection.execute(text(f'SELECT * FROM "{table}"')).all()
            if any("binlane" in str(row) or "shop" in str(row) for row in rows):
                found.add(table)
    return found
