"""Crashes of everything but a lane: extraction, plan job, command line, source; steps that are run again.

Findings 12, 13, 14 and 27 of the design review; invariants 7 and 10.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from binlane.apply.rows.binlog import BinlogRows
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import SourceUnavailableError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.source import segment_writer
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneFileWriter
from binlane.work.plan_job import job
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer, private_server
from tests.chaos.rounds import survived
from tests.chaos.worker import was_killed
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel, run_on
from tests.integration.window.control.test_runs import wait_for_a_lane_to_move
from tests.one_runner import apply_alone
from tests.waiting import wait_until

NOW = WindowRequest("now")


def kill_self(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def extract_until(config: ChannelConfig, endpoints: Endpoints, owner: Any, name: str) -> None:
    """Extraction in a process that is killed when it comes to a function."""
    assert hasattr(owner, name)
    setattr(owner, name, kill_self)
    steps.extract(config, endpoints, NOW)


def extract_until_inputs(config: ChannelConfig, endpoints: Endpoints) -> None:
    extract_until(config, endpoints, steps, "write_inputs")


def extract_until_opened(config: ChannelConfig, endpoints: Endpoints) -> None:
    extract_until(config, endpoints, steps, "open_window")


def extract_until_first_segment(config: ChannelConfig, endpoints: Endpoints) -> None:
    extract_until(config, endpoints, segment_writer.SegmentWriter, "close")


@pytest.mark.parametrize("crash", [extract_until_first_segment, extract_until_inputs, extract_until_opened])
@pytest.mark.trial
def test_a_killed_extraction_leaves_a_folder_that_the_next_finished_window_removes(
    channel: Channel, crash: Callable[[ChannelConfig, Endpoints], None]
) -> None:
    channel.traffic(40, creates=True)
    assert was_killed(crash, channel.config, channel.endpoints)
    [left] = channel.work.iterdir()
    assert channel.status.window is None
    channel.run()
    channel.assert_equal()
    [kept] = channel.work.iterdir()
    assert kept != left
    survived["extraction killed"] += 1


def test_folders_of_dry_runs_go_when_the_watermark_has_passed_them_and_others_stay(channel: Channel) -> None:
    channel.traffic(40, creates=True)
    steps.extract(channel.config, channel.endpoints, WindowRequest("now", dry_run=True))
    (channel.work / "notes").mkdir()
    channel.run()
    ahead = channel.work / f"{channel.status.channel.watermark.seqno + 1:012d}-00000000"
    ahead.mkdir()
    channel.source.query("CREATE DATABASE tenant_900")
    window = steps.extract(channel.config, channel.endpoints, NOW)
    assert len(list(channel.work.iterdir())) == 4
    channel.go_on(window)
    # it begins where the window did, and is not the window
    assert not ahead.exists()
    assert (channel.work / "notes").exists()
    assert Path(window["work"]).exists()
    assert len(list(channel.work.iterdir())) == 3


def filter_until_mapped(work: str) -> None:
    """The plan job in a process that is killed when a lane file is to be finished."""
    setattr(LaneFileWriter, "close", kill_self)  # noqa: B010 -- for one process
    run_plan_job(WorkFolder(work), InProcess())


def filter_until_plan(work: str) -> None:
    setattr(job, "make_plan", kill_self)  # noqa: B010 -- for one process
    run_plan_job(WorkFolder(work), InProcess())


@pytest.mark.parametrize("crash", [filter_until_mapped, filter_until_plan])
@pytest.mark.trial
def test_a_killed_plan_job_is_run_again_over_what_it_left(channel: Channel, crash: Callable[[str], None]) -> None:
    channel.traffic(60, creates=True)
    window = steps.extract(channel.config, channel.endpoints, NOW)
    assert was_killed(crash, window["work"])
    again = steps.extract(channel.config, channel.endpoints, NOW)
    assert again == {**window, "watermark": 0}
    channel.go_on(again)
    channel.assert_equal()
    survived["plan job killed"] += 1


@pytest.mark.trial
def test_lanes_of_the_command_line_end_with_it_when_it_alone_is_killed(channel: Channel) -> None:
    channel.traffic(300, creates=True)
    run = channel.start("run", CHANNEL)
    wait_for_a_lane_to_move(channel)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    wait_until(lambda: _session(run.pid) == [], 200)
    channel.run()
    channel.assert_equal()
    survived["command line killed"] += 1


def _session(number: int) -> list[str]:
    """Live processes of a session."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == number and fields[0] != "Z":
            found.append(place.parent.name)
    return found


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.trial
def test_a_source_that_is_killed_while_it_is_read(
    family: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target: PrivateServer = request.getfixturevalue(f"{family}_target")
    with private_server(tmp_path / "data", target.flavor, name=f"dying_{family}") as source:
        clean_servers(target)
        channel = Channel(source, target, tmp_path)
        channel.init()
        channel.traffic(200, creates=True)
        write = segment_writer.WrittenBehind.write

        def write_and_kill(self: segment_writer.WrittenBehind, data: bytes | memoryview, header: bytes) -> None:
            source.kill()
            write(self, data, header)

        with monkeypatch.context() as patch:
            patch.setattr(segment_writer.WrittenBehind, "write", write_and_kill)
            with pytest.raises(SourceUnavailableError):
                steps.extract(channel.config, channel.endpoints, NOW)
        assert list(channel.work.glob("*")) == []
        source.restart()
        channel.traffic(40, seed=2, creates=True)
        channel.run()
        channel.assert_equal()
    survived["source killed while it was read"] += 1


def test_a_lost_folder_of_a_run_that_asked_for_lanes_and_blocks_of_its_own_gives_the_same_plan(
    channel: Channel,
) -> None:
    """The next run asks for neither (finding 12: the same digest)."""
    channel.traffic(creates=True)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now", lanes=2, block_transactions=3))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    apply_alone(channel.config, channel.endpoints, adopted["plan"], 0)
    shutil.rmtree(window["work"])
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert again["window"] == window["window"]
    channel.go_on(again)
    channel.assert_equal()
    survived["work folder lost"] += 1


TABLES_BEFORE = (
    "CREATE DATABASE tenant_x",
    "CREATE DATABASE tenant_y",
    "CREATE TABLE tenant_y.parent (id INT PRIMARY KEY) ENGINE=InnoDB",
    *(
        f"CREATE TABLE tenant_x.{table} (id INT PRIMARY KEY, a INT NOT NULL, parent INT) ENGINE=InnoDB"
        for table in ("keyed", "moved", "child", "dropped", "fired")
    ),
)
ROWS_BEFORE = tuple(
    statement
    for table in ("keyed", "moved", "child", "dropped", "fired")
    for statement in (
        *(f"INSERT INTO tenant_x.{table} VALUES ({number}, {number}, NULL)" for number in range(8)),
        f"UPDATE tenant_x.{table} SET a = a + 100 WHERE id = 3",
    )
)
OTHER_DEFINITIONS = (
    "ALTER TABLE tenant_x.keyed ADD UNIQUE KEY (a)",
    "ALTER TABLE tenant_x.moved DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)",
    "ALTER TABLE tenant_x.child ADD FOREIGN KEY (parent) REFERENCES tenant_y.parent (id)",
    "DROP TABLE tenant_x.dropped",
    "CREATE TRIGGER tenant_x.fires BEFORE INSERT ON tenant_x.fired FOR EACH ROW SET NEW.a = NEW.a",
    "CREATE VIEW tenant_x.seen AS SELECT * FROM tenant_y.parent",
)


def test_a_folder_lost_behind_the_windows_own_ddl_gives_the_same_plan(channel: Channel) -> None:
    """What it is read again with, the target's keys, foreign keys, triggers and views, is what the window has made."""
    channel.on_both(*TABLES_BEFORE)
    run_on(channel.source, *ROWS_BEFORE, *OTHER_DEFINITIONS, "UPDATE tenant_x.keyed SET a = 777 WHERE id = 3")
    run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO tenant_x.fired VALUES (9, 9, NULL)")
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    for each in adopted["lanes"]:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], each["lane"])
    shutil.rmtree(window["work"])
    channel.run()
    channel.assert_equal()
    survived["work folder lost"] += 1


