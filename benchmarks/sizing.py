"""The model of docs/sizing.md against measurements: ``python -m benchmarks.sizing``.

Two windows give what a row and a block cost target and lanes, and how many answers a block waits for. With these the
apply step is predicted for targets with one and two cores, answers that are late, and numbers of lanes, and then
measured. Ends with 1 if a target is not equal to its source.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks import machine
from benchmarks.channel import Channel, run_window
from benchmarks.distant import distance
from benchmarks.private import MEASURED_SETTINGS, Lab, TrafficWriter, has_the_same, make_base, start_source
from benchmarks.ways import apply_lanes
from benchmarks.workloads import WORKLOADS
from binlane.model import Flavor

if TYPE_CHECKING:
    from lab.servers import PrivateServer

console = Console(highlight=False)
_BLOCKS: Final = (50, 1000)
"""Transactions a block of the two windows that give the costs; the first size is the one of all predictions."""
_LANES: Final = 4
"""Of these windows."""
_BY_LOAD: Final = "(*)=-1\n(hash-method)=load\n"
"""Lanes with as many transactions each: the model has no fullest lane."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a window gives the apply step to do, as its plan says before anything is written."""

    rows: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Costs:
    """What a row and a block cost, in seconds of CPU, and the answers of the target that a block waits for."""

    target_row: float
    target_block: float
    lane_row: float
    lane_block: float
    answers_block: float
    answers_lane: float
    """Answers that a lane waits for at its beginning and end."""
    carried_answer: float
    """CPU of the proxy that makes answers late, which shares the cores; 0 on a real network."""

    def target(self, work: Work) -> float:
        """CPU seconds of the target."""
        return work.rows * self.target_row + work.blocks * self.target_block

    def lanes(self, work: Work) -> float:
        """CPU seconds of all lanes."""
        return work.rows * self.lane_row + work.blocks * self.lane_block


def predicted(costs: Costs, work: Work, *, target_cores: int, cores: int, lanes: int, late: float) -> float:
    """Seconds of the apply step: the largest of three bounds.

    No target computes more than its cores do, no machine more than its own, and a lane does one thing at a time: its
    rows and blocks, and waiting for their answers.

    ``cores``: of the machine, if target and lanes share it; ``late``: seconds that an answer is on its way.
    """
    target, lane = costs.target(work), costs.lanes(work)
    answers = work.blocks * costs.answers_block + lanes * costs.answers_lane
    carried = answers * costs.carried_answer
    return max(
        target / target_cores,
        (target + lane + carried) / cores,
        (target + lane + carried + answers * late) / lanes,
    )


def solved(first: tuple[Work, float], second: tuple[Work, float]) -> tuple[float, float]:
    """What a row and a block cost, so that two windows cost what they did; none costs less than nothing."""
    (one, spent_one), (two, spent_two) = first, second
    determinant = one.rows * two.blocks - two.rows * one.blocks
    row = (spent_one * two.blocks - spent_two * one.blocks) / determinant
    block = (one.rows * spent_two - two.rows * spent_one) / determinant
    return max(row, 0.0), max(block, 0.0)


def _measured(
    lab: Lab, source: PrivateServer, channel: Channel, late: float, target_cores: int
) -> tuple[Work, dict[str, Any]]:
    """One window onto a fresh target that may use so many cores, through a proxy whose answers are late."""
    load, folder = machine.load(), Path(tempfile.mkdtemp(dir=lab.folder))
    with lab.target("target") as target, distance(target.port, late) as proxy:
        _pin(target.pid, target_cores)
        used: dict[str, float] = {}

        def applied(*arguments: Any) -> dict[str, Any]:
            before = machine.cpu_seconds(target.pid), proxy.answers, _own_seconds()
            answer = apply_lanes(*arguments)
            used["target"] = machine.cpu_seconds(target.pid) - before[0]
            used["answers"] = proxy.answers - before[1]
            used["proxy"] = _own_seconds() - before[2]
            return answer

        taken = run_window(channel, source, replace(target, port=proxy.port), folder, applied)
        equal, settings = has_the_same(source, target), machine.server_facts(target, MEASURED_SETTINGS)
    work = Work(taken["rows_written"], sum(lane["blocks"] or 0 for lane in taken["lanes"]))
    return work, {
        "seconds": taken["apply_seconds"], "rows": work.rows, "blocks": work.blocks, "answers": int(used["answers"]),
        "target_cpu_seconds": round(used["target"], 3), "proxy_cpu_seconds": round(used["proxy"], 3),
        "lane_cpu_seconds": round(sum(lane["cpu_seconds"] for lane in taken["lanes"]), 3),
        "equal": equal, "load_before": load, "settings": settings,
    }  # fmt: skip


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _pin(pid: int, cores: int) -> None:
    """Let all threads of a server run on the first ``cores`` cores of this process alone; later threads inherit it."""
    allowed = set(sorted(os.sched_getaffinity(0))[:cores])
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), allowed)


