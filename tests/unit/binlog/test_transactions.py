"""Where transactions begin and end: every shape that the two families log, and every order that is an error."""

from __future__ import annotations

import contextlib
import itertools
import struct

import pytest

from binlane.binlog.boundaries import KINDS, RULES, Kind, State
from binlane.binlog.events import XaName
from binlane.binlog.format_description import BARE_FORMAT, FormatDescription
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Boundaries, Ending, IncompleteTail, Place, Transaction, transactions
from binlane.binlog.wire import HEADER, KNOWN_TYPES, LOG_BEGIN, MAGIC, EventHeader, EventType, RawEvent
from binlane.errors import BinlogError, IncidentError, TruncatedEventError, UnknownEventError
from tests.unit.binlog.cases import (
    COMPRESSED_BODY,
    MARIADB,
    MYSQL,
    UUID,
    T,
    format_event,
    log,
    mariadb_gtid,
    mysql_gtid,
    payload,
    query,
    wire,
)

XID = wire(T.XID, bytes(8))
BEGIN, COMMIT, ROLLBACK = query(b"BEGIN"), query(b"COMMIT"), query(b"ROLLBACK")
DML, DDL = query(b"INSERT INTO t VALUES (1)"), query(b"CREATE TABLE t (a INT)")
TABLE_MAP = wire(T.TABLE_MAP, bytes(12))
ROWS, LAST_ROWS = wire(T.WRITE_ROWS_V1, bytes(10)), wire(T.WRITE_ROWS_V1, bytes(6) + b"\1" + bytes(3))
INSERT_ID, SEEDS, VARIABLE = wire(T.INTVAR, b"\2" + bytes(8)), wire(T.RAND, bytes(16)), wire(T.USER_VAR, b"\1\0\0\0u\1")
LOAD = wire(T.EXECUTE_LOAD_QUERY, struct.pack("<IIBHHIIIB", 6, 0, 1, 0, 0, 7, 0, 1, 0) + b"a\0LOAD DATA")
BLOCK, MORE, DELETE_FILE = (wire(code, b"\7\0\0\0") for code in (17, 9, 11))
XA_PREPARE = wire(T.XA_PREPARE, bytes.fromhex("00070000000200000001000000673162"))
ONE_PHASE = wire(T.XA_PREPARE, bytes.fromhex("01070000000200000001000000673162"))
XA_START, XA_END = query(b"XA START X'6731',X'62',7"), query(b"XA END X'6731',X'62',7")
XA_COMMIT, XA_ROLLBACK = query(b"XA COMMIT X'6731',X'62',7"), query(b"XA ROLLBACK X'6731',X'62',7")
ANONYMOUS = wire(T.ANONYMOUS_GTID, bytes(25))
STANDALONE, TRANSACTIONAL = 1, 4
CTAS = query(b"CREATE TABLE `c` (`a` int) START TRANSACTION")
ANNOTATE, ROWS_QUERY = wire(T.ANNOTATE_ROWS, b"INSERT"), wire(T.ROWS_QUERY, b"\6INSERT")
HEARTBEAT, PADDING = wire(T.HEARTBEAT, b"binlog.1"), wire(100, b"", flags=0x80)
CHECKPOINT = wire(T.BINLOG_CHECKPOINT, b"\1\0\0\0b")
ROTATE, STOP = wire(T.ROTATE, struct.pack("<Q", 4) + b"b.2"), wire(T.STOP, b"")
G1, G2 = mariadb_gtid(1, TRANSACTIONAL), mariadb_gtid(2, STANDALONE)
NAME = XaName(7, b"g1", b"b")


def shape(name: str, events: tuple[bytes, ...], ending: Ending, gtid: str = "", xa: XaName | None = None) -> object:
    return pytest.param(events, ending, gtid, xa, id=name)


