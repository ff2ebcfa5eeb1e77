"""How the process of a command ends: as Python ends one, but at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ENDS: Final = """
import atexit, sys, threading, time
from binlane.cli import entry
atexit.register(lambda: print("at the end", file=sys.stderr))
class Kept:
    def __del__(self):
        print("freed", file=sys.stderr)
kept = Kept()
def command():
    print("said")
    {body}
entry.main = command
entry.program()
"""


def ended(body: str, output: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The end of a command that says something and then does ``body``."""
    # an output with a buffer, which is full only at the end
    path = {**os.environ, "PYTHONPATH": str(ROOT / "plugins"), "PYTHONUNBUFFERED": ""}
    program = [sys.executable, "-c", ENDS.format(body=body)]
    return subprocess.run(program, env=path, stdout=output, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize(("body", "code"), [("pass", 0), ("sys.exit()", 0), ("sys.exit(2)", 2), ("sys.exit(130)", 130)])
def test_a_process_ends_with_its_exit_code_and_frees_nothing(body: str, code: int) -> None:
    done = ended(body)
    assert (done.returncode, done.stdout, done.stderr) == (code, "said\n", "at the end\n")


def test_a_text_becomes_exit_code_1() -> None:
    done = ended("sys.exit('no such thing')")
    assert (done.returncode, done.stdout) == (1, "said\n")
    assert "no such thing\n" in done.stderr


def test_threads_end_their_work_first() -> None:
    done = ended("threading.Thread(target=lambda: (time.sleep(0.2), print('written'))).start()")
    assert (done.returncode, done.stdout) == (0, "said\nwritten\n")


def test_an_output_that_is_full_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = ended("pass", full.fileno())
    assert done.returncode == 120
    assert "No space left on device" in done.stderr


def test_an_error_shows_its_traceback() -> None:
    done = ended("1 / 0")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
