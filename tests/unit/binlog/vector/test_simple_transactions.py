"""Runs of simple transactions are taken at once: whatever the log, the outcome is that of a walk event by event."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.payload import Compression
from binlane.binlog.vector.frames import frame
from binlane.binlog.vector.simple_transactions import NumberedTransactions, numbered, of_one_database
from binlane.binlog.wire import ChecksumAlgorithm, build_event
from binlane.errors import BinlaneError
from binlane.model import LogPosition
from binlane.plan.manifest import Manifest, Segment
from binlane.source.end_position import Until, UntilGtid, UntilLogEnd, UntilPosition, UntilTime
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segment_writer import Stretch
from binlane.source.segments import Extraction
from binlane.source.temporary import TemporaryTracker
from binlane.source.xa import XaTracker
from tests.tiers import examples
from tests.unit.binlog.cases import MARIADB, MYSQL, UUID, UUID_BYTES, T, crc, format_event, payload, query, wire

FILE = "binlog.000001"
CLOCK = 1_700_000_100.0
NOW = 1_700_000_000

TIMES = st.sampled_from((NOW, NOW + 1, NOW + 50, NOW + 100, NOW + 101, NOW + 5000, 1))
ROWS = [
    wire(T.TABLE_MAP, bytes(12)),
    wire(T.WRITE_ROWS_V1, bytes(12)),
    wire(T.DELETE_ROWS_V2, b"\0" * 6 + b"\1\0"),
    wire(T.UPDATE_ROWS_COMPRESSED_V1, bytes(12)),
]
XID = wire(T.XID, bytes(8))
BEGIN, COMMIT = query(b"BEGIN"), query(b"COMMIT")
XA_START, XA_END = query(b"XA START X'78',X'',1"), query(b"XA END X'78',X'',1")
XA_PREPARE = wire(T.XA_PREPARE, b"\0" + struct.pack("<III", 1, 1, 0) + b"x")
SHORT = wire(T.QUERY, b"short")
PAYLOADS = [
    payload(BEGIN, *ROWS, XID),
    payload(BEGIN, *ROWS, XID, compression=Compression.NONE),
    payload(XA_START, *ROWS, XA_END, XA_PREPARE),
    payload(query(b"xa start X'79'"), XA_END, wire(T.XA_PREPARE, b"\1" + struct.pack("<III", 1, 1, 0) + b"y")),
    payload(XA_START, BEGIN),
    payload(query(b"begin"), XID),
    payload(BEGIN[:-1]),
    payload(BEGIN[:9] + bytes(4) + BEGIN[13:]),
    payload(SHORT, XID),
    payload(*ROWS, XID),
    payload(BEGIN, wire(T.ROWS_QUERY, bytes(2 << 20)), *ROWS, XID),
    payload(BEGIN, XID, declared=20),
    payload(BEGIN, XID, declared=len(BEGIN)),
    payload(BEGIN, XID, declared=len(BEGIN) + 500),
    payload(BEGIN, XID, declared=1 << 40),
    payload(BEGIN, XID, declared=(1 << 64) - 1),
    payload(BEGIN, XID, declared=0),
    payload(BEGIN, XID)[:-1],
    wire(T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\5\1\1\4\0data"),
    wire(T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\x7f"),
    wire(T.TRANSACTION_PAYLOAD, b""),
]
OTHERS = [
    query(b"begin"),
    query(b"BEGIN", database=b"", status=bytes((0, 0, 0, 0, 0))),
    query(b"BEGIN  "),
    query(b"ROLLBACK"),
    query(b"SAVEPOINT s"),
    query(b"CREATE TEMPORARY TABLE t (a INT)"),
    query(b"DROP TEMPORARY TABLE t"),
    query(b"INSERT INTO t VALUES (1)"),
    wire(T.BEGIN_LOAD_QUERY, struct.pack("<I", 1)),
    wire(T.DELETE_FILE, struct.pack("<I", 1)),
    wire(T.ANNOTATE_ROWS, b"insert"),
    wire(T.INTVAR, bytes(9)),
    wire(T.BINLOG_CHECKPOINT, struct.pack("<I", len(FILE)) + FILE.encode()),
    wire(T.ROTATE, struct.pack("<Q", 4) + b"binlog.000002"),
    XA_PREPARE,
    wire(T.STOP, b""),
    SHORT,
    wire(99, b""),
]


def mariadb_gtids() -> st.SearchStrategy[bytes]:
    def build(time: int, server: int, domain: int, number: int, flags: int, rest: bytes) -> bytes:
        body = struct.pack("<QIB", number, domain, flags) + rest
        return build_event(T.MARIADB_GTID, body, timestamp=time, server_id=server)

    flags = st.sampled_from((0x04, 0x0C, 0x06, 0x1C, 0x00, 0x01, 0x29, 0x46))
    rests = st.sampled_from(
        (bytes(6), bytes(14), b"", bytes(8) + b"\x10" + bytes(4), b"\x10\1\0\0\0", b"\x10\1", b"\1\2")
    )
    return st.builds(build, TIMES, st.integers(1, 2), st.integers(0, 1), st.integers(1, 9), flags, rests)


def mysql_gtids() -> st.SearchStrategy[bytes]:
    def build(kind: int, time: int, sid: int, number: int, clock: int, rest: bytes) -> bytes:
        number, uuid = (0, bytes(16)) if kind == T.ANONYMOUS_GTID else (number, UUID_BYTES[:-1] + bytes((sid,)))
        body = b"\0" + uuid + struct.pack("<qBqq", number, clock, 1, 2) + rest
        return build_event(kind, body, timestamp=time, server_id=1)

    when = st.builds(lambda time: (time * 1_000_000 + 5).to_bytes(7, "little"), TIMES)
    twice = st.builds(lambda time: (time * 1_000_000 | 1 << 55).to_bytes(7, "little") * 2, TIMES)
    rests = st.one_of(
        when, twice, st.sampled_from((b"", bytes(3))), st.builds(lambda one: one + b"\x20" + bytes(4), when)
    )
    kinds = st.sampled_from((T.GTID, T.GTID, T.ANONYMOUS_GTID))
    return st.builds(build, kinds, TIMES, st.integers(1, 2), st.integers(0, 9), st.sampled_from((2, 2, 2, 0)), rests)


def logs(gtids: st.SearchStrategy[bytes], opening: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    def plain(gtid: bytes, rows: list[bytes]) -> list[bytes]:
        return [gtid, *opening, *rows, XID]

    rows = st.lists(st.sampled_from(ROWS), max_size=4)
    transactions = st.builds(plain, gtids, rows)
    odd = st.one_of(gtids, st.sampled_from([*ROWS, *OTHERS, XID, BEGIN, COMMIT])).map(lambda event: [event])
    standalone = st.builds(lambda gtid: [gtid, query(b"CREATE TABLE t (a INT)")], gtids)
    zipped = st.builds(lambda gtid, held: [gtid, held], gtids, st.sampled_from([*PAYLOADS[:1] * 9, *PAYLOADS]))
    group = st.one_of(transactions, transactions, transactions, transactions, zipped, standalone, odd)
    return st.lists(group, max_size=14).map(lambda groups: [event for events in groups for event in events])


class Kept:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.closed: list[Stretch] = []
        self.segments: tuple[Segment, ...] = ()

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        self.data.append(bytes(data))

    def close(self, stretch: Stretch) -> None:
        self.closed.append(replace(stretch))
        self.data.append(b"|")

    def abort(self, exc: BaseException) -> None:
        raise AssertionError from exc


Outcome = tuple[str, Manifest | None, bytes, list[Stretch]]


def outcome(
    log_format: FormatDescription, events: Sequence[bytes], cuts: set[int], until: Until, size: int, xa: bool = True
) -> Outcome:
    """What becomes of a log that comes in chunks, which end behind the events ``cuts``."""
    header = format_event(replace(log_format, checksum=ChecksumAlgorithm.CRC32))
    begin = LOG_START + len(header)
    state = LogState("me", log_format.flavor, (FILE,), None, CLOCK, closes_by_clock=True)
    sink = Kept()
    start = Start(0, LogPosition(FILE, begin), "", 0.0, "me", "")
    found = None
    try:
        tracker = XaTracker() if xa else None
        run = Extraction("s", state, start, until, sink, size, xa=tracker, temporary=TemporaryTracker())
        run.take(LogChunk(FILE, LOG_START, header))
        at, data = begin, b""
        for number, event in enumerate(events):
            data += crc(event)
            if number in cuts or number == len(events) - 1:
                if run.take(LogChunk(FILE, at, data)):
                    break
                at, data = at + len(data), b""
        run.finish()
        found = run.manifest("c", "w")
        error = ""
    except BinlaneError as exc:
        error = str(exc)
    return error, found, b"".join(sink.data), sink.closed


UNTILS = st.one_of(
    st.just(UntilLogEnd()),
    st.builds(UntilTime, TIMES.map(float).filter(lambda time: time <= CLOCK)),
    st.builds(UntilPosition, st.integers(0, 2500).map(lambda offset: LogPosition(FILE, offset))),
)
CUTS = st.sets(st.integers(0, 60), max_size=6)
SIZES = st.sampled_from((1, 90, 200, 400, 1 << 20))


def check(
    log_format: FormatDescription, events: list[bytes], cuts: set[int], until: Until, size: int, xa: bool = True
) -> None:
    at_once = outcome(log_format, events, cuts, until, size, xa)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NumberedTransactions, "run_at", lambda self, event: slice(0, 0))
        one_by_one = outcome(log_format, events, cuts, until, size, xa)
    assert at_once == one_by_one


@settings(max_examples=examples(200))
@given(logs(mariadb_gtids(), []), CUTS, st.one_of(UNTILS, st.just(UntilGtid("0-1-5"))), SIZES)
def test_a_mariadb_log(events: list[bytes], cuts: set[int], until: Until, size: int) -> None:
    check(MARIADB, events, cuts, until, size)


@settings(max_examples=examples(200))
@given(logs(mysql_gtids(), [BEGIN]), CUTS, st.one_of(UNTILS, st.just(UntilGtid(f"{UUID[:-2]}01:5"))), SIZES)
def test_a_mysql_log(events: list[bytes], cuts: set[int], until: Until, size: int) -> None:
    check(MYSQL, events, cuts, until, size)


def plain(number: int, *, server: int = 1, time: int = NOW) -> list[bytes]:
    body = struct.pack("<QIB", number, 0, 0x0C) + bytes(6)
    return [build_event(T.MARIADB_GTID, body, timestamp=time, server_id=server), *ROWS, XID]


def mysql_gtid(number: int) -> bytes:
    body = b"\0" + UUID_BYTES + struct.pack("<qBqq", number, 2, 1, 2) + (NOW * 1_000_000).to_bytes(7, "little")
    return build_event(T.GTID, body, timestamp=NOW, server_id=1)


def runs(*events: bytes) -> list[tuple[int, int]]:
    """(first entry, entry behind the last one) of the run at each transaction's beginning."""
    found = numbered(frame(b"".join(events), 0, 0), 13)
    return [(run.start, run.stop) for run in (found.run_at(event) for event in found.first.tolist())]


