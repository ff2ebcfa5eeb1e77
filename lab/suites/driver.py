"""A family's own test driver: its command line and its output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.suites.installation import Installation
from lab.suites.rewriting import ASK, KEEPS

TEMPLATES: Final = {Flavor.MARIADB: "install.db", Flavor.MYSQL: "data"}
"""In the driver's work folder: the data folder that its servers begin with."""
_BUILD_THREAD: Final = "MTR_BUILD_THREAD"
_THREADS: Final = {Flavor.MARIADB: "331", Flavor.MYSQL: "361"}
"""A family's range of ports, unless the environment sets one."""
_LINE: Final = re.compile(
    r"(?:\[\s*\d+%\]\s+)?(?P<test>\w+\.[\w-]+)(?:\s+'(?P<combination>[^']*)')?(?:\s+w\d+)?\s+"
    r"\[ (?P<result>[\w-]+) \]\s*(?P<comment>.*)"
)


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the driver's output about one test."""

    test: str
    result: str
    """pass, fail, skipped, disabled ..."""
    comment: str


def command(installed: Installation, folder: Path, binlog_format: str, tests: Sequence[str]) -> list[str]:
    """The driver's command for some tests in one format. The driver records results, so unexpected ones do not fail
    tests."""
    logged = ["--mysqld=--log-bin=master-bin"] if any(not _replicates(test) for test in tests) else []
    return [
        *(
            "perl",
            installed.driver.name,
            "--user=root",
            f"--vardir={folder}",
            f"--client-bindir={installed.base / 'bin'}",
        ),
        *("--record", "--nocheck-testcases", "--nowarnings", "--force", "--retry=0", "--max-test-fail=0"),
        *("--testcase-timeout=15", "--suite-timeout=600", "--max-save-datadir=0", "--max-save-core=0"),
        *(f"--mysqld=--binlog-format={binlog_format}", *logged, *tests),
    ]


def lines(
    installed: Installation, folder: Path, binlog_format: str, tests: Sequence[str], ask: Path, *, keeps: bool
) -> Generator[str]:
    """Run the driver; yields its output line by line. ``ask``: the socket for tests. The driver ends with the caller.

    ``keeps``: keep dropped objects aside.
    """
    caller = f"{sys.executable} -I -S {Path(__file__).parent / 'ask.py'} {ask}"
    variables = {
        **os.environ,
        **installed.environment,
        _BUILD_THREAD: os.environ.get(_BUILD_THREAD, _THREADS[installed.flavor]),
        ASK: caller,
        # the client takes the text 0 of the environment as true
        KEEPS: "1" if keeps else "",
    }
    for name in ("PYTHONPATH", "MALLOC_ARENA_MAX"):
        variables.pop(name, None)
    run = subprocess.Popen(
        command(installed, folder, binlog_format, tests),
        cwd=installed.tests,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert run.stdout is not None
    try:
        with (folder.parent / "driver.log").open("a") as log:
            for line in run.stdout:
                log.write(line)
                log.flush()
                yield line
    finally:
        # on SIGTERM the driver ends its servers, on SIGKILL it leaves them behind
        if run.poll() is None:
            run.send_signal(signal.SIGTERM)
        run.wait()


def fault(line: str) -> str | None:
    """The client's error in the lines after a failed test."""
    return line.strip() if line.startswith(("mysqltest: ", "mariadb-test: ")) else None


def said(line: str) -> Said | None:
    """Parse a line of the driver's output; None if it is not about a test."""
    found = _LINE.match(line.strip())
    return None if found is None else Said(found["test"], found["result"], found["comment"].strip())


def batches(tests: Sequence[str], size: int) -> Iterator[list[str]]:
    """Batches of tests that need the same driver options, in their order."""
    for group in ([each for each in tests if _replicates(each)], [each for each in tests if not _replicates(each)]):
        yield from (group[at : at + size] for at in range(0, len(group), size))


def _replicates(test: str) -> bool:
    return test.startswith("rpl")
