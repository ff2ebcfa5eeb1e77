"""The driver's part of the plan job over very many segments, simulated: ``python -m benchmarks.driver_folds``.

The scans and maps of a few segments of real traffic are folded again and again with later seqnos, as Spark's driver
folds what its executors return: from reading the manifest to writing the plan, in one process for each size.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.archive import extracted
from benchmarks.fresh import in_fresh_process, peak_rss_kib
from binlane.plan.manifest import Manifest
from binlane.plan.segment.map import MapSummary, ScanSummary
from binlane.plan.settings import PlanSettings
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.merge import make_plan, merge_scans
from binlane.schema.model import Schema
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import WorkerInputs, read_inputs
from binlane.work.plan_job.job import InProcess, batches_of
from binlane.work.plan_job.tasks import map_task, scan_task
from binlane.work.plan_job.wire import from_wire

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
_SUMMARIES: Final = "summaries.pickle"


@dataclass(frozen=True, slots=True)
class Summaries:
    """What the tasks return for the segments of a small window, and the window's inputs."""

    manifest: Manifest
    settings: PlanSettings
    schema: Schema
    scanned: Sequence[bytes]
    mapped: Sequence[bytes]

    def turns(self, count: int) -> Iterator[tuple[int, int]]:
        """For each of so many segments, which one it repeats, and what is added to its seqnos."""
        for number in range(count):
            turn, at = divmod(number, len(self.manifest.segments))
            yield at, turn * self.manifest.transactions


def summarize(uri: str, folder: Path) -> None:
    """Scan and map the window in the folder ``uri``, and keep what the tasks return."""
    work, engine = WorkFolder(uri), InProcess()
    inputs = read_inputs(work)
    batches = batches_of(inputs.manifest.segments)
    scanned = list(engine.run("scan", partial(scan_task, uri, inputs.key), batches))
    scans = (from_wire(ScanSummary, row) for row in scanned)
    routing = merge_scans(inputs.manifest, scans, inputs.settings, inputs.schema)
    context = routing.to_json()
    work.child(inputs.key).write_once(files.CONTEXT, context)
    mapped = list(engine.run("map", partial(map_task, WorkerInputs.of(work, inputs.key, context)), batches))
    found = Summaries(inputs.manifest, inputs.settings, inputs.schema, scanned, mapped)
    (folder / _SUMMARIES).write_bytes(pickle.dumps(found))


def lengthen(folder: Path, count: int) -> None:
    """Write the manifest of a window of ``count`` segments."""
    base = _summaries(folder)
    segments = []
    for number, (at, shift) in enumerate(base.turns(count)):
        one = base.manifest.segments[at]
        segments.append(
            replace(
                one, name=f"segments/{number:06d}.binlog",
                source_file=f"binlog.{number // len(base.manifest.segments) + 1:06d}",
                first_seqno=one.first_seqno + shift, last_seqno=one.last_seqno + shift,
            )
        )  # fmt: skip
    longer = replace(base.manifest, segments=tuple(segments), last_seqno=segments[-1].last_seqno)
    (folder / files.MANIFEST).write_bytes(longer.to_json())


