"""Compressed transactions laid out as plain ones: the same blocks, positions and errors as one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.rows import COMPRESSED_ROWS, decompressed
from binlane.binlog.transactions import transactions
from binlane.binlog.vector import inflated_segment
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import MAGIC, EventType
from binlane.errors import BinlaneError
from binlane.model import Flavor
from binlane.plan.segment import map as columnar
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.unit.plan.segment import plain_map
from tests.unit.plan.segment.test_map import outcome

TABLES: Final = (
    "CREATE DATABASE test",
    "CREATE DATABASE other",
    *(
        f"CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(200), n INT)"
        for name in ("test.t", "other.t")
    ),
)
COMPRESSED: Final = "SET SESSION binlog_transaction_compression = ON"
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


MARIADB: Final = (
    *PLAIN,
    "BEGIN",
    "INSERT INTO test.t (s) VALUES ('one long enough to be compressed, and long enough to be compressed')",
    "UPDATE other.t SET s = 'two'",
    "COMMIT",
    "SET SESSION binlog_annotate_row_events = OFF",
    "DELETE FROM test.t WHERE id = 1",
    "CREATE TABLE other.made (id INT, s VARCHAR(100))",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO other.made VALUES (5, REPEAT('x', 90))",
    "SET SESSION binlog_format = ROW, binlog_row_image = MINIMAL",
    "UPDATE test.t SET s = 'minimal' WHERE id = 2",
    "BEGIN",
    "INSERT INTO test.t (s) SELECT REPEAT('y', 200) FROM other.t",
    "SAVEPOINT a",
    "UPDATE test.t SET s = REPEAT('z', 200)",
    "COMMIT",
)


def logged(server: PrivateServer, checksum: str, *statements: str) -> Path:
    """A log file of its own for the statements, without the tables' definitions."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL binlog_checksum = {checksum}")
        for statement in (*TABLES, *(() if server.flavor is Flavor.MARIADB else (COMPRESSED,))):
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


@pytest.fixture
def mariadb(mariadb_source: PrivateServer, clean_databases: Callable[[PrivateServer], None]) -> Iterator[PrivateServer]:
    clean_databases(mariadb_source)
    mariadb_source.query("SET GLOBAL log_bin_compress_min_len = 10")
    mariadb_source.query("SET GLOBAL log_bin_compress = ON")
    yield mariadb_source
    mariadb_source.query("SET GLOBAL log_bin_compress = DEFAULT")
    mariadb_source.query("SET GLOBAL log_bin_compress_min_len = DEFAULT")
    mariadb_source.query("SET GLOBAL binlog_checksum = CRC32")


def opened(data: bytes) -> inflated_segment.Inflated | None:
    reader = LogReader(data, "x", verify=False)
    return inflated_segment.inflated(frame(data, len(MAGIC), reader.format.checksum.length))


@requires_mysql
@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
def test_blocks_and_positions_are_those_of_one_transaction_after_the_other(
    source: PrivateServer, checksum: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logged(source, checksum, *MIXED)
    found = opened(path.read_bytes())
    assert found is not None
    assert EventType.TRANSACTION_PAYLOAD not in types(found), "the server compresses rows alone"
    check_outcomes(path, monkeypatch)


@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
def test_mariadbs_compressed_rows_give_what_they_give_one_after_the_other(
    mariadb: PrivateServer, checksum: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logged(mariadb, checksum, *MARIADB)
    data = path.read_bytes()
    found = opened(data)
    assert found is not None
    assert not COMPRESSED_ROWS & types(found)
    check_outcomes(path, monkeypatch)

    closed = list(LogReader(data, "x").events())
    flat = list(LogReader(found.data, "x", verify=False).events())
    assert len(COMPRESSED_ROWS & {event.header.type_code for event in closed}) == 3
    for ours, theirs in zip(flat, closed, strict=True):
        code, body = theirs.header.type_code, bytes(theirs.body)
        if code in COMPRESSED_ROWS:
            code, body = decompressed(code, theirs.body)
        assert (ours.header.type_code, bytes(ours.body)) == (code, body)
        assert int(found.segment_offset(ours.offset)) == theirs.offset


def types(found: inflated_segment.Inflated) -> set[int]:
    return {event.header.type_code for event in LogReader(found.data, "x", verify=False).events()}


def check_outcomes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reduce, seconds in ((False, 0), (True, 0), (False, 1)):
        expected = outcome(path, plain_map, reduce=reduce, seconds=seconds)
        assert isinstance(expected, tuple)
        assert outcome(path, columnar, reduce=reduce, seconds=seconds) == expected
    # too large for memory: the same, the slow way
    for name, most in (("_MOST", 300), ("_BUDGET", 1000), ("_MOST", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(inflated_segment, name, most)
            assert outcome(path, columnar, reduce=True) == outcome(path, plain_map, reduce=True)


@requires_mysql
def test_every_event_has_the_place_in_the_log_that_it_has_compressed(source: PrivateServer) -> None:
    path = logged(source, "CRC32", *MIXED)
    data = path.read_bytes()
    found = opened(data)
    assert found is not None
    closed = list(transactions(LogReader(data, "x")))
    flat = list(transactions(LogReader(found.data, "x", verify=False)))
    assert [one.gtid for one in flat] == [one.gtid for one in closed]
    for ours, theirs in zip(flat, closed, strict=True):
        # nothing is opened in the other log: its places are the segment's
        places = (ours.start, ours.end, *(event.offset for event in ours.events))
        expected = (theirs.start, theirs.end, *(event.offset for event in theirs.events))
        assert [int(found.segment_offset(place)) for place in places] == list(expected)
        assert [bytes(event.body) for event in ours.events] == [bytes(event.body) for event in theirs.events]


@requires_mysql
def test_damage_in_a_payload_is_an_error_of_the_project_or_a_result(source: PrivateServer) -> None:
    """Without checksums. What is told of a damaged payload is told of the closed one; see ``test_columnar``."""
    check_damage(logged(source, "NONE", *PLAIN))


def test_damage_in_mariadbs_rows_is_an_error_of_the_project_or_a_result(mariadb: PrivateServer) -> None:
    check_damage(logged(mariadb, "NONE", *PLAIN))


def check_damage(path: Path) -> None:
    data = path.read_bytes()
    whole = outcome(path, columnar, reduce=False)
    different = 0
    for at in range(len(data) - 700, len(data) - 60, 3):
        damaged = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        found = outcome(path, columnar, reduce=False, damaged=damaged)
        assert isinstance(found, tuple) or (isinstance(found, type) and issubclass(found, BinlaneError))
        different += found != whole
    assert different > 20
