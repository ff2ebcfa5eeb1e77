"""LOAD DATA in the log: its file's pieces find their statement, and whatever does not fit is refused."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import EventType
from binlane.errors import UnsupportedEventError
from binlane.model import Flavor, ItemKind
from binlane.plan.transaction.decode import LogFormat, StatementPart, dissect
from tests.unit.binlog.cases import mariadb_gtid, query, wire
from tests.unit.plan.logs import IN_TRANSACTION, XID, filtered, segment_of, settings

T = EventType
GTID = mariadb_gtid(1, IN_TRANSACTION)
SPAN = b" INFILE '/tmp/a.csv' INTO"


def begin(file_id: int, data: bytes) -> bytes:
    return wire(T.BEGIN_LOAD_QUERY, struct.pack("<I", file_id) + data)


def append(file_id: int, data: bytes) -> bytes:
    return wire(T.APPEND_BLOCK, struct.pack("<I", file_id) + data)


def delete(file_id: int) -> bytes:
    return wire(T.DELETE_FILE, struct.pack("<I", file_id))


def execute(
    file_id: int,
    span: bytes = SPAN,
    duplicates: int = 0,
    tail: bytes = b" TABLE `t` (`a`)",
    error: int = 0,
    shift: int = 0,
) -> bytes:
    sql = b"LOAD DATA" + span + tail
    body = struct.pack("<IIBHH", 6, 0, 1, error, 0)
    body += struct.pack("<IIIB", file_id, 9 + shift, 9 + len(span), duplicates)
    return wire(T.EXECUTE_LOAD_QUERY, body + b"a\0" + sql)


def parts(*events: bytes) -> tuple[StatementPart, ...]:
    data, segment = segment_of([(GTID, *events, XID)])
    reader = LogReader(data, segment.source_file)
    (transaction,) = transactions(reader)
    found = dissect(transaction, LogFormat(reader.format, segment.source_file, 0, Flavor.MARIADB))
    return tuple(part for part in found if isinstance(part, StatementPart))


def content(part: StatementPart) -> bytes:
    assert part.file is not None
    return b"".join(part.file)


@pytest.mark.parametrize(
    ("span", "duplicates", "expected"),
    [
        (SPAN, 0, b"LOAD DATA LOCAL INFILE 'binlane' INTO TABLE `t` (`a`)"),
        (b" LOCAL INFILE 'x' IGNORE INTO", 1, b"LOAD DATA LOCAL INFILE 'binlane' IGNORE INTO TABLE `t` (`a`)"),
        (b" INFILE 'it\\'s' REPLACE INTO", 2, b"LOAD DATA LOCAL INFILE 'binlane' REPLACE INTO TABLE `t` (`a`)"),
    ],
)
def test_the_place_that_the_event_names_gets_the_local_name(span: bytes, duplicates: int, expected: bytes) -> None:
    (part,) = parts(begin(1, b"1\n"), execute(1, span, duplicates))
    assert part.sql == expected
    assert content(part) == b"1\n"


def test_files_of_several_ids_may_come_in_between_each_other() -> None:
    first, second, plain = parts(
        *(begin(1, b"a"), begin(2, b"x"), append(1, b"b"), begin(3, b"failed"), append(2, b"y"), delete(3)),
        *(execute(2), append(1, b"c"), execute(1), query(b"INSERT INTO t VALUES (1)")),
    )
    assert (content(first), content(second), plain.file) == (b"xy", b"abc", None)


def test_a_load_that_came_to_nothing_is_nothing() -> None:
    assert parts(begin(1, b"a"), append(1, b"b"), delete(1)) == ()


REFUSED = [
    pytest.param((begin(1, b"a"),), "not in this transaction", id="without-its-statement"),
    pytest.param((execute(1),), "file 1 of a LOAD DATA that does not begin", id="statement-alone"),
    pytest.param((append(1, b"a"), execute(1)), "file 1 of a LOAD DATA that does not begin", id="block-alone"),
    pytest.param((delete(4),), "file 4 of a LOAD DATA that does not begin", id="deletion-alone"),
    pytest.param((begin(1, b"a"), begin(1, b"b"), execute(1)), "LOAD DATA, which begins twice", id="begun-twice"),
    pytest.param((begin(1, b"a"), execute(1, shift=1)), "without a file name at bytes 10..34", id="another-place"),
    pytest.param((begin(1, b"a"), execute(1, error=1062)), "ended with error 1062", id="ended-with-an-error"),
    pytest.param(
        (begin(1, b"a"), execute(1, tail=b" TABLE `t` FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '<row>' (`a`)")),
        "LOAD XML", id="load-xml",
    ),
    pytest.param((query(b"LOAD DATA INFILE '/x' INTO TABLE t"),), "without the events of its file", id="by-its-text"),
    pytest.param((wire(T.CREATE_FILE, bytes(60)),), "CREATE_FILE", id="mysql-4"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "what"), REFUSED)
def test_load_data_that_cannot_be_applied_is_refused_with_a_reason(events: tuple[bytes, ...], what: str) -> None:
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: ") as refused:
        parts(*events)
    assert what in str(refused.value)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_lane_gets_the_statement_and_its_file_in_pieces_behind_it(columnar: bool) -> None:
    large = bytes(range(256)) * 5000
    events = (GTID, begin(1, large), append(1, b"end"), execute(1), XID)
    found = filtered([events], settings(lanes=1, block_bytes=1 << 30), columnar=columnar)
    ((header, items),) = found.lanes[0]
    assert header.transactions == 1
    assert [item.kind for item in items] == [ItemKind.LOAD, ItemKind.FILE, ItemKind.FILE, ItemKind.FILE]
    assert b"".join(item.payload for item in items[1:]) == large + b"end"
    assert {str(key) for key in found.plan.loaded} == {"a.t"}
