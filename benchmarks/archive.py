"""The plan job on Spark's standalone cluster over an archive larger than a machine's memory:
``python -m benchmarks.archive``.

A few segments of real traffic are repeated with other GTIDs and XIDs, each in a log file of its own, so that every one
is a true binlog file; windows of some of them are filtered by workers of one core each. Time has to grow with the
segments, and memory not at all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import psutil
import typer
from blake3 import blake3
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import Channel, open_channel
from benchmarks.fresh import in_fresh_process
from benchmarks.private import Lab, TrafficWriter, make_base, start_source
from benchmarks.workloads import WORKLOADS
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import CHECKSUM_LENGTH, HEADER, EventType
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.plan_job.spark_submit import PLAN_JOB, WITH_DEFAULTS, properties_file, spark_properties
from binlane.orchestration.request import NOW, WindowRequest
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.settings import PlanSettings
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import LocalProcesses, run_plan_job
from lab.cluster.processes import Server, spark_master, spark_worker
from lab.programs import LabError

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
_SAMPLE_SECONDS: Final = 0.5
_LOG_START: Final = 4
_ID: Final = np.dtype("<u8")


@dataclass(frozen=True, slots=True)
class Archive:
    """Segments in ``folder``, and the window's other inputs."""

    folder: Path
    manifest: Manifest
    settings: PlanSettings
    schema: bytes


def extracted(folder: Path, transactions: int, workload: str = "tenants") -> Archive:
    """A window of real traffic, as extraction leaves it."""
    lab = Lab(folder, Flavor.MARIADB, durable=False, target_log=False, buffer_pool_mib=512)
    kind = WORKLOADS[workload]
    make_base(lab, kind)
    source = start_source(lab)
    try:
        TrafficWriter(source, kind).write(transactions)
        with lab.target("target") as target:
            channel, endpoints = open_channel(Channel("archive", 4, 1000), source, target, folder / "channel")
            work = WorkFolder(steps.extract(channel, endpoints, WindowRequest(NOW))["work"])
    finally:
        source.stop()
    return Archive(
        Path(work.uri),
        Manifest.from_json(work.read(files.MANIFEST), work.uri),
        PlanSettings.from_json(work.read(files.CHANNEL), work.uri),
        work.read(files.SCHEMA),
    )


def repeated(base: Archive, folder: Path, size: int) -> Archive:
    """``base`` again and again, with other ids, until it has ``size`` bytes."""
    segments, written, turn = list[Segment](), 0, 0
    while written < size:
        for segment in base.manifest.segments:
            data = bytearray((base.folder / segment.name).read_bytes())
            shift = turn * base.manifest.transactions
            _renumber(data, segment, shift)
            name = f"segments/{len(segments):06d}.binlog"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            first, last = (_gtid(text, shift) for text in (segment.first_gtid, segment.last_gtid))
            segments.append(
                replace(
                    segment, name=name, blake3=blake3(data).hexdigest(),
                    source_file=f"binlog.{turn * len(base.manifest.segments) + _file(base, segment):06d}",
                    first_seqno=segment.first_seqno + shift, last_seqno=segment.last_seqno + shift,
                    first_gtid=first, last_gtid=last,
                )
            )  # fmt: skip
            written += len(data)
        turn += 1
    return replace(base, folder=folder, manifest=replace(base.manifest, segments=tuple(segments)))


def _renumber(data: bytearray, segment: Segment, shift: int) -> None:
    """Add ``shift`` to the number in every GTID and XID event, and compute their checksums again."""
    frames = frame(bytes(data), _LOG_START, CHECKSUM_LENGTH)
    numbered = np.isin(frames.type_code, [EventType.MARIADB_GTID, EventType.XID])
    for offset, length in zip(frames.offset[numbered].tolist(), frames.size[numbered].tolist(), strict=True):
        at, end = offset + HEADER.size, offset + length - CHECKSUM_LENGTH
        number = int.from_bytes(data[at : at + _ID.itemsize], "little") + shift
        data[at : at + _ID.itemsize] = number.to_bytes(_ID.itemsize, "little")
        data[end : end + CHECKSUM_LENGTH] = zlib.crc32(data[offset:end]).to_bytes(CHECKSUM_LENGTH, "little")


def _gtid(text: str, shift: int) -> str:
    domain, server, number = text.split("-")
    return f"{domain}-{server}-{int(number) + shift}"


