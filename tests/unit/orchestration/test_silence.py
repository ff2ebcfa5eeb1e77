"""A command that has written nothing for some seconds says what it is doing; tried in a process of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from binlane.activity import doing, newest

PLUGINS: Final = Path(__file__).parents[3] / "plugins"
WORKS: Final = """
import time
from binlane.activity import doing
from binlane.orchestration.terminal import Terminal, break_silence
break_silence(0.1)
with doing("definitions", 494) as activity:
    activity.done = 120
    begun = time.monotonic()
    while time.monotonic() < begun + 1.0:
        time.sleep(0.01)
Terminal().print("done")
"""
SPEAKS: Final = """
import time
from binlane.orchestration.terminal import Terminal, break_silence
break_silence(1.0)
out = Terminal()
begun = time.monotonic()
while time.monotonic() < begun + 2.0:
    out.print("said")
    time.sleep(0.01)
"""
RESTS: Final = """
import time
from binlane.activity import doing, resting
from binlane.orchestration.terminal import break_silence
break_silence(1.5)
with doing("a window"):
    for _ in range(30):
        with resting():
            time.sleep(0.1)
"""
ENDS: Final = """
import sys, time
from binlane.orchestration.terminal import break_silence
break_silence(0.001)
class Late:
    def __del__(self, time=time):
        time.sleep(0.2)
late = Late()
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PLUGINS)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_log_gets_fewer_and_fewer_lines_that_name_the_work_and_how_far_it_is() -> None:
    done = run(WORKS)
    lines = done.stderr.splitlines()
    assert done.stdout == "done\n"
    # after 0.1, 0.3 and 0.7 seconds; a busy machine may be late for the last one
    assert 1 <= len(lines) <= 4
    assert all(line.startswith("... definitions: 120 of 494 (") for line in lines)


def test_a_command_that_writes_is_not_interrupted() -> None:
    assert run(SPEAKS).stderr == ""


def test_a_command_that_waits_for_others_says_nothing() -> None:
    assert run(RESTS).stderr == ""


def test_the_timer_does_not_outlive_the_command() -> None:
    assert run(ENDS).returncode == 0


def test_a_terminal_has_one_line_that_is_cleared_by_the_next_output() -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WORKS], env={**os.environ, "PYTHONPATH": str(PLUGINS)}, stdout=subprocess.PIPE,
        stderr=follower,
    ) as process:  # fmt: skip
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(leader)
    assert process.returncode == 0
    text = shown.decode()
    assert text.count("\r\x1b[K... definitions: 120 of 494 (") >= 2
    assert text.endswith("\r\x1b[K")
    assert "\n" not in text


def test_the_newest_activity_is_shown_and_each_ends_with_its_work() -> None:
    assert newest() is None
    with doing("a window"):
        with doing("tables", 3) as inner:
            inner.done = 2
            assert str(newest()) == "tables: 2 of 3"
        assert str(newest()) == "a window"
    with pytest.raises(ValueError, match="x"), doing("fails"):
        raise ValueError("x")
    assert newest() is None
