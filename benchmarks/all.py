"""Every benchmark that the tables of the documentation are made of: ``python -m benchmarks.all``.

Each is a process of its own with the options that its module would be given by hand. The tables of README.md and
benchmarks/README.md are then written from the stored results, so that what stands there is what was measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from benchmarks import machine
from benchmarks.tables import DURATIONS, LATER, divided_file, later_file, native_file, write_pages
from benchmarks.ways import LIMIT, START
from benchmarks.workloads import WORKLOADS

console = Console(highlight=False)
TRANSACTIONS: Final = 60_032
"""A window of a busy minute: what a command's start costs shows in it as it does for a user."""
_SHORT: Final = 30_016
"""For workloads about which the apply step alone is asked, so that all benchmarks take less than two hours."""
_LONG: Final = {"mariadb": ("tenants", "fleet", "inserts", "oltp"), "mysql": ("tenants",)}
_EVERY_WAY: Final = ("mariadb", "tenants")
_WORKLOADS: Final[dict[str, tuple[str, ...]]] = {
    "mariadb": tuple(WORKLOADS),
    "mysql": ("tenants", "inserts", "wide", "oltp", "large"),
}
"""By family; the others ask about lanes and barriers, in which the families do not differ."""
_GIGABYTES: Final = 6.0
_RESTORED: Final = {"mariadb": 256_000, "mysql": 110_000}
"""Transactions of the log of restores: 2 GB, and 1 GB."""
_HOUR: Final = 3_600_000
"""Transactions of an hour, at 1,000 a second."""
_MINUTES: Final = ("scale-mariadb-minutes.json", "scale-mariadb-minutes-oltp.json")
"""The windows of ten minutes that are measured with all others; those of an hour, and MySQL's, where they are asked
for."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One benchmark."""

    name: str
    """What ``--only`` asks for."""
    module: str
    arguments: tuple[str, ...]
    result: str
    """Name of the result file."""
    asked: bool = False
    """Measured only where ``--only`` has its whole name: it takes as long as all others together."""

    def is_wanted(self, parts: Sequence[str]) -> bool:
        """Whether ``--only`` with these parts asks for it; no parts ask for all that are not ``asked``."""
        return self.name in parts if self.asked else not parts or any(part in self.name for part in parts)


def chosen_of(known: Sequence[Measured], parts: Sequence[str]) -> list[Measured]:
    """What ``--only`` asks for: the benchmarks of these names, where each part is a name; otherwise all whose names
    contain one."""
    named = [each for each in known if each.name in parts]
    return named if len(named) == len(set(parts)) > 0 else [each for each in known if each.is_wanted(parts)]


def measured(scale: float, runs: int) -> tuple[Measured, ...]:
    """All benchmarks, at a scale: 1 has the sizes of the documentation."""
    return (*_apply_steps(scale, runs), *_windows_and_tools(scale, runs))


def _sized(transactions: int, scale: float, runs: int) -> tuple[str, ...]:
    return ("--transactions", str(max(1, round(transactions * scale))), "--runs", str(runs))


def _apply_steps(scale: float, runs: int) -> tuple[Measured, ...]:
    """The apply step beside the replica, over every workload."""
    every, four = ("--lanes", "1,4", "--reduce", "off,block,window"), ("--lanes", "4", "--reduce", "off,block,window")
    native = [
        Measured(
            f"{workload}-{flavor}", "benchmarks.native",
            ("--flavor", flavor, "--workload", workload,
             *_sized(TRANSACTIONS if workload in _LONG[flavor] else _SHORT, scale, runs),
             *(every if (flavor, workload) == _EVERY_WAY else four),
             *(() if (flavor, workload) == _EVERY_WAY else ("--only", f"8 threads,{START},{LIMIT},binlane"))),
            native_file(flavor, workload),
        )
        for flavor, workloads in _WORKLOADS.items()
        for workload in workloads
    ]  # fmt: skip
    later_window = _sized(TRANSACTIONS, scale, runs)
    later = [
        Measured(
            f"{workload}-later-mariadb", "benchmarks.native",
            ("--workload", workload, "--after", later_window[1], *later_window, "--only", f"{START},binlane run"),
            later_file("mariadb", workload),
        )
        for workload in LATER
    ]  # fmt: skip
    divided = [
        Measured(
            f"large-divided-{flavor}", "benchmarks.native",
            ("--flavor", flavor, "--workload", "large", "--lanes", "2", "--reduce", "block", "--divide", "key",
             "--commit", "alone,together", "--runs", str(runs), "--only", f"8 threads,{LIMIT},divided"),
            divided_file(flavor, "large"),
        )
        for flavor in ("mariadb", "mysql")
    ]  # fmt: skip
    sql = Measured(
        "sql-mariadb", "benchmarks.native",
        (*_sized(_SHORT, scale, runs), "--lanes", "4", "--reduce", "off,block,window", "--writers", "sql",
         "--only", "8 threads,SQL"),
        "native-mariadb-durable-sql.json",
    )  # fmt: skip
    return (*native, *later, *divided, sql)