JOINED_BEFORE = (
    "CREATE DATABASE tenant_x",
    "CREATE DATABASE tenant_y",
    "CREATE TABLE tenant_y.parent (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE tenant_x.child (id INT PRIMARY KEY, parent INT, CONSTRAINT joins FOREIGN KEY (parent) "
    "REFERENCES tenant_y.parent (id)) ENGINE=InnoDB",
)
PARTED = {
    "drop child": "DROP TABLE tenant_x.child",
    "drop foreign key": "ALTER TABLE tenant_x.child DROP FOREIGN KEY joins",
    "drop database": "DROP DATABASE tenant_x",
}


@pytest.mark.parametrize("name", PARTED)
def test_a_folder_lost_behind_the_end_of_a_foreign_key_gives_the_same_plan(name: str, channel: Channel) -> None:
    """Two databases share a lane because of it, and the target has it no more."""
    channel.on_both(*JOINED_BEFORE)
    rows = [f"INSERT INTO tenant_y.parent VALUES ({number})" for number in range(8)]
    run_on(channel.source, *rows, *(f"INSERT INTO tenant_x.child VALUES ({number}, {number})" for number in range(8)))
    run_on(channel.source, PARTED[name], "INSERT INTO tenant_y.parent VALUES (100)")
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    with ThreadPoolExecutor(len(adopted["lanes"])) as pool:
        lanes = [each["lane"] for each in adopted["lanes"]]
        list(pool.map(lambda lane: apply_alone(channel.config, channel.endpoints, adopted["plan"], lane), lanes))
    shutil.rmtree(window["work"])
    channel.run()
    channel.assert_equal()
    survived["work folder lost"] += 1


