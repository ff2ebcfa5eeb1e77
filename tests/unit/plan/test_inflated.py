"""Compressed transactions laid out as plain ones: the same blocks, positions and errors as one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.frames import frame
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import MAGIC, EventType
from binlane.errors import BinlaneError
from binlane.plan import columnar, inflated, segment_map
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.unit.plan.test_columnar import outcome

pytestmark = requires_mysql

MADE: Final = (
    "CREATE DATABASE test",
    "CREATE DATABASE other",
    *(
        f"CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(200), n INT)"
        for name in ("test.t", "other.t")
    ),
    "SET SESSION binlog_transaction_compression = ON",
)
PLAIN: Final = (
    "INSERT INTO test.t (s, n) VALUES ('a', 1), ('b', 2)",
    "UPDATE test.t SET n = n + 1",
    "INSERT INTO other.t (s) VALUES (REPEAT('x', 200))",
)
MIXED: Final = (
    *PLAIN,
    "BEGIN",
    "INSERT INTO test.t (s) VALUES ('one')",
    "INSERT INTO other.t (s) VALUES ('two')",
    "COMMIT",
    "SET SESSION binlog_transaction_compression = OFF",
    "INSERT INTO test.t (s) VALUES ('plain')",
    "SET SESSION binlog_transaction_compression = ON, binlog_rows_query_log_events = ON",
    "DELETE FROM test.t WHERE id = 1",
    "CREATE TABLE other.made (id INT)",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO other.made VALUES (5)",
    "BEGIN",
    "INSERT INTO test.t (s) VALUES ('statement')",
    "SAVEPOINT a",
    "COMMIT",
    "SET SESSION binlog_format = ROW, binlog_row_image = MINIMAL",
    "UPDATE test.t SET s = 'minimal' WHERE id = 2",
    "INSERT INTO test.t (s) SELECT REPEAT('y', 200) FROM test.t",
)


def logged(server: PrivateServer, checksum: str, *statements: str) -> Path:
    """A log file of its own for the statements, without the tables' definitions."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL binlog_checksum = {checksum}")
        for statement in MADE:
            cursor.execute(statement)
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        name = str(cursor.fetchall()[-1][0])
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("FLUSH BINARY LOGS")
    return server.datadir / name


@pytest.fixture
def source(mysql_source: PrivateServer, clean_databases: Callable[[PrivateServer], None]) -> Iterator[PrivateServer]:
    clean_databases(mysql_source)
    yield mysql_source
    mysql_source.query("SET GLOBAL binlog_checksum = CRC32")


def opened(data: bytes) -> inflated.Inflated | None:
    reader = LogReader(data, "x", verify=False)
    return inflated.inflated(frame(data, len(MAGIC), reader.format.checksum.length))


@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
def test_blocks_and_positions_are_those_of_one_transaction_after_the_other(
    source: PrivateServer, checksum: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logged(source, checksum, *MIXED)
    found = opened(path.read_bytes())
    assert found is not None
    left = [event.header.type_code for event in LogReader(found.data, "x", verify=False).events()]
    assert EventType.TRANSACTION_PAYLOAD not in left, "the server compresses rows alone"
    for reduce, seconds in ((False, 0), (True, 0), (False, 1)):
        expected = outcome(path, segment_map, reduce=reduce, seconds=seconds)
        assert isinstance(expected, tuple)
        assert outcome(path, columnar, reduce=reduce, seconds=seconds) == expected
    # too large for memory: the same, the slow way
    for name, most in (("_MOST", 300), ("_BUDGET", 1000), ("_MOST", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(inflated, name, most)
            assert outcome(path, columnar, reduce=True) == outcome(path, segment_map, reduce=True)


def test_every_event_has_the_place_in_the_log_that_it_has_compressed(source: PrivateServer) -> None:
    path = logged(source, "CRC32", *MIXED)
    data = path.read_bytes()
    found = opened(data)
    assert found is not None
    closed = list(transactions(LogReader(data, "x")))
    flat = list(transactions(LogReader(found.data, "x", verify=False)))
    assert [one.gtid for one in flat] == [one.gtid for one in closed]
    for ours, theirs in zip(flat, closed, strict=True):
        assert found.source(ours.start) == theirs.start
        assert [found.source(event.offset) for event in ours.events] == [event.offset for event in theirs.events]
        assert [bytes(event.body) for event in ours.events] == [bytes(event.body) for event in theirs.events]


def test_damage_in_a_payload_is_an_error_of_the_project_or_a_result(source: PrivateServer) -> None:
    """Without checksums. What is told of a damaged payload is told of the closed one; see ``test_columnar``."""
    path = logged(source, "NONE", *PLAIN)
    data = path.read_bytes()
    whole = outcome(path, columnar, reduce=False)
    different = 0
    for at in range(len(data) - 700, len(data) - 60, 3):
        damaged = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        found = outcome(path, columnar, reduce=False, damaged=damaged)
        assert isinstance(found, tuple) or (isinstance(found, type) and issubclass(found, BinlaneError))
        different += found != whole
    assert different > 20