def test_simple_transactions_are_found_and_a_run_ends_at_any_other() -> None:
    ddl = [wire(T.MARIADB_GTID, struct.pack("<QIB", 9, 0, 0x29) + bytes(6)), query(b"DROP TABLE t")]
    assert runs(*plain(1), *plain(2), *plain(3)) == [(0, 3), (1, 3), (2, 3)]
    assert runs(*plain(1), *ddl, *plain(2), *plain(3)) == [(0, 1), (1, 3), (2, 3)]
    assert runs(*plain(1)[:-1], COMMIT, *plain(2)) == [(0, 1)]
    assert runs(*ddl, *plain(1)[:-1]) == []


ROWS_OF_ONE = ((T.TABLE_MAP, 1), (T.WRITE_ROWS_V1, 0), (T.ROWS_QUERY, 0), (T.UPDATE_ROWS_V2, 1))
"""Types of a transaction's row events; of each rows event whether its statement ends, of a TABLE_MAP its table."""


@pytest.mark.parametrize(
    ("head", "events", "database"),
    [
        ([mysql_gtid(1), BEGIN], ROWS_OF_ONE, 7),
        ([wire(T.GTID_TAGGED, bytes(40)), BEGIN], ROWS_OF_ONE, 7),
        ([BEGIN], ROWS_OF_ONE, 7),
        (plain(1)[:1], ROWS_OF_ONE, 7),
        ([mysql_gtid(1)], ROWS_OF_ONE, None),
        ([mysql_gtid(1), BEGIN, SHORT], ROWS_OF_ONE, None),
        ([mysql_gtid(1), BEGIN], (*ROWS_OF_ONE, (T.TABLE_MAP, 2), (T.WRITE_ROWS_V1, 1)), 7),
        ([mysql_gtid(1), BEGIN], (*ROWS_OF_ONE, (T.TABLE_MAP, 3), (T.WRITE_ROWS_V1, 1)), None),
        ([mysql_gtid(1), BEGIN], ROWS_OF_ONE[:-1], None),
        ([mysql_gtid(1), BEGIN], ROWS_OF_ONE[:1], None),
        ([mysql_gtid(1), BEGIN], (), None),
        ([mysql_gtid(1), BEGIN], (*ROWS_OF_ONE, (T.WRITE_ROWS_COMPRESSED_V1, 1)), None),
        ([mysql_gtid(1), BEGIN], (*ROWS_OF_ONE, (T.INTVAR, 1)), None),
        *(
            ([wire(T.MARIADB_GTID, struct.pack("<QIB", 9, 0, flag) + bytes(6))], ROWS_OF_ONE, None)
            for flag in (0x01, 0x20, 0x40, 0x80)
        ),
    ],
)
def test_a_transaction_goes_to_a_lane_at_once_if_it_is_of_whole_statements_over_one_database(
    head: list[bytes], events: Sequence[tuple[int, int]], database: int | None
) -> None:
    """Tables 1 and 2 are of database 7, table 3 of database 8."""
    middle = [wire(kind, bytes(6) + bytes((value, 0)) + bytes(4)) for kind, value in events]
    frames = frame(b"".join([*head, *middle, XID]), 0, 0)
    number = np.full(frames.offset.size, -1, np.int32)
    number[len(head) : -1] = [value if kind == T.TABLE_MAP else -1 for kind, value in events]
    found = of_one_database(frames, 13, number, np.array([0, 7, 7, 8], np.int32))
    expected = [] if database is None else [(0, frames.offset.size - 1, database)]
    assert list(zip(found.first.tolist(), found.last.tolist(), found.database.tolist(), strict=True)) == expected


