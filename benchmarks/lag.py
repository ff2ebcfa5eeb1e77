"""How far behind a live source: ``binlane follow`` and the server's own replica, one after the other, under the same
traffic: ``python -m benchmarks.lag``.

Every transaction of the source writes its time. A reader of the target asks ten times a second for the newest one that
it sees. Ends with 1 if a target does not hold in the end what the source holds.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from benchmarks import machine
from benchmarks.private import MEASURED_SETTINGS
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server

_DATABASES: Final = 16
_TABLE: Final = "CREATE TABLE tenant_{0}.orders (id INT PRIMARY KEY AUTO_INCREMENT, n INT, at DATETIME(6), KEY (at))"
_NEWEST: Final = ", ".join(
    f"(SELECT COALESCE(MAX(at), '2000-01-01') FROM tenant_{number}.orders)" for number in range(_DATABASES)
)
_LAG: Final = f"SELECT TIMESTAMPDIFF(MICROSECOND, GREATEST({_NEWEST}), UTC_TIMESTAMP(6)) / 1000000"
_CHANNEL: Final = '[source]\nconnection = "a"\n[target]\nconnection = "b"\n[lanes]\ncount = {lanes}\n'
_WARM_SECONDS: Final = 15
"""Length of the idle measurement, and of the traffic before the other one."""

Follower = Callable[[PrivateServer, PrivateServer, Path], Any]
"""Makes the target follow the source, from the source's end on, as a context manager that gives process ids."""


def binlane(lanes: int) -> Follower:
    """``binlane follow`` with its defaults."""

    @contextmanager
    def run(source: PrivateServer, target: PrivateServer, folder: Path) -> Iterator[Callable[[], list[int]]]:
        channels = folder / "channels"
        channels.mkdir(parents=True)
        (channels / "lag.toml").write_text(_CHANNEL.format(lanes=lanes))
        options = "?ssl_mode=disabled&get_server_public_key=true"
        places = {
            f"AIRFLOW_CONN_{name}": f"mysql://{each.user}:{each.password}@{each.host}:{each.port}/{options}"
            for name, each in (("A", source), ("B", target))
        }
        environment = {**os.environ, **places, "BINLANE_CHANNELS": str(channels)}
        program = [sys.executable, "-c", "from binlane.cli import program; program()"]
        subprocess.run([*program, "init", "lag", "--start", "now"], env=environment, check=True, capture_output=True)
        with (folder / "follow.log").open("w") as log:
            process = subprocess.Popen(
                [*program, "follow", "lag"], env=environment, stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield lambda: _session(process.pid)
            process.send_signal(signal.SIGTERM)
            if process.wait(120) != 0:
                raise RuntimeError((folder / "follow.log").read_text())
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    return run


@contextmanager
def replica(source: PrivateServer, target: PrivateServer, _: Path) -> Iterator[Callable[[], list[int]]]:
    """The server's own replica, with the threads that the target was started with."""
    if source.flavor is Flavor.MARIADB:
        file, offset, *_rest = source.query("SHOW MASTER STATUS")[0]
        names, start, stop = ("MASTER", "CHANGE MASTER TO"), "START SLAVE", "STOP SLAVE"
        more = "master_use_gtid = no"
    else:
        file, offset, *_rest = source.query("SHOW BINARY LOG STATUS")[0]
        names, start, stop = ("SOURCE", "CHANGE REPLICATION SOURCE TO"), "START REPLICA", "STOP REPLICA"
        more = "GET_SOURCE_PUBLIC_KEY = 1"
    word, change = names
    target.query(
        f"{change} {word}_HOST = '127.0.0.1', {word}_PORT = {source.port}, {word}_USER = '{source.user}', "
        f"{word}_PASSWORD = '{source.password}', {word}_LOG_FILE = '{file}', {word}_LOG_POS = {offset}, {more}"
    )
    target.query(start)
    try:
        yield list
    finally:
        target.query(stop)


def write(source: PrivateServer, rate: float, ends: threading.Event, written: list[int]) -> None:
    """Transactions of one or two row changes at a rate, each over one of the databases."""
    with closing(source.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        began, count = time.monotonic(), 0
        while not ends.is_set():
            wait = began + count / rate - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, 0.05))
                continue
            count += 1
            table = f"tenant_{count % _DATABASES}.orders"
            cursor.execute(f"INSERT INTO {table} (n, at) VALUES ({count}, UTC_TIMESTAMP(6))")
            if count % 3 == 0:
                cursor.execute(f"UPDATE {table} SET n = n + 1 WHERE id = {count // 40 + 1}")
            connection.commit()
        written.append(count)


