"""The same log, applied by the target's own replica, the client pipe and binlane: ``python -m benchmarks.native``.

Ratios of one run are what counts: absolute figures belong to a machine and its load. Ends with 1 if a target does not
hold what the source holds, or a way fails.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import Channel
from benchmarks.private import MEASURED_SETTINGS, Lab, Traffic, TrafficWriter, make_base, start_source
from benchmarks.ways import BenchmarkError, Job, Timing, Way, Ways, ways
from benchmarks.workloads import WORKLOADS, Workload
from binlane.errors import BinlaneError
from binlane.model import Flavor
from lab.compare import contents
from lab.programs import LabError
from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
NOT_EQUAL: Final = "NOT EQUAL"


@dataclass(frozen=True, slots=True)
class Tuned:
    """What the command line sets of every channel."""

    block: int
    fold_gap: int | None


class Run:
    """One source, and as many measurements against it as are asked for."""

    def __init__(
        self,
        lab: Lab,
        source: PrivateServer,
        workload: Workload,
        traffic: Traffic,
        tuned: Tuned,
        first: Traffic | None = None,
    ) -> None:
        self._lab, self._source, self._workload, self._traffic, self._tuned = lab, source, workload, traffic, tuned
        self._first = first
        self._expected = contents(source)

    def measure(self, name: str, way: Way) -> dict[str, Any]:
        """Apply the log to a fresh target by one way; its timing, and whether both servers hold the same then."""
        load = machine.load()
        folder = Path(tempfile.mkdtemp(dir=self._lab.folder))
        tuned = self._tuned
        channel = Channel(
            "benchmark",
            way.lanes or 1,
            tuned.block,
            way.reduce,
            self._workload.shard_list,
            tuned.fold_gap,
            way.writer,
            way.divide,
            self._workload.divided,
            way.commit,
            way.row_images,
        )
        with self._lab.target("target", way.options.get(self._lab.flavor, ())) as target:
            settings, used = machine.server_facts(target, MEASURED_SETTINGS), machine.cpu_seconds(target.pid)
            try:
                job = Job(self._source, target, self._traffic, folder, channel, self._first)
                if self._first is not None and way.first is not None:
                    way.first(job)
                    used = machine.cpu_seconds(target.pid)
                timing = way.run(job)
            except (BenchmarkError, BinlaneError) as exc:
                console.print(f"[red]✗[/] {name}: {exc}", markup=True)
                return {"error": str(exc), "equal": False, "load_before": load, "settings": settings}
            used = round(machine.cpu_seconds(target.pid) - used, 2)
            equal = self._is_equal(target)
        shutil.rmtree(folder, ignore_errors=True)
        console.print(f"  {name}: {timing.seconds:.2f} s{'' if equal else ', ' + NOT_EQUAL}")
        row = self._row(timing) | {"target_cpu_seconds": used}
        return row | {"equal": equal, "load_before": load, "settings": settings}

    def _row(self, timing: Timing) -> dict[str, Any]:
        rate = (self._traffic.transactions - (0 if self._first is None else self._first.transactions)) / timing.seconds
        return {
            "seconds": round(timing.seconds, 3),
            "transactions_per_second": round(rate, 1 if rate > 100 else 6),
            **timing.details,
        }

    def _is_equal(self, target: PrivateServer) -> bool:
        found = contents(target)
        return {name: text for name, text in found.items() if name.startswith(("data of", "table"))} == {
            name: text for name, text in self._expected.items() if name.startswith(("data of", "table"))
        }


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server of source and targets.")] = Flavor.MARIADB,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "tenants",
    transactions: Annotated[int, typer.Option(min=1, help="Transactions in the log.")] = 60_032,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable/--not-durable", help="sync_binlog and innodb_flush_log_at_trx_commit of targets: 1 or 0."
        ),
    ] = True,
    target_log: Annotated[bool, typer.Option(help="Targets write a binary log of their own.")] = True,
    lanes: Annotated[str, typer.Option(help="binlane's lanes, each measured; 1 keeps the source's order.")] = "1,4",
    reduce: Annotated[str, typer.Option(help="Values of blocks.reduce, each measured: off replays.")] = "off,block",
    block: Annotated[int, typer.Option(min=1, help="Source transactions a block.")] = 1000,
    writers: Annotated[str, typer.Option(help="Values of apply.writer, each measured: binlog, sql.")] = "binlog",
    fold_gap: Annotated[int | None, typer.Option(min=0, help="lanes.fold_gap; without: the product's default.")] = None,
    divide: Annotated[
        str, typer.Option(help="Values of lanes.divide, each measured with every database divided: key, table.")
    ] = "",
    commit: Annotated[
        str, typer.Option(help="Values of lanes.commit, each measured with every database divided: alone, together.")
    ] = "alone",
    row_images: Annotated[str, typer.Option(help="Values of apply.row_images, each measured: auto, full.")] = "auto",
    runs: Annotated[
        int, typer.Option(min=1, help="Measurements of each way, the two slowest ones once; medians are shown.")
    ] = 1,
    only: Annotated[str, typer.Option(help="Only ways whose names contain one of these, by comma.")] = "",
    after: Annotated[
        int, typer.Option(min=0, help="Transactions that each way applies before its clock starts: a later window.")
    ] = 0,
    buffer_pool: Annotated[int, typer.Option(min=64, help="InnoDB buffer pool of every server, MiB.")] = 1024,
    binlog_cache: Annotated[int, typer.Option(min=0, help="binlog_cache_size of all servers, MiB; 0: default.")] = 0,
    data: Annotated[Path | None, typer.Option(help="Folder for the servers' data; default: a temporary one.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/native-....json.")
    ] = None,
) -> None:
    """Measure, compare, print a table and write the result."""
    _check_known(workload)
    chosen = _chosen(lanes, reduce, writers, divide, row_images, commit, only)
    _check_later(after, chosen)
    arguments = {
        "flavor": flavor.value, "workload": workload, "transactions": transactions, "durable": durable,
        "target_log": target_log, "lanes": lanes, "reduce": reduce, "block": block,
        "fold_gap": fold_gap, "writers": writers, "divide": divide, "commit": commit, "row_images": row_images,
        "runs": runs, "after": after, "buffer_pool_mib": buffer_pool,
        "binlog_cache_mib": binlog_cache,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="binlane-native-", dir=data) as folder:
        lab = Lab(Path(folder), flavor, durable, target_log, buffer_pool, binlog_cache)
        result: dict[str, Any] = {"benchmark": "native", "arguments": arguments, "machine": machine.machine(lab.folder)}
        try:
            result |= _measure_all(lab, WORKLOADS[workload], transactions, after, Tuned(block, fold_gap), runs, chosen)
        except LabError as exc:
            console.print(f"[red]✗[/] {exc}", markup=True)
            raise typer.Exit(1) from exc
    path = output or machine.RESULTS / _result_name(flavor, workload, durable)
    machine.write_result(path, result)
    _print(result)
    console.print(f"[dim]{path}[/]")
    if not all(row["equal"] for row in result["ways"].values()):
        sys.exit(1)


def _chosen(lanes: str, reduce: str, writers: str, divide: str, row_images: str, commit: str, only: str) -> Ways:
    """The ways of these options' values, each separated by commas, whose names contain a part of ``only``."""
    counts, divisions = (
        [int(count) for count in lanes.split(",") if count],
        [each for each in divide.split(",") if each],
    )
    known = ways(counts, reduce.split(","), writers.split(","), divisions, row_images.split(","), commit.split(","))
    parts = [part.strip() for part in only.split(",")]
    return {name: way for name, way in known.items() if any(part in name for part in parts)}


