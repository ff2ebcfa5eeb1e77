"""A site with channels of both families on a cluster: its servers, its files, its windows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import psutil

from binlane.model import Flavor
from lab.airflow import PROJECT, PrivateAirflow, new_airflow, processes_of
from lab.airflow_api import FINAL_STATES, ApiError
from lab.cluster.object_store import BUCKET, ObjectStore
from lab.cluster.processes import Server, postgres, redis, spark_master, spark_worker
from lab.compare import compare
from lab.programs import LabError
from lab.servers import HOST, PrivateServer, private_server
from lab.traffic import Mix, run_traffic

Answer = TypeVar("Answer")

WORKERS: Final = 2
MIX: Final = Mix(cross_database=0.02, reference=0.01, ddl=0.0, accounts=0.001, statements=0.02)
"""Without DDL: only rows are to wait for the locks of ``held``."""
_TENANTS: Final = 6
_RUN_SECONDS: Final = 1200.0
_CHANNEL: Final = """\
[source]
connection = "{family}_source"

[target]
connection = "{family}_target"

[work]
uri = "s3://{bucket}"

[segments]
bytes = 65_536

[lanes]
count = 3

[spark]
connection = "spark"

[spark.conf]
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.driver.memory" = "512m"
"spark.executor.memory" = "512m"
"spark.driver.host" = "127.0.0.1"
"""
_SETTINGS: Final = {
    "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
    "AIRFLOW__CELERY__WORKER_CONCURRENCY": "4",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    # a killed scheduler is missed after half a minute, a killed task after five, by default
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
}
_WAITING: Final = (
    "SELECT p.host FROM information_schema.innodb_trx t JOIN information_schema.processlist p "
    "ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT'"
)


@dataclass(slots=True)
class Cluster:
    """The running site. ``workers``: each an Airflow's home of its own with one Celery worker."""

    folder: Path
    store: ObjectStore
    metadata: Server
    airflow: PrivateAirflow
    workers: list[PrivateAirflow] = field(default_factory=list)
    master: Server | None = None
    spark_workers: list[Server] = field(default_factory=list)
    servers: dict[Flavor, tuple[PrivateServer, PrivateServer]] = field(default_factory=dict)
    """Source and target of each family's channel, which has the family's name."""
    _seed: int = 0

    def write(self, family: Flavor, transactions: int) -> None:
        """More transactions on a family's source."""
        self._seed += 1
        run_traffic(
            self.servers[family][0].connect,
            tenants=_TENANTS,
            transactions=transactions,
            seed=self._seed,
            threads=2,
            mix=MIX,
        )

    def binlane(self, *arguments: str) -> str:
        """The command line, on this site. Raises LabError."""
        program = Path(sys.executable).with_name("binlane")
        done = subprocess.run(
            [str(program), *arguments],
            env={**self.airflow.environment(), "BINLANE_CHANNELS": str(self.folder / "project" / "dags" / "channels")},
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise LabError(f"binlane {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def trigger(self, family: Flavor) -> str:
        """Start a run up to the log's present end; its id."""
        return patiently(lambda: self.airflow.api.trigger(dag_of(family), {"until": "now"}))

    def ended(self, family: Flavor, run_id: str) -> int:
        """Wait for a run; the most tries that a task of it had. Raises LabError if it has not succeeded."""
        api, dag_id = self.airflow.api, dag_of(family)
        end = time.monotonic() + _RUN_SECONDS
        while (state := patiently(lambda: api.run(dag_id, run_id))["state"]) not in FINAL_STATES:
            if time.monotonic() > end:
                raise LabError(f"{run_id} is {state} after {_RUN_SECONDS:.0f} s\n{self.tasks(family, run_id)}")
            self.keep_services()
            time.sleep(0.5)
        if state != "success":
            raise LabError(f"{run_id} ended {state}\n{self.tasks(family, run_id)}")
        return max(int(task["try_number"]) for task in patiently(lambda: api.task_instances(dag_id, run_id)))

    def keep_services(self) -> None:
        """Start Airflow's services again that have ended by themselves, as a site's service manager does: scheduler and
        DAG processor end when their metadata database is away."""
        for service in ("scheduler", "dag-processor", "api-server"):
            self.airflow.keep(service)
        for worker in self.workers:
            if not processes_of(worker.home, worker.leaders):
                start_worker(worker)

    def tasks(self, family: Flavor, run_id: str) -> str:
        """A run's tasks, one a line."""
        found = patiently(lambda: self.airflow.api.task_instances(dag_of(family), run_id))
        return "\n".join(f"{t['task_id']} {t['map_index']}: {t['state']}, try {t['try_number']}" for t in found)

    def equal(self, family: Flavor) -> int:
        """The number of tables that are equal. Raises LabError for a difference."""
        found = compare(*self.servers[family])
        if found.differences or not found.tables:
            raise LabError("\n".join(("source and target differ:", *found.differences[:10])))
        return found.tables

    @contextmanager
    def held(self, family: Flavor) -> Iterator[None]:
        """Every lane of the family's channel that writes a tenant's rows waits inside a block while this lasts."""
        target = self.servers[family][1]
        tables = target.query(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'tenant%%'"
        )
        with target.connect() as connection, connection.cursor() as cursor:
            for database, table in tables:
                cursor.execute(f"SELECT 1 FROM {database}.{table} FOR UPDATE")
            yield
            connection.rollback()

    def lane_processes(self, family: Flavor) -> set[int]:
        """The processes of the lanes that wait in ``held``."""
        hosts = self.servers[family][1].query(_WAITING)
        ports = {int(str(host).rpartition(":")[2]) for (host,) in hosts}
        found = psutil.net_connections("tcp")
        return {each.pid for each in found if each.pid and each.laddr and each.laddr.port in ports and each.raddr}

    def worker_of(self, pids: set[int]) -> PrivateAirflow | None:
        """The first Celery worker that runs one of the processes."""
        return next((one for one in self.workers if pids & processes_of(one.home, one.leaders)), None)

    def is_mapped(self, family: Flavor, window: set[str]) -> bool:
        """Whether the plan job of a window that is not in ``window`` has written a lane file."""
        return any("/lanes/" in name for name in self.objects(family) if name not in window)

    def objects(self, family: Flavor) -> set[str]:
        """Names of the lane files of a family's channel."""
        return {name for name in self.store.names(f"{family}/") if name.endswith(".parquet")}


def dag_of(family: Flavor) -> str:
    """The DAG of a family's channel."""
    return f"replicate_{family}"


def patiently(call: Callable[[], Answer], seconds: float = 300.0) -> Answer:
    """The answer of an api-server whose metadata database may be away."""
    end = time.monotonic() + seconds
    while True:
        try:
            return call()
        except ApiError:
            if time.monotonic() > end:
                raise
            time.sleep(1)


@contextmanager
def new_cluster(families: Sequence[Flavor], spark_submit: str | None = None) -> Iterator[Cluster]:
    """A site whose channels are at their source's beginning; everything of it ends with this process, however it ends.

    ``spark_submit``: a script in the place of Spark. Raises LabError.
    """
    folder = Path(tempfile.mkdtemp(prefix="binlane-cluster-"))
    # PostgreSQL runs under an account of its own
    folder.chmod(0o711)
    guard = subprocess.Popen(
        [sys.executable, "-m", "lab.cluster.guard", str(folder)],
        stdin=subprocess.PIPE, cwd=PROJECT, start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}"},
    )  # fmt: skip
    with ExitStack() as stack:

        def end_guard() -> None:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait()

        stack.callback(end_guard)
        yield _started(stack, folder, families, spark_submit)


def _started(stack: ExitStack, folder: Path, families: Sequence[Flavor], spark_submit: str | None) -> Cluster:
    metadata, url = postgres(folder / "postgresql")
    broker, broker_url = redis(folder / "redis")
    store = ObjectStore()
    for server in (metadata, broker, store):
        stack.callback(server.stop)
        server.start()
    store.make_bucket()
    _write_project(folder, families, spark_submit)
    master = spark_master(folder) if spark_submit is None else None
    settings = {
        **_SETTINGS,
        **store.environment(),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
        "AIRFLOW__CELERY__BROKER_URL": broker_url,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "project" / "dags"),
        "AIRFLOW__CORE__FERNET_KEY": "",
        "PATH": os.pathsep.join([str(folder / "programs"), str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    where = "local[1]" if master is None else f"spark://{HOST}:{master.port}"
    connections = {"spark": json.dumps({"conn_type": "spark", "host": where})}
    servers = {}
    for family in families:
        pair = [
            stack.enter_context(private_server(folder / f"{family}-{part}", family, name=part, durable=False))
            for part in ("source", "target")
        ]
        servers[family] = pair[0], pair[1]
        for one in pair:
            connections[f"{family}_{one.name}"] = (
                f"mysql://{one.user}:{one.password}@{HOST}:{one.port}/?ssl_mode=disabled&get_server_public_key=true"
            )
    (folder / "airflow").mkdir()
    # the cluster's guard ends all of them
    airflow = new_airflow(folder / "airflow", connections, settings, kept=True)
    cluster = Cluster(folder, store, metadata, airflow, master=master, servers=servers)
    if master is not None:
        _start_spark(stack, cluster, master)
    stack.callback(airflow.stop)
    airflow.start()
    for number in range(1, WORKERS + 1):
        cluster.workers.append(_celery_worker(cluster, number))
        stack.callback(cluster.workers[-1].stop)
        start_worker(cluster.workers[-1])
    for family in families:
        airflow.wait_for_dag(dag_of(family))
        airflow.api.unpause(dag_of(family))
    return cluster


def start_worker(worker: PrivateAirflow) -> None:
    """Start a Celery worker without waiting for it."""
    # the server of logs would listen on every address, and both on one port
    name = f"{worker.home.name}@%h"
    worker.launch("celery", options=("worker", "--skip-serve-logs", "--celery-hostname", name))


def _start_spark(stack: ExitStack, cluster: Cluster, master: Server) -> None:
    workers = [spark_worker(cluster.folder, n, master, cluster.store.environment()) for n in range(1, WORKERS + 1)]
    for server in (master, *workers):
        stack.callback(server.stop)
        server.start()
    cluster.spark_workers += workers


def _celery_worker(cluster: Cluster, number: int) -> PrivateAirflow:
    """An Airflow's home with nothing in it but what its worker writes there."""
    home = cluster.folder / f"celery-worker-{number}"
    for folder in (home / "logs", home / "temporary"):
        folder.mkdir(parents=True)
    airflow = cluster.airflow
    settings = {**airflow.settings, "TMPDIR": str(home / "temporary")}
    return PrivateAirflow(home, airflow.port, airflow.password, settings, kept=True)


def _write_project(folder: Path, families: Sequence[Flavor], spark_submit: str | None) -> None:
    channels, programs = folder / "project" / "dags" / "channels", folder / "programs"
    for made in (channels, programs):
        made.mkdir(parents=True)
    for family in families:
        (channels / f"{family}.toml").write_text(_CHANNEL.format(family=family, bucket=BUCKET))
    shutil.copy(PROJECT / "dags" / "replicate.py", channels.parent)
    lists = folder / "project" / "shard_list"
    lists.mkdir()
    for family in families:
        (lists / f"{family}.list").write_text("(critical)=reference\n")
    if spark_submit is not None:
        program = programs / "spark-submit"
        program.write_text(spark_submit)
        program.chmod(0o755)