# each is one whole transaction
SHAPES = [
    shape("mariadb-rows", (G1, ANNOTATE, TABLE_MAP, LAST_ROWS, XID), Ending.XID, "0-7-1"),
    shape("mariadb-statement", (G1, INSERT_ID, DML, XID), Ending.XID, "0-7-1"),
    shape("mariadb-non-transactional", (mariadb_gtid(1, 0), TABLE_MAP, LAST_ROWS, COMMIT), Ending.COMMIT, "0-7-1"),
    shape("mariadb-rolled-back", (G1, DML, ROLLBACK), Ending.ROLLBACK, "0-7-1"),
    shape("mariadb-ddl", (G2, DDL), Ending.STANDALONE, "0-7-2"),
    shape("mariadb-standalone-with-variables", (G2, INSERT_ID, SEEDS, VARIABLE, DML), Ending.STANDALONE, "0-7-2"),
    shape("mariadb-standalone-rows", (G2, ANNOTATE, TABLE_MAP, ROWS, LAST_ROWS), Ending.STANDALONE, "0-7-2"),
    shape("mariadb-create-select", (mariadb_gtid(1, 0x28), DDL, TABLE_MAP, LAST_ROWS, XID), Ending.XID, "0-7-1"),
    shape("mariadb-compressed-ddl", (G2, wire(T.QUERY_COMPRESSED, COMPRESSED_BODY)), Ending.STANDALONE, "0-7-2"),
    shape(
        "mariadb-xa-prepare",
        (
            wire(T.MARIADB_GTID, bytes.fromhex("1a00000000000000000000004c07000000020167316201ff")),
            TABLE_MAP,
            LAST_ROWS,
            XA_END,
            XA_PREPARE,
        ),
        Ending.XA_PREPARE,
        "0-7-26",
        NAME,
    ),
    shape(
        "mariadb-xa-commit",
        (wire(T.MARIADB_GTID, bytes.fromhex("1b00000000000000000000008d070000000201673162")), XA_COMMIT),
        Ending.XA_COMMIT,
        "0-7-27",
        NAME,
    ),
    shape("mysql-rows", (mysql_gtid(3), BEGIN, TABLE_MAP, ROWS_QUERY, LAST_ROWS, XID), Ending.XID, f"{UUID}:3"),
    shape("mysql-empty", (mysql_gtid(3), BEGIN, COMMIT), Ending.COMMIT, f"{UUID}:3"),
    shape("mysql-empty-without-begin", (mysql_gtid(3), COMMIT), Ending.COMMIT, f"{UUID}:3"),
    shape("mysql-ddl", (mysql_gtid(3), DDL), Ending.STANDALONE, f"{UUID}:3"),
    shape("mysql-create-select", (mysql_gtid(3), BEGIN, CTAS, TABLE_MAP, LAST_ROWS, XID), Ending.XID, f"{UUID}:3"),
    shape("mysql-padded", (mysql_gtid(3), PADDING, BEGIN, DML, PADDING, COMMIT), Ending.COMMIT, f"{UUID}:3"),
    shape("mysql-anonymous", (ANONYMOUS, BEGIN, DML, XID), Ending.XID),
    shape(
        "mysql-view-change",
        (mysql_gtid(3), BEGIN, wire(T.VIEW_CHANGE, bytes(52)), COMMIT),
        Ending.COMMIT,
        f"{UUID}:3",
    ),
    shape(
        "mysql-xa-prepare",
        (mysql_gtid(3), XA_START, TABLE_MAP, LAST_ROWS, XA_END, XA_PREPARE),
        Ending.XA_PREPARE,
        f"{UUID}:3",
        NAME,
    ),
    shape("mysql-xa-commit", (mysql_gtid(3), XA_COMMIT), Ending.XA_COMMIT, f"{UUID}:3", NAME),
    shape("mysql-xa-rollback", (mysql_gtid(3), XA_ROLLBACK), Ending.XA_ROLLBACK, f"{UUID}:3", NAME),
    shape("mysql-one-phase", (mysql_gtid(3), XA_START, DML, XA_END, ONE_PHASE), Ending.ONE_PHASE, f"{UUID}:3", NAME),
    shape(
        "one-phase-as-a-statement",
        (XA_START, DML, XA_END, query(b"XA COMMIT X'6731',X'62',7 ONE PHASE")),
        Ending.ONE_PHASE,
        "",
        NAME,
    ),
    shape("no-gtid-transaction", (BEGIN, INSERT_ID, DML, XID), Ending.XID),
    shape("no-gtid-non-transactional", (BEGIN, DML, COMMIT), Ending.COMMIT),
    shape("no-gtid-rolled-back", (BEGIN, DML, ROLLBACK), Ending.ROLLBACK),
    shape("no-gtid-ddl", (DDL,), Ending.STANDALONE),
    shape("no-gtid-variables", (INSERT_ID, SEEDS, VARIABLE, DML), Ending.STANDALONE),
    shape("no-gtid-rows", (TABLE_MAP, ROWS, ROWS, LAST_ROWS), Ending.STANDALONE),
    shape("no-gtid-one-rows-event", (LAST_ROWS,), Ending.STANDALONE),
    shape("bare-commit", (COMMIT,), Ending.COMMIT),
    shape("savepoints", (BEGIN, query(b"SAVEPOINT `s`"), DML, query(b"ROLLBACK TO `s`"), DML, XID), Ending.XID),
    shape("rollback-work-to", (BEGIN, query(b"ROLLBACK WORK TO s"), XID), Ending.XID),
    shape("lower-case", (query(b"begin"), DML, query(b"commit")), Ending.COMMIT),
    shape("a-word-that-begins-like-one", (query(b"COMMITTEE"),), Ending.STANDALONE),
    shape("begin-inside-a-statement", (query(b"CREATE PROCEDURE p() BEGIN END"),), Ending.STANDALONE),
    shape("load-data", (BEGIN, BLOCK, MORE, LOAD, XID), Ending.XID),
    shape("load-data-without-begin", (BLOCK, MORE, LOAD), Ending.STANDALONE),
    shape("failed-load-data", (BLOCK, DELETE_FILE), Ending.STANDALONE),
    shape("empty-statement", (query(b""),), Ending.STANDALONE),
    shape("rows-that-nobody-has-to-look-into", (BEGIN, wire(T.WRITE_ROWS_V2, b""), XID), Ending.XID),
    shape("unfinished-rows-in-a-transaction", (BEGIN, TABLE_MAP, ROWS, XID), Ending.XID),
]  # fmt: skip
each_shape = pytest.mark.parametrize(("events", "ending", "gtid", "xa"), SHAPES)