def _file(base: Archive, segment: Segment) -> int:
    """The number of the segment's file among those of the base, from 1."""
    names = list(dict.fromkeys(each.source_file for each in base.manifest.segments))
    return names.index(segment.source_file) + 1


def window(archive: Archive, folder: Path, count: int) -> WorkFolder:
    """A window of the archive's first segments; its files are links."""
    segments = archive.manifest.segments[:count]
    for segment in segments:
        path = folder / segment.name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(archive.folder / segment.name, path)
    work, last = WorkFolder(str(folder)), segments[-1]
    end = replace(archive.manifest.end, file=last.source_file, offset=last.end_offset)
    manifest = replace(
        archive.manifest, segments=segments, last_seqno=last.last_seqno, end=end, gtid_set=last.last_gtid
    )
    work.write_once(files.SCHEMA, archive.schema)
    work.write_once(files.CHANNEL, archive.settings.to_json())
    work.write_once(files.MANIFEST, manifest.to_json())
    return work


class Memory:
    """The most memory of each kind of process of a job, MiB of the largest process, looked at twice a second."""

    def __init__(self, driver: int, workers: list[Server]) -> None:
        self.peaks: dict[str, int] = defaultdict(int)
        self._driver, self._workers, self._ended = driver, workers, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._look("driver", [self._driver])
            self._look("executor", [child.pid for each in self._workers for child in _children(each.pid)])

    def _look(self, name: str, pids: list[int]) -> None:
        for pid in pids:
            for process in (psutil.Process(pid), *_children(pid, recursive=True)) if psutil.pid_exists(pid) else ():
                try:
                    kind = "JVM" if "java" in process.name() else "Python"
                    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
                except (psutil.Error, OSError):
                    continue
                for line in status.splitlines():
                    if line.startswith("VmHWM:"):
                        key = f"{name} {kind}"
                        self.peaks[key] = max(self.peaks[key], int(line.split()[1]) >> 10)


