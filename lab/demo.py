"""``make demo``: one window of a private MariaDB server's log onto another one, through a real Airflow and Spark.

A third server applies the same log as the source's own replica, to compare the time and the outcome.

``KEEP=1`` leaves servers and Airflow running; the next call applies the next window. ``--clean`` stops and removes it.
All files are under ./.binlane/demo, all servers on 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from binlane.model import plural
from lab import airflow, replica, servers, spark_connect
from lab.airflow_api import FINAL_STATES
from lab.compare import Comparison, compare
from lab.private_files import write_private
from lab.servers import LabError, free_port
from lab.traffic import Mix, run_traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from lab.airflow import PrivateAirflow
    from lab.servers import PrivateServer

HOME: Final = airflow.PROJECT / ".binlane" / "demo"
SERVERS: Final = ("source", "target", "replica", "spare")
"""The last server is empty, for a second channel, and started only with KEEP=1."""
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    # logs the columns' names, for the board and for `binlane inspect`
    "source": ("--binlog-row-metadata=FULL",),
    "replica": replica.OPTIONS,
}
EXPORTS: Final = HOME / "env"
"""The file that a shell reads to use the demo's `binlane` and `airflow`."""
CHANNEL: Final = "demo"
DAG_ID: Final = f"replicate_{CHANNEL}"
_TENANTS: Final = 24
_BEFORE: Final = 2_000
"""Transactions before the first copy."""
_TRANSACTIONS: Final = 40_000
"""Transactions in the window."""
_MIX: Final = Mix(cross_database=0.0002, reference=0.0002, ddl=0.0001, accounts=0.0001, statements=0.001)
"""Few transactions over several tenants or of other kinds."""
_RUN_SECONDS: Final = 900.0


@dataclass(slots=True)
class Demo:
    """The running servers, and the seconds of each phase."""

    console: Console
    source: PrivateServer
    target: PrivateServer
    replica: PrivateServer
    airflow: PrivateAirflow
    is_new: bool
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; phases of other threads may overlap it."""
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start
        self.console.print(f"[green]✓[/] {name} [dim]{self.seconds[name]:.1f} s[/]")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if both servers are equal at its end."""
    if "--clean" in (sys.argv[1:] if arguments is None else arguments):
        clean()
        return 0
    signal.signal(signal.SIGTERM, _interrupt)
    keep = os.environ.get("KEEP", "0") not in ("", "0")
    console = Console(highlight=False)
    status = 1
    try:
        demo = _servers_up(console, SERVERS if keep else SERVERS[:3])
        status = _run(demo, keep)
    except LabError as exc:
        console.print(f"[red]✗[/] {exc}", markup=True)
    except KeyboardInterrupt:
        console.print("[red]✗[/] interrupted")
    finally:
        if keep:
            console.print("Left up. [bold]KEEP=1 make demo[/] applies the next window; [bold]make clean[/] removes it.")
        elif status == 0:
            clean()
        else:
            stop()
            console.print(f"Stopped; logs and data are left in {HOME} until the next run or [bold]make clean[/].")
    return status


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def stop() -> None:
    """Stop all servers of the demo, also those of an earlier call."""
    airflow.find(HOME / "airflow").stop()
    for name in SERVERS:
        if (server := servers.attach(HOME / name)) is not None:
            server.stop()


def clean() -> None:
    """Stop the demo and remove its files."""
    stop()
    shutil.rmtree(HOME, ignore_errors=True)


def _servers_up(console: Console, names: Sequence[str]) -> Demo:
    """The servers of a demo that was left up, or new ones."""
    found = [servers.attach(HOME / name) for name in names]
    is_new = any(server is None for server in found)
    start = time.monotonic()
    if is_new:
        clean()
        # kept until stop(): a demo that is killed leaves them to `make clean`
        found = [
            servers.start_server(HOME / name, options=OPTIONS.get(name, ()), name=name, keep=True) for name in names
        ]
    up_servers = dict(zip(names, filter(None, found), strict=True))
    source, target = up_servers["source"], up_servers["target"]
    up = airflow.find(HOME / "airflow")
    if not up.is_healthy():
        up.stop()
        extra = {"BINLANE_WORK": str(HOME / "work")}
        up = airflow.new_airflow(HOME / "airflow", _connections(up_servers), extra, kept=True)
    demo = Demo(console, source, target, up_servers["replica"], up, is_new)
    demo.seconds["servers"] = time.monotonic() - start
    console.print(f"[green]✓[/] MariaDB, source on port {source.port}, target on port {target.port}")
    return demo


