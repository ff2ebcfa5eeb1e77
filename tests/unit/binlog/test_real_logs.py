"""Logs that real servers write now: read like the servers' own tools read them, and taken back by the servers."""

from __future__ import annotations

import base64
import contextlib
import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.binlog.boundaries import Ending
from binlane.binlog.events import Query, UserVar, parse_body
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.wire import EventType, RawEvent, without_checksum
from binlane.model import Flavor
from lab.servers import PrivateServer

T = EventType
VALUES = (
    "'h''ello'",
    "''",
    "NULL",
    "X'00ff'",
    "_latin1 X'e4f6'",
    "_sjis X'955c'",
    "_utf8mb4 'x' COLLATE utf8mb4_bin",
    "0",
    "-5",
    "-9223372036854775808",
    "CAST(5 AS UNSIGNED)",
    "18446744073709551615",
    "1.50",
    "-0.10",
    "-12.3456789012345",
    "CAST(5 AS DECIMAL(10,0))",
    "12345678901234567890123456789012345.678901234567890123456789",
    "1.5e0",
    "1e300",
    "-0.1e0",
)

WORKLOAD = (
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100), d DATETIME(6)) ENGINE=InnoDB",
    "CREATE TABLE m (id INT) ENGINE=MyISAM",
    "INSERT INTO t (v) VALUES ('one'), ('two'), ('three')",
    "BEGIN",
    "UPDATE t SET v = 'changed' WHERE id = 1",
    "SAVEPOINT s",
    "DELETE FROM t WHERE id = 2",
    "ROLLBACK TO s",
    "DELETE FROM t WHERE id = 3",
    "COMMIT",
    "INSERT INTO m VALUES (1)",
    "XA START 'g1', 'b', 7",
    "INSERT INTO t (v) VALUES ('xa')",
    "XA END 'g1', 'b', 7",
    "XA PREPARE 'g1', 'b', 7",
    "XA COMMIT 'g1', 'b', 7",
    "XA START 'g2'",
    "INSERT INTO t (v) VALUES ('xa')",
    "XA END 'g2'",
    "XA PREPARE 'g2'",
    "XA ROLLBACK 'g2'",
    "CREATE TABLE c ENGINE=InnoDB AS SELECT * FROM t",
    "SET SESSION binlog_format = STATEMENT",
    "SET time_zone = '+03:00', timestamp = 1700000000.123456",
    "INSERT INTO t (v, d) VALUES (RAND(), NOW(6))",
    "SET timestamp = DEFAULT",
    "SET SESSION binlog_format = ROW",
)
ENDINGS = [
    Ending.STANDALONE,  # CREATE DATABASE
    Ending.STANDALONE,
    Ending.STANDALONE,
    Ending.XID,
    Ending.XID,
    Ending.COMMIT,
    Ending.XA_PREPARE,
    Ending.XA_COMMIT,
    Ending.XA_PREPARE,
    Ending.XA_ROLLBACK,
    Ending.XID,  # CREATE TABLE ... SELECT
    Ending.XID,
]


@pytest.fixture(params=list(Flavor))
def server(request: pytest.FixtureRequest, clean_databases: Callable[[PrivateServer], None]) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    clean_databases(found)
    return found


def run(server: PrivateServer, *statements: str) -> None:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE logged")
        cursor.execute("USE logged")
        for statement in statements:
            cursor.execute(statement)


def logged(server: PrivateServer, *statements: str) -> Path:
    """A log file of its own for the statements."""
    server.query("FLUSH BINARY LOGS")
    shown = "SHOW BINARY LOGS"
    name = str(server.query(shown)[-1][0])
    run(server, *statements)
    server.query("FLUSH BINARY LOGS")
    return server.datadir / name


def tool_output(server: PrivateServer, path: Path) -> str:
    command = [str(server.tool("binlog")), "--no-defaults", "--base64-output=decode-rows", str(path)]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


def test_transactions_end_as_the_workload_ended_them(server: PrivateServer) -> None:
    path = logged(server, *WORKLOAD)
    found = list(transactions(LogReader(path.read_bytes(), path.name)))

    assert [transaction.ending for transaction in found] == ENDINGS
    names = [str(transaction.xa) for transaction in found if transaction.xa is not None]
    assert names == ["X'6731',X'62',7"] * 2 + ["X'6732',X'',1"] * 2
    reader = LogReader(path.read_bytes(), path.name)
    inside = {event.offset for transaction in found for event in transaction.events}
    outside = {event.header.type_code for event in reader.events() if event.offset not in inside}
    assert outside <= {T.FORMAT_DESCRIPTION, T.PREVIOUS_GTIDS, T.MARIADB_GTID_LIST, T.BINLOG_CHECKPOINT, T.ROTATE}
    for before, after in itertools.pairwise(found):
        assert before.end <= after.start