def test_extraction_numbers_only_transactions_whose_gtid_is_known_here() -> None:
    """The map takes all four; what a walk reads of the others' first events is no business of the kernel."""
    known, tagged = [mysql_gtid(1), BEGIN, *ROWS, XID], [wire(T.GTID_TAGGED, bytes(40)), BEGIN, *ROWS, XID]
    other_clock = build_event(T.GTID, b"\0" + UUID_BYTES + struct.pack("<qB", 3, 0), timestamp=NOW, server_id=1)
    events = [*known, *tagged, BEGIN, *ROWS, XID, other_clock, BEGIN, *ROWS, XID]
    found = numbered(frame(b"".join(events), 0, 0), 13)
    assert list(zip(found.first.tolist(), found.last.tolist(), strict=True)) == [(0, len(known) - 1)]


def test_gtids_that_follow_each_other_are_one_line() -> None:
    events = [*plain(1), *plain(2), *plain(7, server=2), *plain(3)]
    found = numbered(frame(b"".join(events), 0, 0), 13)
    assert list(found.lines(slice(0, 4))) == [(0, 1), (2, 2), (3, 3)]
    assert list(found.lines(slice(1, 2))) == [(1, 1)]


def test_a_thousand_plain_transactions_are_taken_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Extraction, "_event")
    events = [one for number in range(1000) for one in plain(number)]
    error, manifest, data, _ = outcome(MARIADB, events, set(), UntilLogEnd(), 1 << 20)
    assert error == ""
    assert manifest is not None
    assert (manifest.transactions, manifest.gtid_set) == (1000, "0-1-999")
    assert len(data) == sum(len(one) + 4 for one in events) + 1


@pytest.mark.parametrize("xa", [True, False], ids=["xa-followed", "xa-not-followed"])
@pytest.mark.parametrize("held", PAYLOADS)
def test_a_compressed_transaction_of_any_kind(held: bytes, xa: bool) -> None:
    """Between plain ones, and again behind itself: a second XA PREPARE of a name is refused."""
    # a BEGIN that is cut off must not go on in the next payload
    behind = payload(b"N" + BEGIN[1:], XID)
    events = [mysql_gtid(1), PAYLOADS[0], mysql_gtid(2), held, mysql_gtid(3), behind, mysql_gtid(4), held]
    check(MYSQL, events, set(), UntilLogEnd(), 1 << 20, xa)


def test_a_thousand_compressed_transactions_are_taken_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Extraction, "_event")
    events = [one for number in range(1, 1001) for one in (mysql_gtid(number), PAYLOADS[0])]
    error, manifest, _, _ = outcome(MYSQL, events, set(), UntilLogEnd(), 1 << 20)
    assert error == ""
    assert manifest is not None
    assert (manifest.transactions, manifest.gtid_set) == (1000, f"{UUID}:1-1000")