def grouped(data: bytes) -> list[Transaction]:
    return list(transactions(LogReader(data, "binlog.000001")))


def codes(events: tuple[bytes, ...] | tuple[RawEvent, ...]) -> list[int]:
    return [event.header.type_code if isinstance(event, RawEvent) else event[4] for event in events]


@each_shape
def test_a_shape_is_one_transaction(events: tuple[bytes, ...], ending: Ending, gtid: str, xa: XaName | None) -> None:
    (transaction,) = grouped(log(*events))

    assert codes(transaction.events) == codes(events)
    assert transaction.ending is ending
    assert transaction.gtid == gtid
    assert transaction.xa == xa


@each_shape
def test_transactions_follow_each_other_without_a_gap(
    events: tuple[bytes, ...], ending: Ending, gtid: str, xa: XaName | None
) -> None:
    data = log(*events, *events, G2, DDL, *events)
    first, second, between, last = grouped(data)

    assert first.end == second.start
    assert (second.end, between.end, last.end) == (between.start, last.start, len(data))
    assert codes(first.events) == codes(second.events) == codes(last.events)


@each_shape
def test_places_agree_with_transactions(
    events: tuple[bytes, ...], ending: Ending, gtid: str, xa: XaName | None
) -> None:
    reader = LogReader(log(STOP, *events, ROTATE), "log")
    boundaries = Boundaries(reader.format, "log")

    places = [boundaries.feed(event) for event in reader.events()]

    inner = [Place.BEGIN, *[Place.INSIDE] * (len(events) - 2)] if len(events) > 1 else []
    assert places == [Place.OUTSIDE, Place.OUTSIDE, *inner, Place.END, Place.OUTSIDE]
    assert boundaries.ending is ending


@each_shape
def test_events_that_a_stream_inserts_belong_to_no_transaction(
    events: tuple[bytes, ...], ending: Ending, gtid: str, xa: XaName | None
) -> None:
    stuffed = tuple(itertools.chain.from_iterable((HEARTBEAT, event, CHECKPOINT) for event in events))
    (transaction,) = grouped(log(*stuffed))

    assert codes(transaction.events) == codes(events)
    assert transaction.ending is ending


@each_shape
def test_a_cut_keeps_everything_before_and_says_where_the_tail_begins(
    events: tuple[bytes, ...], ending: Ending, gtid: str, xa: XaName | None
) -> None:
    data = log(G2, DDL, *events, flags=1)
    first, second = grouped(data)
    for end in range(second.start, len(data)):
        tails: list[IncompleteTail] = []
        assert list(transactions(LogReader(data[:end], "log"), tails.append)) == [first]
        assert [(tail.offset, tail.in_use) for tail in tails] == ([(second.start, True)] if end > second.start else [])


def test_an_incomplete_tail_is_an_error_unless_somebody_takes_it() -> None:
    whole = log(G2, DDL)
    data = log(G2, DDL, G1, DML)
    found = transactions(LogReader(data, "binlog.000001"))

    assert next(found).gtid == "0-7-2"
    with pytest.raises(
        TruncatedEventError, match=rf"^binlog\.000001:{len(whole)}: incomplete tail: the file ends inside"
    ):
        next(found)


