"""``binlane read-at``: a command reads the source's state at the printed place, or it is ended."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lab.dumps import dump_command
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf
from tests.integration.window.control.test_ended_from_outside import SECONDS, WAITING
from tests.integration.window.readers.test_readers import ALL, BANKS, EPOCH, State, families, prepared
from tests.waiting import wait_until

ROW: Final = re.compile(r"INSERT INTO `(\w+)` VALUES \((\d+)(?:,(\d+))?\);")
SEEN: Final = "the command has its snapshot of this state"
ENDED: Final = "the target was in this state until the command's end"
"""A backup of a few rows may end before anybody looks."""
HELD: Final = "bank_1.account"
"""Every few transactions write it."""


def dump(server: PrivateServer, file: Path) -> str:
    """A backup of the banks, as a shell command."""
    options = "--single-transaction --compact --no-create-info --skip-extended-insert --databases"
    return f"{' '.join(dump_command(server))} {options} {' '.join(BANKS)} > {file}"


def rows_of(file: Path) -> State:
    found, database = set[tuple[str, int, int]](), ""
    for line in file.read_text().splitlines():
        if line.startswith("USE "):
            database = line.split("`")[1]
        elif (row := ROW.match(line)) is not None:
            found.add((f"{database}.{row[1]}", int(row[2]), int(row[3] or row[2])))
    return frozenset(found)


def read_at(channel: Channel, command: str, *options: str) -> subprocess.Popen[str]:
    return channel.start("read-at", CHANNEL, "--command", command, *options)


def one_snapshot(server: PrivateServer, file: Path) -> str:
    """A client that keeps its snapshot open, and reads it twice. No DDL comes to tables that it has read."""
    account = f"--host={server.host} --port={server.port} --user={server.user} --password={server.password}"
    rows = f"START TRANSACTION WITH CONSISTENT SNAPSHOT; {ALL}; SELECT SLEEP(2) INTO @x; {ALL}; COMMIT"
    return f'{server.tool("client")} --no-defaults {account} --batch --skip-column-names --execute "{rows}" > {file}'


def place(said: str) -> int:
    """The seqno that was printed."""
    found = re.search(r"the target is at seqno ([\d,]+) of", said)
    assert found is not None, said
    return int(found[1].replace(",", ""))


@contextlib.contextmanager
def held_inside_a_window(channel: Channel) -> Iterator[None]:
    """A run one of whose lanes waits for a row, and so the others for it; goes on at the end of the block."""
    running = threading.Thread(target=channel.run)
    with contextlib.closing(channel.target.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {HELD} FOR UPDATE")
        running.start()
        try:
            wait_until(lambda: channel.target.query(WAITING) != [(0,)])
            yield
        finally:
            connection.rollback()
            running.join()


def a_reader_waits(channel: Channel) -> bool:
    asked = (
        "SELECT 1 FROM information_schema.processlist WHERE info LIKE '%GET_LOCK(_binlane/%' AND id <> CONNECTION_ID()"
    )
    return bool(channel.target.query(asked))


@pytest.mark.trial
@families
def test_backups_beside_windows_with_epochs_are_states_of_the_source(
    channel_of: ChannelOf, family: str, tmp_path: Path
) -> None:
    channel = channel_of(family, family)
    bank = prepared(channel, EPOCH + "reader_wait = 30\n")
    with held_inside_a_window(channel):
        file = tmp_path / "first.sql"
        first = read_at(channel, dump(channel.target, file))
        wait_until(lambda: a_reader_waits(channel))
    _, said = first.communicate(timeout=SECONDS)
    assert (first.returncode, SEEN in said or ENDED in said) == (0, True), said
    assert rows_of(file) == bank.states[place(said)]
    assert place(said) % 8 == 0
    assert place(said) < bank.seqno
    epoch = channel.target.query(
        "SELECT source_file, source_offset, gtid_set FROM binlane.epochs WHERE seqno = %s", (place(said),)
    )
    assert f"source file and offset: {epoch[0][0]}:{epoch[0][1]}\nGTID set: {epoch[0][2]}\n" in said
    channel.assert_equal()


@families
def test_the_lanes_go_on_when_the_snapshot_is_seen(channel_of: ChannelOf, family: str, tmp_path: Path) -> None:
    channel, file = channel_of(family, family), tmp_path / "rows"
    bank = prepared(channel, EPOCH + "reader_wait = 30\n")
    with held_inside_a_window(channel):
        reading = read_at(channel, one_snapshot(channel.target, file))
        wait_until(lambda: a_reader_waits(channel))
    _, said = reading.communicate(timeout=SECONDS)
    assert (reading.returncode, SEEN in said or ENDED in said) == (0, True), said
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    assert frozenset((name, int(number), int(value)) for name, number, value in lines) == bank.states[place(said)]
    assert place(said) < bank.seqno


@families
@pytest.mark.parametrize("level", ["any_time", "eventual"])
def test_at_other_levels_it_waits_for_the_windows_end(
    channel_of: ChannelOf, family: str, tmp_path: Path, level: str
) -> None:
    channel, file = channel_of(family, family), tmp_path / "backup.sql"
    bank = prepared(channel, f'consistency = "{level}"\n')
    with held_inside_a_window(channel):
        never = read_at(channel, f"touch {tmp_path}/begun", "--wait", "1s")
        _, said = never.communicate(timeout=SECONDS)
        assert (never.returncode, "SnapshotError: channel orders: the target was at no known place" in said) == (
            1,
            True,
        )
        assert not (tmp_path / "begun").exists()
        waiting = read_at(channel, dump(channel.target, file))
    _, said = waiting.communicate(timeout=SECONDS)
    assert (waiting.returncode, place(said), SEEN in said or ENDED in said) == (0, bank.seqno, True), said
    assert rows_of(file) == bank.states[bank.seqno]


def is_gone(group: int) -> bool:
    """Whether a process group has no member; one that has ended counts until somebody has waited for it."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@families