def _check_later(after: int, chosen: Ways) -> None:
    if after and (others := [name for name, way in chosen.items() if way.first is None]):
        raise typer.BadParameter(f"--after: only whole windows can begin later, not {others[0]!r}; say --only")


def _result_name(flavor: Flavor, workload: str, durable: bool) -> str:
    kind = "durable" if durable else "not-durable"
    named = "" if workload == "tenants" else f"-{workload}"
    return f"native-{flavor.value}-{kind}{named}.json"


def _check_known(workload: str) -> None:
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"unknown workload {workload!r}; known: {', '.join(WORKLOADS)}")


def _measure_all(
    lab: Lab, workload: Workload, transactions: int, after: int, tuned: Tuned, runs: int, chosen: Ways
) -> dict[str, Any]:
    make_base(lab, workload)
    source = start_source(lab)
    try:
        writer = TrafficWriter(source, workload)
        first = writer.write(after) if after else None
        traffic = writer.write(transactions)
        console.print(
            f"{traffic.transactions:,} transactions, {traffic.log_bytes / 1e6:.1f} MB of log, "
            f"written in {traffic.seconds:.1f} s"
        )
        run = Run(lab, source, workload, traffic, tuned, first)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
        # ways in turn, so that a slow minute of the machine is everybody's
        for turn in range(runs):
            for name, way in chosen.items():
                if not (turn and way.once):
                    found[name].append(run.measure(name, way))
        facts = machine.server_facts(source, MEASURED_SETTINGS)
    finally:
        source.stop()
    return {
        "log": {
            "transactions": traffic.transactions - (0 if first is None else first.transactions),
            "bytes": traffic.log_bytes - (0 if first is None else first.log_bytes),
            "files": len(traffic.files),
        },
        "source": facts,
        "ways": _summary(chosen, found),
    }


