"""Runs that meet each other, that are killed, repeated, or find their files gone: the data ends equal, once."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pymysql.connections import Connection as Driver

from binlane.errors import PlanError
from binlane.orchestration import steps, unplanned_window
from binlane.orchestration.extraction import window_reading as reading
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Manifest
from binlane.servers.engines import engine_of
from binlane.source.segments import extract
from binlane.state.carried.kept_inputs import InputsToKeep
from binlane.state.windows import drop_unplanned
from binlane.work.files import MANIFEST, WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.window.conftest import CHANNEL, SHARD_LIST, Channel, run_on
from tests.one_runner import apply_alone


def test_two_runs_at_once_end_in_equal_data_and_one_window(channel: Channel) -> None:
    channel.traffic()
    runs = [channel.start("run", CHANNEL) for _ in range(2)]
    ended = [(run.communicate(timeout=200), run.returncode) for run in runs]
    # the slower one may find the log being read by the other: it says so, and is to be run again
    assert any(code == 0 for _, code in ended), ended
    assert all(code == 0 or "run of this channel" in err for (_, err), code in ended), ended
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*), MIN(state) FROM binlane.windows") == [(1, "finished")]
    assert channel.run() is None


@pytest.mark.parametrize(("module", "asked"), [(unplanned_window, "changed_settings"), (steps, "target_has_changed")])
def test_a_run_that_would_write_a_window_s_files_anew_leaves_those_of_a_plan(
    channel: Channel, module: ModuleType, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run plans the window behind this run's look at its row."""
    channel.traffic(20)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    adopted = dict[str, Any]()

    def meanwhile(*_: object) -> bool:
        if not adopted:
            run_plan_job(WorkFolder(window["work"]), InProcess())
            adopted.update(steps.adopt_plan(channel.config, channel.endpoints, window["work"]))
        return True

    with monkeypatch.context() as patch:
        patch.setattr(module, asked, meanwhile)
        again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert again["plan"] == adopted["plan"]
    for lane in adopted["lanes"]:
        steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], lane["lane"])
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()


