"""Temporary tables that hold no channel: of connections that have ended without a DROP, and of excluded databases."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from binlane.errors import WindowOpenError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, ChannelOf, run_on

FAMILIES = pytest.mark.parametrize("family", list(Flavor))
OPENED = ("SET binlog_format = STATEMENT", "CREATE TEMPORARY TABLE tmp (v INT)", "INSERT INTO tmp VALUES (1)")


def opened(server: PrivateServer, database: str) -> tuple[Callable[..., None], Callable[[], None]]:
    """A connection with an open temporary table: runs statements, and ends."""
    connection = server.connect(autocommit=True, database=database)

    def run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def end() -> None:
        connection.close()
        while any(row[0] == number for row in server.query("SHOW PROCESSLIST")):
            time.sleep(0.02)

    run(*OPENED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [number] = cursor.fetchone() or (0,)
    return run, end


def begun(channel_of: ChannelOf, family: Flavor) -> Channel:
    channel = channel_of(family, family)
    for database in ("tenant_1", "tenant_2"):
        run_on(channel.source, f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)")
    assert channel.run() is not None
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