def _windows_and_tools(scale: float, runs: int) -> tuple[Measured, ...]:
    """Whole windows, and what binlane does beside them."""
    others = [
        Measured(
            f"verification-{flavor}",
            "benchmarks.verification",
            ("--flavor", flavor, *_sized(TRANSACTIONS, scale, runs)),
            f"verification-{flavor}-tenants.json",
        )
        for flavor in ("mariadb", "mysql")
    ]  # fmt: skip
    whole = ("--sizes", "1", "--reduce", "auto", "--no-spark", "--buffer-pool", "4096",
             "--whole", f"binlane run;{START}")  # fmt: skip
    windows = [
        Measured(
            name,
            "benchmarks.scale",
            (
                "--flavor",
                flavor,
                "--workload",
                workload,
                "--transactions",
                str(round(count * scale)),
                "--runs",
                str(times),
                *whole,
            ),
            file,
            asked=file not in _MINUTES,
        )
        for name, flavor, workload, count, times, file in (
            ("minutes-mariadb", "mariadb", "tenants", 600_000, runs, "scale-mariadb-minutes.json"),
            ("minutes-oltp-mariadb", "mariadb", "oltp", 600_000, runs, "scale-mariadb-minutes-oltp.json"),
            ("minutes-mysql", "mysql", "tenants", 600_000, 1, "scale-mysql-minutes.json"),
            ("hour-mariadb", "mariadb", "tenants", _HOUR, 1, "scale-mariadb-hour.json"),
            ("hour-mysql", "mysql", "tenants", _HOUR, 1, "scale-mysql-hour.json"),
        )
    ]
    lags = [
        Measured(
            f"lag-{flavor}",
            "benchmarks.lag",
            ("--flavor", flavor, "--seconds", str(max(5.0, 60 * scale))),
            f"lag-{flavor}.json",
        )
        for flavor in ("mariadb", "mysql")
    ]
    under_airflow = Measured(
        "under-airflow", "benchmarks.under_airflow",
        ("--transactions", str(round(20_000 * scale)), "--runs", str(runs)), "under-airflow.json",
    )  # fmt: skip
    copies = [
        Measured(
            f"copies-{flavor}",
            "benchmarks.copies",
            ("--flavor", flavor, "--orders", str(max(1, round(300_000 * scale))), "--runs", str(runs)),
            f"copies-{flavor}.json",
        )
        for flavor in ("mariadb", "mysql")
    ]
    restores = [
        Measured(
            f"restore-{flavor}",
            "benchmarks.restore",
            ("--flavor", flavor, *_sized(transactions, scale, runs)),
            f"restore-{flavor}.json",
        )
        for flavor, transactions in _RESTORED.items()
    ]
    archive = Measured(
        "archive", "benchmarks.archive", ("--gigabytes", str(_GIGABYTES * scale)), "archive.json"
    )  # fmt: skip
    first_uses = [
        Measured(
            f"first-use-{flavor}",
            "benchmarks.first_use",
            ("--flavor", flavor, "--orders", str(max(100, round(300_000 * scale)))),
            f"first-use-{flavor}.json",
        )
        for flavor in ("mariadb", "mysql")
    ]
    distant = Measured(
        "distant", "benchmarks.distant", ("--transactions", str(max(1, round(20_000 * scale)))), "distant-mariadb.json"
    )
    board = Measured(
        "board",
        "benchmarks.board",
        ("--databases", str(max(4, round(2_000 * scale))), "--channels", str(round(40 * scale))),
        "board.json",
    )
    sizes = [
        Measured(
            f"sizing-{flavor}",
            "benchmarks.sizing",
            ("--flavor", flavor, "--transactions", str(max(100, round(10_000 * scale)))),
            f"sizing-{flavor}.json",
        )
        for flavor in ("mariadb", "mysql")
    ]
    return (*windows, under_airflow, *lags, *others, *copies, *restores, *first_uses, archive, distant, *sizes, board)


def main(
    scale: Annotated[float, typer.Option(min=0.001, help="Size of the logs; 1: that of the documentation.")] = 1.0,
    runs: Annotated[int, typer.Option(min=1, help="Measurements of each way; their medians are shown.")] = 3,
    only: Annotated[
        str, typer.Option(help="Benchmarks whose names contain one of these, by comma; hours by their whole names.")
    ] = "",
    max_busy: Annotated[
        float, typer.Option(min=0.01, max=1, help="Wait before each benchmark until cores work less than this share.")
    ] = 0.1,
    wait: Annotated[
        int, typer.Option(min=0, help="Seconds to wait for that at most; the load stands in the result.")
    ] = 60,
    output: Annotated[
        Path | None, typer.Option(help="Folder for results; default: benchmarks/results, and the pages are written.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Measure nothing: write the pages from the results.")] = False,
) -> None:
    """Measure, then write the tables. Ends with 1 if a benchmark fails, or a target is not equal to its source."""
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    chosen = chosen_of(measured(scale, runs), wanted)
    if not chosen:
        raise typer.BadParameter(f"no benchmark's name contains {only!r}: {', '.join(m.name for m in measured(1, 1))}")
    results = output or machine.RESULTS
    failed = [] if write else [each.name for each in chosen if not _run(each, results, max_busy, wait)]
    if output is None:
        write_pages()
    if failed:
        console.print(f"[red]✗[/] failed: {', '.join(failed)}", markup=True)
        sys.exit(1)


def _run(each: Measured, output: Path, max_busy: float, wait: int) -> bool:
    until = time.monotonic() + wait
    while time.monotonic() < until and machine.busy() > max_busy:
        pass
    console.rule(f"{each.name}, load {machine.load()[0]}")
    started = time.monotonic()
    place = ("--output", str(output / each.result))
    ended = subprocess.run([sys.executable, "-m", each.module, *each.arguments, *place], check=False)
    _keep_duration(output / DURATIONS, each.name, round(time.monotonic() - started))
    return ended.returncode == 0


def _keep_duration(file: Path, name: str, seconds: int) -> None:
    """Keep how long a benchmark took, with its servers' starts, its traffic and all its runs: ``{name: seconds}``."""
    durations = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(durations | {name: seconds}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)
