"""What a log tells of sessions with ``explicit_defaults_for_timestamp = OFF``."""

from __future__ import annotations

import struct
from dataclasses import replace

from binlane.binlog.wire import EventType
from binlane.model import Flavor
from binlane.plan.manifest import Segment
from binlane.plan.segment.timestamp_defaults import TimestampDefaults
from tests.unit.binlog.cases import MYSQL, log, mysql_gtid, payload, query, wire
from tests.unit.plan.logs import rows, segment_of

XID = wire(EventType.XID, b"\x2a" + bytes(7))
OFF, ON = b"\x10\x00", b"\x10\x01"
"""Status variable 16."""
A, B = 8, 9
"""Threads."""
INSERT = b"INSERT INTO t VALUES (1, NULL)"


def statement(
    thread: int, status: bytes = b"", text: bytes = b"INSERT INTO t VALUES (1, NULL)", server: int = 1
) -> bytes:
    event = query(text, status=status)
    # the header has the server's id at 5, a QUERY's body begins with the thread's
    return event[:5] + struct.pack("<I", server) + event[9:19] + struct.pack("<I", thread) + event[23:]


def dml(thread: int, server: int = 1) -> tuple[bytes, ...]:
    return (mysql_gtid(1), query(b"BEGIN"), statement(thread, server=server), XID)


def ddl(thread: int, status: bytes) -> tuple[bytes, ...]:
    return (mysql_gtid(1), statement(thread, status, b"CREATE TABLE x (at TIMESTAMP)"))


def segment(*groups: tuple[bytes, ...], first: int = 1, file: str = "binlog.000007") -> tuple[bytes, Segment]:
    data = log(*(event for group in groups for event in group), log_format=MYSQL)
    _, template = segment_of([rows(1, "a")], first)
    last = first + len(groups) - 1
    return data, replace(template, flavor=Flavor.MYSQL, last_seqno=last, transactions=len(groups), source_file=file)


def found(*segments: tuple[bytes, Segment], last: int = 20) -> list[int]:
    defaults = TimestampDefaults()
    for data, each in segments:
        defaults.take(data, each)
    return [seqno for seqno in range(1, last) if defaults.among(seqno, seqno)]


def test_the_last_value_of_a_session_holds_until_another_is_logged() -> None:
    groups = (dml(A), ddl(A, OFF), dml(A), dml(B), ddl(A, b""), dml(A), ddl(B, OFF), dml(B), ddl(A, ON), dml(A), dml(B))
    assert found(segment(*groups)) == [2, 3, 5, 6, 7, 8, 11]


def test_it_holds_in_later_segments_of_its_file() -> None:
    assert found(segment(ddl(A, OFF)), segment(dml(A), dml(B), first=2)) == [1, 2]


def test_a_server_that_was_started_with_a_new_file_gives_its_threads_the_same_numbers_again() -> None:
    assert found(segment(ddl(A, OFF), dml(A)), segment(dml(A), first=3, file="binlog.000008")) == [1, 2]


def test_a_thread_of_another_server_is_another_session() -> None:
    assert found(segment(ddl(A, OFF), dml(A, server=2), dml(A))) == [1, 3]


def test_statements_of_a_compressed_transaction_are_seen() -> None:
    packed = (mysql_gtid(1), payload(query(b"BEGIN"), statement(A), XID))
    assert found(segment(ddl(A, OFF), packed)) == [1, 2]


def test_neither_half_of_an_xa_transaction_counts() -> None:
    prepare = wire(EventType.XA_PREPARE, struct.pack("<BIII", 0, 1, 1, 0) + b"x")
    halves = (
        (mysql_gtid(1), statement(A, text=b"XA START X'78',X'',1"), statement(A), prepare),
        (mysql_gtid(1), statement(A, text=b"XA COMMIT X'78',X'',1")),
    )
    assert found(segment(ddl(A, OFF), *halves, dml(A))) == [1, 4]


def test_a_range_is_asked_for_as_a_whole() -> None:
    defaults = TimestampDefaults()
    defaults.take(*segment(dml(B), dml(B), ddl(A, OFF), dml(B)))
    assert [defaults.among(*each) for each in ((1, 2), (1, 3), (2, 9), (3, 3), (4, 9))] == [
        *(False, True, True, True, False),
    ]


def test_mariadb_logs_it_with_each_statement() -> None:
    data, each = segment(ddl(A, OFF), dml(A))
    assert found((data, replace(each, flavor=Flavor.MARIADB))) == []
