"""Temporary tables that hold no channel: of connections that have ended without a DROP, and of excluded databases."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from binlane.errors import PrecheckError, WindowOpenError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.source.server import open_sessions
from binlane.state.channels import keep_sessions, read_channel
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES = pytest.mark.parametrize("family", list(Flavor))
OPENED = ("SET binlog_format = STATEMENT", "CREATE TEMPORARY TABLE tmp (v INT)", "INSERT INTO tmp VALUES (1)")


def opened(server: PrivateServer, database: str, *before: str) -> tuple[Callable[..., None], Callable[[], None]]:
    """A connection with an open temporary table: runs statements, those ``before`` it first, and ends."""
    connection = server.connect(autocommit=True, database=database)

    def run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def end() -> None:
        connection.close()
        while any(row[0] == number for row in server.query("SHOW PROCESSLIST")):
            time.sleep(0.02)

    run(*before, *OPENED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [number] = cursor.fetchone() or (0,)
    return run, end


def begun(channel_of: ChannelOf, family: Flavor) -> Channel:
    channel = channel_of(family, family)
    for database in ("tenant_1", "tenant_2"):
        channel.on_both(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    return channel


@FAMILIES
def test_a_table_whose_drop_no_log_has_ends_with_its_connection(channel_of: ChannelOf, family: Flavor) -> None:
    channel = begun(channel_of, family)
    run, end = opened(channel.source, "tenant_1")
    run("INSERT INTO t SELECT 1, v FROM tmp", "SET sql_log_bin = 0")
    with pytest.raises(WindowOpenError, match=r"the temporary table tenant_1\.tmp of connection"):
        channel.run()
    end()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 3)")
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_one_that_is_lost_waits_for_none_that_is_open(channel_of: ChannelOf, family: Flavor) -> None:
    channel = begun(channel_of, family)
    run, end = opened(channel.source, "tenant_1")
    run("SET sql_log_bin = 0")
    end()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    other, ended = opened(channel.source, "tenant_2")
    other("INSERT INTO t SELECT 1, v FROM tmp")
    assert channel.run() is not None
    assert channel.target.query("SELECT id FROM tenant_1.t") == [(2,)]
    with pytest.raises(WindowOpenError, match=r"the temporary table tenant_2\.tmp of connection"):
        channel.run()
    ended()
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_one_of_a_database_that_the_channel_leaves_out_holds_nothing(channel_of: ChannelOf, family: Flavor) -> None:
    channel = begun(channel_of, family)
    channel.write_channel('[filter]\nexclude_databases = ["tenant_2"]\n')
    _, end = opened(channel.source, "tenant_2")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    assert channel.run() is not None
    assert channel.target.query("SELECT id FROM tenant_1.t") == [(2,)]
    end()


# MySQL alone shows the numbers that its connections have set
@pytest.mark.parametrize(
    ("family", "number"), [(Flavor.MARIADB, 99_999_999), (Flavor.MYSQL, 99_999_999), (Flavor.MYSQL, 1)]
)
def test_one_that_logs_another_number_than_its_own_is_not_taken_for_ended(
    channel_of: ChannelOf, family: Flavor, number: int
) -> None:
    """As the programs do that apply a log to the source."""
    channel = begun(channel_of, family)
    run, end = opened(channel.source, "tenant_1", f"SET pseudo_thread_id = {number}")
    with pytest.raises(WindowOpenError, match=rf"the temporary table tenant_1\.tmp of connection {number} "):
        channel.run()
    run("INSERT INTO t SELECT 1, v FROM tmp", "DROP TEMPORARY TABLE tmp")
    assert channel.run() is not None
    channel.assert_equal()
    end()


def test_one_that_was_taken_for_ended_and_goes_on_is_refused(channel_of: ChannelOf) -> None:
    """MariaDB shows to nobody what a connection logs in place of its number, as programs that apply a log set it."""
    channel = begun(channel_of, Flavor.MARIADB)
    channel.on_both("CREATE TABLE tenant_1.tmp (v INT)", "INSERT INTO tenant_1.tmp VALUES (1), (2)")
    run, end = opened(channel.source, "tenant_1", "SET pseudo_thread_id = 1")
    assert channel.run() is not None
    [kept] = channel.status.channel.lost_sessions
    assert ":1@" in kept
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    assert channel.run() is not None
    run("DELETE FROM tmp")
    with pytest.raises(PrecheckError, match=r"more statements of connection 1, whose temporary tables an earlier .*re"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.tmp") == [(2,)]
    end()
    # behind a restart of the source the number is another connection's
    with engine_of(channel.endpoints.target).begin() as connection:
        state = read_channel(connection, CHANNEL)
        keep_sessions(connection, state, [], is_restarted=False)
        keep_sessions(connection, read_channel(connection, CHANNEL), ["7:5@binlog.000001:4"], is_restarted=False)
        assert read_channel(connection, CHANNEL).lost_sessions == (kept, "7:5@binlog.000001:4")
        keep_sessions(connection, read_channel(connection, CHANNEL), ["7:6@binlog.000002:4"], is_restarted=True)
        assert read_channel(connection, CHANNEL).lost_sessions == ("7:6@binlog.000002:4",)


def test_an_account_that_may_not_see_set_numbers_sees_the_connections(channel_of: ChannelOf) -> None:
    source = begun(channel_of, Flavor.MYSQL).source
    run_on(
        source,
        "DROP USER IF EXISTS test_viewer@'%'",
        f"CREATE USER test_viewer@'%' IDENTIFIED BY '{source.password}'",
        "GRANT PROCESS ON *.* TO test_viewer@'%'",
        log=False,
    )
    with contextlib.closing(
        pymysql.connect(host=source.host, port=source.port, user="test_viewer", password=source.password)
    ) as connection:
        sessions = open_sessions(connection)
    run_on(source, "DROP USER test_viewer@'%'", log=False)
    # its own, for one
    assert sessions


def name_ends(channel: Channel, *, message: str = "") -> None:
    """Write the entry into the channel's file that the message names, or none."""
    entries = message and message[message.index("source.ended_sessions = ") + len("source.ended_sessions = ") :]
    file = channel.channels / f"{CHANNEL}.toml"
    text = re.sub(r"ended_sessions = .*\n", "", file.read_text())
    file.write_text(text.replace("[source]\n", f"[source]\nended_sessions = {entries}\n" if entries else "[source]\n"))


