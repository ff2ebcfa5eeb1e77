"""ROWS events as servers wrote them, row images of every shape, and what damage does."""

from __future__ import annotations

import contextlib
import itertools
import zlib

import pytest
from hypothesis import given, settings

from binlane.binlog.rows import (
    RowsEvent,
    RowsKind,
    TableNumbers,
    count_rows,
    decompress,
    decompressed,
    row_images,
    rows_length,
)
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, EventType
from binlane.errors import BinlogError, TruncatedEventError, UnsupportedEventError
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, Statement, bitmap, rows_body, statements, table_map_body
from tests.unit.binlog.test_table_map import MYSQL_SMALL

MARIADB_PKP = bytes.fromhex(
    "2500000000000100036c61620003706b7000030f0f0304c80050000201010002012d04060161016201630904000a0200"
)
MYSQL_ALL_DEFAULTS = bytes.fromhex("8000000000000100036c61620007616c6c6e756c6c0002030300030101000404016101620c01c0")
# the table's map, type code, body, rows: an INSERT of a full and an all-NULL row, its partial UPDATE, MINIMAL images,
# an INSERT of nothing but defaults under MINIMAL, MariaDB's compressed INSERT, UPDATE and DELETE
CAPTURED = {
    "mysql-insert": (
        MYSQL_SMALL,
        EventType.WRITE_ROWS_V2,
        "7f00000000001100020006ff000100000003006f6e65800101f4020d0000000001000c000b0001000501006b080000000000803f00000040"
        "3e02000000",
        2,
    ),
    "mysql-partial-update": (
        MYSQL_SMALL,
        EventType.PARTIAL_UPDATE_ROWS,
        "7f00000000001100020006ffff000100000003006f6e65800101f4020d0000000001000c000b0001000501006b080000000000803f000000"
        "400000010000000300756e6f800101f4020d0000000001000c000b0001000502006b080000000000803f00000040",
        1,
    ),
    "mysql-minimal-update": (
        MYSQL_SMALL,
        EventType.PARTIAL_UPDATE_ROWS,
        "7f0000000000110002000601040001000000000080020000",
        1,
    ),
    "mysql-minimal-delete": (MYSQL_SMALL, EventType.DELETE_ROWS_V2, "7f0000000000110002000601000100000000 02000000", 2),
    "mysql-only-defaults": (MYSQL_ALL_DEFAULTS, EventType.WRITE_ROWS_V2, "800000000000110002000200", 1),
    "mariadb-insert": (MARIADB_PKP, EventType.WRITE_ROWS_V1, "250000000000010003 07f801710177 01000000", 1),
    "mariadb-compressed-insert": (
        MARIADB_PKP,
        EventType.WRITE_ROWS_COMPRESSED_V1,
        "250000000000010003078164789cfba1514824602e2f2f67626060f8a151402480e900005dc0283d",
        2,
    ),
    "mariadb-compressed-update": (
        MARIADB_PKP,
        EventType.UPDATE_ROWS_COMPRESSED_V1,
        "250000000000010003070781fd789cfba1514024602e2f2f67626060f841b40ebe2a14c00cd2cc58c858ce0861a04943cc2e2412205c43ac"
        "0e2cae0100c3576528",
        3,
    ),
    "mariadb-compressed-delete": (
        MARIADB_PKP,
        EventType.DELETE_ROWS_COMPRESSED_V1,
        "25000000000001000307 8190789cfba1514024e0ab4201cc0c0c0c3f180bd1449940a21a8544022c46020029053b09",
        3,
    ),
}
CASES = [
    pytest.param(parsed[0], parsed[1], bytes.fromhex(parsed[2]), parsed[3], id=name)
    for name, parsed in CAPTURED.items()
]


def table_of(body: bytes) -> TableMap:
    return TableMap.parse(memoryview(body))


def rows_of(type_code: int, body: bytes) -> RowsEvent:
    return RowsEvent.parse(type_code, memoryview(body), "f:4: ")


