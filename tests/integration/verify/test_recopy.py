"""Whole tables copied again beside a channel in use, with and without a primary key, and kill -9 in the middle."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
from pymysql.err import OperationalError

from binlane.bootstrap import kept_sessions
from binlane.bootstrap.row_copy import insert_rows
from binlane.bootstrap.sessions import Session, read_session
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.driver import wire
from binlane.errors import ConfigError, DriftError, PositionError, TargetError, WindowBusyError
from binlane.orchestration import steps
from binlane.orchestration.commands.copies import missing_tables
from binlane.orchestration.commands.copies import recopy as command
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.terminal import Terminal
from binlane.repair import recopy as recopying
from binlane.repair.fence import lock_at_watermark
from binlane.state.records.verifications import BEING_COPIED, replace_suspects
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.conftest import requires_mysql
from tests.forked import process, telling
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
    run_window,
)

__all__ = ["channel_of", "clean_servers"]

FAMILIES: Final = pytest.mark.parametrize(
    "families",
    [
        ("mariadb", "mariadb"),
        pytest.param(("mysql", "mysql"), marks=requires_mysql),
        pytest.param(("mariadb", "mysql"), marks=requires_mysql),
        pytest.param(("mysql", "mariadb"), marks=requires_mysql),
    ],
    ids="-".join,
)
TABLES: Final = (
    "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.`a.b ``x` (n INT, note VARCHAR(40), f FLOAT, b BLOB, j JSON, e ENUM('x', 'y'), "
    "at TIMESTAMP(3) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3), v INT AS (n + 1) VIRTUAL, KEY (n))",
    "CREATE TABLE tenant_1.parent (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, s INT AS (u + 1) STORED)",
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, n INT, "
    "FOREIGN KEY (p) REFERENCES tenant_1.parent (id) ON DELETE CASCADE)",
)
ROWS: Final = (
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "INSERT INTO tenant_1.`a.b ``x` (n, note, f, b, j, e, at) VALUES "
    + ", ".join(
        f"({n % 3}, 'n''o\\\\te ü {n % 3}', {n / 3!r}, X'00FF27{n:02x}', '{{\"n\": {n}}}', {n % 2 + 1}, "
        "'2026-01-02 03:04:05.678')"
        for n in range(9)
    ),
    "INSERT INTO tenant_1.`a.b ``x` (n) VALUES (7), (7), (7)",
    "INSERT INTO tenant_1.parent (id, u) VALUES (0, 0), (1, 1), (2, 2)",
    "INSERT INTO tenant_1.child VALUES (1, 0, 0), (2, 1, 0)",
)
WRONG: Final = (
    "SET SESSION foreign_key_checks = 0",
    "DELETE FROM tenant_1.`a.b ``x` WHERE n = 7 LIMIT 1",
    "INSERT INTO tenant_1.`a.b ``x` (n, note) VALUES (1, 'mine')",
    "UPDATE tenant_1.parent SET u = 100 - u",
    "DELETE FROM tenant_1.parent WHERE id = 1",
    "INSERT INTO tenant_1.parent (id, u) VALUES (50, 50)",
)
BARE: Final = "tenant_1.a.b `x"
CHOSEN: Final = ("--table", BARE, "--table", "`tenant_1`.`parent`")


def begun(channel: Channel) -> Channel:
    run_on(channel.source, *TABLES, *ROWS)
    assert channel.run() is not None
    return channel


def rows(channel: Channel, table: str, *, renamed: str = "tenant_1") -> list[list[tuple[object, ...]]]:
    """Of source and target. JSON's text differs between families, so its value is compared by its member."""
    columns = "n, note, f, HEX(b), JSON_EXTRACT(j, '$.n') + 0, e, at, v" if "a.b" in table else "*"
    return [
        sorted(server.query(f"SELECT {columns} FROM {database}.{table}"), key=repr)
        for server, database in ((channel.source, "tenant_1"), (channel.target, renamed))
    ]


def assert_equal(channel: Channel) -> None:
    for table in ("`a.b ``x`", "parent", "child"):
        ours, theirs = rows(channel, table)
        assert ours == theirs
        assert ours