def _summary(chosen: Ways, found: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Per way its median and every measurement; ``ratio`` is to the best native replica of this very run: for a whole
    window to one that receives the log, too, for the apply step alone to one that has it."""
    medians = {
        name: statistics.median(each["transactions_per_second"] for each in measured)
        for name, measured in found.items()
        if all("error" not in each for each in measured)
    }
    best: dict[bool, float] = {}
    for name, rate in medians.items():
        if (way := chosen[name]).native:
            best[way.whole] = max(rate, best.get(way.whole, 0.0))
    return {
        name: {
            "transactions_per_second": medians.get(name),
            "ratio": None
            if way.whole not in best or name not in medians
            else round(medians[name] / best[way.whole], 2),
            "equal": all(each["equal"] for each in measured),
            "runs": measured,
        }
        for name, measured in found.items()
        for way in (chosen[name],)
    }


def _print(result: dict[str, Any]) -> None:
    arguments, log = result["arguments"], result["log"]
    safety = "durable" if arguments["durable"] else "not durable"
    table = Table(
        "way", "seconds", "CPU", "txn/s", "ratio",
        "extract", "filter", "check", "start-up", "advance", "MiB", "same data",
        title=f"{arguments['workload']}, {result['source']['version']}, {safety}, "
        f"{log['transactions']:,} transactions, {log['bytes'] / 1e6:.1f} MB",
        caption="apply alone; ratio to the best native replica of this run that has the log, of whole windows to the "
        "one that receives it; steps in seconds; "
        "CPU: seconds of the target; MiB: peak of a lane",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in result["ways"].items():
        last = row["runs"][-1]
        rate, ratio = row["transactions_per_second"], row["ratio"]
        peaks = [lane["peak_rss_mib"] for lane in last.get("lanes", ())]
        parts = ("extract", "filter", "check", "start_up", "advance")
        table.add_row(
            name,
            "failed" if rate is None else f"{log['transactions'] / rate:.2f}",
            f"{last['target_cpu_seconds']:.1f}" if "target_cpu_seconds" in last else "",
            "" if rate is None else f"{rate:,.0f}" if rate > 100 else f"{rate:.3f}",
            "" if ratio is None else f"{ratio:.2f}",
            *(f"{last[f'{part}_seconds']:.1f}" if f"{part}_seconds" in last else "" for part in parts),
            str(max(peaks)) if peaks else "",
            "yes" if row["equal"] else f"[red]{NOT_EQUAL}[/]",
        )
    console.print(table)
    found = result["machine"]
    console.print(
        f"[dim]{found['model']}, {found['cores']} cores, fdatasync of 4 KiB {found['fdatasync_4k_median_ms']} ms[/]"
    )


if __name__ == "__main__":
    typer.run(main)