@pytest.mark.parametrize(("table", "type_code", "body", "rows"), CASES)
def test_rows_that_servers_wrote_are_counted(table: bytes, type_code: int, body: bytes, rows: int) -> None:
    assert count_rows(rows_of(type_code, body), table_of(table)) == rows


def test_a_v2_head_is_read_whole() -> None:
    event = rows_of(EventType.WRITE_ROWS_V2, bytes.fromhex(CAPTURED["mysql-insert"][2]))
    assert (event.table_id, event.kind, event.width) == (127, RowsKind.INSERT, 6)
    assert (event.flags, event.ends_statement, event.extra, event.images_at) == (0x11, True, b"", 12)
    assert (event.columns_before, event.columns_after) == (None, b"\xff")


def test_v2_extra_data_is_kept_and_stepped_over() -> None:
    body = b"\1\0\0\0\0\0\1\0" + b"\5\0abc" + b"\1\1\0\2\0\0\0"
    event = rows_of(EventType.DELETE_ROWS_V2, body)
    assert (event.extra, bytes(event.rows), event.columns_before) == (b"abc", b"\0\2\0\0\0", b"\1")


@settings(deadline=None)
@given(statements())
def test_images_are_found_where_they_were_put(statement: Statement) -> None:
    table = table_of(statement.events[0][HEADER.size :])
    found = []
    for event, count in zip(statement.events[1:], statement.counts[1:], strict=True):
        rows = rows_of(event[4], event[HEADER.size :])
        assert count_rows(rows, table) == count
        for before, after in row_images(rows, table):
            found.append(tuple(None if part is None else bytes(rows.rows[slice(*part)]) for part in (before, after)))
    assert found == list(statement.images)


def test_partial_images_are_counted_but_not_taken_apart() -> None:
    event = rows_of(EventType.PARTIAL_UPDATE_ROWS, bytes.fromhex(CAPTURED["mysql-minimal-update"][2]))
    with pytest.raises(UnsupportedEventError, match=r"^f:4: lab\.small: PARTIAL_UPDATE_ROWS"):
        row_images(event, table_of(MYSQL_SMALL), "f:4: ")


def test_a_partial_image_skips_one_bit_for_each_json_column_of_the_table() -> None:
    columns = [EVERY_COLUMN["long"], *[EVERY_COLUMN["json"]] * 9]
    after = b"\1" + b"\1\0" + b"\0" + b"\3\0\0\0abc"  # options, bits of 9 JSON columns, NULL bits, one diff
    bits = [bitmap([True] + [False] * 9), bitmap([False, True] + [False] * 8)]
    body = rows_body(EventType.PARTIAL_UPDATE_ROWS, 1, 10, bits, b"\0\7\0\0\0" + after)
    assert count_rows(rows_of(EventType.PARTIAL_UPDATE_ROWS, body), table_of(table_map_body(1, columns))) == 1


