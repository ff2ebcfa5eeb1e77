"""A window's steps at 1x, 4x and 16x the log: ``python -m benchmarks.scale``.

Time has to grow with the log and memory not at all. Every step runs in an interpreter of its own, without a JVM and
without Airflow; what those cost, whatever the window's size, is measured apart. ``--whole`` measures ``binlane run``
and the server's own replica on the same log, each on a target of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import Channel, open_channel
from benchmarks.filter import jvm_seconds
from benchmarks.fresh import Fresh, in_fresh_process
from benchmarks.native import NOT_EQUAL
from benchmarks.private import MEASURED_SETTINGS, Lab, TrafficWriter, has_the_same, make_base, start_source
from benchmarks.ways import COMMAND, BenchmarkError, Job, Way, apply_lanes, ways
from benchmarks.workloads import WORKLOADS
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import NOW, WindowRequest
from binlane.work.files import Digests, WorkFolder
from binlane.work.plan_job.job import LocalProcesses, run_plan_job
from binlane.work.plan_job.made import made_here

if TYPE_CHECKING:
    from benchmarks.private import Traffic
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
STEPS: Final = ("extract", "filter", "check", "apply", "advance")


def _extract(channel: ChannelConfig, endpoints: Endpoints) -> Any:
    return steps.extract(channel, endpoints, WindowRequest(NOW))


def _filter(work: str, processes: int) -> tuple[list[int], Digests | None]:
    """The lanes, and what the job has made: another process adopts the plan."""
    return list(run_plan_job(WorkFolder(work), LocalProcesses(processes)).all_lanes), made_here(work)


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server of source and targets.")] = Flavor.MARIADB,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "tenants",
    transactions: Annotated[int, typer.Option(min=1, help="Transactions of the smallest window.")] = 60_032,
    sizes: Annotated[str, typer.Option(help="Windows, as multiples of --transactions, ascending.")] = "1,4,16",
    lanes: Annotated[int, typer.Option(min=2, help="Lanes of the plan.")] = 4,
    reduce: Annotated[str, typer.Option(help="A value of blocks.reduce.")] = "block",
    block: Annotated[int, typer.Option(min=1, help="Source transactions a block.")] = 1000,
    durable: Annotated[bool, typer.Option("--durable/--not-durable", help="Of the targets.")] = True,
    buffer_pool: Annotated[int, typer.Option(min=64, help="InnoDB buffer pool of every server, MiB.")] = 1024,
    whole: Annotated[
        str,
        typer.Option(
            help='Measured on the same log as well: "binlane run", "START REPLICA", "replica, 8 threads"; by semicolon.'
        ),
    ] = "",
    runs: Annotated[int, typer.Option(min=1, help="Measurements of the command of --whole; its median is shown.")] = 1,
    kept: Annotated[
        Path | None, typer.Option(help="Folder of a source that stays: a later call measures its log again.")
    ] = None,
    spark: Annotated[bool, typer.Option(help="Measure the start of a JVM with Spark as well.")] = True,
    data: Annotated[Path | None, typer.Option(help="Folder for servers and windows; default: a temporary one.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/scale-....json.")
    ] = None,
) -> None:
    """Measure, compare, print a table and write the result."""
    factors = [int(size) for size in sizes.split(",")]
    if workload not in WORKLOADS or factors != sorted(set(factors)) or factors[0] < 1:
        raise typer.BadParameter(f"expected a workload of {', '.join(WORKLOADS)} and ascending sizes such as 1,4,16")
    choice = Channel("window", lanes, block, reduce, WORKLOADS[workload].shard_list)
    beside = _known_ways(whole, lanes)
    with contextlib.ExitStack() as stack:
        place = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binlane-scale-", dir=data)))
        place.mkdir(parents=True, exist_ok=True)
        lab = Lab(place, flavor, durable=durable, target_log=True, buffer_pool_mib=buffer_pool)
        result: dict[str, Any] = {
            "benchmark": "scale",
            "arguments": {
                "flavor": flavor.value, "workload": workload, "transactions": transactions, "sizes": factors,
                "lanes": lanes, "reduce": reduce, "block": block, "durable": durable, "buffer_pool_mib": buffer_pool,
                "runs": runs,
            },
            "machine": machine.machine(lab.folder),
            "jvm_start_seconds": jvm_seconds() if spark else None,
            **_measure(lab, workload, transactions, factors, choice, beside, runs),
        }  # fmt: skip
    path = output or machine.RESULTS / f"scale-{flavor.value}-{workload}-{reduce}.json"
    machine.write_result(path, result)
    _print(result)
    console.print(f"[dim]{path}[/]")
    if not all(window["equal"] for window in result["windows"].values()):
        sys.exit(1)


def _known_ways(names: str, lanes: int) -> dict[str, Way]:
    known = {name: way for name, way in ways([lanes], [], [], [], []).items() if way.native or name == COMMAND}
    wanted = [name.strip() for name in names.split(";") if name.strip()]
    if unknown := [name for name in wanted if name not in known]:
        raise typer.BadParameter(f"--whole: {unknown[0]!r} is not one of {', '.join(known)}")
    return {name: known[name] for name in wanted}


def _measure(
    lab: Lab, workload: str, transactions: int, factors: list[int], choice: Channel, beside: dict[str, Way], runs: int
) -> dict[str, Any]:
    kind, windows, written = WORKLOADS[workload], {}, 0
    stayed = (lab.folder / "source").exists()
    if not stayed:
        make_base(lab, kind)
    source = start_source(lab)
    writer = TrafficWriter(source, kind)
    try:
        for factor in factors:
            # the log goes on growing: every window begins at its oldest file
            traffic = writer.written() if stayed else writer.write(transactions * (factor - written))
            written = factor
            window = f"{factor}x"
            with lab.target("target") as target:
                folder = lab.folder / window
                windows[window] = _window(source, target, traffic, replace(choice, name=f"x{factor}"), folder)
            whole = replace(choice, name=f"whole{factor}")
            # the replica takes so long that its minutes are a mean by themselves
            windows[window]["whole"] = {
                name: _medians(
                    [_whole(lab, way, source, traffic, whole) for _ in range(runs if name == COMMAND else 1)]
                )
                for name, way in beside.items()
            }
            windows[window]["equal"] &= all(each["equal"] for each in windows[window]["whole"].values())
        facts = machine.server_facts(source, MEASURED_SETTINGS)
    finally:
        source.stop()
    return {"source": facts, "windows": windows}


def _whole(lab: Lab, way: Way, source: PrivateServer, traffic: Traffic, choice: Channel) -> dict[str, Any]:
    """One way from its start to its last commit, on a target of its own."""
    folder, load = lab.folder / "whole", machine.load()
    with lab.target("target", way.options.get(lab.flavor, ())) as target:
        used = machine.cpu_seconds(target.pid)
        timing = way.run(Job(source, target, traffic, folder, choice))
        used = round(machine.cpu_seconds(target.pid) - used, 1)
        equal = has_the_same(source, target)
    shutil.rmtree(folder, ignore_errors=True)
    console.print(f"  {timing.seconds:.1f} s")
    return {"seconds": round(timing.seconds, 2), "target_cpu_seconds": used, "equal": equal, "load_before": load}


def _medians(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Of one way's measurements; equal if all were."""
    return {
        **{name: statistics.median(each[name] for each in measured) for name in ("seconds", "target_cpu_seconds")},
        "equal": all(each["equal"] for each in measured),
        "load_before": [max(loads) for loads in zip(*(each["load_before"] for each in measured), strict=True)],
        "runs": measured,
    }