@contextlib.contextmanager
def traffic(channel: Channel) -> Iterator[None]:
    """Commits on the source all the time: on the copied tables, and on their child."""
    ended = threading.Event()

    def write() -> None:
        with channel.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
            number = 100
            while not ended.wait(0.05):
                number += 1
                cursor.execute("INSERT INTO tenant_1.`a.b ``x` (n, note) VALUES (%s, 'live')", (number,))
                cursor.execute("DELETE FROM tenant_1.`a.b ``x` WHERE n = %s", (number - 20,))
                cursor.execute("INSERT INTO tenant_1.parent (id, u) VALUES (%s, %s)", (number, number))
                cursor.execute("INSERT INTO tenant_1.child VALUES (%s, %s, 0)", (number, number))
                cursor.execute("UPDATE tenant_1.parent SET u = -u WHERE id = %s", (number - 3,))
                cursor.execute("UPDATE tenant_1.child SET n = n + 1 WHERE id = %s", (number - 5,))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@FAMILIES
def test_tables_are_copied_again_while_the_source_changes_them(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = begun(channel_of(*families))
    run_on(channel.target, *WRONG, log=False)
    assert channel.cli("verify", CHANNEL, "--full") == 1
    with traffic(channel):
        for _ in range(2):
            assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    said = capsys.readouterr().out
    assert f"  {BARE}: " in said
    assert "inserted, equal on both servers" in said
    assert "\nwindows up to the source's snapshot at " in said
    assert channel.run() is not None
    assert_equal(channel)
    assert channel.cli("verify", CHANNEL, "--full") == 0
    state = "SELECT state, deleted > 0, inserted > 0 FROM binlane.repairs"
    assert set(channel.target.query(state)) == {("done", 1, 1)}
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0  # nothing was committed in between
    assert_equal(channel)


@requires_mysql
def test_a_table_with_json_and_no_key_is_compared_row_by_row_between_the_families(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two print no document alike. As a list, the rows of a large table are more than an answer may have."""
    channel = begun(channel_of("mariadb", "mysql"))
    added = ", ".join(f"({n}, '{n:040}', '{'x' * 500}', '{{\"n\":{n}}}')" for n in range(2_000))
    run_on(channel.source, f"INSERT INTO tenant_1.`a.b ``x` (n, note, b, j) VALUES {added}")
    channel.run()
    run_on(channel.target, *WRONG)
    monkeypatch.setattr(wire, "LARGEST_RESULT", 1_000_000)
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    assert_equal(channel)
    assert channel.cli("verify", CHANNEL, "--full") == 0


def test_names_are_the_targets_and_files_of_the_log_may_end_in_between(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel('[rename]\n"tenant_*" = "dr_*"\n')
    begun(channel)
    run_on(channel.target, *(statement.replace("tenant_1", "dr_1") for statement in WRONG), log=False)
    run_on(channel.source, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    assert channel.cli("recopy", CHANNEL, "--yes", "--table", "tenant_1.parent") == 2
    assert "no such table in the channel's databases" in capsys.readouterr().err
    assert channel.cli("recopy", CHANNEL, "--yes", "--table", "dr_1.parent", "--table", "dr_1.a.b `x") == 0
    for table in ("`a.b ``x`", "parent"):
        ours, theirs = rows(channel, table, renamed="dr_1")
        assert ours == theirs


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_copy_whose_lock_against_ddl_was_lost_is_rolled_back(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = begun(channel_of(family, family))
    run_on(channel.target, *WRONG, log=False)
    before = rows(channel, "parent")[1]
    opened = list[Session]()

    def recorded(*arguments: Any, **named: Any) -> Session:
        opened.append(read_session(*arguments, **named))
        return opened[-1]

    def inserted(*arguments: Any) -> int:
        run_on(channel.source, f"KILL {opened[0].connection.thread_id()}")
        return insert_rows(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("binlane.bootstrap.snapshot.read_session", recorded)
        patch.setattr(recopying, "insert_rows", inserted)
        assert channel.cli("recopy", CHANNEL, "--yes", "--table", "tenant_1.parent") == 1
    assert "expected the lock against DDL" in " ".join(capsys.readouterr().err.split())
    assert rows(channel, "parent")[1] == before
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    assert_equal(channel)


KILLED: Final[tuple[tuple[str, str, int, bool], ...]] = (
    # module, function, which call, behind it
    ("repair.recopy", "begin_repair", 1, True),
    ("repair.recopy", "lock_at_watermark", 1, True),
    ("repair.recopy", "insert_rows", 1, False),
    ("repair.recopy", "insert_rows", 1, True),
    ("repair.recopy", "insert_rows", 2, True),
    ("repair.recopy", "save_repair", 1, True),
    ("orchestration.commands.copies.recopy", "_brought_to", 1, False),
    ("orchestration.commands.copies.recopy", "_text", 1, False),
)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.trial
def test_kill_9_leaves_either_the_old_rows_or_the_source_s(family: str, channel_of: ChannelOf) -> None:
    channel = begun(channel_of(family, family))
    run_on(channel.target, *WRONG, log=False)
    for at in KILLED:
        before = [rows(channel, table)[1] for table in ("`a.b ``x`", "parent")]
        run_on(channel.source, f"INSERT INTO tenant_1.child VALUES ({100 + KILLED.index(at)}, 0, 0)")
        with process(killed, channel.channels, channel.environment, *at) as running:
            running.join()
            assert running.exitcode == -signal.SIGKILL
        assert channel.run() is None  # the window up to the snapshot was applied, and the lease is free
        after = [rows(channel, table)[1] for table in ("`a.b ``x`", "parent")]
        assert (after == before) == (at[1] != "_text")
    assert_equal(channel)
    assert channel.cli("verify", CHANNEL, "--full") == 0


def killed(folder: Path, environment: dict[str, str], module: str, name: str, call: int, behind: bool) -> None:
    """The command, which kills itself at, or behind, a call of one of its functions."""
    os.environ.update(environment)
    calls: list[object] = []
    real = getattr(import_module(f"binlane.{module}"), name)

    def once(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if len(calls) == call and not behind:
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*arguments, **named)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    def window(config: ChannelConfig, endpoints: Endpoints, request: WindowRequest, *_: object) -> dict[str, Any]:
        return run_window(config, endpoints, request) or {"empty": True}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"binlane.{module}.{name}", once)
        patch.setattr(command, "announced_window", window)  # lanes as threads: this process may have no children
        command.recopy(CHANNEL, folder, command.Options((BARE, "tenant_1.parent"), "local"), Terminal())


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_what_a_recopy_holds_ends_soon_with_its_machine_and_not_before(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process says nothing to its servers and closes no connection, as a machine without power. One that
    waits for rows of the source keeps everything."""
    channel = begun(channel_of(family, family))
    run_on(channel.target, *WRONG, log=False)
    with telling(waiting, channel.channels, channel.environment, 600) as (running, reader):
        assert reader.recv() == "copies"
        assert running.pid is not None
        os.kill(running.pid, signal.SIGSTOP)
        try:
            ended = time.monotonic() + 60
            while time.monotonic() < ended:
                with contextlib.suppress(WindowBusyError, TargetError):
                    channel.run()
                    break
                time.sleep(0.5)
            else:
                pytest.fail("the channel is still held")
            run_on(
                channel.source, "SET SESSION lock_wait_timeout = 30", "ALTER TABLE tenant_1.`a.b ``x` COMMENT 'later'"
            )
        finally:
            os.kill(running.pid, signal.SIGKILL)
    short(monkeypatch)

    def slowly(*arguments: Any) -> int:
        time.sleep(5)
        return insert_rows(*arguments)

    monkeypatch.setattr(recopying, "insert_rows", slowly)
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    assert_equal(channel)


def short(patch: pytest.MonkeyPatch) -> None:
    """The times of kept sessions, cut so that a test can wait for their ends."""
    patch.setattr(kept_sessions, "ALONE_SECONDS", 2)
    patch.setattr(kept_sessions, "_PAUSE", 0.3)


def waiting(folder: Path, environment: dict[str, str], seconds: int, told: Pipe) -> None:
    """The command, which has nothing to do for so long while it holds everything, and says when."""
    os.environ.update(environment)

    def slowly(*_: object) -> tuple[int, int]:
        told.send("copies")
        time.sleep(seconds)
        raise AssertionError

    def window(config: ChannelConfig, endpoints: Endpoints, request: WindowRequest, *_: object) -> dict[str, Any]:
        return run_window(config, endpoints, request) or {"empty": True}

    with pytest.MonkeyPatch.context() as patch:
        short(patch)
        patch.setattr(kept_sessions, "STREAMING_SECONDS", 2)
        patch.setattr(recopying, "compared_rows", slowly)
        patch.setattr(command, "announced_window", window)
        command.recopy(CHANNEL, folder, command.Options((BARE, "tenant_1.parent"), "local"), Terminal())


def test_no_window_opens_during_the_copy_and_an_open_one_is_finished_first(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = begun(channel_of("mariadb", "mariadb"))
    run_on(channel.target, *WRONG, log=False)
    run_on(channel.source, "INSERT INTO tenant_1.child VALUES (60, 0, 0)")
    assert steps.extract(channel.config, channel.endpoints, WindowRequest("now"))["work"] is not None
    run_on(channel.source, "INSERT INTO tenant_1.parent (id, u) VALUES (60, 60)")
    refused = list[str]()

    def meanwhile(*arguments: object) -> int:
        run_on(channel.source, "INSERT INTO tenant_1.child VALUES (61, 60, 0) ON DUPLICATE KEY UPDATE n = n + 1")
        with pytest.raises(WindowBusyError, match=r"applying windows up to a snap.*: KILL CONNECTION \d+$") as told:
            steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
        refused.append(str(told.value))
        assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 1
        return insert_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recopying, "insert_rows", meanwhile)
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    assert len(refused) == 2
    assert channel.run() is not None
    assert_equal(channel)


def test_a_window_that_another_run_has_opened_meanwhile_is_applied_and_a_new_snapshot_is_taken(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = begun(channel_of("mariadb", "mariadb"))
    run_on(channel.target, *WRONG, log=False)
    calls = list[int]()

    def faster(*arguments: object) -> None:
        calls.append(1)
        if len(calls) < 3:
            run_on(channel.source, f"INSERT INTO tenant_1.child VALUES ({70 + len(calls)}, 0, 0)")
            with pytest.MonkeyPatch.context() as patch:  # that run has looked before the lease was taken
                patch.setattr(steps, "_require_no_recopy", lambda *_: None)
                window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
                if len(calls) == 2:
                    channel.go_on(window)
                else:
                    run_plan_job(WorkFolder(window["work"]), InProcess())
                    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
        lock_at_watermark(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(recopying, "lock_at_watermark", faster)
    assert channel.cli("recopy", CHANNEL, "--yes", *CHOSEN) == 0
    assert len(calls) == 3
    assert_equal(channel)


def test_what_cannot_be_copied_is_refused_by_name_and_nothing_is_written(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = begun(channel_of("mariadb", "mariadb"))
    run_on(
        channel.source,
        "CREATE TABLE tenant_1.fires (id INT)",
        "CREATE SEQUENCE tenant_1.s",
        "CREATE TABLE tenant_1.other (id INT, KEY k (id))",
    )
    assert channel.run() is not None
    run_on(
        channel.target,
        "CREATE TRIGGER tenant_1.fired BEFORE INSERT ON tenant_1.fires FOR EACH ROW SET NEW.id = 1",
        "ALTER TABLE tenant_1.other MODIFY id BIGINT",
        *WRONG,
        log=False,
    )
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    before = [rows(channel, table)[1] for table in ("`a.b ``x`", "parent")]

    def refused(table: str, text: str) -> None:
        options = command.Options((BARE, table), "local")
        with pytest.raises(ConfigError, match=text):
            command.recopy(CHANNEL, channel.channels, options, Terminal())
        assert [rows(channel, each)[1] for each in ("`a.b ``x`", "parent")] == before

    refused("tenant_1.fires", r"statements would fire its triggers \(fired\)")
    refused("tenant_1.s", "it is a sequence")
    refused("tenant_1.other", r"tenant_1\.other\.id: type: expected int, found bigint")
    refused("tenant_1.other", r"or drop it there \(DROP TABLE `tenant_1`\.`other`\): then this command makes it")
    refused("tenant_1.nowhere", "no such table in the channel's databases")
    run_on(channel.target, "ALTER TABLE tenant_1.other MODIFY id INT, ENGINE = MyISAM", log=False)
    refused("tenant_1.other", "its engine on the target is MyISAM")
    channel.write_channel('[filter.kinds]\ndelete = "ignore"\n')
    refused("tenant_1.parent", "filter.kinds")
    assert channel.target.query("SELECT COUNT(*) FROM binlane.repairs") == [(0,)]
    # a trigger that may fire, and changes what it is given
    channel.write_channel('allow_triggers = ["tenant_1.fires"]\n')
    run_on(channel.source, "INSERT INTO tenant_1.fires VALUES (2)")
    with pytest.raises(DriftError, match=r"tenant_1\.fires: expected the source's 1 row behind the copy"):
        command.recopy(CHANNEL, channel.channels, command.Options((BARE, "tenant_1.fires"), "local"), Terminal())
    assert [rows(channel, each)[1] for each in ("`a.b ``x`", "parent")] == before


def test_a_table_that_the_target_lacks_is_made_by_the_command_as_it_is_printed(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, "CREATE DATABASE `my-app`", "CREATE TABLE `my-app`.lost (id INT PRIMARY KEY)")
    assert channel.run() is not None
    run_on(channel.target, "DROP TABLE `my-app`.lost", log=False)
    run_on(channel.source, "INSERT INTO `my-app`.lost VALUES (1), (2)")
    assert channel.cli("run", CHANNEL) == 1
    [printed] = re.findall(r"binlane recopy (\S+ --table '\S+')", capsys.readouterr().err)
    assert channel.cli("recopy", *shlex.split(printed), "--yes") == 0
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_table_that_the_target_lacks_is_made_and_filled_while_a_window_waits_for_it(
    channel_of: ChannelOf, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    made = ("CREATE DATABASE app", *(f"CREATE TABLE app.{name} (id INT PRIMARY KEY, n INT)" for name in ("lost", "t")))
    run_on(channel.source, *made, "INSERT INTO app.lost VALUES (1, 1), (2, 2), (3, 3)")
    assert channel.run() is not None
    run_on(channel.target, "DROP TABLE app.lost", log=False)
    run_on(
        channel.source,
        *(
            "UPDATE app.lost SET n = 9 WHERE id = 1",
            "DELETE FROM app.lost WHERE id = 2",
            "INSERT INTO app.t VALUES (1, 1)",
        ),
        *("ALTER TABLE app.lost ADD COLUMN more INT DEFAULT 7, ADD KEY (n)", "INSERT INTO app.lost VALUES (4, 4, 4)"),
    )
    assert channel.cli("run", CHANNEL) == 1
    assert "app.lost" in capsys.readouterr().err
    assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 0
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*) FROM binlane.suspects") == [(0,)]
    run_on(channel.source, "UPDATE app.lost SET n = 5 WHERE id = 3", "INSERT INTO app.t VALUES (2, 2)")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.cli("verify", CHANNEL, "--full") == 0


def test_a_view_over_a_table_that_the_target_lacks_is_left_out_and_made_as_the_message_says(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mariadb", "mariadb")
    made = ("CREATE DATABASE app", "CREATE TABLE app.lost (id INT PRIMARY KEY)", "INSERT INTO app.lost VALUES (1), (2)")
    run_on(channel.source, *made)
    assert channel.run() is not None
    run_on(channel.target, "DROP TABLE app.lost", log=False)
    run_on(channel.source, "DELETE FROM app.lost WHERE id = 1", "CREATE VIEW app.v AS SELECT id FROM app.lost")
    again = "`binlane recopy orders --table app.lost` again"
    assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 1
    said = capsys.readouterr().err
    assert "app.v" in said
    assert f"leave the view out, too ([filter] exclude_tables), {again}, take the view in again" in said
    channel.write_channel('[filter]\nexclude_tables = ["app.v"]\n')
    assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 0
    channel.write_channel()
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert channel.cli("verify", CHANNEL, "--full") == 0
    assert channel.target.query("SELECT * FROM app.v") == [(2,)]
    # any other error of these windows names the command, too
    run_on(
        channel.target, "DROP VIEW app.v", "DROP TABLE app.lost", "CREATE TABLE app.t (id INT PRIMARY KEY)", log=False
    )
    run_on(channel.source, "CREATE TABLE app.t (id INT PRIMARY KEY)")
    assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 1
    assert f"; then the copy itself: {again}" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [(), ("--full",)], ids=["stored rows", "full"])
def test_a_verification_in_between_leaves_the_note_of_a_table_that_is_still_empty(
    asked: tuple[str, ...], channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mariadb", "mariadb")
    made = ("CREATE DATABASE app", "CREATE TABLE app.lost (id INT PRIMARY KEY, n INT)")
    run_on(channel.source, *made, "INSERT INTO app.lost VALUES (1, 1), (2, 2)")
    channel.run()
    run_on(channel.target, "DROP TABLE app.lost", log=False)
    real = missing_tables.make_missing

    def killed(*arguments: Any) -> None:
        real(*arguments)
        raise PositionError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(command, "make_missing", killed)
        assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 1
    assert channel.target.query("SELECT * FROM app.lost") == []
    assert channel.cli("verify", CHANNEL, *asked) != 0
    run_on(channel.source, "UPDATE app.lost SET n = 7 WHERE id = 1")
    capsys.readouterr()
    assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 0, capsys.readouterr().err
    assert channel.cli("verify", CHANNEL, "--full") == 0
    channel.assert_equal()


def test_the_note_of_a_table_that_was_filled_by_hand_goes_with_a_verification(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.lost (id INT PRIMARY KEY)")
    run_on(channel.source, "INSERT INTO app.lost VALUES (1), (2)")
    channel.run()
    run_on(channel.target, "DROP TABLE app.lost", log=False)
    with monkeypatch.context() as patch:
        patch.setattr(command, "make_missing", Mock(side_effect=PositionError("killed")))
        assert channel.cli("recopy", CHANNEL, "--table", "app.lost", "--yes") == 1
    run_on(
        channel.target, "CREATE TABLE app.lost (id INT PRIMARY KEY)", "INSERT INTO app.lost VALUES (1), (2)", log=False
    )
    assert channel.cli("verify", CHANNEL, "--full") == 0
    assert channel.target.query("SELECT * FROM binlane.suspects") == []


def test_of_two_recopies_of_a_missing_table_none_leaves_out_rows_behind_the_other_s_copy(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.lost (id INT PRIMARY KEY)")
    channel.run()
    run_on(channel.target, "DROP TABLE app.lost", log=False)
    run_on(channel.source, "INSERT INTO app.lost VALUES (1)")
    chosen = ("recopy", CHANNEL, "--table", "app.lost", "--yes")
    real, brought, others = missing_tables.note_missing, command._brought_to, list[int]()

    def as_read(*arguments: Any) -> None:
        # what a verification stores at this moment is neither lost nor deletes the note
        with pytest.raises(OperationalError, match="timeout"):
            channel.target.query("SELECT channel FROM binlane.channels FOR UPDATE NOWAIT")
        replace_suspects(*arguments)

    def other_first(*arguments: Any) -> None:
        real(*arguments)
        with monkeypatch.context() as patch:
            patch.setattr(command, "note_missing", real)
            patch.setattr(command, "_brought_to", brought)
            patch.setattr(command, "_LEASE_SECONDS", 1)
            others.append(channel.cli(*chosen))
        run_on(channel.source, "INSERT INTO app.lost VALUES (2)")

    with monkeypatch.context() as patch:
        patch.setattr(command, "note_missing", other_first)
        patch.setattr(missing_tables, "replace_suspects", as_read)
        patch.setattr(command, "_brought_to", Mock(side_effect=PositionError("killed")))
        assert channel.cli(*chosen) == 1
    assert others == [1]
    # what the killed one has left out is known
    assert channel.target.query("SELECT note FROM binlane.suspects") == [(BEING_COPIED,)]
    assert channel.cli(*chosen) == 0
    channel.assert_equal()
