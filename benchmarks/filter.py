"""The plan job's speed and memory on one core: ``python -m benchmarks.filter``.

Scan, map and both over the segments of a window, after a warm-up on the first segment, in a process of its own; beside
them the server's own log reader on the same files, and the start of a JVM with Spark, which a job pays once. The same
for a window several times as long: time has to grow with the log, memory not.
"""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import Channel, open_channel
from benchmarks.fresh import in_fresh_process, peak_rss_kib
from benchmarks.private import Lab, Traffic, TrafficWriter, make_base, start_source
from benchmarks.workloads import WORKLOADS
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import NOW, WindowRequest
from binlane.plan.segment.map import ScanSummary
from binlane.plan.window.merge import merge_scans
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import WorkerInputs, read_inputs
from binlane.work.plan_job.job import InProcess
from binlane.work.plan_job.tasks import map_task, scan_task
from binlane.work.plan_job.wire import from_wire

if TYPE_CHECKING:
    from lab.servers import PrivateServer

_PEER_SECONDS: Final = 20.0
console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
_JVM: Final = """
import time
began = time.monotonic()
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(1).count() == 1
print("seconds", time.monotonic() - began)
spark.stop()
"""


def filter_window(uri: str, runs: int) -> dict[str, Any]:
    """Scan and map a window in this process; seconds of each step, and memory before and behind."""
    folder = WorkFolder(uri)
    inputs = read_inputs(folder)
    names = [segment.name for segment in inputs.manifest.segments]
    began = time.monotonic()
    _scan_and_map(folder, names[:1])
    warm_up, before = time.monotonic() - began, peak_rss_kib()
    measured = [_scan_and_map(folder, names) for _ in range(runs)]
    size = sum(segment.bytes for segment in inputs.manifest.segments)
    scan, mapped = (statistics.median(each[step] for each in measured) for step in ("scan", "map"))
    total = scan + mapped
    return {
        "bytes": size,
        "segments": len(names),
        "transactions": inputs.manifest.transactions,
        "runs": measured,
        "scan_seconds": round(scan, 3),
        "map_seconds": round(mapped, 3),
        "scan_mb_per_second": round(size / scan / 1e6, 1),
        "map_mb_per_second": round(size / mapped / 1e6, 1),
        "both_mb_per_second": round(size / total / 1e6, 1),
        "both_transactions_per_second": round(inputs.manifest.transactions / total, 1),
        "warm_up_seconds": round(warm_up, 3),
        "peak_rss_mib_after_warm_up": before >> 10,
        "peak_rss_mib": peak_rss_kib() >> 10,
    }


def _scan_and_map(folder: WorkFolder, mapped: list[str]) -> dict[str, float]:
    """Seconds of a scan of all segments, which every plan needs, and of a map of the segments ``mapped``."""
    inputs, engine = read_inputs(folder), InProcess()
    names = [segment.name for segment in inputs.manifest.segments]
    began = time.perf_counter()
    rows = list(engine.run("scan", partial(scan_task, folder.uri, inputs.key), [names]))
    scan = time.perf_counter() - began
    scans = (from_wire(ScanSummary, row) for row in rows)
    routing = merge_scans(inputs.manifest, scans, inputs.settings, inputs.schema)
    context = routing.to_json()
    folder.child(inputs.key).write_once(files.CONTEXT, context)
    began = time.perf_counter()
    list(engine.run("map", partial(map_task, WorkerInputs.of(folder, inputs.key, context)), [mapped]))
    return {"scan": round(scan, 4), "map": round(time.perf_counter() - began, 4)}