@pytest.mark.parametrize(
    "events",
    [
        (XID,),
        (XA_PREPARE,),
        (BEGIN, BEGIN),
        (BEGIN, G1),
        (BEGIN, mysql_gtid(1)),
        (G1, G1),
        (mysql_gtid(1), mysql_gtid(2)),
        (mysql_gtid(1), XID),
        (BEGIN, STOP),
        (BEGIN, ROTATE),
        (BEGIN, payload(BEGIN, XID)),
        (INSERT_ID, G2),
        (TABLE_MAP, ROWS, DDL),
        (TABLE_MAP, XID),
    ],
)
def test_an_order_that_no_server_writes_is_refused(events: tuple[bytes, ...]) -> None:
    with pytest.raises(BinlogError, match=r"^binlog\.000001:\d+: \w+ (outside a|inside the) transaction"):
        grouped(log(*events))


def test_a_format_inside_a_transaction_tells_of_a_crash() -> None:
    start = len(log())
    with pytest.raises(BinlogError, match=f"begins at offset {start} and has not ended: the source crashed"):
        grouped(log(BEGIN, DML) + format_event(MARIADB))


def test_flags_and_times_come_from_the_gtid() -> None:
    mysql, mariadb, bare = grouped(log(mysql_gtid(1, 1_700_000_123_456_789), DDL, mariadb_gtid(2, 0x29), DDL, DDL))

    assert (mysql.commit_time, mysql.group_flags) == (1_700_000_123.456789, 0)
    assert (mariadb.commit_time, mariadb.group_flags) == (1_700_000_000.0, 0x29)
    assert (bare.commit_time, bare.group_flags) == (1_700_000_000.0, 0)


def test_a_tagged_gtid_keeps_its_tag() -> None:
    body = bytes.fromhex(
        "0274000000021103c1032502e29503d822c503c9020d0304f10300000002040406087461676708800a880c7f94cc64abc26006107d041283"
        "120b"
    )
    (transaction,) = grouped(log(wire(T.GTID_TAGGED, body), DDL, log_format=MYSQL))

    assert transaction.gtid == f"{UUID}:tagg:1"


# --- TRANSACTION_PAYLOAD