def test_a_command_without_a_snapshot_is_ended_when_the_lanes_go_on(
    channel_of: ChannelOf, family: str, tmp_path: Path
) -> None:
    channel = channel_of(family, family)
    bank = prepared(channel, EPOCH + "reader_wait = 1\n")
    with held_inside_a_window(channel):
        slow = read_at(channel, f"echo $$ > {tmp_path}/pid; sleep 600")
        wait_until(lambda: a_reader_waits(channel))
    _, said = slow.communicate(timeout=SECONDS)
    assert slow.returncode == 1
    assert "SnapshotError: channel orders: the target went on from seqno" in said
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())))
    assert bank.states
    channel.assert_equal()


@families
def test_a_stopped_channel_can_be_read_where_all_lanes_have_stopped(
    channel_of: ChannelOf, family: str, tmp_path: Path
) -> None:
    channel, file = channel_of(family, family), tmp_path / "backup.sql"
    bank = prepared(channel, EPOCH)
    settings = channel.channels / f"{CHANNEL}.toml"
    # for so long the order waits for the lane that waits for a row
    settings.write_text(settings.read_text().replace("[apply]\n", "[apply]\nlock_wait_timeout = 2\n"))
    at = bank.seqno - 101
    with held_inside_a_window(channel):
        assert channel.cli("stop", CHANNEL, "--at-seqno", str(at)) == 0
    read = read_at(channel, dump(channel.target, file))
    _, said = read.communicate(timeout=SECONDS)
    assert (read.returncode, place(said)) == (0, at), said
    assert rows_of(file) == bank.states[at]


def test_the_commands_own_end_is_passed_on(channel: Channel, tmp_path: Path) -> None:
    channel.traffic(20)
    channel.run()
    for command, code in (("exit 7", 7), ("kill -9 $$", 137)):
        done = read_at(channel, command)
        out, said = done.communicate(timeout=SECONDS)
        assert (done.returncode, out) == (code, ""), said
        assert ENDED in said
    told = read_at(channel, "echo has begun >&2; echo $BINLANE_SEQNO; sleep 0.2", "--until-output", "begun")
    out, said = told.communicate(timeout=SECONDS)
    assert told.returncode == 0
    assert int(out) == place(said) == channel.status.channel.watermark.seqno
    assert "has begun\n" in said
    assert "the command has said that it has its snapshot" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.trial
def test_one_that_is_killed_holds_no_lane(channel: Channel, tmp_path: Path, number: signal.Signals) -> None:
    channel.traffic(20)
    channel.run()
    running = read_at(channel, f"echo $$ > {tmp_path}/pid; exec sleep 30")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    running.send_signal(number)
    # a command that outlives binlane has its pipes, which are closed with it
    assert running.wait(timeout=SECONDS) != 0
    group = int((tmp_path / "pid").read_text())
    if number is signal.SIGKILL:
        os.killpg(group, signal.SIGKILL)
    else:
        wait_until(lambda: is_gone(group))
    running.communicate(timeout=SECONDS)
    wait_until(lambda: channel.target.query(f"SELECT IS_FREE_LOCK('binlane/{CHANNEL}')") == [(1,)])
    channel.traffic(20, seed=2)
    assert channel.run() is not None