def _window(
    source: PrivateServer, target: PrivateServer, traffic: Traffic, choice: Channel, folder: Path
) -> dict[str, Any]:
    """One window through all of its steps; seconds and peak memory of each."""
    load = machine.load()
    channel, endpoints = open_channel(choice, source, target, folder)
    extracted = in_fresh_process(_extract, channel, endpoints)
    work = extracted.answer["work"]
    filtered = in_fresh_process(_filter, work, os.cpu_count() or 1)
    disk = sum(file.stat().st_size for file in Path(work).rglob("*") if file.is_file())
    lanes, made = filtered.answer
    checked = in_fresh_process(steps.adopt_plan, channel, endpoints, work, None, "", made)
    plan = checked.answer["plan"]
    try:
        applied = apply_lanes(channel, endpoints, plan, lanes)
    except BenchmarkError as exc:
        console.print(f"[red]✗[/] {exc}", markup=True)
        raise typer.Exit(1) from exc
    peak = max(lane["peak_rss_mib"] for lane in applied["lanes"])
    advanced = in_fresh_process(steps.advance, channel, endpoints, plan)
    measured = dict(
        zip(STEPS, (extracted, filtered, checked, Fresh(None, applied["apply_seconds"], peak), advanced), strict=True)
    )
    total = sum(step.seconds for step in measured.values())
    console.print(f"  {choice.name}: {traffic.transactions:,} transactions in {total:.1f} s")
    equal = has_the_same(source, target)
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "transactions": traffic.transactions,
        "bytes": traffic.log_bytes,
        "load_before": load,
        "seconds": {name: step.seconds for name, step in measured.items()},
        "peak_rss_mib": {name: step.peak_rss_mib for name, step in measured.items()},
        "work_folder_bytes": disk,
        "equal": equal,
    }


def _print(result: dict[str, Any]) -> None:
    windows, arguments = result["windows"], result["arguments"]
    table = Table(
        "", *windows,
        title=f"scale, {arguments['workload']}, reduce {arguments['reduce']}, {arguments['lanes']} lanes",
        caption="seconds without the interpreter's start; MiB: peak of the step's largest process",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    table.add_row("transactions", *(f"{window['transactions']:,}" for window in windows.values()))
    table.add_row("log, MB", *(f"{window['bytes'] / 1e6:,.0f}" for window in windows.values()))
    for unit in ("seconds", "peak_rss_mib"):
        for name in STEPS:
            table.add_row(f"{name}, {unit}", *(f"{window[unit][name]:,.1f}" for window in windows.values()))
    disks = (window["work_folder_bytes"] for window in windows.values())
    table.add_row("work folder, MB", *(f"{disk / 1e6:,.0f}" for disk in disks))
    for name in dict.fromkeys(name for window in windows.values() for name in window["whole"]):
        table.add_row(f"{name}, whole", *(f"{window['whole'][name]['seconds']:,.1f}" for window in windows.values()))
    table.add_row("same data", *("yes" if window["equal"] else f"[red]{NOT_EQUAL}[/]" for window in windows.values()))
    console.print(table)
    if (start := result["jvm_start_seconds"]) is not None:
        console.print(f"[dim]a JVM with Spark is up after {start} s, once a window[/]")


if __name__ == "__main__":
    typer.run(main)