def _children(pid: int, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = psutil.Process(pid).children(recursive=recursive)
    except psutil.Error:
        return []
    return found


def run_job(work: WorkFolder, folder: Path, master: Server, workers: list[Server]) -> dict[str, Any]:
    """Submit the plan job as ``binlane run`` does; what it took, and what Spark logged about it."""
    log = folder / "events"
    log.mkdir()
    given = spark_properties(
        {
            "spark.master": f"spark://127.0.0.1:{master.port}", "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g", "spark.executor.memory": "1g", "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(log), "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
    )  # fmt: skip
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    load, began = machine.load(), time.monotonic()
    submit = Path(sys.executable).with_name("spark-submit")
    with properties_file(given) as properties, (folder / "driver.log").open("wb") as output:
        command = [str(submit), WITH_DEFAULTS, "--properties-file", properties, str(PLAN_JOB), "--work", work.uri]
        job = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            with Memory(job.pid, workers) as memory:
                job.wait()
        finally:
            job.kill()
    seconds = time.monotonic() - began
    if job.returncode != 0:
        raise LabError((folder / "driver.log").read_text(errors="replace")[-3000:])
    (events,) = log.iterdir()
    return {
        "load_before": load, "load_after": machine.load(), "seconds": round(seconds, 1),
        "peak_rss_mib": dict(memory.peaks), "jobs": _jobs(events),
    }  # fmt: skip


def run_local(work: WorkFolder) -> dict[str, Any]:
    """The same job in processes of this machine, as ``spark.engine = "local"`` runs it."""
    load = machine.load()
    found = in_fresh_process(_filter, work.uri)
    return {
        "load_before": load, "load_after": machine.load(), "seconds": round(found.seconds, 1),
        "peak_rss_mib": {"process": found.peak_rss_mib}, "jobs": [],
    }  # fmt: skip


def _filter(uri: str) -> None:
    run_plan_job(WorkFolder(uri), LocalProcesses(os.cpu_count() or 1))


def _jobs(log: Path) -> list[dict[str, Any]]:
    """Spark's jobs by its event log: name, stages, tasks, shuffled bytes, seconds."""
    jobs: dict[int, dict[str, Any]] = {}
    of_stage: dict[int, int] = {}
    with log.open() as lines:
        for event in map(json.loads, lines):
            match event["Event"]:
                case "SparkListenerJobStart":
                    number = event["Job ID"]
                    of_stage |= dict.fromkeys(event["Stage IDs"], number)
                    jobs[number] = {
                        "name": event["Properties"]["spark.job.description"],
                        "stages": len(event["Stage IDs"]), "tasks": 0, "failed_tasks": 0, "shuffled_bytes": 0,
                        "seconds": -event["Submission Time"] / 1000,
                    }  # fmt: skip
                case "SparkListenerJobEnd":
                    job = jobs[event["Job ID"]]
                    job["seconds"] = round(job["seconds"] + event["Completion Time"] / 1000, 1)
                case "SparkListenerTaskEnd":
                    job = jobs[of_stage[event["Stage ID"]]]
                    job["tasks"] += 1
                    job["failed_tasks"] += event["Task End Reason"]["Reason"] != "Success"
                    written = event.get("Task Metrics", {}).get("Shuffle Write Metrics", {})
                    job["shuffled_bytes"] += written.get("Shuffle Bytes Written", 0)
    return list(jobs.values())


def main(
    gigabytes: Annotated[float, typer.Option(min=0.01, help="Size of the archive.")] = 20.0,
    shares: Annotated[str, typer.Option(help="Windows, as parts of the archive: 4 is a quarter.")] = "4,2,1",
    workers: Annotated[int, typer.Option(min=1, help="Spark workers of one core each.")] = 2,
    segments: Annotated[
        str,
        typer.Option(help="Further windows, segments:workers; 0 workers: processes of this machine, without Spark."),
    ] = "64:1,64:2,64:0",
    transactions: Annotated[int, typer.Option(min=1000, help="Transactions that are repeated.")] = 150_000,
    data: Annotated[Path | None, typer.Option(help="Folder for the archive; default: a temporary one.")] = None,
    output: Annotated[Path | None, typer.Option(help="Result file.")] = None,
) -> None:
    """Measure, print a table and write the result."""
    with tempfile.TemporaryDirectory(prefix="binlane-archive-", dir=data) as name:
        folder = Path(name)
        base = extracted(folder / "base", transactions)
        began = time.monotonic()
        archive = repeated(base, folder / "archive", int(gigabytes * 1e9))
        console.print(f"  archive: {len(archive.manifest.segments)} segments in {time.monotonic() - began:.0f} s")
        every = len(archive.manifest.segments)
        wanted = [(max(1, every // int(share)), workers) for share in shares.split(",") if share]
        pairs = (pair.split(":") for pair in segments.split(",") if pair)
        wanted += [(min(every, int(count)), int(of)) for count, of in pairs]
        result: dict[str, Any] = {
            "benchmark": "archive",
            "arguments": {"gigabytes": gigabytes, "transactions": transactions},
            "machine": machine.machine(folder),
            "windows": [],
        }
        for at, (count, of) in enumerate(wanted):
            result["windows"].append(_measured(archive, folder / f"run-{at}", count, of))
            # an hour's work: what is measured is kept
            machine.write_result(output or machine.RESULTS / "archive.json", result)
    _print(result)


def _measured(archive: Archive, folder: Path, count: int, workers: int) -> dict[str, Any]:
    folder.mkdir()
    work = window(archive, folder / "work", count)
    size = sum(segment.bytes for segment in archive.manifest.segments[:count])
    found = _on_cluster(work, folder, workers) if workers else run_local(work)
    shutil.rmtree(folder)
    console.print(f"  {count} segments, {workers} workers: {found['seconds']} s, {found['peak_rss_mib']}")
    return {"segments": count, "workers": workers, "bytes": size, **found}


def _on_cluster(work: WorkFolder, folder: Path, workers: int) -> dict[str, Any]:
    with ExitStack() as stack:
        master = spark_master(folder)
        of = [spark_worker(folder, number, master, {}) for number in range(1, workers + 1)]
        for server in (master, *of):
            stack.callback(server.stop)
            server.start()
        return run_job(work, folder, master, of)


def _print(result: dict[str, Any]) -> None:
    table = Table("segments", "GB", "workers", "seconds", "MB/s", "jobs", "shuffled", "largest process, MiB")
    for each in result["windows"]:
        jobs = "; ".join(f"{job['name']}: {job['seconds']} s" for job in each["jobs"])
        shuffled = sum(job["shuffled_bytes"] for job in each["jobs"])
        peaks = ", ".join(f"{name} {peak}" for name, peak in each["peak_rss_mib"].items())
        table.add_row(
            str(each["segments"]), f"{each['bytes'] / 1e9:.1f}", str(each["workers"]), str(each["seconds"]),
            f"{each['bytes'] / each['seconds'] / 1e6:.0f}", jobs, str(shuffled), peaks,
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
