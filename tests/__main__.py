"""``make test`` and ``make trials``: all tests of a tier side by side; those that failed once more, alone.

Thousands of tests share two cores with two dozen servers, and some of them wait for processes that the machine may
hold up. A file whose tests pass alone is told as unsteady in the last lines, for somebody to look at; a test that fails
alone, too, fails the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_FAILED: Final = 1
"""pytest's exit code for tests that failed: others are of runs that were interrupted, or never began."""
_MOST_FILES: Final = 5
"""Failures in more files have a cause that no quiet machine takes away."""


def run(arguments: Sequence[str]) -> int:
    """Run pytest with the arguments; if tests have failed, those alone, one after the other.

    Returns pytest's exit code: of the second run, if there was one.
    """
    code = _pytest("--cache-clear", *arguments)
    files = _failed_files() if code == _FAILED else []
    if not 0 < len(files) <= _MOST_FILES:
        return code
    print(f"\nFailed beside other tests, run again alone: {', '.join(files)}", flush=True)
    # the same cases with as many examples, but no end: a test that is skipped then has not passed
    code = _pytest("--last-failed", *_tier(arguments), *files)
    for file in sorted({*files} - {*_failed_files()}):
        print(f"unsteady: {file} failed beside other tests and passed alone")
    return code


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def _tier(arguments: Sequence[str]) -> list[str]:
    options = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--tier", "--turn"):
        options.add_argument(name)
    chosen, _ = options.parse_known_args(arguments)
    return [word for name, value in vars(chosen).items() if value is not None for word in (f"--{name}", value)]


def _failed_files() -> list[str]:
    """The files of the tests that failed in the last run, relative to the current folder."""
    cache = Path(".pytest_cache/v/cache/lastfailed")
    return sorted({node.partition("::")[0] for node in json.loads(cache.read_text())}) if cache.exists() else []


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