@pytest.mark.parametrize(("last", "ending"), [(XID, Ending.XID), (COMMIT, Ending.COMMIT), (ROLLBACK, Ending.ROLLBACK)])
@pytest.mark.parametrize("head", [(), (mysql_gtid(3),), (ANONYMOUS,)])
def test_a_payload_is_a_whole_transaction_and_shows_its_inner_events(
    head: tuple[bytes, ...], last: bytes, ending: Ending
) -> None:
    data = log(*head, payload(BEGIN, TABLE_MAP, LAST_ROWS, last), DDL, log_format=MYSQL)
    compressed, after = grouped(data)

    assert codes(compressed.events) == [*codes(head), T.QUERY, T.TABLE_MAP, T.WRITE_ROWS_V1, last[4]]
    assert compressed.ending is ending
    assert compressed.start == len(log(log_format=MYSQL))
    assert compressed.end == after.start


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ((BEGIN, DML), "its transaction does not end in it"),
        ((), "its transaction does not end in it"),
        ((BEGIN, XID, DDL), "events behind its transaction"),
        ((payload(BEGIN, XID),), "inside another one"),
    ],
)
def test_a_payload_that_is_not_one_transaction_is_refused(inner: tuple[bytes, ...], message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        grouped(log(mysql_gtid(3), payload(*inner), log_format=MYSQL))


def test_an_incident_inside_a_payload_stops_the_log() -> None:
    with pytest.raises(IncidentError):
        grouped(log(payload(BEGIN, wire(T.INCIDENT, b"\1\0\4lost"), XID)))


# --- formats and tables


def test_four_byte_table_ids_move_the_flag_of_the_last_rows() -> None:
    lengths = bytearray(BARE_FORMAT.post_header_lengths[:27])
    lengths[T.TABLE_MAP - 1] = 6
    old = FormatDescription("5.1.10-beta", post_header_lengths=bytes(lengths))
    rows, last = (wire(T.WRITE_ROWS_V1, bytes(4) + flags + bytes(4)) for flags in (b"\0\0", b"\1\0"))

    (transaction,) = grouped(MAGIC + old.without_checksum() + wire(T.TABLE_MAP, bytes(8)) + rows + last)

    assert len(transaction.events) == 3


def test_a_later_format_decides_how_later_statements_are_read() -> None:
    first = FormatDescription("5.0.1", post_header_lengths=b"\x38\x0b")
    boundaries = Boundaries(first, "log")
    old_begin = struct.pack("<IIBH", 1, 0, 1, 0) + b"a\0BEGIN"
    new_format = memoryview(MYSQL.without_checksum())[19:-4]

    places = [
        boundaries.feed(raw(T.QUERY, old_begin)),
        boundaries.feed(raw(T.XID, bytes(8))),
        boundaries.feed(raw(T.FORMAT_DESCRIPTION, bytes(new_format))),
        boundaries.feed(raw(T.QUERY, BEGIN[19:])),
    ]

    assert places == [Place.BEGIN, Place.END, Place.OUTSIDE, Place.BEGIN]


OLD_FORMAT = FormatDescription("5.1.22-rc-log", post_header_lengths=BARE_FORMAT.post_header_lengths[:27])


def old_log(*events: bytes) -> bytes:
    return MAGIC + OLD_FORMAT.without_checksum() + b"".join(events)


def test_the_xid_of_an_autocommitted_statement_says_nothing_more_in_old_logs() -> None:
    """MySQL 5.0 and 5.1 log no BEGIN in autocommit mode; an engine without transactions writes no XID either."""
    shapes = [(INSERT_ID, DML, XID), (DML,), (DML, XID), (TABLE_MAP, ROWS, LAST_ROWS, XID), (BEGIN, DML, DML, XID)]

    found = grouped(old_log(*(event for events in shapes for event in events)))

    assert [len(one.events) for one in found] == [2, 1, 1, 3, 4]
    assert [one.ending for one in found] == [Ending.STANDALONE] * 4 + [Ending.XID]
    # a segment may begin between the two
    assert [one.ending for one in grouped(old_log(XID, DML, XID))] == [Ending.STANDALONE]


@pytest.mark.parametrize(
    "events",
    [(DML, XID, XID), (BEGIN, DML, XID, XID), (BEGIN, DML, COMMIT, XID), (XID, XID)],
    ids=["twice", "behind-a-transaction", "behind-a-commit", "alone"],
)
def test_an_xid_that_no_statement_stands_before_is_misplaced_in_old_logs_too(events: tuple[bytes, ...]) -> None:
    with pytest.raises(BinlogError, match="XID outside a transaction"):
        grouped(old_log(*events))


@pytest.mark.parametrize("version", ["5.5.62-log", "9.7.4", "5.1.67-MariaDB"])
def test_newer_servers_log_no_transaction_without_begin(version: str) -> None:
    newer = FormatDescription(version, post_header_lengths=BARE_FORMAT.post_header_lengths[:27])
    with pytest.raises(BinlogError, match="XID outside a transaction"):
        grouped(MAGIC + newer.without_checksum() + DML + XID)


def raw(code: int, body: bytes) -> RawEvent:
    return RawEvent(LOG_BEGIN, EventHeader(0, code, 7, HEADER.size + len(body), 0, 0), memoryview(body))


def test_every_known_type_has_a_meaning() -> None:
    looked_into = {*range(20, 26), 30, 31, 32, 39, *range(166, 172)} | {T.QUERY, T.QUERY_COMPRESSED}
    looked_into |= {T.MARIADB_GTID, T.XA_PREPARE}
    refused = {T.UNKNOWN, T.START_V3, T.SLAVE, T.INCIDENT}

    assert KNOWN_TYPES - set(KINDS) - looked_into == refused


def test_every_state_and_kind_is_reached_by_a_rule() -> None:
    assert set(RULES) == set(State)
    assert {kind for rules in RULES.values() for kind in rules} == set(Kind)


@pytest.mark.parametrize("code", [0, 7, 26, 200])
def test_an_event_that_must_not_be_passed_is_not_passed_by_boundaries_either(code: int) -> None:
    with pytest.raises((UnknownEventError, IncidentError)):
        Boundaries(MARIADB, "log").feed(raw(code, b"\1\0\4lost"))


def test_a_damaged_body_that_decides_the_grouping_is_refused() -> None:
    for code in (T.QUERY, T.QUERY_COMPRESSED, T.MARIADB_GTID, T.XA_PREPARE, T.WRITE_ROWS_V2):
        with pytest.raises(BinlogError, match=rf"^log:4: {EventType(code).name}: "):
            Boundaries(MARIADB, "log").feed(
                RawEvent(LOG_BEGIN, raw(T.STOP, b"").header._replace(type_code=code), memoryview(b""))
            )


def test_a_corrupt_byte_raises_nothing_but_binlog_errors() -> None:
    data = log(G1, DML, XID, mysql_gtid(3), payload(BEGIN, XID), G2, DDL, checksums=False)
    for at in range(len(data)):
        for value in (0, 1, 2, 15, 40, 0x80, 0xA2, 0xFF):
            corrupt = data[:at] + bytes([value]) + data[at + 1 :]
            with contextlib.suppress(BinlogError):
                grouped(corrupt)