def _costs(runs: list[tuple[Work, dict[str, Any]]]) -> Costs:
    (small, seen), (large, also) = runs
    target = solved((small, seen["target_cpu_seconds"]), (large, also["target_cpu_seconds"]))
    lane = solved((small, seen["lane_cpu_seconds"]), (large, also["lane_cpu_seconds"]))
    block = (seen["answers"] - also["answers"]) / (small.blocks - large.blocks)
    of_lane = (seen["answers"] - block * small.blocks) / _LANES
    return Costs(*target, *lane, block, of_lane, seen["proxy_cpu_seconds"] / seen["answers"])


def _workload(
    lab: Lab, name: str, transactions: int, cores: list[int], lanes: list[int], late: list[float]
) -> dict[str, Any]:
    workload = WORKLOADS[name]

    def channel(count: int, block: int) -> Channel:
        return Channel("sizing", count, block, "block", workload.shard_list + _BY_LOAD)

    make_base(lab, workload)
    source = start_source(lab)
    try:
        TrafficWriter(source, workload).write(transactions)
        calibrated = [_measured(lab, source, channel(_LANES, block), 0.0, max(cores)) for block in _BLOCKS]
        costs = _costs(calibrated)
        console.print(f"{name}: {costs}")
        runs = list(_predictions(lab, source, costs, channel, cores, lanes, late))
    finally:
        source.stop()
    return {
        "costs": {field: getattr(costs, field) for field in Costs.__dataclass_fields__},
        "calibration": [run for _, run in calibrated],
        "runs": runs,
        "median_error": round(statistics.median(abs(run["error"]) for run in runs), 3),
    }


def _predictions(
    lab: Lab, source: PrivateServer, costs: Costs, channel: Any, cores: list[int], lanes: list[int], late: list[float]
) -> Iterator[dict[str, Any]]:
    machine_cores = len(os.sched_getaffinity(0))
    for count, seconds, target_cores in product(lanes, late, cores):
        work, run = _measured(lab, source, channel(count, _BLOCKS[0]), seconds, target_cores)
        expected = predicted(
            costs, work, target_cores=target_cores, cores=machine_cores, lanes=count, late=seconds
        )  # fmt: skip
        error = run["seconds"] / expected - 1
        console.print(
            f"  {count} lanes, {target_cores} cores, {seconds * 1000:.0f} ms: {run['seconds']:.2f} s, "
            f"predicted {expected:.2f} s ({error:+.0%}){'' if run['equal'] else ', NOT EQUAL'}"
        )
        yield {
            "lanes": count, "target_cores": target_cores, "late_ms": seconds * 1000,
            "predicted_seconds": round(expected, 3), "error": round(error, 3), **run,
        }  # fmt: skip


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server of source and targets.")] = Flavor.MARIADB,
    workloads: Annotated[str, typer.Option(help="Workloads, by comma.")] = "tenants,inserts",
    transactions: Annotated[int, typer.Option(min=1, help="Transactions in each log.")] = 10_000,
    lanes: Annotated[str, typer.Option(help="Numbers of lanes, by comma.")] = "1,4,16",
    cores: Annotated[str, typer.Option(help="Cores of the target, by comma.")] = "1,2",
    milliseconds: Annotated[str, typer.Option(help="How late each answer arrives, by comma.")] = "1,5,20",
    output: Annotated[Path | None, typer.Option(help="Result; default: benchmarks/results/sizing-FLAVOR.json.")] = None,
) -> None:
    """Take the costs from two windows, predict and measure the others, write the result."""
    late = [float(each) / 1000 for each in milliseconds.split(",")]
    counts, target_cores = ([int(each) for each in text.split(",")] for text in (lanes, cores))
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="binlane-sizing-") as folder:
        about = machine.machine(Path(folder))
        for name in workloads.split(","):
            lab = Lab(Path(folder) / name, flavor, durable=True, target_log=True, buffer_pool_mib=512)
            lab.folder.mkdir()
            measured[name] = _workload(lab, name, transactions, target_cores, counts, late)
    result = {
        "benchmark": "sizing",
        "arguments": {"flavor": flavor.value, "transactions": transactions, "blocks": list(_BLOCKS)},
        "machine": about, "workloads": measured,
    }  # fmt: skip
    machine.write_result(output or machine.RESULTS / f"sizing-{flavor.value}.json", result)
    runs = [run for each in measured.values() for run in (*each["runs"], *each["calibration"])]
    if not all(run["equal"] for run in runs):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