def lags(target: PrivateServer, seconds: float) -> list[float]:
    """The seconds behind, ten times a second."""
    found, end = [], time.monotonic() + seconds
    with closing(target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        while time.monotonic() < end:
            cursor.execute(_LAG)
            ((lag,),) = cursor.fetchall()
            found.append(float(lag))
            time.sleep(0.1)
    return sorted(found)


def measure(
    follower: Follower, source: PrivateServer, target: PrivateServer, folder: Path, rate: float, seconds: float
) -> dict[str, Any]:
    """One way: idle first, then under traffic."""
    for server in (source, target):
        for number in range(_DATABASES):
            server.query(f"DROP DATABASE IF EXISTS tenant_{number}")
    with follower(source, target, folder) as processes:
        for number in range(_DATABASES):
            source.query(f"CREATE DATABASE tenant_{number}")
            source.query(_TABLE.format(number))
        _becomes_equal(source, target, 180)
        before, began = _cpu(processes()), time.monotonic()
        time.sleep(_WARM_SECONDS)
        idle = (_cpu(processes()) - before) / (time.monotonic() - began)
        ends, written = threading.Event(), list[int]()
        writer = threading.Thread(target=write, args=(source, rate, ends, written))
        load, started = machine.load(), time.monotonic()
        writer.start()
        time.sleep(_WARM_SECONDS)
        before, began = _cpu(processes()), time.monotonic()
        found = lags(target, seconds)
        busy = (_cpu(processes()) - before) / (time.monotonic() - began)
        ends.set()
        writer.join()
        spent = time.monotonic() - started
        equal = _becomes_equal(source, target)
    return {
        "transactions_per_second": round(written[0] / spent),
        "median_seconds": round(statistics.median(found), 2),
        "p99_seconds": round(found[int(len(found) * 0.99)], 2),
        "most_seconds": round(found[-1], 2),
        "looks": len(found),
        "idle_cores": round(idle, 3),
        "busy_cores": round(busy, 2),
        "equal": equal,
        "load": load,
    }


def _becomes_equal(source: PrivateServer, target: PrivateServer, seconds: float = 60) -> bool:
    tables = ", ".join(f"tenant_{number}.orders" for number in range(_DATABASES))
    expected, end = source.query(f"CHECKSUM TABLE {tables}"), time.monotonic() + seconds
    while target.query(f"CHECKSUM TABLE {tables}") != expected:
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def _session(leader: int) -> list[int]:
    """All processes of a session: the command, its fork server and its lanes."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader:
                found.append(int(folder.name))
    return found


def _cpu(processes: list[int]) -> float:
    return sum(machine.cpu_seconds(each) for each in processes)


def main(
    flavor: Annotated[Flavor, typer.Option(help="Family of the servers.")] = Flavor.MARIADB,
    rate: Annotated[float, typer.Option(min=1, help="Transactions a second of the source.")] = 500,
    seconds: Annotated[float, typer.Option(min=1, help="Length of each measurement.")] = 60,
    lanes: Annotated[int, typer.Option(min=1, help="Lanes of binlane, and threads of the replica.")] = 4,
    output: Annotated[Path | None, typer.Option(help="Result; default: benchmarks/results/lag-FLAVOR.json.")] = None,
) -> None:
    """Measure both ways, print them, write the result."""
    threads = "--slave-parallel-threads" if flavor is Flavor.MARIADB else "--replica-parallel-workers"
    options = [f"{threads}={lanes}", "--innodb-buffer-pool-size=512M"]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        ways = {"binlane follow": binlane(lanes), f"replica, {lanes} threads": replica}
        with private_server(root / "source", flavor, options, name="source", durable=False) as source:
            for number, (name, follower) in enumerate(ways.items()):
                with private_server(root / f"target-{number}", flavor, options, name="target") as target:
                    found[name] = measure(follower, source, target, root / str(number), rate, seconds)
                    settings = machine.server_facts(target, MEASURED_SETTINGS)
                typer.echo(f"{name}: {found[name]}")
        about = machine.machine(root)
    result = {"flavor": flavor.value, "rate": rate, "ways": found, "settings": settings, "machine": about}
    machine.write_result(output or machine.RESULTS / f"lag-{flavor.value}.json", result)
    if not all(each["equal"] for each in found.values()):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