LONG = table_map_body(1, [EVERY_COLUMN["long"]])
JSON = table_map_body(1, [EVERY_COLUMN["json"]])
WRITE, UPDATE, PARTIAL = EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.PARTIAL_UPDATE_ROWS
OLD_DECIMAL = table_map_body(1, [Column(0, b"", (0, 0))])
VARCHAR = table_map_body(1, [EVERY_COLUMN["varchar-256"]])
WRONG = [
    pytest.param(LONG, WRITE, rows_body(WRITE, 1, 2, [b"\3"], b"\0" * 9), BinlogError, "2 columns", id="width"),
    pytest.param(LONG, WRITE, rows_body(WRITE, 1, 1, [b"\1"], b"\0\1\2\3"), BinlogError, "to byte 5 of 4", id="value"),
    pytest.param(VARCHAR, WRITE, rows_body(WRITE, 1, 1, [b"\1"], b"\0\1"), BinlogError, "to byte 3 of 2", id="length"),
    pytest.param(LONG, UPDATE, rows_body(UPDATE, 1, 1, [b"\1"] * 2, b"\1"), BinlogError, "to byte 2", id="after"),
    pytest.param(LONG, WRITE, rows_body(WRITE, 1, 1, [b"\1"], b""), BinlogError, "no row images", id="no-images"),
    pytest.param(LONG, WRITE, rows_body(WRITE, 1, 1, [b"\0"], b"x"), BinlogError, "no columns", id="no-columns"),
    pytest.param(
        OLD_DECIMAL, WRITE, rows_body(WRITE, 1, 1, [b"\1"], b"\0\1"), UnsupportedEventError, "type 0", id="old"
    ),
    pytest.param(
        JSON,
        PARTIAL,
        rows_body(PARTIAL, 1, 1, [b"\1"] * 2, b"\1\2\1"),
        UnsupportedEventError,
        "value options 0x2",
        id="options",
    ),
    pytest.param(JSON, PARTIAL, rows_body(PARTIAL, 1, 1, [b"\1"] * 2, b"\1\1"), BinlogError, "to byte 3", id="bits"),
    pytest.param(JSON, PARTIAL, rows_body(PARTIAL, 1, 1, [b"\0"] * 2, b""), BinlogError, "no row images", id="partial"),
]


@pytest.mark.parametrize(("table", "type_code", "body", "error", "message"), WRONG)
def test_images_that_do_not_fit_are_refused(
    table: bytes, type_code: int, body: bytes, error: type[BinlogError], message: str
) -> None:
    with pytest.raises(error, match=rf"^g:8: .*{message}"):
        count_rows(rows_of(type_code, body), table_of(table), "g:8: ")


def test_an_old_decimal_that_is_null_needs_no_length() -> None:
    assert count_rows(rows_of(WRITE, rows_body(WRITE, 1, 1, [b"\1"], b"\1\1")), table_of(OLD_DECIMAL)) == 2


BAD_HEADS = [
    pytest.param(b"\0" * 8 + b"\1\0\1\1", EventType.WRITE_ROWS_V2, BinlogError, "extra data of length 1", id="extra"),
    pytest.param(b"\0" * 8 + b"\xfb", WRITE, BinlogError, "byte 8 of the body is 251", id="width-251"),
    pytest.param(b"\0" * 8 + b"\xfe" + b"\0" * 8, WRITE, BinlogError, "byte 8 of the body is 254", id="width-254"),
    pytest.param(b"\0" * 8 + b"\1\1", UPDATE, TruncatedEventError, "at least 11 bytes", id="bitmaps"),
    pytest.param(b"", EventType.PRE_GA_WRITE_ROWS, UnsupportedEventError, "PRE_GA_WRITE_ROWS", id="pre-ga"),
    pytest.param(b"", EventType.PARTIAL_ROW_DATA, UnsupportedEventError, "PARTIAL_ROW_DATA", id="fragments"),
]


@pytest.mark.parametrize(("body", "type_code", "error", "message"), BAD_HEADS)
def test_heads_that_do_not_fit_are_refused(body: bytes, type_code: int, error: type[BinlogError], message: str) -> None:
    with pytest.raises(error, match=rf"^f:4: .*{message}"):
        rows_of(type_code, body)


@pytest.mark.parametrize(("table", "type_code", "body", "rows"), CASES)
def test_every_cut_and_corrupt_byte_raises_nothing_but_binlog_errors(
    table: bytes, type_code: int, body: bytes, rows: int
) -> None:
    parsed = table_of(table)
    for end in range(len(body)):
        with contextlib.suppress(BinlogError):
            assert count_rows(rows_of(type_code, body[:end]), parsed) <= rows
    for at, value in itertools.product(range(len(body)), range(256)):
        with contextlib.suppress(BinlogError):
            count_rows(rows_of(type_code, body[:at] + bytes([value]) + body[at + 1 :]), parsed)


