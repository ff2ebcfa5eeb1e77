"""Archives of servers that cannot be run here any more: logs as MySQL 5.0 wrote them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from binlane.binlog.wire import MAGIC, EventType, build_event
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf

POST_HEADERS = bytes.fromhex("380d0008001200040404041200004b00041a")
"""Of MySQL 5.0.46, which knows of no row events and no checksums."""
SOURCE = 7
AUTOCOMMITTED = 40


def old_log() -> bytes:
    """Every second statement is one of a table without transactions: no XID ends it."""
    head = struct.pack("<H50sIB", 4, b"5.0.46-enterprise-log", 0, 19) + POST_HEADERS
    events = [event(EventType.FORMAT_DESCRIPTION, head), query("CREATE DATABASE tenant_1")]
    events.append(query("CREATE TABLE tenant_1.t (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20))"))
    for number in range(AUTOCOMMITTED):
        events += [event(EventType.INTVAR, struct.pack("<BQ", 2, 10 * number + 1)), query(f"{INSERT} ('alone')")]
        events += [event(EventType.XID, struct.pack("<Q", number))] if number % 2 else []
    begin = event(EventType.INTVAR, struct.pack("<BQ", 2, 1000))
    events += [
        query("BEGIN"),
        begin,
        query(f"{INSERT} ('together')"),
        query("UPDATE tenant_1.t SET s = 'two' WHERE id = 1"),
    ]
    return MAGIC + b"".join([*events, event(EventType.XID, bytes(8))])


INSERT = "INSERT INTO tenant_1.t (s) VALUES"


def event(code: EventType, body: bytes) -> bytes:
    return build_event(code, body, timestamp=1_190_000_000, server_id=SOURCE, flags=0)


def query(sql: str, database: str = "tenant_1") -> bytes:
    if sql.startswith("CREATE DATABASE"):
        database = ""
    status = struct.pack("<BIBQ", 0, 0, 1, 0)  # flags2 and sql_mode
    head = struct.pack("<IIBHH", 5, 0, len(database), 0, len(status))
    return event(EventType.QUERY, head + status + database.encode() + b"\0" + sql.encode())


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_statements_in_autocommit_mode_without_begin_are_transactions(
    family: str, channel_of: ChannelOf, tmp_path: Path
) -> None:
    channel: Channel = channel_of(family, family)
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "binlog.000001").write_bytes(old_log())
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    channel.target.query("DROP DATABASE binlane")
    channel.init("binlog.000001:4")
    assert channel.run() is not None
    rows = channel.target.query("SELECT id, s FROM tenant_1.t ORDER BY id")
    alone = [(10 * number + 1, "alone") for number in range(AUTOCOMMITTED)]
    assert rows == [(1, "two"), *alone[1:], (1000, "together")]
