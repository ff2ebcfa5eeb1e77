"""`binlane run` whose lane is killed, or that is interrupted: one line with the way on, and the next run goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.waiting import wait_until

SECONDS = 120.0
WAITING = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


@contextlib.contextmanager
def lane_in_a_block(channel: Channel) -> Iterator[subprocess.Popen[str]]:
    """A `binlane run`, one of whose lanes waits inside a block for a row that this holds."""
    with channel.target.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM tenant_1.t FOR UPDATE")
        running = channel.start("run", CHANNEL)
        try:
            wait_until(lambda: channel.target.query(WAITING) != [(0,)] or running.poll() is not None)
            yield running
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.communicate()


def children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _listed(task / "children")]


def _listed(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def lanes(pid: int) -> list[int]:
    """The lanes are forked from a server, which is a child of the command."""
    return [lane for server in children(pid) for lane in children(server)]


@pytest.fixture
def begun(channel: Channel) -> Channel:
    channel.on_both(
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO tenant_1.t VALUES (1, 0), (2, 0)",
    )
    run_on(channel.source, "UPDATE tenant_1.t SET n = 1", "INSERT INTO tenant_1.t VALUES (3, 1)")
    return channel


def assert_goes_on(channel: Channel) -> None:
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()
    assert channel.status.window is None


def test_a_killed_lane_ends_the_command_with_one_line_and_the_way_on(begun: Channel) -> None:
    with lane_in_a_block(begun) as running:
        os.kill(lanes(running.pid)[0], signal.SIGKILL)
        _, said = running.communicate(timeout=SECONDS)
    assert running.returncode == 1
    [line] = said.splitlines()
    assert line.startswith(f"LaneEndedError: channel {CHANNEL}: the process of a lane was killed from outside (kill -9")
    assert f"`binlane run {CHANNEL}` continues from each lane's position" in line
    assert_goes_on(begun)


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the command alone", "as a terminal does"])
def test_an_interrupted_command_ends_with_one_line_and_the_way_on(
    begun: Channel, send: Callable[[int, int], None]
) -> None:
    with lane_in_a_block(begun) as running:
        found = lanes(running.pid)
        send(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=SECONDS)
        wait_until(lambda: not any(Path(f"/proc/{lane}").exists() for lane in found))
    assert running.returncode == 130
    [line] = said.splitlines()
    assert "interrupted" in line
    assert "run the same command again to continue" in line
    assert_goes_on(begun)