@pytest.mark.parametrize("shift", [0, 3], ids=["v1", "v2"])
@pytest.mark.parametrize("plain", [23, 24, 25])
def test_a_compressed_event_becomes_the_plain_one(plain: int, shift: int) -> None:
    plain_code, code = (plain, plain + 143) if shift == 0 else (plain + 7, plain + 146)
    images = b"\0\1\2\3\4" * 40
    bits = [b"\1"] * (2 if plain == 24 else 1)
    head = rows_body(plain_code, 1, 1, bits, b"")
    body = head + b"\x82" + len(images).to_bytes(2, "big") + zlib.compress(images)
    assert decompressed(code, memoryview(body)) == (plain_code, head + images)
    assert (
        rows_length(code, memoryview(body)) == rows_length(plain_code, memoryview(head + images)) == len(head + images)
    )


def test_a_plain_event_is_not_decompressed() -> None:
    with pytest.raises(ValueError, match="WRITE_ROWS_V1 is not a compressed"):
        decompressed(WRITE, memoryview(rows_body(WRITE, 1, 1, [b"\1"], b"\1")))


STREAM = zlib.compress(b"abc" * 30)
BAD_STREAMS = [
    pytest.param(b"", "found nothing", id="nothing"),
    pytest.param(b"\x01\x5a" + STREAM, "found 015a", id="not-compressed"),
    pytest.param(b"\x91\x5a" + STREAM, "found 915a", id="another-algorithm"),
    pytest.param(b"\x85" + bytes(5) + STREAM, "found 85", id="five-length-bytes"),
    pytest.param(b"\x80" + STREAM, "found 80", id="no-length-bytes"),
    pytest.param(b"\x81", "found 81", id="no-length"),
    pytest.param(b"\x81\x59" + STREAM, "declared 89", id="longer-than-declared"),
    pytest.param(b"\x81\x5b" + STREAM, "declared 91", id="shorter-than-declared"),
    pytest.param(b"\x81\x5a" + STREAM + b"x", "declared 90", id="bytes-behind"),
    pytest.param(b"\x81\x5a" + STREAM[:-2], "declared 90", id="cut"),
    pytest.param(b"\x81\x5a" + b"x" + STREAM, "are damaged", id="not-zlib"),
]


@pytest.mark.parametrize(("data", "message"), BAD_STREAMS)
def test_a_damaged_stream_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        decompress(memoryview(data))


def test_tables_are_numbered_by_definition_and_forgotten_at_the_statement_end() -> None:
    numbers = TableNumbers()
    first, other = memoryview(table_map_body(1, [])), memoryview(table_map_body(1, [], "other"))
    going_on, last = (memoryview(rows_body(WRITE, 1, 0, [], b"", ends=ends)) for ends in (False, True))
    shown = [(19, first), (WRITE, going_on), (19, other), (WRITE, last), (19, first), (16, memoryview(b""))]
    assert [numbers.number(code, body) for code, body in shown] == [0, 0, 1, 1, 0, None]
    assert numbers.number(19, memoryview(table_map_body(2, []))) == 0
    assert numbers.number(WRITE, last) == 0
    with pytest.raises(BinlogError, match=r"^f:4: WRITE_ROWS_V1: table id 1 has no TABLE_MAP"):
        numbers.number(WRITE, last, "f:4: ")


def test_a_format_description_forgets_all_tables() -> None:
    numbers = TableNumbers()
    numbers.number(19, memoryview(table_map_body(1, [])))
    numbers.number(EventType.FORMAT_DESCRIPTION, memoryview(b""))
    with pytest.raises(BinlogError, match="has no TABLE_MAP"):
        numbers.number(WRITE, memoryview(rows_body(WRITE, 1, 0, [], b"")))


@pytest.mark.parametrize("code", [20, 21, 22, 172])
def test_rows_that_cannot_be_read_have_no_number(code: int) -> None:
    with pytest.raises(UnsupportedEventError):
        TableNumbers().number(code, memoryview(b""))
