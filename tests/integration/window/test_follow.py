"""``binlane follow``: windows back to back beside live traffic, whatever is killed, until it is told to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.test_ended_from_outside import SECONDS, lanes, wait_until

TABLE = ("CREATE DATABASE tenant_{n}", "CREATE TABLE tenant_{n}.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")


@contextlib.contextmanager
def following(channel: Channel, *options: str) -> Iterator[subprocess.Popen[str]]:
    running = channel.start("follow", CHANNEL, "--pause", "0.2", *options)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


@contextlib.contextmanager
def traffic(source: PrivateServer) -> Iterator[None]:
    """Small transactions over four databases for as long as the block runs."""
    ends = threading.Event()

    def write() -> None:
        with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            number = 0
            while not ends.wait(0.02):
                number += 1
                cursor.execute(f"INSERT INTO tenant_{number % 4}.t (v) VALUES ({number})")
                cursor.execute(f"UPDATE tenant_{number % 4}.t SET v = v + 1 WHERE id <= {number % 9}")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ends.set()
        writer.join()


def fill(channel: Channel) -> None:
    run_on(channel.source, *(statement.format(n=number) for number in range(4) for statement in TABLE))


def seqno(channel: Channel) -> int:
    return int(channel.status.channel.watermark.seqno)


def is_past(channel: Channel, before: int) -> bool:
    return seqno(channel) > before


def windows_pass(channel: Channel, number: int) -> None:
    """Wait for the end of so many windows from now on."""
    for _ in range(number):
        wait_until(partial(is_past, channel, seqno(channel)))


def assert_arrives(channel: Channel) -> None:
    """Every transaction of the source arrives by itself, and both servers are equal."""
    wait_until(lambda: channel.rows_of(channel.source) == channel.rows_of(channel.target))
    wait_until(lambda: channel.status.window is None)
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_windows_follow_each_other_beside_traffic_until_sigterm(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    fill(channel)
    with following(channel) as running:
        with traffic(channel.source):
            windows_pass(channel, 3)
            os.kill(lanes(running.pid)[0], signal.SIGKILL)
            windows_pass(channel, 2)
        assert_arrives(channel)
        running.send_signal(signal.SIGTERM)
        said, errors = running.communicate(timeout=SECONDS)
    assert (running.returncode, errors) == (0, "")
    assert " transactions, " in said
    assert said.endswith(" windows applied, the last one is finished\n")


def test_kill_9_leaves_a_window_that_the_next_one_finishes(channel: Channel) -> None:
    fill(channel)
    with traffic(channel.source):
        for _ in range(3):
            with following(channel) as running:
                windows_pass(channel, 1)
                os.killpg(running.pid, signal.SIGKILL)
    with following(channel):
        assert_arrives(channel)


def test_two_at_once_are_harmless(channel: Channel) -> None:
    fill(channel)
    with following(channel) as first, following(channel) as second:
        with traffic(channel.source):
            windows_pass(channel, 4)
        assert_arrives(channel)
        assert (first.poll(), second.poll()) == (None, None)


def test_a_stop_is_obeyed_until_resume(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    fill(channel)
    with following(channel) as running:
        windows_pass(channel, 1)
        assert channel.cli("stop", CHANNEL) == 0
        run_on(channel.source, "INSERT INTO tenant_1.t (v) VALUES (1)")
        time.sleep(2)
        stands = seqno(channel)
        assert channel.cli("resume", CHANNEL) == 0
        assert_arrives(channel)
        assert seqno(channel) == stands + 1
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=SECONDS)
    assert said.count("waiting for `binlane resume orders`") == 1
    capsys.readouterr()


def test_an_idle_source_has_no_windows_and_is_proved_complete(channel: Channel) -> None:
    fill(channel)
    with following(channel):
        assert_arrives(channel)
        stands = channel.target.query("SELECT COUNT(*) FROM binlane.windows")

        def complete() -> float:
            return float(channel.target.query("SELECT COALESCE(complete_through, 0) FROM binlane.channels")[0][0])

        before = complete()
        wait_until(lambda: complete() > before)
        assert channel.target.query("SELECT COUNT(*) FROM binlane.windows") == stands


def test_a_source_that_is_away_is_waited_for(channel: Channel) -> None:
    fill(channel)
    with following(channel) as running:
        assert_arrives(channel)
        # the account's connections are refused, as by a server that starts
        run_on(channel.source, "SET GLOBAL max_connections = 10", log=False)
        with contextlib.ExitStack() as stack:
            for _ in range(12):
                with contextlib.suppress(Exception):
                    stack.enter_context(channel.source.connect())
            time.sleep(2)
        run_on(channel.source, "SET GLOBAL max_connections = 151", log=False)
        run_on(channel.source, "INSERT INTO tenant_1.t (v) VALUES (1)")
        assert_arrives(channel)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    assert said.count("; trying again") == 1


def test_it_ends_after_its_time_and_at_an_error_that_stays(channel: Channel) -> None:
    fill(channel)
    with following(channel, "--for", "1s") as running:
        said, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    assert said.endswith("1 window applied, the last one is finished\n")
    run_on(channel.target, "DROP TABLE tenant_1.t", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t (v) VALUES (1)")
    with following(channel) as running:
        _, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == 1
    assert "tenant_1.t" in errors
