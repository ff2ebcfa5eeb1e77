"""`binlane run` reads the log in a process of its own while it imports the rest, and takes it only if it may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from binlane.orchestration import steps
from binlane.orchestration.extraction.ahead import ReadAhead
from binlane.orchestration.request import WindowRequest
from tests.integration.window.conftest import CHANNEL, PLUGINS, Channel
from tests.waiting import wait_until

SECONDS = 120.0
PROGRAM = """
import dataclasses, os, sys, time
from binlane.errors import SourceError
from binlane.orchestration.extraction import reading
from binlane.state import channels
from binlane.work.filter.early_scans import EarlyScans

command, log, read_channel, rows = os.getpid(), reading.Reading.log, channels.read_channel, EarlyScans.rows

def is_ahead():
    return os.getpid() != command

def read_log(self, *arguments):
    if is_ahead():
        BEFORE
    else:
        os.write(2, b"the command reads\\n")
    found = log(self, *arguments)
    if is_ahead():
        BEHIND
    return found

def read_state(*arguments):
    found = read_channel(*arguments)
    return STATE if is_ahead() else found

def load_later(*arguments):
    if not is_ahead():
        # the reader has begun by then
        time.sleep(SECONDS)
    return find_channel(*arguments)

def scanned_rows(self, settings):
    found = rows(self, settings)
    os.write(2, b"%d scanned early\\n" % len(found))
    return found

import binlane.config
find_channel, binlane.config.find_channel = binlane.config.find_channel, load_later
reading.Reading.log, channels.read_channel, EarlyScans.rows = read_log, read_state, scanned_rows
from binlane.cli import main
main()
"""
KILL = "os.kill(os.getpid(), 9)"
AGAIN = "the command reads"


def start(
    channel: Channel, before: str = "pass", behind: str = "pass", state: str = "found", wait: float = 0.0
) -> subprocess.Popen[str]:
    """`binlane run` in a process group of its own; the code is what its reader does besides."""
    program = PROGRAM
    for name, code in (("BEFORE", before), ("BEHIND", behind), ("STATE", state), ("SECONDS", str(wait))):
        program = program.replace(name, code)
    environment = {**os.environ, **channel.environment, "BINLANE_CHANNELS": str(channel.channels)}
    return subprocess.Popen(
        [sys.executable, "-c", program, "run", CHANNEL],
        env={**environment, "PYTHONPATH": str(PLUGINS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(running: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code, and what was written on standard error."""
    _, said = running.communicate(timeout=SECONDS)
    return running.returncode, said


def folders(channel: Channel) -> list[Path]:
    return sorted(channel.work.glob("*"))


def assert_applied(channel: Channel) -> None:
    channel.assert_equal()
    status = channel.status
    assert (status.window, status.channel.windows) == (None, 1)
    # of the window, and nothing of a reading that was not used
    assert len(folders(channel)) == 1


def test_the_command_applies_what_a_process_of_its_own_has_read_and_others_have_scanned(channel: Channel) -> None:
    # where critical shards are named, the job scans all by itself
    channel.write_shard_list("")
    channel.traffic(400)
    code, said = ended(start(channel))
    assert code == 0, said
    assert AGAIN not in said
    assert int(said.split(" scanned early")[0].rsplit("\n", 1)[-1]) > 0
    assert_applied(channel)


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_log_whose_reader_is_killed_is_read_by_the_command(channel: Channel, when: str) -> None:
    channel.traffic(150)
    code, said = ended(start(channel, before=KILL) if when == "before" else start(channel, behind=KILL))
    assert code == 0, said
    assert AGAIN in said
    assert_applied(channel)


def test_what_was_read_from_another_watermark_is_not_used(channel: Channel) -> None:
    channel.traffic(150)
    code, said = ended(start(channel, state="dataclasses.replace(found, windows=found.windows + 1)"))
    assert code == 0, said
    assert AGAIN in said
    assert_applied(channel)


def test_what_was_read_by_an_older_file_of_the_channel_is_not_used(channel: Channel) -> None:
    channel.traffic(150)
    file = channel.channels / f"{CHANNEL}.toml"
    longer = file.read_text().replace("bytes = 65536", "bytes = 131072")
    # the reader has its settings already, and the command not yet
    code, said = ended(start(channel, before=f"open({str(file)!r}, 'w').write({longer!r})", wait=5.0))
    assert code == 0, said
    assert AGAIN in said
    assert_applied(channel)


def test_an_error_of_the_reader_is_the_commands_and_no_folder_is_left(channel: Channel) -> None:
    channel.traffic(40)
    code, said = ended(start(channel, behind="raise SourceError('injected')"))
    assert code == 1
    assert said.splitlines() == ["SourceError: injected"]
    assert folders(channel) == []
    code, said = ended(start(channel))
    assert code == 0, said
    assert_applied(channel)


def test_a_stopped_channel_reads_nothing_that_stays(channel: Channel) -> None:
    channel.traffic(40)
    assert channel.cli("stop", CHANNEL) == 0
    code, said = ended(start(channel))
    assert code == 1
    assert "StopRequestedError" in said
    assert folders(channel) == []


def test_an_open_window_is_resumed_and_what_was_read_ahead_is_removed(channel: Channel) -> None:
    channel.traffic(40)
    opened = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    channel.traffic(40, seed=2)
    code, said = ended(start(channel))
    assert code == 0, said
    assert [str(folder) for folder in folders(channel)] == [opened["work"].removeprefix("file://")]
    code, said = ended(start(channel))
    assert code == 0, said
    channel.assert_equal()


def test_an_empty_window_says_so_and_records_how_far_it_has_looked(channel: Channel) -> None:
    channel.source.query("SELECT 1")
    code, said = ended(start(channel))
    assert code == 0, said
    assert AGAIN not in said
    assert folders(channel) == []


def test_the_reader_ends_when_the_command_is_killed(channel: Channel, tmp_path: Path) -> None:
    channel.traffic(40)
    told = tmp_path / "reader"
    running = start(channel, behind=f"open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    try:
        wait_until(lambda: told.exists() and told.read_text() != "", SECONDS)
        reader = int(told.read_text())
        assert is_alive(reader)
        running.kill()
        running.communicate(timeout=SECONDS)
        wait_until(lambda: not is_alive(reader), SECONDS)
    finally:
        for one in filter(is_alive, [running.pid]):
            os.kill(one, signal.SIGKILL)
    # its folder is of no window: the next one that ends removes it
    assert len(folders(channel)) == 1
    assert channel.cli("run", CHANNEL) == 0
    assert_applied(channel)


def test_a_window_up_to_a_time_is_not_read_ahead(channel: Channel) -> None:
    channel.traffic(40)
    with channel.start("run", CHANNEL, "--until", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(0))) as running:
        code, said = ended(running)
    assert code == 0, said
    assert folders(channel) == []


@pytest.mark.parametrize("asked", [WindowRequest("2020-01-01T00:00:00Z"), WindowRequest("now", dry_run=True)])
def test_a_step_that_ends_elsewhere_or_writes_nothing_takes_none(channel: Channel, asked: WindowRequest) -> None:
    class Never(ReadAhead):
        def begun(self, *_: object) -> NoReturn:
            raise AssertionError

    channel.traffic(40)
    steps.extract(channel.config, channel.endpoints, asked, ahead=Never())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
