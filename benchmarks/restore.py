"""Databases restored from a dump and a log, by ``binlane restore``, the client pipe and the server's own replica:
``python -m benchmarks.restore``.

One tenant of 32 comes back under another name, and all of them. A tenant writes in every fourth file of the log, so an
index of the archive rules the others out. Every target begins empty, and each way's seconds have the load of its base
in them. Ends with 1 if a restored database does not hold what the source's holds, or a way fails.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine, ways
from benchmarks.channel import Channel
from benchmarks.private import MEASURED_SETTINGS, Lab, Traffic, TrafficWriter, make_base, start_source
from benchmarks.ways import BenchmarkError, Job, Timing
from benchmarks.workloads import RESTORED, database_names
from binlane.model import Flavor
from lab.programs import LabError

if TYPE_CHECKING:
    from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
ONE: Final = database_names(RESTORED)[0]
BACK: Final = f"{ONE}_back"
FILES: Final = 16
"""Of the log."""
_GROUPS: Final = 4
"""Of tenants, which write one behind the other, a file of the log each."""
REPLICA: Final = "replica, 8 threads"
Names: TypeAlias = Mapping[str, str]
"""Databases of the source, and their names on the target."""
_RENAMED: Final = {ONE: BACK}
_ALL: Final = {name: f"{name}_back" for name in database_names(RESTORED)}
_AS_THEY_ARE: Final = {name: name for name in database_names(RESTORED)}


@dataclass(frozen=True, slots=True)
class Log:
    """A source's log, the dumps of the moment at which it begins, and what the source held."""

    source: PrivateServer
    traffic: Traffic
    archive: Path
    """Its closed files."""
    indexed: Path
    """The same files, with their index."""
    end: str
    """The GTID of its last transaction."""
    base: Path
    """What ``binlane restore`` begins with: a folder of mydumper; on MySQL a file of mysqldump."""
    one: Path
    """A dump of the one tenant, which names no database."""
    all: Path
    """A dump of all tenants."""
    stretch: Path
    """The first file."""
    at_stretch: Mapping[str, Any]
    """The one tenant at the end of that file."""


@dataclass(frozen=True, slots=True)
class Way:
    """How databases come back."""

    run: Callable[[Log, PrivateServer, Path], Timing]
    """Gets an empty target and an empty folder; its seconds have everything in them."""
    names: Names
    is_stretch: bool = False
    """Restores to the end of the log's first file."""
    is_native: bool = False
    """The server's own replica: what other ways with as many databases are compared with."""
    options: tuple[str, ...] = ()
    """Of the target."""
    is_once: bool = False
    """Measured once, whatever ``--runs`` asks for."""


def binlane(names: Names, *, is_indexed: bool = False) -> Callable[[Log, PrivateServer, Path], Timing]:
    """``binlane restore``, from the start of its process to its end."""
    chosen = (ONE, BACK) if len(names) == 1 else (f"{ONE[:-3]}*", "%_back")

    def run(log: Log, target: PrivateServer, folder: Path) -> Timing:
        channels = folder / "dags" / "channels"
        channels.mkdir(parents=True)
        archive = log.indexed if is_indexed else log.archive
        return _program(
            folder, target,
            "restore", "measured", "--from", str(log.base), "--log", f"{archive}/", "--database", chosen[0],
            "--as", chosen[1], "--until", log.end, "--onto", "target", "--yes", "--channels", str(channels),
        )  # fmt: skip

    return run


def _program(folder: Path, target: PrivateServer | None, *arguments: str) -> Timing:
    """``binlane`` in a process of its own, with its largest process. Raises BenchmarkError if it fails."""
    environment = {**os.environ, "BINLANE_WORK": str(folder / "work"), "PYTHONPATH": os.pathsep.join(sys.path)}
    if target is not None:
        environment["AIRFLOW_CONN_TARGET"] = (
            f"mysql://{target.user}:{target.password}@{target.host}:{target.port}/"
            "?ssl_mode=disabled&get_server_public_key=true"
        )
    typed = [sys.executable, "-c", "from binlane.cli import program; program()", *arguments]
    with (folder / "said").open("w+", encoding="utf-8") as said:
        began = time.monotonic()
        process = subprocess.Popen(typed, env=environment, stdout=said, stderr=subprocess.STDOUT)
        # the peak of the process, or of its largest child
        _, status, used = os.wait4(process.pid, 0)
        seconds, process.returncode = time.monotonic() - began, os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if process.returncode != 0:
        raise BenchmarkError(f"binlane {arguments[0]} ended with {process.returncode}: {text[-2000:]}")
    return Timing(seconds, {"peak_rss_mib": used.ru_maxrss >> 10})