def _connections(up: Mapping[str, PrivateServer]) -> dict[str, str]:
    def uri(server: PrivateServer) -> str:
        return f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/?ssl_mode=disabled&get_server_public_key=true"

    # a session that stays, so that no window waits for a JVM
    spark = json.dumps(
        {
            "conn_type": "spark_connect", "host": spark_connect.CLIENTS_HOST, "port": free_port(),
            "password": secrets.token_urlsafe(18),
        }
    )  # fmt: skip
    return {**{f"binlane_demo_{name}": uri(server) for name, server in up.items()}, "binlane_spark": spark}


def _run(demo: Demo, keep: bool) -> int:
    # imported here, so that stop() and clean() work without binlane's dependencies
    from lab.demo_view import Measured, print_failure, print_summary

    # Airflow's start mostly waits for imports, so the traffic is written at the same time
    with ThreadPoolExecutor(2) as pool:
        traffic = pool.submit(_written, demo)
        started = pool.submit(_airflow_up, demo)
        traffic.result()
        started.result()
    _write_exports(demo)
    run_id = demo.airflow.api.trigger(DAG_ID, {"until": "now"})
    state = _watch(demo, run_id)
    if state != "success":
        print_failure(demo.console, demo.airflow.api, DAG_ID, run_id)
        return 1
    # the server's own replica on the same log, when nothing else runs
    with demo.phase("replica"):
        replicated = replica.catch_up(demo.replica, demo.source)
    with demo.phase("compare"):
        comparison, others = compare(demo.source, demo.target), compare(demo.source, demo.replica)
    print_summary(
        demo.console,
        demo.airflow,
        (DAG_ID, run_id),
        demo.target,
        Measured(demo.seconds, replicated, comparison, others),
        keep=keep,
    )
    return 0 if _equal(comparison) and _equal(others) else 1


def _equal(comparison: Comparison) -> bool:
    return not comparison.differences and comparison.tables > 0


def _written(demo: Demo) -> None:
    """Write the source's data, make the first copy, and write the traffic of the next window."""
    if demo.is_new:
        run_traffic(demo.source.connect, tenants=_TENANTS, transactions=_BEFORE, seed=1)
        with demo.phase("binlane bootstrap"):
            _binlane(demo, "bootstrap", CHANNEL, "--users")
        replica.follow(demo.replica, demo.source)
    # the first window is the same in every demo, later ones differ
    seed = 2 if demo.is_new else time.time_ns() % 1_000_000
    with demo.phase("traffic"):
        written = run_traffic(demo.source.connect, tenants=_TENANTS, transactions=_TRANSACTIONS, seed=seed, mix=_MIX)
    demo.console.print(
        f"  {plural(written.transactions, 'transaction')} over {plural(len(written.databases), 'database')}"
    )


def _airflow_up(demo: Demo) -> None:
    if demo.airflow.is_healthy():
        return
    with demo.phase("airflow"):
        spark = json.loads(demo.airflow.settings["AIRFLOW_CONN_BINLANE_SPARK"])
        command = spark_connect.command(spark["port"], min(4, os.cpu_count() or 2))
        demo.airflow.launch("spark-connect", command, variables={spark_connect.TOKEN: spark["password"]})
        demo.airflow.start()
        demo.airflow.wait_for_dag(DAG_ID)
        demo.airflow.api.unpause(DAG_ID)
        spark_connect.wait_for(spark["port"])


def _write_exports(demo: Demo) -> None:
    """Write the file for a shell; it contains passwords."""
    write_private(EXPORTS, demo.airflow.exports())


def _watch(demo: Demo, run_id: str) -> str:
    """Show the run until it has ended; its state."""
    from lab.demo_view import Progress

    end = time.monotonic() + _RUN_SECONDS
    start = time.monotonic()
    with Progress(demo.console, demo.airflow.api, (DAG_ID, run_id), demo.target) as progress:
        while time.monotonic() < end:
            state: str = demo.airflow.api.run(DAG_ID, run_id)["state"]
            progress.update()
            if state in FINAL_STATES:
                demo.seconds["window"] = time.monotonic() - start
                return state
            time.sleep(0.5)
    raise LabError(f"the run {run_id} has not ended after {_RUN_SECONDS:.0f} s")


def _binlane(demo: Demo, *arguments: str) -> None:
    """Run the command line as a user would."""
    environment: dict[str, Any] = demo.airflow.environment()
    command = [str(Path(sys.executable).with_name("binlane")), *arguments]
    done = subprocess.run(command, env=environment, cwd=airflow.PROJECT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"binlane {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