def lost(channel: Channel, database: str = "tenant_1") -> None:
    """A connection that ends without a DROP in the log, and a row behind it."""
    run, end = opened(channel.source, database)
    run(f"INSERT INTO {database}.t SELECT 1, v FROM tmp", "SET sql_log_bin = 0")
    end()
    run_on(channel.source, f"INSERT INTO {database}.t VALUES (2, 2)")


def copy_log(channel: Channel, folder: Path) -> None:
    channel.source.query("FLUSH BINARY LOGS")
    for row in channel.source.query("SHOW BINARY LOGS"):
        shutil.copy(channel.source.datadir / row[0], folder)


@FAMILIES
def test_an_archive_is_told_by_name_of_a_connection_that_has_ended(
    channel_of: ChannelOf, family: Flavor, tmp_path: Path
) -> None:
    channel = begun(channel_of, family)
    archive = tmp_path / "archive"
    archive.mkdir()
    copy_log(channel, archive)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    # a MySQL server and its archive are two sources
    run_on(channel.target, "DROP DATABASE binlane", log=False)
    channel.init()
    lost(channel)
    copy_log(channel, archive)
    with pytest.raises(WindowOpenError, match=r"source\.ended_sessions") as held:
        channel.run()
    name_ends(channel, message=str(held.value))
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 3)")
    copy_log(channel, archive)
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_an_account_without_process_is_told_by_name(channel_of: ChannelOf, family: Flavor) -> None:
    channel = begun(channel_of, family)
    sees = (
        "REPLICATION MASTER ADMIN, BINLOG MONITOR, SLAVE MONITOR" if family is Flavor.MARIADB else "REPLICATION CLIENT"
    )
    run_on(
        channel.source,
        "DROP USER IF EXISTS test_blind@'%'",
        f"CREATE USER test_blind@'%' IDENTIFIED BY '{channel.source.password}'",
        f"GRANT REPLICATION SLAVE, {sees}, SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO test_blind@'%'",
        log=False,
    )
    channel.connect("source_server", channel.source, "test_blind")
    lost(channel)
    with pytest.raises(WindowOpenError, match=r"whose account has PROCESS\. Else") as held:
        channel.run()
    name_ends(channel, message=str(held.value))
    assert channel.run() is not None
    run_on(channel.source, "DROP USER test_blind@'%'", log=False)
    channel.assert_equal()


