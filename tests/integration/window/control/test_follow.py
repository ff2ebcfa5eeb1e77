"""``binlane follow``: windows back to back beside live traffic, whatever is killed, until it is told to end."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial

import pymysql
import pytest

from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.run import Call
from binlane.orchestration.commands.windows_in_turn import FollowRequest, Pace, _Loop
from binlane.orchestration.lane_processes import LaneProcesses
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_ended_from_outside import SECONDS, WAITING, lanes
from tests.waiting import wait_until

INTERRUPTED = 130

TABLE = ("CREATE DATABASE tenant_{n}", "CREATE TABLE tenant_{n}.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")


@contextlib.contextmanager
def following(channel: Channel, *options: str) -> Iterator[subprocess.Popen[str]]:
    running = channel.start("follow", CHANNEL, "--pause", "0.5", *options)
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
    """By one query: it is asked ten times a second."""
    [(number,)] = channel.target.query("SELECT watermark_seqno FROM binlane.channels")
    return int(number)


def rows(server: PrivateServer) -> list[tuple[object, ...]] | None:
    """Of the tables of ``fill``, by one query; None while one is not there."""
    tables = (f"SELECT {number}, id, v FROM tenant_{number}.t" for number in range(4))
    try:
        return server.query(f"{' UNION ALL '.join(tables)} ORDER BY 1, 2")
    except pymysql.err.ProgrammingError:
        return None


def is_past(channel: Channel, before: int) -> bool:
    return seqno(channel) > before


def windows_pass(channel: Channel, number: int) -> None:
    """Wait for the end of so many windows from now on."""
    for _ in range(number):
        wait_until(partial(is_past, channel, seqno(channel)))


def assert_arrives(channel: Channel) -> None:
    """Every transaction of the source arrives by itself, and both servers are equal."""
    wait_until(lambda: rows(channel.source) == rows(channel.target))
    wait_until(lambda: channel.status.window is None)
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.trial
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


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.trial)])
def test_kill_9_leaves_a_window_that_the_next_one_finishes(channel: Channel, kills: int) -> None:
    fill(channel)
    with traffic(channel.source):
        for _ in range(kills):
            with following(channel) as running:
                windows_pass(channel, 1)
                os.killpg(running.pid, signal.SIGKILL)
    with following(channel):
        assert_arrives(channel)


@pytest.mark.trial
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
            held = []
            for _ in range(12):
                with contextlib.suppress(Exception):
                    held.append(stack.enter_context(channel.source.connect()))

            def refused() -> int:
                with held[0].cursor() as cursor:
                    cursor.execute("SHOW GLOBAL STATUS LIKE 'Connection_errors_max_connections'")
                    return int(cursor.fetchall()[0][1])

            before = refused()
            wait_until(lambda: refused() > before)
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


@contextlib.contextmanager
def lane_held(channel: Channel) -> Iterator[None]:
    """A lane of the next window waits inside a block until the end of the context."""
    with channel.target.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM tenant_1.t FOR UPDATE")
        run_on(channel.source, "UPDATE tenant_1.t SET v = v + 1")
        wait_until(lambda: channel.target.query(WAITING) != [(0,)])
        yield
        holder.rollback()


def begun_with_a_row(channel: Channel) -> None:
    fill(channel)
    run_on(channel.source, "INSERT INTO tenant_1.t (v) VALUES (1)")


def test_ctrl_c_in_a_terminal_lets_the_window_in_progress_finish(channel: Channel) -> None:
    begun_with_a_row(channel)
    with following(channel) as running:
        assert_arrives(channel)
        with lane_held(channel):
            # a terminal sends it to the lanes, too
            os.killpg(running.pid, signal.SIGINT)
            time.sleep(1)
        said, errors = running.communicate(timeout=SECONDS)
    assert (running.returncode, errors) == (0, "")
    assert said.endswith("the last one is finished\n")
    assert_arrives(channel)


def test_a_second_signal_ends_it_inside_a_window_and_the_next_run_continues(channel: Channel) -> None:
    begun_with_a_row(channel)
    with following(channel) as running:
        assert_arrives(channel)
        with lane_held(channel):
            for _ in range(2):
                running.send_signal(signal.SIGTERM)
                time.sleep(1)
            # the lane is held: without its end this would never return
            running.communicate(timeout=SECONDS)
    assert running.returncode == INTERRUPTED
    assert channel.status.window is not None
    assert channel.cli("run", CHANNEL) == 0
    assert_arrives(channel)


def test_a_changed_channel_file_is_obeyed_from_the_next_window_on(channel: Channel) -> None:
    fill(channel)
    file = channel.channels / f"{CHANNEL}.toml"
    with following(channel) as running:
        assert_arrives(channel)
        before = len(lanes(running.pid))
        file.write_text(file.read_text().replace("count = 3", "count = 6"))
        with traffic(channel.source):
            windows_pass(channel, 1)
            # all lanes meet for it
            run_on(channel.source, "CREATE USER passer_by")
            windows_pass(channel, 2)
        assert_arrives(channel)
        assert channel.target.query("SELECT lanes FROM binlane.windows ORDER BY number DESC LIMIT 1") == [(6,)]
        # a process for each lane again
        assert len(lanes(running.pid)) > before


def test_nobody_who_can_be_told_ends_nothing(channel: Channel) -> None:
    channel.write_channel('[announce]\ncommand = ["false"]\n')
    fill(channel)
    with following(channel) as running:
        assert_arrives(channel)
        run_on(channel.source, "INSERT INTO tenant_1.t (v) VALUES (1)")
        assert_arrives(channel)
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0
    assert said.count("ConfigError: ") == 2


def test_an_idle_source_is_not_read_again_before_its_time(channel: Channel) -> None:
    fill(channel)
    seen = set[object]()
    with following(channel):
        assert_arrives(channel)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            seen |= set(channel.target.query("SELECT complete_at FROM binlane.channels"))
            time.sleep(0.05)
    # the proof before, and one more at the most
    assert len(seen) <= 3


def test_pauses_grow_to_a_minute_while_the_source_is_away(channel: Channel) -> None:
    channel.environment["AIRFLOW_CONN_SOURCE_SERVER"] = "mysql://nobody:x@127.0.0.1:1/"
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in channel.environment.items():
            patch.setenv(name, value)
        call = Call(CHANNEL, channel.channels, None, None, None, "local")
        following = FollowRequest(
            load=partial(load, CHANNEL, channel.channels),
            request=call.request,
            engine=call.engine,
            say=partial(print, file=told),
            applied=lambda *_: None,
            missed=lambda *_: None,
            resume="resume",
        )
        loop = _Loop(following, Pace(0.2), LaneProcesses())
        pauses = [loop.step() for _ in range(12)]
    assert pauses[:4] == [0.4, 0.8, 1.6, 3.2]
    assert pauses[-1] == 60
    assert told.getvalue().count("; trying again") == 1