def test_offsets_gtids_and_times_are_those_of_the_server_tool(server: PrivateServer) -> None:
    path = logged(server, *WORKLOAD)
    output = tool_output(server, path)
    reader = LogReader(path.read_bytes(), path.name)

    tool_offsets = [int(offset) for offset in re.findall(r"^# at (\d+)$", output, re.M)]
    assert [event.offset for event in reader.events()] == tool_offsets
    found = list(transactions(reader))
    if server.flavor is Flavor.MARIADB:
        assert [t.gtid for t in found] == re.findall(r"\tGTID (\d+-\d+-\d+)", output)
    else:
        assert [t.gtid for t in found] == re.findall(r"GTID_NEXT= '([0-9a-f-]+:\d+)'", output)
        stamps = re.findall(r"^# immediate_commit_timestamp=(\d+)", output, re.M)
        assert [round(t.commit_time * 1_000_000) for t in found] == [int(stamp) for stamp in stamps]
    first = [line for line in output.splitlines() if line.startswith("#")]
    shown = re.search(r"^#(\d{6} [ \d]\d:\d\d:\d\d) server id (\d+)", "\n".join(first), re.M)
    assert shown is not None
    assert int(shown[2]) == next(reader.events()).header.server_id


def test_a_statement_has_the_session_it_ran_in(server: PrivateServer) -> None:
    path = logged(server, *WORKLOAD)
    reader = LogReader(path.read_bytes(), path.name)
    last = list(transactions(reader))[-1]
    event = last.events[-2]
    query = parse_body(event, reader.format, path.name)
    assert isinstance(query, Query)
    session = query.session(event.header)

    assert query.sql == b"INSERT INTO t (v, d) VALUES (RAND(), NOW(6))"
    assert (session.database, session.time_zone, session.timestamp) == ("logged", "+03:00", 1_700_000_000.123456)
    assert (session.foreign_key_checks, session.unique_checks, session.auto_is_null) == (True, True, False)
    assert T.RAND in [e.header.type_code for e in last.events]


def test_the_server_reads_every_user_variable_back_to_the_same_bytes(server: PrivateServer) -> None:
    def variables(values: tuple[str, ...]) -> list[UserVar]:
        statements = [f"SET @v{number} = {value}" for number, value in enumerate(values)]
        used = ", ".join(f"(CONCAT(@v{number}))" for number in range(len(values)))
        path = logged(
            server,
            "CREATE TABLE t (v VARBINARY(400)) ENGINE=InnoDB",
            "SET SESSION binlog_format = STATEMENT",
            *statements,
            f"INSERT INTO t VALUES {used}",
        )
        server.query("DROP DATABASE logged")
        reader = LogReader(path.read_bytes(), path.name)
        events = [parse_body(event, reader.format, path.name) for event in reader.events()]
        return [event for event in events if isinstance(event, UserVar)]

    first = variables(VALUES)
    again = variables(tuple(variable.sql_value(server.flavor) for variable in first))

    assert len(first) == len(VALUES)
    assert again == first


def binlog_statement(head: bytes, events: list[RawEvent]) -> str:
    payload = head + b"".join(without_checksum(event) for event in events)
    return f"BINLOG '{base64.b64encode(payload).decode()}'"


def row_events(transaction: Transaction) -> list[RawEvent]:
    rows = {T.TABLE_MAP, *range(T.WRITE_ROWS_V1, T.DELETE_ROWS_V1 + 1), *range(T.WRITE_ROWS_V2, T.DELETE_ROWS_V2 + 1)}
    return [event for event in transaction.events if event.header.type_code in rows]


def test_the_server_takes_events_without_checksums_under_our_format(server: PrivateServer) -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=InnoDB"
    path = logged(
        server,
        create,
        "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        "UPDATE t SET v = 'changed' WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    )
    expected = server.query("SELECT * FROM logged.t ORDER BY id")
    server.query("DROP DATABASE logged")
    reader = LogReader(path.read_bytes(), path.name)
    found = [transaction for transaction in transactions(reader) if row_events(transaction)]

    run(server, create)
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(binlog_statement(reader.format.without_checksum(), []))
        if server.flavor is Flavor.MYSQL:
            cursor.execute("SET SESSION gtid_next = 'AUTOMATIC'")
        for transaction in found:
            cursor.execute(binlog_statement(b"", row_events(transaction)))

    assert len(found) == 3
    assert server.query("SELECT * FROM logged.t ORDER BY id") == expected == [(1, "changed"), (3, "three")]