def fold(folder: Path, count: int) -> dict[str, Any]:
    """Plan the window of ``lengthen`` as the driver does; the seconds of each fold, and bytes of what it reads, gets
    and writes."""
    base, work, before = _summaries(folder), WorkFolder(str(folder / str(count))), peak_rss_kib()
    clock = _Clock()
    manifest = Manifest.from_json((folder / files.MANIFEST).read_bytes(), files.MANIFEST)
    read = clock.lap()
    scans = (_later_scan(from_wire(ScanSummary, base.scanned[at]), shift) for at, shift in base.turns(count))
    routing = merge_scans(manifest, scans, base.settings, base.schema)
    work.write_once(files.CONTEXT, routing.to_json())
    scan = clock.lap()
    turns = enumerate(base.turns(count))
    window = MappedWindow.of(_later_map(from_wire(MapSummary, base.mapped[at]), shift, n) for n, (at, shift) in turns)
    mapped = clock.lap()
    plan = make_plan(manifest, routing, window)
    work.write_once(files.PLAN, plan.to_json())
    return {
        "segments": count,
        "transactions": manifest.transactions,
        "read_manifest_seconds": read,
        "scan_fold_seconds": scan,
        "map_fold_seconds": mapped,
        "plan_seconds": clock.lap(),
        "scan_result_bytes": max(map(len, base.scanned)),
        "map_result_bytes": max(map(len, base.mapped)),
        "manifest_bytes": (folder / files.MANIFEST).stat().st_size,
        "context_bytes": work.size(files.CONTEXT),
        "plan_bytes": work.size(files.PLAN),
        "barriers": len(routing.barriers),
        "peak_rss_mib_before": before >> 10,
    }


def _summaries(folder: Path) -> Summaries:
    # written by ``summarize``, a moment ago
    found: Summaries = pickle.loads((folder / _SUMMARIES).read_bytes())
    return found


def _later_scan(scan: ScanSummary, shift: int) -> ScanSummary:
    return replace(
        scan,
        databases={name: seqno + shift for name, seqno in scan.databases.items()},
        members=tuple((seqno + shift, number) for seqno, number in scan.members),
    )


def _later_map(summary: MapSummary, shift: int, number: int) -> MapSummary:
    moved = {
        lane: replace(
            file, name=f"lanes/{lane:04d}/{number:06d}.parquet",
            first_seqno=file.first_seqno + shift, last_seqno=file.last_seqno + shift,
        )
        for lane, file in summary.files.items()
    }  # fmt: skip
    return replace(summary, files=moved)


class _Clock:
    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> float:
        """Seconds since the last lap."""
        now = time.monotonic()
        found, self._since = round(now - self._since, 1), now
        return found


def main(
    segments: Annotated[str, typer.Option(help="Sizes of windows, in segments.")] = "1000,20000,100000",
    workload: Annotated[str, typer.Option(help="The traffic of the segments that are repeated.")] = "tenants",
    transactions: Annotated[int, typer.Option(min=1000, help="Transactions of these segments.")] = 150_000,
    output: Annotated[Path | None, typer.Option(help="Result file.")] = None,
) -> None:
    """Measure, print a table and write the result."""
    result: dict[str, Any] = {
        "benchmark": "driver-folds",
        "arguments": {"workload": workload, "transactions": transactions},
        "folds": [],
    }
    with tempfile.TemporaryDirectory(prefix="binlane-folds-") as name:
        folder = Path(name)
        result["machine"] = machine.machine(folder)
        base = extracted(folder / "base", transactions, workload)
        in_fresh_process(summarize, str(base.folder), folder)
        for count in map(int, segments.split(",")):
            in_fresh_process(lengthen, folder, count)
            load, fresh = machine.load(), in_fresh_process(fold, folder, count)
            result["folds"].append(
                {**fresh.answer, "peak_rss_mib": fresh.peak_rss_mib, "load_before": load, "load_after": machine.load()}
            )
            console.print(f"  {count:,} segments: {fresh.seconds:.0f} s, {fresh.peak_rss_mib} MiB")
            # minutes of work: what is measured is kept
            machine.write_result(output or machine.RESULTS / f"driver-folds-{workload}.json", result)
    _print(result)


def _print(result: dict[str, Any]) -> None:
    table = Table("segments", "read manifest", "fold scans", "fold maps", "plan", "plan.json", "MiB", "MiB before")
    for each in result["folds"]:
        table.add_row(
            f"{each['segments']:,}",
            *(f"{each[f'{part}_seconds']} s" for part in ("read_manifest", "scan_fold", "map_fold", "plan")),
            f"{each['plan_bytes'] / 1e6:.1f} MB", str(each["peak_rss_mib"]), str(each["peak_rss_mib_before"]),
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