def client_pipe(log: Log, target: PrivateServer, _folder: Path) -> Timing:
    """The tenant's dump, then ``mariadb-binlog --rewrite-db --database | mariadb`` over the log's first file."""
    began = time.monotonic()
    loaded = _load(target, log.one, BACK)
    # mysqlbinlog chooses a database behind the renames, mariadb-binlog in front of them
    chosen = [f"--database={BACK}", "--skip-gtids"] if target.flavor is Flavor.MYSQL else [f"--database={ONE}"]
    rewritten = f"--rewrite-db={ONE}->{BACK}"
    read = [str(target.tool("binlog")), "--no-defaults", rewritten, *chosen, str(log.stretch)]
    with subprocess.Popen(read, stdout=subprocess.PIPE) as reader:
        writer = subprocess.run(
            _client(target), stdin=reader.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
    if writer.returncode or reader.returncode:
        raise BenchmarkError(f"the client pipe failed: {writer.stderr[-2000:]}")
    return Timing(time.monotonic() - began, {"load_seconds": loaded})


def replica(names: Names) -> Callable[[Log, PrivateServer, Path], Timing]:
    """The base, then the server's own replica with the log as its relay log, which it has before its clock starts."""

    def run(log: Log, target: PrivateServer, folder: Path) -> Timing:
        is_one = len(names) == 1
        loaded = _load(target, log.one if is_one else log.all, BACK if is_one else None)
        applied = ways.replica(Job(log.source, target, log.traffic, folder, Channel("restored", 1, 1)))
        return Timing(loaded + applied.seconds, {"load_seconds": loaded, **applied.details})

    return run


def _load(target: PrivateServer, dump: Path, database: str | None) -> float:
    """Load a dump by the server's own client; seconds."""
    began = time.monotonic()
    if database is not None:
        target.query(f"CREATE DATABASE `{database}` CHARACTER SET utf8mb4")
    with dump.open("rb") as file:
        done = subprocess.run(
            [*_client(target), *([] if database is None else [database])], stdin=file, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise BenchmarkError(f"the load of {dump.name} failed: {done.stderr[-2000:]}")
    return round(time.monotonic() - began, 3)


def _client(target: PrivateServer) -> list[str]:
    login = [f"--user={target.user}", f"--password={target.password}", f"--socket={target.socket}"]
    return [str(target.tool("client")), "--no-defaults", *login, "--binary-mode", "--max-allowed-packet=64M"]


def all_ways(flavor: Flavor) -> dict[str, Way]:
    """All ways, in the order of the table."""
    threads = ways.ways([1], [], [], [], [])[REPLICA].options[flavor]
    filters = (f"--replicate-rewrite-db={ONE}->{BACK}", f"--replicate-wild-do-table={BACK}.%")
    return {
        "binlane restore": Way(binlane(_RENAMED), _RENAMED),
        "binlane restore, indexed": Way(binlane(_RENAMED, is_indexed=True), _RENAMED),
        f"{REPLICA}, filtered": Way(replica(_RENAMED), _RENAMED, is_native=True, options=(*threads, *filters)),
        "client pipe": Way(client_pipe, _RENAMED, is_stretch=True, is_once=True),
        "binlane restore, all databases": Way(binlane(_ALL), _ALL, is_once=True),
        f"{REPLICA}, all databases": Way(
            replica(_AS_THEY_ARE), _AS_THEY_ARE, is_native=True, options=threads, is_once=True
        ),
    }


def held(server: PrivateServer, databases: Sequence[str]) -> list[Mapping[str, Any]]:
    """Of each database, its tables' definitions and checksums, without its name."""
    return [
        {
            table: (
                server.query(f"SHOW CREATE TABLE `{database}`.`{table}`")[0][1],
                server.query(f"CHECKSUM TABLE `{database}`.`{table}`")[0][1],
            )
            for (table,) in server.query(f"SHOW TABLES FROM `{database}`")
        }
        for database in databases
    ]


def make_log(lab: Lab, source: PrivateServer, transactions: int) -> tuple[Log, dict[str, Any]]:
    """Dump the source, then write its log; and what both, and the index, took."""
    folder = lab.folder
    one, whole, base = folder / "one.sql", folder / "all.sql", folder / "all.sql"
    _dump(source, one, ONE)
    # the log begins at the moment of the dumps
    _dump(source, whole, "--source-data=2" if lab.flavor is Flavor.MYSQL else "--master-data=2", "--databases",
          *database_names(RESTORED))  # fmt: skip
    if lab.flavor is Flavor.MARIADB:
        base = folder / "mydumper"
        account = [f"--host={source.host}", f"--port={source.port}", f"--user={source.user}"]
        given = [f"--password={source.password}", "--regex", f"^{ONE[:-3]}", f"--outputdir={base}"]
        subprocess.run(["mydumper", *account, *given], check=True, stdout=subprocess.DEVNULL)
    names = database_names(RESTORED)
    writers = [TrafficWriter(source, RESTORED, seed, names[seed::_GROUPS]) for seed in range(_GROUPS)]
    began, at_stretch = time.monotonic(), list[Mapping[str, Any]]()
    for number in range(FILES):
        writers[number % _GROUPS].write(max(1, transactions // FILES))
        if number == 0:
            at_stretch = held(source, [ONE])
    traffic = writers[0].written(time.monotonic() - began)
    # the newest file is open
    closed = traffic.files[:-1]
    folders = [folder / "archive", folder / "indexed"]
    for each in folders:
        each.mkdir()
        for file in closed:
            os.link(file, each / file.name)
    if lab.flavor is Flavor.MARIADB:
        end = str(source.query("SELECT @@gtid_binlog_pos")[0][0])
    else:
        end = f"{source.query('SELECT @@server_uuid')[0][0]}:{traffic.transactions}"
    archive, indexed = folders
    made = _program(folder, None, "archive", "index", f"{indexed}/")
    index = sum(file.stat().st_size for file in (indexed / "binlane_index").rglob("*") if file.is_file())
    size = sum(file.stat().st_size for file in closed)
    facts = {
        "log": {"transactions": traffic.transactions, "bytes": size, "files": len(closed),
                "seconds": round(traffic.seconds, 1), "stretch_bytes": closed[0].stat().st_size},
        "base": {"program": "mydumper" if base.is_dir() else "mysqldump", "bytes": whole.stat().st_size},
        "index": {"seconds": round(made.seconds, 2), "bytes": index, **made.details},
    }  # fmt: skip
    return Log(source, traffic, archive, indexed, end, base, one, whole, closed[0], at_stretch[0]), facts


def _dump(source: PrivateServer, file: Path, *given: str) -> None:
    own = ["--set-gtid-purged=OFF"] if source.flavor is Flavor.MYSQL else []
    account = [f"--host={source.host}", f"--port={source.port}", f"--user={source.user}"]
    command = [str(source.tool("dump")), "--no-defaults", *account, f"--password={source.password}", *own]
    with file.open("wb") as output:
        subprocess.run(
            [*command, "--single-transaction", "--routines", "--events", *given], check=True, stdout=output,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip


def measure(targets: Lab, log: Log, name: str, way: Way) -> dict[str, Any]:
    """Restore once onto an empty target: seconds, and whether every database is equal."""
    load = machine.load()
    with (
        tempfile.TemporaryDirectory(dir=targets.folder) as folder,
        targets.target("target", way.options) as target,
    ):
        used = machine.cpu_seconds(target.pid)
        try:
            timing = way.run(log, target, Path(folder))
            used = round(machine.cpu_seconds(target.pid) - used, 2)
            expected = [log.at_stretch] if way.is_stretch else held(log.source, [*way.names])
            equal = held(target, [*way.names.values()]) == expected
        except BenchmarkError as exc:
            console.print(f"[red]✗[/] {name}: {exc}", markup=True)
            return {"error": str(exc), "equal": False, "load_before": load}
    console.print(f"  {name}: {timing.seconds:.2f} s{'' if equal else ', NOT EQUAL'}")
    seconds = round(timing.seconds, 3)
    return {"seconds": seconds, **timing.details, "target_cpu_seconds": used, "equal": equal, "load_before": load}


def summarized(found: Mapping[str, list[dict[str, Any]]], known: Mapping[str, Way], log: Mapping[str, Any]) -> Any:
    """Of each way its median, the log that it gets through in a second, how many times as fast as the server's own
    replica with the same databases that is (None: no such replica), and every measurement."""
    rates = {
        name: log["stretch_bytes" if known[name].is_stretch else "bytes"]
        / 1e6
        / statistics.median(each["seconds"] for each in measured)
        for name, measured in found.items()
        if all("error" not in each for each in measured)
    }
    native = {len(known[name].names): rate for name, rate in rates.items() if known[name].is_native}
    summary: dict[str, dict[str, Any]] = {}
    for name, measured in found.items():
        best, rate = native.get(len(known[name].names)), rates.get(name)
        summary[name] = {
            "seconds": None if rate is None else statistics.median(each["seconds"] for each in measured),
            "mb_per_second": None if rate is None else round(rate, 2),
            "ratio": None if rate is None or best is None else round(rate / best, 2),
            "databases": len(known[name].names),
            "is_stretch": known[name].is_stretch,
            "equal": all(each["equal"] for each in measured),
            "runs": measured,
        }
    return summary


def main(
    flavor: Annotated[Flavor, typer.Option(help="Family of the servers.")] = Flavor.MARIADB,
    transactions: Annotated[int, typer.Option(min=1, help="Transactions in the log, of 9 KB each.")] = 256_000,
    runs: Annotated[
        int, typer.Option(min=1, help="Measurements of each way, the pipe and all databases once; medians are shown.")
    ] = 3,
    only: Annotated[str, typer.Option(help="Only ways whose names contain one of these, by comma.")] = "",
    buffer_pool: Annotated[int, typer.Option(min=64, help="InnoDB buffer pool of every server, MiB.")] = 1024,
    data: Annotated[Path | None, typer.Option(help="Folder for servers and logs; default: a temporary one.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/restore-FLAVOR.json.")
    ] = None,
) -> None:
    """Measure, compare, print a table and write the result."""
    parts = [part.strip() for part in only.split(",")]
    known = {name: way for name, way in all_ways(flavor).items() if any(part in name for part in parts)}
    with tempfile.TemporaryDirectory(prefix="binlane-restore-", dir=data) as folder:
        root = Path(folder)
        sources, targets = (
            Lab(root / name, flavor, durable=True, target_log=True, buffer_pool_mib=buffer_pool)
            for name in ("source", "target")
        )
        try:
            measured = _measure_all(sources, targets, transactions, runs, known)
        except LabError as exc:
            console.print(f"[red]✗[/] {exc}", markup=True)
            raise typer.Exit(1) from exc
        result: dict[str, Any] = {
            "benchmark": "restore",
            "arguments": {"flavor": flavor.value, "transactions": transactions, "runs": runs,
                          "buffer_pool_mib": buffer_pool},
            "machine": machine.machine(root),
            **measured,
        }  # fmt: skip
    path = output or machine.RESULTS / f"restore-{flavor.value}.json"
    machine.write_result(path, result)
    _print(result)
    console.print(f"[dim]{path}[/]")
    if not all(row["equal"] for row in result["ways"].values()):
        sys.exit(1)


def _measure_all(
    sources: Lab, targets: Lab, transactions: int, runs: int, known: Mapping[str, Way]
) -> Mapping[str, Any]:
    make_base(sources, RESTORED)
    make_base(targets, replace(RESTORED, databases=0))
    source = start_source(sources)
    try:
        log, facts = make_log(sources, source, transactions)
        made, index = facts["log"], facts["index"]
        console.print(
            f"{made['transactions']:,} transactions, {made['bytes'] / 1e6:,.0f} MB of log, written in "
            f"{made['seconds']} s, indexed in {index['seconds']} s"
        )
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in known}
        # ways in turn, so that a slow minute of the machine is everybody's
        for turn in range(runs):
            for name, way in known.items():
                if not (turn and way.is_once):
                    found[name].append(measure(targets, log, name, way))
        settings = machine.server_facts(source, MEASURED_SETTINGS)
    finally:
        source.stop()
    return {**facts, "source": settings, "ways": summarized(found, known, facts["log"])}


def _print(result: Mapping[str, Any]) -> None:
    log = result["log"]
    table = Table(
        "way", "seconds", "MB/s of log", "to the replica", "largest process, MiB", "CPU of the target", "same data",
        title=f"{result['source']['version']}, {log['transactions']:,} transactions, {log['bytes'] / 1e6:,.0f} MB",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in result["ways"].items():
        last = row["runs"][-1]
        table.add_row(
            name,
            "failed" if row["seconds"] is None else f"{row['seconds']:.1f}",
            "" if row["mb_per_second"] is None else f"{row['mb_per_second']:.1f}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f}",
            str(last.get("peak_rss_mib", "")),
            str(last.get("target_cpu_seconds", "")),
            "yes" if row["equal"] else "[red]NOT EQUAL[/]",
        )
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