def test_a_run_whose_window_another_run_has_dropped_says_so(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.traffic(20)
    adopt = steps.adopt_plan

    def behind_drop(*arguments: Any, **named: Any) -> Any:
        found = channel.status.window
        assert found is not None
        assert drop_unplanned(engine_of(channel.endpoints.target), found)
        return adopt(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(steps, "adopt_plan", behind_drop)
        assert channel.cli("run", CHANNEL) == 1
    assert "another run has dropped it" in " ".join(capsys.readouterr().err.split())
    assert channel.run() is not None
    channel.assert_equal()


def test_a_run_that_finishes_an_earlier_one_s_window_goes_on_to_its_own_end(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(20)
    steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    opened = channel.status.window
    assert opened is not None
    channel.traffic(20, seed=2)
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()
    said = " ".join(capsys.readouterr().out.split())
    assert f"to {opened.bounds.last_seqno:,}: " in said
    assert f"seqno {opened.bounds.last_seqno + 1:,} to " in said
    assert channel.target.query("SELECT COUNT(*), MIN(state) FROM binlane.windows") == [(2, "finished")]


def test_a_run_that_is_killed_while_it_applies_is_carried_on_by_the_next_one(channel: Channel) -> None:
    channel.traffic(300)
    run = channel.start("run", CHANNEL)
    wait_for_a_lane_to_move(channel)
    time.sleep(random.Random(time.time_ns()).random())
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    killed = channel.status
    if killed.window is not None:
        assert killed.channel.watermark.seqno == 0
    channel.run()
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*), MIN(state) FROM binlane.windows") == [(1, "finished")]


def test_a_step_has_one_connection_a_server_and_a_lane_three(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    channel.traffic(20)
    # the servers' own counts have those of every process: one that an earlier test has killed may still be in its login
    opened, connect = list[int](), Driver.connect

    def counted(self: Any, sock: Any = None) -> None:
        opened.append(self.port)
        connect(self, sock)

    monkeypatch.setattr(Driver, "connect", counted)

    def asked(source: int, target: int) -> None:
        """So many at the most since the last time."""
        assert Counter(opened) <= Counter({channel.source.port: source, channel.target.port: target})
        opened.clear()

    config, endpoints = channel.config, channel.endpoints
    window = steps.extract(config, endpoints, WindowRequest("now"))
    # the log's state, the log, the tables; the state, and a look at the tables beside its transaction
    asked(source=3, target=2)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    asked(source=0, target=0)
    adopted = steps.adopt_plan(config, endpoints, window["work"])
    # the log's state, the log behind the window, tables; the state, the parser, and a look at tables beside each
    asked(source=3, target=4)
    for each in adopted["lanes"]:
        apply_alone(config, endpoints, adopted["plan"], each["lane"])
        asked(source=0, target=3)  # its session, its polls, its heartbeat
    steps.advance(config, endpoints, adopted["plan"])
    asked(source=0, target=1)
    channel.assert_equal()


def wait_for_a_lane_to_move(channel: Channel) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        status = channel.status
        if status.channel.watermark.seqno > 0 or any(lane.seqno > 0 for lane in status.positions):
            return
        time.sleep(0.02)
    pytest.fail("no lane has moved")


def test_a_window_whose_files_are_gone_is_read_again_with_the_same_digest(channel: Channel) -> None:
    channel.traffic()
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now", lanes=2))
    work = WorkFolder(window["work"])
    before = Manifest.from_json(work.read(MANIFEST), "before").digest
    run_plan_job(work, InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    apply_alone(channel.config, channel.endpoints, adopted["plan"], 0)
    assert any(lane.seqno > 0 for lane in channel.status.positions)
    shutil.rmtree(window["work"])
    channel.source.query("CREATE DATABASE tenant_900")
    channel.traffic(60, seed=7)
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now", lanes=3))
    assert (again["window"], again["work"], again["plan"]) == (window["window"], window["work"], None)
    assert Manifest.from_json(work.read(MANIFEST), "after").digest == before
    channel.go_on(again)
    channel.run()
    channel.assert_equal()


def test_a_window_without_a_plan_is_read_anew_when_its_files_are_gone_or_the_settings_have_changed(
    channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no end to keep: the next window has what came since."""
    caplog.set_level("INFO", unplanned_window.__name__)
    channel.traffic(20)
    first = steps.extract(channel.config, channel.endpoints, WindowRequest("now", lanes=2))
    channel.traffic(20, seed=2)
    assert steps.extract(channel.config, channel.endpoints, WindowRequest("now"))["window"] == first["window"]
    shutil.rmtree(first["work"])
    second = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert second["window"] != first["window"]
    assert second["transactions"] > first["transactions"]
    assert "because its files are gone from" in caplog.text
    channel.write_channel(blocks="bytes = 2097152\n")
    third = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert third["window"] != second["window"]
    assert "because blocks.bytes of the channel have changed" in caplog.text
    channel.go_on(third)
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*), MIN(state) FROM binlane.windows") == [(1, "finished")]


def test_another_shard_list_changes_nothing_about_a_planned_window_whose_files_are_gone(channel: Channel) -> None:
    channel.traffic(60)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    plan = run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    shutil.rmtree(window["work"])
    channel.write_shard_list("(critical)=reference\ntenant_001=2\ntenant_002=2\ntenant_003=0\n")
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert run_plan_job(WorkFolder(window["work"]), InProcess()).digest == plan.digest
    channel.go_on(again)
    channel.assert_equal()
    # one copy a channel, for the next window's plan
    kept = "SELECT part, COUNT(DISTINCT name), MIN(chunk) FROM binlane.kept_inputs GROUP BY part ORDER BY part"
    assert channel.target.query(kept) == [("schema", 1, 0), ("window", 1, 0)]


def test_definitions_that_have_not_changed_are_kept_once(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet's are megabytes, and a channel that follows its source has a window every few seconds."""
    written, of = list[bool](), InputsToKeep.of

    def noted(*arguments: Any) -> InputsToKeep:
        found = of(*arguments)
        written.append(found.schema is not None)
        return found

    monkeypatch.setattr(InputsToKeep, "of", noted)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    channel.run()
    for number in range(2):
        run_on(channel.source, f"INSERT INTO tenant_1.t VALUES ({number})")
        channel.run()
    # read again with what an earlier window has left
    run_on(channel.source, "ALTER TABLE tenant_1.t ADD n INT", "INSERT INTO tenant_1.t VALUES (7, 7)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    digest = run_plan_job(WorkFolder(window["work"]), InProcess()).digest
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    shutil.rmtree(window["work"])
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert run_plan_job(WorkFolder(window["work"]), InProcess()).digest == digest
    channel.go_on(again)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (8, 8)")
    channel.run()
    assert written == [True, True, False, False, True]
    channel.assert_equal()


def test_another_shard_list_is_refused_until_the_window_is_finished_whose_inputs_are_not_kept(
    channel: Channel,
) -> None:
    channel.traffic(60)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    stored = channel.status.window
    assert stored is not None
    channel.target.query("DELETE FROM binlane.kept_inputs")
    shutil.rmtree(window["work"])
    channel.write_shard_list("(critical)=reference\ntenant_001=2\ntenant_002=2\ntenant_003=0\n")
    steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    other = run_plan_job(WorkFolder(window["work"]), InProcess())
    with pytest.raises(PlanError, match="put shard list, filter and settings back as they were, remove ") as refused:
        steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert stored.plan_digest is not None
    assert stored.plan_digest in str(refused.value)
    assert other.digest in str(refused.value)
    assert stored.plan_digest != other.digest
    channel.write_shard_list(SHARD_LIST)
    # the folder holds what the other list makes: the error says that it is to go
    assert channel.cli("run", CHANNEL) == 1
    [folder] = re.findall(r"as they were, remove (\S+), and run again", str(refused.value))
    shutil.rmtree(folder.removeprefix("file://"))
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    channel.go_on(again)
    assert adopted["plan"] is not None
    channel.assert_equal()


def test_a_changed_shard_list_leaves_an_unfinished_window_alone_and_counts_for_the_next_one(channel: Channel) -> None:
    channel.traffic(60)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    channel.write_shard_list("(critical)=reference\n(*)=0\n")
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert again["window"] == window["window"]
    assert len({counts.lane for counts in run_plan_job(WorkFolder(again["work"]), InProcess()).shards.values()}) > 2
    channel.go_on(again)
    channel.traffic(60, seed=2)
    following = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert {counts.lane for counts in run_plan_job(WorkFolder(following["work"]), InProcess()).shards.values()} == {
        0,
        3,
    }
    channel.go_on(following)
    channel.assert_equal()


def test_a_dry_run_leaves_target_and_work_folder_as_they_are(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(60)
    databases, status = channel.target.query("SHOW DATABASES"), channel.status
    assert channel.cli("plan", CHANNEL) == 0
    told = capsys.readouterr().out
    assert "reference shard" in told
    assert "precheck: passed" in told
    assert list(channel.work.glob("*")) == []
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now", dry_run=True))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    assert steps.adopt_plan(channel.config, channel.endpoints, window["work"]) == {"plan": None, "lanes": []}
    assert channel.target.query("SHOW DATABASES") == databases
    assert channel.status == status


def test_a_plan_beside_an_unfinished_window_does_not_touch_it(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(40)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert channel.cli("plan", CHANNEL) == 0
    assert "precheck: passed" in capsys.readouterr().out
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert channel.cli("plan", CHANNEL) == 0
    assert (
        f"precheck: not run, because window {window['window']} has already changed the target"
        in capsys.readouterr().out
    )
    assert [folder.name for folder in channel.work.iterdir()] == [window["window"]]
    channel.go_on(window)
    channel.assert_equal()


def test_a_failed_extraction_leaves_no_folder_behind(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(40)

    def broken(*arguments: object, **named: object) -> None:
        extract(*arguments, **named)  # type: ignore[arg-type]
        raise PlanError("injected")

    monkeypatch.setattr(reading, "extract", broken)
    assert channel.cli("run", CHANNEL) == 1
    assert "PlanError: injected" in capsys.readouterr().err
    assert list(channel.work.glob("*")) == []


def test_a_backfill_over_finished_windows_is_done_at_once(channel: Channel) -> None:
    channel.traffic(40)
    channel.run()
    reached = dt.datetime.fromtimestamp(channel.status.channel.watermark.source_time, dt.UTC)
    shutil.rmtree(channel.work)
    channel.connect("source_server", channel.source, port=1)
    for hours in (0, 1, 24 * 90):
        answer = steps.extract(
            channel.config, channel.endpoints, WindowRequest(interval_end=reached - dt.timedelta(hours=hours))
        )
        assert answer["finished"] is True
        assert answer["work"] is None


def test_work_folders_of_old_finished_windows_are_removed(channel: Channel) -> None:
    channel.write_channel("[work]\nkeep_windows = 1\n")
    for number in range(3):
        channel.source.query(f"CREATE DATABASE tenant_{number}")
        channel.run()
    assert len(list(channel.work.iterdir())) == 1
    channel.assert_equal()


def test_old_rows_of_the_state_go_and_what_is_referred_to_stays(channel: Channel) -> None:
    channel.write_channel("[work]\nkeep_windows = 1\nkeep_history = 2\n")
    for number in range(4):
        channel.source.query(f"CREATE DATABASE tenant_{number}")
        channel.run()
    told = "SELECT number FROM binlane.windows WHERE channel = 'orders' ORDER BY number"
    # each run begins with them, one without a window, too
    assert channel.run() is None
    assert channel.target.query(told) == [(3,), (4,)]
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        [(third,)] = channel.target.query("SELECT window_id FROM binlane.windows WHERE number = 3")
        for kind, window, state in (
            *(("window", third, "clean"), ("full", "", "drift"), ("full", "", "drift")),
            *(("full", "", "running"), ("full", "", "drift")),
        ):
            cursor.execute(
                "INSERT INTO binlane.verifications SET channel = 'orders', kind = %s, window_id = %s, state = %s, "
                "through_seqno = 3, started_at = NOW(), tables = 0, chunks = 0, compared_rows = 0, drift = 0, "
                "pending = 0",
                (kind, window, state),
            )
        for name in ("orders", "others") * 4:
            cursor.execute(
                "INSERT INTO binlane.errors SET channel = %s, window_id = %s, lane = 0, seqno = 1, reached = 0, "
                "gtid = '', source_file = '', source_offset = 0, code = 0, text = 'x', at = NOW()",
                (name, third),
            )
    for number in range(4, 7):
        channel.source.query(f"CREATE DATABASE tenant_{number}")
        channel.run()
    assert channel.run() is None
    # a clean verification refers to window 3
    assert channel.target.query(told) == [(3,), (6,), (7,)]
    states = "SELECT state FROM binlane.verifications WHERE channel = 'orders' ORDER BY id"
    assert channel.target.query(states) == [("clean",), ("running",), ("drift",)]
    counts = "SELECT channel, COUNT(*) FROM binlane.errors GROUP BY channel ORDER BY channel"
    assert channel.target.query(counts) == [("orders", 2), ("others", 4)]


@pytest.mark.parametrize("killed_at", ["work.files.WorkFolder.remove", "orchestration.retention.forget_work"])
@pytest.mark.parametrize("again", ["empty", "finished"])
@pytest.mark.paired
def test_retention_that_was_killed_is_ended_by_a_run_without_a_window(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, killed_at: str, again: str
) -> None:
    channel.write_channel("[work]\nkeep_windows = 1\n")
    channel.source.query("CREATE DATABASE tenant_0")
    channel.run()
    channel.source.query("CREATE DATABASE tenant_1")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"binlane.{killed_at}", killed)
        with pytest.raises(KeyboardInterrupt):
            channel.go_on(window)
    assert channel.status.window is None
    dry = steps.extract(channel.config, channel.endpoints, WindowRequest("now", dry_run=True))
    assert dry["empty"] is True
    assert works(channel) == 2
    reached = channel.status.channel.watermark.source_time
    interval = dt.datetime.fromtimestamp(reached, dt.UTC)
    request = WindowRequest("now") if again == "empty" else WindowRequest(interval_end=interval - dt.timedelta(hours=1))

    assert steps.extract(channel.config, channel.endpoints, request)[again] is True

    assert [path.name for path in channel.work.iterdir()] == [window["window"]]
    assert works(channel) == 1


def works(channel: Channel) -> int:
    """Windows whose folder is not known to be gone."""
    return int(channel.target.query("SELECT COUNT(*) FROM binlane.windows WHERE work <> ''")[0][0])


def test_a_changed_plan_file_is_refused(channel: Channel) -> None:
    channel.traffic(40)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    plan = run_plan_job(WorkFolder(window["work"]), InProcess())
    (file,) = channel.work.glob("*/*/plan.json")
    file.write_bytes(file.read_bytes().replace(b'"lanes": 3,', b'"lanes": 3, ').replace(b'"kinds"', b'"kinds" '))
    read_plan(str(file.parent))
    file.write_bytes(file.read_bytes().replace(f'"last_seqno": {plan.last_seqno}'.encode(), b'"last_seqno": 99999'))
    with pytest.raises(PlanError, match="was changed or is damaged"):
        steps.adopt_plan(channel.config, channel.endpoints, window["work"])


def test_the_source_s_order_is_one_lane_s_work_and_all_positions_move(channel: Channel) -> None:
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("fold_gap = 4", 'consistency = "any_time"'))
    channel.traffic(transactions=60)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert [each["lane"] for each in adopted["lanes"]] == [3]
    steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], 3)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()


def test_a_watermark_that_a_killed_run_did_not_announce_is_announced_by_the_next_one(
    channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nread line && echo "$line" >> {said}\n')
    program.chmod(0o755)
    channel.write_channel(f'[announce]\ncommand = ["{program}"]\n')
    assert channel.cli("run", CHANNEL) == 0
    # no window yet
    assert not said.exists()
    channel.traffic(20)
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("binlane.orchestration.commands.run.announce", killed)
        assert channel.cli("run", CHANNEL) != 0
    assert not said.exists()
    program.chmod(0o644)
    # who cannot be told now is told by the next run
    assert channel.cli("run", CHANNEL) == 2
    program.chmod(0o755)
    for _ in range(2):
        assert channel.cli("run", CHANNEL) == 0
    [told] = map(json.loads, said.read_text().splitlines())
    [(window, seqno, gtid)] = channel.target.query("SELECT window_id, last_seqno, end_gtid_set FROM binlane.windows")
    assert (told["channel"], told["window"], told["seqno"], told["gtid"]) == (CHANNEL, window, seqno, gtid)
    channel.traffic(20)
    assert channel.cli("run", CHANNEL) == 0
    assert channel.cli("run", CHANNEL) == 0
    assert len(said.read_text().splitlines()) == 2