def log_reader_seconds(source: PrivateServer, logs: list[Path]) -> float:
    """The server's own log reader, text to /dev/null: the plain form, rows as base64 and not decoded."""
    began = time.perf_counter()
    command = [str(source.tool("binlog")), "--no-defaults", *map(str, logs)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def peer_mb_per_second(source: PrivateServer, first: str) -> float | None:
    """python-mysql-replication over the log's beginning, rows decoded; None where it is not installed."""
    if importlib.util.find_spec("pymysqlreplication") is None:
        return None
    login = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
    answer: float = in_fresh_process(_read_by_peer, login, first).answer
    return answer


def _read_by_peer(login: dict[str, Any], first: str) -> float:
    """Million bytes a second of its first seconds: it is too slow to wait for its end."""
    from pymysqlreplication import BinLogStreamReader

    # its MariaDB mode loses the connection to 10.11 at once; without it the rows are the same
    stream = BinLogStreamReader(
        connection_settings=login, server_id=4_000_001, log_file=first, log_pos=4, resume_stream=True, blocking=False
    )
    began, read = time.perf_counter(), 0
    for event in stream:
        # rows are decoded when they are asked for
        len(getattr(event, "rows", ()))
        if stream.log_file == first:
            read = max(read, stream.log_pos)
        if time.perf_counter() - began > _PEER_SECONDS or stream.log_file != first:
            break
    seconds = time.perf_counter() - began
    stream.close()
    return round(read / seconds / 1e6, 2)


def start_cpu_seconds(uri: str) -> dict[str, float]:
    """CPU of what workers are forked from, once an executor, until it is ready; and what a worker's first segment
    takes more than its next."""
    folder = WorkFolder(uri)
    inputs = read_inputs(folder)
    name = min(inputs.manifest.segments, key=lambda segment: segment.bytes).name
    command = [sys.executable, "-m", "benchmarks.worker_start", uri, inputs.key, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    daemon, worker = map(float, done.stdout.split()[1:])
    return {"daemon": round(daemon, 3), "worker": round(worker, 3)}


def jvm_seconds() -> float | None:
    """Start of a JVM with Spark up to its first result; None where Spark does not start."""
    done = subprocess.run([sys.executable, "-c", _JVM], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("seconds "):
            return round(float(line.split()[1]), 2)
    return None


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server that writes the log.")] = Flavor.MARIADB,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "tenants",
    transactions: Annotated[int, typer.Option(min=1, help="Transactions of the smallest window.")] = 60_032,
    sizes: Annotated[str, typer.Option(help="Windows, as multiples of --transactions, ascending.")] = "1,4",
    lanes: Annotated[int, typer.Option(min=1, help="Lanes of the plan.")] = 4,
    reduce: Annotated[str, typer.Option(help="blocks.reduce: block folds, off replays.")] = "block",
    block: Annotated[int, typer.Option(min=1, help="Source transactions a block.")] = 1000,
    compressed: Annotated[bool, typer.Option(help="The source compresses its log.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Passes over each window; their median is shown.")] = 3,
    spark: Annotated[bool, typer.Option(help="Measure the start of a JVM with Spark as well.")] = True,
    data: Annotated[Path | None, typer.Option(help="Folder for logs and windows; default: a temporary one.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/filter-....json.")
    ] = None,
) -> None:
    """Measure, print a table and write the result."""
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"unknown workload {workload!r}; known: {', '.join(WORKLOADS)}")
    factors = [int(size) for size in sizes.split(",")]
    if factors != sorted(set(factors)) or factors[0] < 1:
        raise typer.BadParameter(f"--sizes: expected ascending factors such as 1,4, got {sizes}")
    with tempfile.TemporaryDirectory(prefix="binlane-filter-", dir=data) as folder:
        lab = Lab(Path(folder), flavor, durable=False, target_log=False, buffer_pool_mib=512)
        result: dict[str, Any] = {
            "benchmark": "filter",
            "arguments": {
                "flavor": flavor.value, "workload": workload, "transactions": transactions, "sizes": factors,
                "lanes": lanes, "reduce": reduce, "block": block, "runs": runs, "compressed": compressed,
            },
            "machine": machine.machine(lab.folder),
            "jvm_start_seconds": jvm_seconds() if spark else None,
        }  # fmt: skip
        result |= _measure(
            lab, workload, transactions, factors, Channel("window", lanes, block, reduce), runs, compressed
        )
    path = output or machine.RESULTS / f"filter-{flavor.value}-{workload}-{reduce}{'-compressed' * compressed}.json"
    machine.write_result(path, result)
    _print(result)
    console.print(f"[dim]{path}[/]")


def _measure(
    lab: Lab, workload: str, transactions: int, factors: list[int], choice: Channel, runs: int, compressed: bool
) -> dict[str, Any]:
    kind, windows, written = WORKLOADS[workload], {}, 0
    make_base(lab, kind)
    source, target = start_source(lab, compressed=compressed), lab.start("target", log=False)
    writer = TrafficWriter(source, kind)
    try:
        for factor in factors:
            # the log goes on growing: every window begins at its oldest file
            traffic = writer.write(transactions * (factor - written))
            written = factor
            named = replace(choice, name=f"x{factor}")
            windows[f"{factor}x"] = _window(lab, source, target, traffic, named, runs, factor == factors[0])
            if kind.transactions is not None:
                break
        facts = machine.server_facts(source, ("binlog_format", "binlog_row_image", "binlog_checksum"))
    finally:
        source.stop()
        target.stop()
    return {"source": facts, "windows": windows}


def _window(
    lab: Lab,
    source: PrivateServer,
    target: PrivateServer,
    traffic: Traffic,
    choice: Channel,
    runs: int,
    is_smallest: bool,
) -> dict[str, Any]:
    channel, endpoints = open_channel(choice, source, target, lab.folder / choice.name)
    load, began = machine.load(), time.monotonic()
    work = steps.extract(channel, endpoints, WindowRequest(NOW, dry_run=True))["work"]
    extracted = time.monotonic() - began
    found: dict[str, Any] = in_fresh_process(filter_window, work, runs).answer
    seconds = log_reader_seconds(source, list(traffic.files))
    peer = peer_mb_per_second(source, traffic.files[0].name) if is_smallest else None
    start = start_cpu_seconds(work) if is_smallest else None
    console.print(f"  {choice.name}: {found['bytes'] / 1e6:.1f} MB, {found['both_mb_per_second']} MB/s a core")
    WorkFolder(work).remove()
    return found | {
        "load_before": load,
        "start_cpu_seconds": start,
        "extract_seconds": round(extracted, 3),
        "extract_mb_per_second": round(found["bytes"] / extracted / 1e6, 1),
        "peer_reader_mb_per_second": peer,
        "log_reader_seconds": round(seconds, 3),
        "log_reader_mb_per_second": round(traffic.log_bytes / seconds / 1e6, 1),
    }


def _print(result: dict[str, Any]) -> None:
    windows, arguments = result["windows"], result["arguments"]
    table = Table(
        "", *windows,
        title=f"filter, {arguments['workload']}, reduce {arguments['reduce']}, {result['source']['version']}",
        caption="one core; JVM start apart",
    )  # fmt: skip
    rows = (
        ("window, MB", "bytes", 1e-6), ("transactions", "transactions", 1), ("segments", "segments", 1),
        ("scan, MB/s", "scan_mb_per_second", 1), ("map, MB/s", "map_mb_per_second", 1),
        ("scan and map, MB/s", "both_mb_per_second", 1), ("scan and map, txn/s", "both_transactions_per_second", 1),
        ("the server's log reader, MB/s", "log_reader_mb_per_second", 1),
        ("python-mysql-replication, MB/s", "peer_reader_mb_per_second", 1),
        ("extract, MB/s", "extract_mb_per_second", 1),
        ("peak MiB after the warm-up", "peak_rss_mib_after_warm_up", 1), ("peak MiB", "peak_rss_mib", 1),
    )  # fmt: skip
    for label, key, scale in rows:
        values = (window[key] for window in windows.values())
        table.add_row(
            label,
            *(
                "" if value is None else f"{value * scale:,.4g}" if value < 10 else f"{value * scale:,.0f}"
                for value in values
            ),
        )
    console.print(table)
    for window in windows.values():
        if (worker := window["start_cpu_seconds"]) is not None:
            console.print(
                f"[dim]a worker is at work after {worker['worker']} s of CPU; what workers are forked from, once an "
                f"executor, after {worker['daemon']} s[/]"
            )
    if (start := result["jvm_start_seconds"]) is not None:
        console.print(f"[dim]a JVM with Spark is up after {start} s[/]")


if __name__ == "__main__":
    typer.run(main)