USED_BEFORE = (
    "CREATE DATABASE tenant_x",
    "CREATE DATABASE tenant_y",
    *(f"CREATE TABLE tenant_x.{table} (id INT PRIMARY KEY, a INT) ENGINE=InnoDB" for table in ("t", "u", "w")),
    "CREATE TABLE tenant_y.z (id INT PRIMARY KEY, a INT) ENGINE=InnoDB",
    "INSERT INTO tenant_x.t VALUES (1, 1)",
    "INSERT INTO tenant_y.z VALUES (1, 1)",
    "CREATE VIEW tenant_x.v AS SELECT id, a FROM tenant_y.z",
    "CREATE PROCEDURE tenant_x.p() INSERT INTO tenant_y.z VALUES (100, 1)",
    "CREATE TRIGGER tenant_x.f AFTER INSERT ON tenant_x.t FOR EACH ROW INSERT INTO tenant_y.z VALUES (NEW.id, 1)",
)
USED = {
    "drop view": ("UPDATE tenant_x.v SET a = 5", "DROP VIEW tenant_x.v"),
    "rename view": ("UPDATE tenant_x.v SET a = 5", "RENAME TABLE tenant_x.v TO tenant_x.v2"),
    "drop procedure": ("CALL tenant_x.p()", "DROP PROCEDURE tenant_x.p"),
    "drop trigger": ("INSERT INTO tenant_x.t VALUES (50, 1)", "DROP TRIGGER tenant_x.f"),
    "rename table": ("INSERT INTO tenant_x.t VALUES (50, 1)", "RENAME TABLE tenant_x.t TO tenant_x.t2"),
    "drop table": ("INSERT INTO tenant_x.t VALUES (50, 1)", "DROP TABLE tenant_x.t"),
    "drop database": ("UPDATE tenant_x.v SET a = 5", "CALL tenant_x.p()", "DROP DATABASE tenant_x"),
}


ALIKE = ("rename view", "rename table", "drop procedure")
"""What they take away, "drop view", "drop table" and "drop database" take away, too."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.trial if name in ALIKE else ()) for name in USED]
)
def test_a_folder_lost_behind_the_drop_of_what_a_statement_used_gives_the_same_plan(
    name: str, channel: Channel
) -> None:
    """MariaDB's log does not say which databases a statement has changed: what it used decides its lane."""
    run_on(channel.source, *USED_BEFORE)
    channel.run()
    plain = [f"INSERT INTO tenant_{tenant} VALUES ({number}, 1)" for tenant in ("x.u", "y.z") for number in (7, 8)]
    run_on(channel.source, *plain)
    run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", *USED[name])
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    with ThreadPoolExecutor(len(adopted["lanes"])) as pool:
        lanes = [each["lane"] for each in adopted["lanes"]]
        list(pool.map(lambda lane: apply_alone(channel.config, channel.endpoints, adopted["plan"], lane), lanes))
    shutil.rmtree(window["work"])
    channel.run()
    channel.assert_equal()
    survived["work folder lost"] += 1


