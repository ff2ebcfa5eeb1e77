"""Tagged GTIDs of a real MySQL server: windows that begin at a set with tags, and end at a tagged GTID."""

from __future__ import annotations

import contextlib

from binlane.orchestration.request import WindowRequest
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf

pytestmark = requires_mysql


def tagged(server: PrivateServer, *statements: tuple[str, str]) -> None:
    """Each statement under its tag, none for an empty one; every other transaction is compressed."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for number, (tag, statement) in enumerate(statements):
            cursor.execute(f"SET SESSION binlog_transaction_compression = {number % 2}")
            cursor.execute(f"SET gtid_next = 'AUTOMATIC{f':{tag}' if tag else ''}'")
            cursor.execute(statement)
            cursor.execute("SET gtid_next = 'AUTOMATIC'")


def are_all(server: PrivateServer, stored: str) -> bool:
    """Whether a GTID set is what the server has executed, neither more nor less."""
    query = "SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed), GTID_SUBTRACT(@@GLOBAL.gtid_executed, %s)"
    return list(server.query(query, (stored, stored))) == [("", "")]


def ids_on_target(channel: Channel) -> list[int]:
    return [int(number) for (number,) in channel.target.query("SELECT id FROM tenant_1.t ORDER BY id")]


def test_windows_begin_and_end_at_tagged_gtids(mysql_source: PrivateServer, channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    tagged(
        mysql_source,
        ("", "CREATE DATABASE tenant_1"),
        ("blue", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(9))"),
        ("blue", "INSERT INTO tenant_1.t VALUES (1, 'blue')"),
        ("", "INSERT INTO tenant_1.t VALUES (2, 'none')"),
        ("_red9", "INSERT INTO tenant_1.t VALUES (3, 'red')"),
        ("blue", "UPDATE tenant_1.t SET s = 'again' WHERE id = 2"),
    )
    assert channel.run() is not None
    channel.assert_equal()
    stored = channel.status.channel.watermark.gtid_set
    assert are_all(mysql_source, stored)
    assert ":blue:1-3" in stored
    assert channel.run() is None

    mysql_source.query("FLUSH BINARY LOGS")
    tagged(
        mysql_source,
        ("_red9", "INSERT INTO tenant_1.t VALUES (4, 'red')"),
        ("blue", "INSERT INTO tenant_1.t VALUES (5, 'blue')"),
        ("", "INSERT INTO tenant_1.t VALUES (6, 'none')"),
        ("blue", "INSERT INTO tenant_1.t VALUES (7, 'blue')"),
        ("blue", "ALTER TABLE tenant_1.t ADD COLUMN n INT"),
        ("green", "INSERT INTO tenant_1.t VALUES (8, 'green', 1)"),
    )
    server = mysql_source.query("SELECT @@server_uuid")[0][0]
    # of the same server without a tag, or with another one, the number 5 stands elsewhere
    assert channel.run(WindowRequest(f"{server}:blue:5")) is not None
    assert ids_on_target(channel) == [1, 2, 3, 4, 5, 6]
    assert ":blue:1-4" in channel.status.channel.watermark.gtid_set
    assert channel.run() is not None
    channel.assert_equal()
    assert ids_on_target(channel) == list(range(1, 9))
    assert are_all(mysql_source, channel.status.channel.watermark.gtid_set)
