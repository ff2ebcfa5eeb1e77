"""A window's rows verified, beside the apply of the same window: ``python -m benchmarks.verification``.

Ends with 1 if a verification does not find all rows equal. Each run writes the table in docs/comparison.md from the
stored results of both families.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks import machine
from benchmarks.channel import Channel, endpoints_of, file_of, run_window
from benchmarks.fresh import in_fresh_process
from benchmarks.private import MEASURED_SETTINGS, Lab, TrafficWriter, make_base, start_source
from benchmarks.ways import apply_lanes
from benchmarks.workloads import WORKLOADS
from binlane.config import load_channel
from binlane.model import Flavor
from binlane.orchestration.commands.verify import verify_channel
from binlane.state.records.verifications import CLEAN
from binlane.verify.outcome import Options
from lab.written import replaced

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
PAGE: Final = Path(__file__).parents[1] / "docs" / "comparison.md"
_BEGIN: Final = "<!-- table: written by `python -m benchmarks.verification` from benchmarks/results -->\n"
_END: Final = "<!-- end of table -->\n"
_NAMES: Final[Mapping[Flavor, str]] = {Flavor.MARIADB: "MariaDB", Flavor.MYSQL: "MySQL"}
_COLUMNS: Final = (
    "servers",
    "`blocks.reduce`",
    "transactions",
    "rows compared",
    "start of the lanes",
    "apply",
    "verify",
    "verify / apply",
    "verify / start and apply",
    *(f"CPU of {who}" for who in ("binlane", "the source", "the target")),
    "machine",
)
_WORKLOAD: Final = "tenants"
_REDUCE: Final = "block"


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server of source and targets.")] = Flavor.MARIADB,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = _WORKLOAD,
    transactions: Annotated[int, typer.Option(min=1, help="Transactions of the window.")] = 60_032,
    lanes: Annotated[int, typer.Option(min=1, help="Lanes of the plan.")] = 4,
    reduce: Annotated[str, typer.Option(help="A value of blocks.reduce.")] = _REDUCE,
    runs: Annotated[int, typer.Option(min=1, help="Measurements, each with a fresh target.")] = 3,
    data: Annotated[Path | None, typer.Option(help="Folder for servers and windows; default: a temporary one.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/verification-....json.")
    ] = None,
) -> None:
    """Measure, print the ratios, write the result and the table of the documentation."""
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"expected a workload of {', '.join(WORKLOADS)}")
    choice = Channel("verified", lanes, 1000, reduce, WORKLOADS[workload].shard_list)
    with tempfile.TemporaryDirectory(prefix="binlane-verification-", dir=data) as folder:
        lab = Lab(Path(folder), flavor, durable=True, target_log=True, buffer_pool_mib=1024)
        result: dict[str, Any] = {
            "benchmark": "verification",
            "arguments": {
                "flavor": flavor.value, "workload": workload, "transactions": transactions, "lanes": lanes,
                "reduce": reduce, "runs": runs,
            },
            "machine": machine.machine(lab.folder),
            **_measure(lab, workload, transactions, runs, choice),
        }  # fmt: skip
    machine.write_result(output or _result_of(flavor, workload, reduce), result)
    if output is None:
        PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    console.print(
        f"{result['rows']:,} rows of {result['transactions']:,} transactions: apply {result['apply_seconds']:.2f} s, "
        f"verify {result['verify_seconds']:.2f} s, ratio {result['ratio']:.2f}"
    )
    if not all(run["state"] == CLEAN for run in result["runs"]):
        sys.exit(1)


def rendered(page: str) -> str:
    """The page with the table between its two marks replaced. Raises ValueError if a mark is missing."""
    return replaced(page, _BEGIN, _END, f"{''.join(_table())}\n", f"{PAGE}: the table")


def _table() -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"
    for flavor, reduce in itertools.product(_NAMES, (_REDUCE, "auto")):
        file = _result_of(flavor, _WORKLOAD, reduce)
        if file.exists():
            found = json.loads(file.read_text("utf-8"))
            loads = [run["load_before"][0] for run in found["runs"]]
            cpu = (f"{found['cpu_seconds'][who]:.2f} s" for who in ("binlane", "source", "target"))
            cells = (
                f"{_NAMES[flavor]} {found['source']['version']}",
                f'"{reduce}"',
                f"{found['transactions']:,}",
                f"{found['rows']:,}",
                f"{found['start_seconds']:.2f} s",
                f"{found['apply_seconds']:.2f} s",
                f"{found['verify_seconds']:.2f} s",
                f"{found['ratio']:.2f}",
                f"{found['ratio_with_start']:.2f}",
                *cpu,
                f"{found['machine']['cores']} cores, load {min(loads):.1f} to {max(loads):.1f}",
            )
            yield f"| {' | '.join(cells)} |\n"


def _result_of(flavor: Flavor, workload: str, reduce: str) -> Path:
    way = "" if reduce == _REDUCE else f"-{reduce}"
    return machine.RESULTS / f"verification-{flavor.value}-{workload}{way}.json"


def _measure(lab: Lab, workload: str, transactions: int, runs: int, choice: Channel) -> dict[str, Any]:
    make_base(lab, WORKLOADS[workload])
    source, measured = start_source(lab), []
    try:
        traffic = TrafficWriter(source, WORKLOADS[workload]).write(transactions)
        for number in range(runs):
            with lab.target("target") as target:
                run = _run(source, target, choice, lab.folder / f"run{number}")
            measured.append(run)
            console.print(f"  apply {run['apply_seconds']:.2f} s, verify {run['verify_seconds']:.2f} s, {run['state']}")
        facts = machine.server_facts(source, MEASURED_SETTINGS)
    finally:
        source.stop()

    def median(name: str) -> float:
        return round(float(statistics.median(run[name] for run in measured)), 3)

    return {
        "transactions": traffic.transactions,
        "bytes": traffic.log_bytes,
        "rows": measured[0]["rows"],
        "start_seconds": median("start_seconds"),
        "apply_seconds": median("apply_seconds"),
        "verify_seconds": median("verify_seconds"),
        "ratio": round(median("verify_seconds") / median("apply_seconds"), 2),
        "ratio_with_start": round(median("verify_seconds") / (median("start_seconds") + median("apply_seconds")), 2),
        "cpu_seconds": {
            who: round(statistics.median(run["cpu_seconds"][who] for run in measured), 2)
            for who in measured[0]["cpu_seconds"]
        },
        "runs": measured,
        "source": facts,
    }


def _run(source: PrivateServer, target: PrivateServer, choice: Channel, folder: Path) -> dict[str, Any]:
    """One window, then its verification."""
    load = machine.load()
    applied = run_window(choice, source, target, folder, apply_lanes)
    before = machine.cpu_seconds(source.pid), machine.cpu_seconds(target.pid)
    verified = in_fresh_process(_verify, load_channel(file_of(choice, folder)), endpoints_of(source, target))
    used = [machine.cpu_seconds(each.pid) - then for each, then in zip((source, target), before, strict=True)]
    return {
        "start_seconds": applied["start_up_seconds"],
        "apply_seconds": applied["apply_seconds"],
        "verify_seconds": verified.seconds,
        "rows": verified.answer["rows"],
        "state": verified.answer["state"],
        "cpu_seconds": {
            "binlane": round(verified.answer["cpu_seconds"], 2), "source": round(used[0], 2),
            "target": round(used[1], 2),
        },
        "peak_rss_mib": verified.peak_rss_mib,
        "load_before": load,
    }  # fmt: skip


def _verify(channel: ChannelConfig, endpoints: Endpoints) -> dict[str, Any]:
    began = sum(os.times()[:2])
    outcome = verify_channel(channel, endpoints, Options())
    return {"rows": outcome.counts.rows, "state": outcome.state, "cpu_seconds": sum(os.times()[:2]) - began}


if __name__ == "__main__":
    typer.run(main)
