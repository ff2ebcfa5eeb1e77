"""Seconds of CPU and of wall by test: ``-p tests.durations --durations-to FILE``; ``python -m tests.durations FILE``
writes the tables of tests/README.md.

CPU is that of the worker, of the processes that it has started, and of those that are still there (servers), so a test
that makes a server work is told from one that waits. What a module's fixtures take is counted with its first test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

PAGE: Final = Path(__file__).parent / "README.md"
_BEGIN: Final = "<!-- python -m tests.durations -->"
_SLOWEST: Final = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that names the file; each worker appends to it."""
    parser.addoption("--durations-to", type=Path, default=None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Append one line a test: its name, seconds of CPU, seconds of wall."""
    target: Path | None = item.config.getoption("--durations-to")
    before, began = _cpu_seconds(), time.monotonic()
    yield
    if target is not None:
        line = json.dumps([item.nodeid, round(_cpu_seconds() - before, 3), round(time.monotonic() - began, 3)])
        with target.open("a") as file:
            file.write(line + "\n")


def _cpu_seconds() -> float:
    """Of this process and of all below it, the ended ones included."""
    here = psutil.Process()
    seconds = 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    cells = [[f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *(f"| {' | '.join(row)} |" for row in cells)]


def _page(lines: Sequence[tuple[str, float, float]]) -> str:
    folders: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, cpu, wall in lines:
        parts = name.partition("::")[0].split("/")[1:-1]
        folders["/".join(parts[:2]) or "."].append((cpu, wall))
    sums = [(name, len(each), sum(c for c, _ in each), sum(w for _, w in each)) for name, each in folders.items()]
    total = ("all", len(lines), sum(cpu for _, cpu, _ in lines), sum(wall for _, _, wall in lines))
    slowest = sorted(lines, key=lambda line: -line[1])[:_SLOWEST]
    return "\n".join(
        [
            *_table(("folder", "tests", "CPU, s", "wall, s"), [total, *sorted(sums, key=lambda each: -float(each[2]))]),
            "",
            f"The {_SLOWEST} that take most CPU:",
            "",
            *_table(
                ("test", "CPU, s", "wall, s"), [(f"`{name.removeprefix('tests/')}`", c, w) for name, c, w in slowest]
            ),
        ]
    )


def main(arguments: Sequence[str]) -> None:
    """Write the tables of a run into tests/README.md, behind its mark."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file", type=Path)
    lines = [tuple(json.loads(line)) for line in parser.parse_args(arguments).file.read_text().splitlines()]
    head = PAGE.read_text().partition(_BEGIN)[0]
    PAGE.write_text(f"{head}{_BEGIN}\n\n{_page(lines)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