@FAMILIES
def test_what_is_said_of_a_connection_that_is_there_counts_for_nothing(channel_of: ChannelOf, family: Flavor) -> None:
    channel = begun(channel_of, family)
    run, end = opened(channel.source, "tenant_1")
    with pytest.raises(WindowOpenError) as held:
        channel.run()
    name_ends(channel, message=str(held.value))
    with pytest.raises(WindowOpenError):
        channel.run()
    run("INSERT INTO tenant_1.t SELECT 1, v FROM tmp")
    end()
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_a_table_that_is_used_behind_the_windows_end_does_not_end_with_the_window(
    channel_of: ChannelOf, family: Flavor
) -> None:
    """The connection has ended when the window is read; a permanent table has the temporary one's name."""
    channel = begun(channel_of, family)
    channel.on_both("CREATE TABLE tenant_1.tmp (v INT)", "INSERT INTO tenant_1.tmp VALUES (1), (2)")
    run, end = opened(channel.source, "tenant_1")
    time.sleep(1.1)
    between = dt.datetime.now(dt.UTC)
    time.sleep(1.1)
    run("DELETE FROM tmp", "SET sql_log_bin = 0")
    end()
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    with pytest.raises(WindowOpenError):
        channel.run(WindowRequest(between.isoformat()))
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_a_connection_that_goes_on_although_it_has_ended_by_name_is_refused(
    channel_of: ChannelOf, family: Flavor, tmp_path: Path
) -> None:
    channel = begun(channel_of, family)
    channel.on_both("CREATE TABLE tenant_1.tmp (v INT)", "INSERT INTO tenant_1.tmp VALUES (1), (2)")
    archive = tmp_path / "archive"
    archive.mkdir()
    copy_log(channel, archive)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    run_on(channel.target, "DROP DATABASE binlane", log=False)
    channel.init()
    run, end = opened(channel.source, "tenant_1")
    copy_log(channel, archive)
    with pytest.raises(WindowOpenError) as held:
        channel.run()
    name_ends(channel, message=str(held.value))
    assert channel.run() is not None
    # who takes the entry out takes it back
    assert channel.status.channel.lost_sessions == ()
    run("DELETE FROM tmp")
    copy_log(channel, archive)
    with pytest.raises(PrecheckError, match=r"source\.ended_sessions of the channel .* take the entry out"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.tmp") == [(2,)]
    end()


@FAMILIES
def test_what_a_changed_filter_takes_begins_behind_the_watermark(channel_of: ChannelOf, family: Flavor) -> None:
    """A temporary table that the filter left out hides the permanent one of its name, which is taken now."""
    channel = begun(channel_of, family)
    without = '[filter]\nexclude_databases = ["tenant_2"]\n'
    channel.write_channel(without)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    run, end = opened(channel.source, "tenant_2")
    run("CREATE TEMPORARY TABLE t SELECT 1 id, 5 v")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 2)")
    extracted = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    channel.write_channel()
    # now the tables count, and the window without a plan ends in front of them
    shorter = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert shorter["transactions"] == 1 < extracted["transactions"]
    channel.write_channel(without)
    channel.run()
    assert channel.rows_of(channel.target)["tenant_1.t"] == {(1, 1), (2, 2)}
    channel.write_channel()
    run("UPDATE t SET v = v + 1")
    with pytest.raises(PrecheckError, match=r"a temporary table of before the channel's beginning.*: tenant_2\.t"):
        channel.run()
    run("DROP TEMPORARY TABLE t")
    end()
    run_on(channel.source, "INSERT INTO tenant_2.t VALUES (3, 3)")
    assert channel.run() is not None
    channel.assert_equal()
