"""What a result says of the machine that it comes from: a figure without its machine and load means nothing."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy
import pyarrow

if TYPE_CHECKING:
    from lab.servers import PrivateServer

RESULTS: Final = Path(__file__).parent / "results"
_SYNCS: Final = 200
_PAGE: Final = 4096


def machine(data: Path) -> dict[str, Any]:
    """Cores, model, memory, kernel, and the disk under ``data``. The host's name is nobody's business."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "model": _model(),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "kernel": platform.release(),
        "filesystem": _filesystem(data),
        "fdatasync_4k_median_ms": round(_sync_seconds(data) * 1000, 3),
        "python": platform.python_version(),
        "pyarrow": pyarrow.__version__,
        "numpy": numpy.__version__,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def load() -> list[float]:
    """Load averages of 1, 5 and 15 minutes: other programs' work makes a figure smaller than it is."""
    return [round(value, 2) for value in os.getloadavg()]


def busy(seconds: float = 2.0) -> float:
    """The share of all cores that was at work during the next ``seconds``: 0 to 1.

    A load average still holds the work of the benchmark before; /proc/stat (proc(5): user, nice, system, idle,
    iowait, ..) says what the machine does now.
    """
    idle, all_ = _ticks()
    time.sleep(seconds)
    idle_later, all_later = _ticks()
    return 1 - (idle_later - idle) / max(1, all_later - all_)


def _ticks() -> tuple[int, int]:
    """Clock ticks of all cores since boot: idle ones (waits for a disk among them), and all."""
    ticks = [int(value) for value in Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all of its threads so far; other programs' work does not show in it."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_facts(server: PrivateServer, names: tuple[str, ...]) -> dict[str, str]:
    """Version and the named settings of a server, as the server itself has them; unknown ones are left out."""
    facts = {"version": str(server.query("SELECT @@version")[0][0])}
    for name, value in server.query("SHOW GLOBAL VARIABLES"):
        if name in names:
            facts[name] = str(value)
    return facts


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write one result as JSON, for people and programs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _filesystem(data: Path) -> str:
    found = subprocess.run(
        ["df", "--output=fstype", str(data)], capture_output=True, text=True, check=False
    ).stdout.split()
    return found[-1] if found else "unknown"


def _sync_seconds(data: Path) -> float:
    """The median time of a 4 KiB write that reaches the disk: what bounds a durable commit."""
    path, spent = data / "sync-probe", []
    with path.open("wb", buffering=0) as file:
        for _ in range(_SYNCS):
            start = time.perf_counter()
            file.write(bytes(_PAGE))
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(spent)
