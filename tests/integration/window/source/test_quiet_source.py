"""A source that writes no transaction for long, and purges its log: the watermark goes into its newest file."""

from __future__ import annotations

import datetime as dt
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.health.channel_facts import facts_of
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.inputs import write_inputs
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Manifest
from binlane.servers.engines import engine_of
from binlane.state.channels import Watermark
from binlane.state.records.history import read_snapshot
from binlane.state.records.verifications import CLEAN, PENDING
from binlane.state.windows import note_empty
from binlane.verify.outcome import Options
from binlane.verify.rows.column_text import ComparedTable, Key
from binlane.verify.verification import Verifier
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on


@pytest.fixture(params=("mariadb", "mysql"))
def quiet(channel_of: ChannelOf, request: pytest.FixtureRequest) -> Channel:
    """A channel at its source's end, behind which the source has begun other files."""
    channel = channel_of(request.param, request.param)
    channel.on_both("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    write(channel)
    channel.run()
    for _ in range(3):
        channel.source.query("FLUSH BINARY LOGS")
    return channel


def write(channel: Channel) -> None:
    run_on(channel.source, *5 * ("INSERT INTO tenant_1.t (v) VALUES (1)",))


def watermark(channel: Channel) -> Watermark:
    return channel.status.channel.watermark


def newest(channel: Channel) -> str:
    return str(channel.source.query("SHOW BINARY LOGS")[-1][0])


def test_a_purge_behind_an_empty_window_loses_nothing(quiet: Channel) -> None:
    before = watermark(quiet)
    assert quiet.run() is None
    after = watermark(quiet)
    assert after.source.file == newest(quiet) != before.source.file
    assert (after.seqno, after.gtid_set, after.source_time) == (before.seqno, before.gtid_set, before.source_time)
    quiet.source.query(f"PURGE BINARY LOGS TO '{newest(quiet)}'")
    write(quiet)
    assert quiet.run() is not None
    quiet.assert_equal()


def test_an_empty_window_behind_which_the_source_was_restarted_ends_the_older_sessions(quiet: Channel) -> None:
    """The restarted server numbers its connections anew, and no later window reads the place of the restart."""
    quiet.target.query("UPDATE binlane.channels SET older_sessions = 5000000")
    assert quiet.run() is None
    assert quiet.status.channel.older_sessions == 5_000_000
    quiet.source.restart()
    assert quiet.run() is None
    assert quiet.status.channel.older_sessions == 0


def test_the_watermark_s_new_file_is_known_again(quiet: Channel) -> None:
    quiet.run()
    there = watermark(quiet)
    assert quiet.run() is None
    assert watermark(quiet) == there
    quiet.source.query("FLUSH BINARY LOGS")
    assert quiet.run(WindowRequest("2020-01-01T00:00:00Z")) is None
    assert watermark(quiet) == there, "a window that was applied long ago reads nothing"
    assert quiet.run() is None
    assert watermark(quiet).source.file == newest(quiet)


def test_a_dry_run_leaves_the_watermark(quiet: Channel) -> None:
    before = watermark(quiet)
    assert not steps.extract(quiet.config, quiet.endpoints, WindowRequest("now", dry_run=True))["work"]
    assert watermark(quiet) == before


def test_a_run_that_was_slower_leaves_another_one_s_window_and_watermark(quiet: Channel) -> None:
    engine, read = engine_of(quiet.endpoints.target), watermark(quiet)
    write(quiet)
    window = steps.extract(quiet.config, quiet.endpoints, WindowRequest("now"))
    found = read_inputs(WorkFolder(window["work"])).manifest
    empty = replace(found, last_seqno=read.seqno)
    note_empty(engine, read, empty, None, moves=True)
    assert watermark(quiet) == read, "a window is open"
    quiet.go_on(window)
    done = watermark(quiet)
    note_empty(engine, read, empty, None, moves=True)
    assert watermark(quiet) == done
    quiet.assert_equal()


def test_a_run_that_read_before_the_watermark_moved_reads_again(
    quiet: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another beginning a window whose files are lost would get other segments, and another plan."""
    empty = list[Manifest]()
    with monkeypatch.context() as patch:
        patch.setattr(steps, "note_empty", lambda engine, mark, read, through, moves: empty.append(read))
        assert quiet.run() is None
    write(quiet)

    def slower(*arguments: Any) -> Mapping[str, str]:
        # another run, which has read before the rows
        note_empty(engine_of(quiet.endpoints.target), watermark(quiet), empty[0], None, moves=True)
        return write_inputs(*arguments)

    monkeypatch.setattr(steps, "write_inputs", slower)
    window = steps.extract(quiet.config, quiet.endpoints, WindowRequest("now"))
    there = watermark(quiet)
    assert there.source == empty[0].end
    assert read_inputs(WorkFolder(window["work"])).manifest.start == there.source
    quiet.go_on(window)
    quiet.assert_equal()


def test_an_empty_run_beside_a_verification_does_not_end_it(quiet: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    compared, chunk = list[str](), Verifier._chunk

    def beside(self: Verifier, table: ComparedTable, *behind: Any) -> Key | None:
        if not compared:
            assert quiet.run() is None
            quiet.source.query(f"PURGE BINARY LOGS TO '{newest(quiet)}'")
            write(quiet)
        compared.append(str(table.target))
        return chunk(self, table, *behind)

    before = watermark(quiet)
    monkeypatch.setattr(Verifier, "_chunk", beside)
    outcome = verify_channel(quiet.config, quiet.endpoints, Options(full=True))
    assert watermark(quiet).source != before.source
    assert outcome.state in (CLEAN, PENDING)
    assert outcome.counts.rows > 0


@pytest.mark.parametrize("quiet", ["mariadb"], indirect=True)
def test_a_place_behind_the_last_transaction_in_its_file_says_less_than_that_transaction(quiet: Channel) -> None:
    """A transaction tells a log that was replaced; a place without one has only its file's header."""
    before = watermark(quiet)
    write(quiet)
    window = steps.extract(quiet.config, quiet.endpoints, WindowRequest("now"))
    found = read_inputs(WorkFolder(window["work"])).manifest
    quiet.go_on(window)
    after = watermark(quiet)
    behind = replace(after.source, offset=after.source.offset + 40)
    empty = replace(found, last_seqno=after.seqno, end=behind, fingerprint=before.fingerprint)
    note_empty(engine_of(quiet.endpoints.target), after, empty, None, moves=True)
    assert watermark(quiet) == after


@pytest.mark.parametrize("quiet", ["mariadb"], indirect=True)  # a MySQL server and its archive are two sources
def test_an_archive_whose_files_may_still_arrive_is_read_from_where_it_was(quiet: Channel, tmp_path: Path) -> None:
    before, archive = watermark(quiet), tmp_path / "archive"
    archive.mkdir()
    for name, *_ in quiet.source.query("SHOW BINARY LOGS"):
        shutil.copy(quiet.source.datadir / name, archive)
    file = quiet.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    assert quiet.run() is None
    assert watermark(quiet) == before


def test_a_clock_that_was_ahead_hides_no_transaction_and_no_age(quiet: Channel) -> None:
    """A month ahead once, and set right since: the channel keeps what it stored then."""
    assert quiet.run() is None
    quiet.target.query(
        "UPDATE binlane.channels SET source_time = source_time + 2592000, complete_through = complete_through + 2592000"
    )
    before = read_snapshot(engine_of(quiet.endpoints.target), CHANNEL)
    facts = facts_of(before, quiet.config, None)
    assert len(facts.ahead) == 2
    write(quiet)
    # logged with the time of the wrong clock
    run_on(quiet.source, "SET timestamp = UNIX_TIMESTAMP() + 1000000", "CREATE DATABASE tenant_ahead")
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
    while dt.datetime.now(dt.UTC) < soon:
        time.sleep(0.05)
    assert quiet.run(WindowRequest(soon.isoformat())) is not None
    quiet.assert_equal()
    assert quiet.run() is None
    after = read_snapshot(engine_of(quiet.endpoints.target), CHANNEL)
    assert after.complete_through is not None
    assert after.complete_through <= after.clock + 60
    assert facts_of(after, quiet.config, None).age < 3600