def test_every_task_of_a_window_can_be_run_again_at_any_time(channel: Channel) -> None:
    """Finding 14, and Airflow's retries: each step twice, then all of them once more behind the end."""
    channel.traffic(60, creates=True)
    window = steps.extract(channel.config, channel.endpoints, NOW)
    assert steps.extract(channel.config, channel.endpoints, NOW)["window"] == window["window"]
    for _ in range(2):
        run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    assert steps.adopt_plan(channel.config, channel.endpoints, window["work"]) == adopted
    lanes = [each["lane"] for each in adopted["lanes"]]
    for lane in [*lanes, *lanes]:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
    done = steps.advance(channel.config, channel.endpoints, adopted["plan"])
    after = channel.status
    run_plan_job(WorkFolder(window["work"]), InProcess())
    assert steps.adopt_plan(channel.config, channel.endpoints, window["work"]) == adopted
    assert [apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)["blocks"] for lane in lanes] == [
        0 for _ in lanes
    ]
    assert steps.advance(channel.config, channel.endpoints, adopted["plan"]) == done
    assert channel.status == after
    channel.assert_equal()


def test_cleared_tasks_of_a_finished_window_need_no_file(channel: Channel) -> None:
    """Finding 27: retention has removed them."""
    channel.traffic(40, creates=True)
    window = steps.extract(channel.config, channel.endpoints, NOW)
    plan = run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    for each in adopted["lanes"]:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], each["lane"])
    done = steps.advance(channel.config, channel.endpoints, adopted["plan"])
    shutil.rmtree(window["work"])
    applied = apply_alone(channel.config, channel.endpoints, adopted["plan"], 0)
    assert applied == {"lane": 0, "seqno": plan.last_seqno, "blocks": 0, "transactions": 0, "stopped": False}
    told = steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert told.keys() == done.keys()
    assert (told["window"], told["seqno"], told["note"]) == (done["window"], done["seqno"], done["note"])
    channel.assert_equal()


def test_retention_removes_finished_windows_only(channel: Channel) -> None:
    """Segments and plan of an unfinished window stay, whatever is removed around it."""
    channel.write_channel("[work]\nkeep_windows = 1\n")
    kept = []
    for number in range(3):
        channel.source.query(f"CREATE DATABASE tenant_{number}")
        window = steps.extract(channel.config, channel.endpoints, NOW)
        before = sorted(path.name for path in channel.work.iterdir())
        channel.go_on(window)
        kept.append(window["window"])
        assert sorted(path.name for path in channel.work.iterdir()) == [kept[-1]]
        # the unfinished one stood beside the last finished one
        assert before == sorted(kept[-2:])
    channel.assert_equal()


def lanes_until(owner: Any, name: str, config: ChannelConfig, endpoints: Endpoints, adopted: dict[str, Any]) -> None:
    """The lanes, one after another, in a process that is killed when one comes to a function."""
    assert hasattr(owner, name)
    setattr(owner, name, kill_self)
    for each in adopted["lanes"]:
        apply_alone(config, endpoints, adopted["plan"], each["lane"])


def lanes_until_rows(*arguments: Any) -> None:
    lanes_until(BinlogRows, "write", *arguments)


def lanes_until_rows_are_counted(*arguments: Any) -> None:
    lanes_until(BinlogRows, "_is_accounted_for", *arguments)


@requires_mysql
@pytest.mark.parametrize("server", ["mysql_target", "mysql_without_gtids"])
@pytest.mark.trial
def test_a_table_made_by_a_query_is_filled_once_if_its_lane_is_killed_between_the_two(
    server: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    """MySQL logs CREATE TABLE ... SELECT as one transaction: a DDL, and the rows that share its position."""
    source, target = request.getfixturevalue("mysql_source"), request.getfixturevalue(server)
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    source.query("CREATE DATABASE tenant_1")
    # no key: a row that comes twice would show
    source.query("CREATE TABLE tenant_1.made ENGINE=InnoDB COMMENT='x' SELECT 1 AS a, 'x' AS b")
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    for crash in (lanes_until_rows, lanes_until_rows_are_counted):
        assert was_killed(crash, channel.config, channel.endpoints, adopted)
        assert target.query("SELECT COUNT(*) FROM tenant_1.made") == [(0,)]
    channel.go_on(steps.extract(channel.config, channel.endpoints, NOW))
    channel.assert_equal()
    assert target.query("SELECT COUNT(*) FROM tenant_1.made") == [(1,)]
    survived["lane killed between a CREATE TABLE ... SELECT and its rows"] += 2
