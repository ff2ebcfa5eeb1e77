"""Values of row images: formats that no server of today writes, and damage."""

from __future__ import annotations

import contextlib
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types import temporal
from binlane.binlog.types.charsets import decode_text, guessed_text
from binlane.binlog.types.columns import Column
from binlane.binlog.types.decimals import decode_decimal, spell_decimal, spell_double
from binlane.binlog.types.json_binary import JsonDiffs, json_text, parse_diffs, parse_json
from binlane.binlog.types.literals import literal, quoted, spell, spell_float
from binlane.binlog.types.readers import uncompressed
from binlane.binlog.types.sql_types import reader_of
from binlane.binlog.types.type_codes import ColumnType
from binlane.errors import BinlogError
from binlane.model import Flavor
from tests.unit.binlog.row_events import EVERY_COLUMN, bitmap, image, rows_body, table_map_body

DOCUMENT = bytes.fromhex("0002001d001200010013000200050100021500616262010008000c070000")
"""``{"a": 1, "bb": [...]}``: small object, one value inlined, one small array that holds a string of no bytes."""


@pytest.mark.parametrize(
    ("read", "data", "text"),
    [
        (temporal.old_time, struct.pack("<i", -123456)[:3], "-12:34:56"),
        (temporal.old_time, b"\0\0\0", "00:00:00"),
        (temporal.old_datetime, struct.pack("<q", 99991231235959), "9999-12-31 23:59:59"),
        (temporal.old_datetime, bytes(8), "0000-00-00 00:00:00"),
        (temporal.old_timestamp, struct.pack("<I", 1), "1970-01-01 00:00:01"),
        (temporal.old_timestamp, bytes(4), "0000-00-00 00:00:00"),
        (temporal.date, (2024 << 9 | 2 << 5 | 31).to_bytes(3, "little"), "2024-02-31"),
        (temporal.year, b"\0", 0),
        (temporal.year, b"\xff", 2155),
    ],
)
def test_old_formats_are_read(read: object, data: bytes, text: object) -> None:
    assert callable(read)
    assert read(data) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1e15, "1e15"),
        (1e14, "100000000000000"),
        (1e-15, "0.000000000000001"),
        (1e-16, "1e-16"),
    ],
)
def test_doubles_are_spelled_as_by_the_server(value: float, text: str) -> None:
    assert spell_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_double_reads_back_as_the_same_number(value: float) -> None:
    assert struct.pack("<d", float(spell_double(value))) == struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_spelled_float_reads_back_as_the_same_32_bits(value: float) -> None:
    assert struct.pack("<f", float(spell_float(value))) == struct.pack("<f", value)
    assert len(spell_float(value).strip("-0.").partition("e")[0]) <= 10 + value.is_integer() * 6


def test_a_decimal_has_all_its_digits() -> None:
    assert spell_decimal(decode_decimal(bytes.fromhex("810DFB38D204D2"), 14, 4)) == "1234567890.1234"
    assert spell_decimal(decode_decimal(bytes.fromhex("7EF204C72DFB2D"), 14, 4)) == "-1234567890.1234"
    assert spell_decimal(Decimal("-0.00")) == "0.00"


@pytest.mark.parametrize(
    "data", [b"\0a", b"\x95abc", b"\x80", b"\x8a\0\5" + b"x", b"\x81\5" + b"\x78\x9c\x4b\4\0\0\x62\0\x62"]
)
def test_a_damaged_compressed_value_is_a_value_error_or_a_value(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert uncompressed(data) == data[1:]


def test_bytes_that_are_no_text_stay_bytes() -> None:
    column = Column(1, "a", ColumnType.VARCHAR, 20, True, charset="utf8mb4")
    read = reader_of(column)
    assert read("é".encode()) == "é"
    assert read(b"\xff") == b"\xff"
    assert literal(column, b"\xff") == "_utf8mb4 X'ff'"
    assert reader_of(column, text=False)(b"abc") == b"abc"
    assert decode_text("😀".encode(), "utf8mb3") is None
    assert guessed_text(b"\0") is None


def test_a_literal_cannot_end_early() -> None:
    assert quoted("it's \\ \0\n") == "'it''s \\\\ \\0\\n'"


def test_a_document_of_no_bytes_is_null() -> None:
    """MySQL leaves it where NULL went into a column that takes none: ALTER, or a value that was computed badly."""
    assert json_text(parse_json(b"")) == "null"


def test_offsets_are_followed_wherever_they_lead() -> None:
    """A document that was changed in place: the second value in front of the first, what is left of old ones around."""
    values = b"\1b" + b"left over" + b"\1a"
    entries = b"".join(b"\x0c" + struct.pack("<H", 10 + values.index(value)) for value in (b"\1a", b"\1b"))
    array = b"\2" + struct.pack("<HH", 2, 10 + len(values)) + entries + values + b"and more"
    assert json_text(parse_json(array)) == '["a", "b"]'


def test_a_document_that_shares_its_bytes_is_refused() -> None:
    """A damaged one could otherwise grow without end: each entry of this array is the array around it."""
    nested = b"\2" + struct.pack("<HH", 3, 13) + (b"\2" + struct.pack("<H", 0)) * 3
    with pytest.raises(ValueError, match="JSON"):
        parse_json(nested)


@pytest.mark.parametrize("data", [DOCUMENT, b"\x0c\x03abc", b"\x0f\xf6\x05\x05\x02\x80\x01\x32", b"\5\1\0"])
def test_damage_inside_a_document_is_a_value_error_or_a_document(data: bytes) -> None:
    json_text(parse_json(data))
    for at in range(len(data)):
        for byte in range(256):
            with contextlib.suppress(ValueError):
                json_text(parse_json(data[:at] + bytes([byte]) + data[at + 1 :]))
    for end in range(1, len(data)):
        with contextlib.suppress(ValueError):
            json_text(parse_json(data[:end]))


@given(st.binary(max_size=60))
def test_bytes_that_are_no_diffs_are_a_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_diffs(data), JsonDiffs)


@given(st.data(), st.sampled_from(sorted(EVERY_COLUMN)))
def test_any_bytes_of_any_type_are_an_error_of_the_project_or_a_value(data: st.DataObject, name: str) -> None:
    column = EVERY_COLUMN[name]
    prefix, fixed = column.length
    value = data.draw(st.binary(min_size=fixed, max_size=fixed) if prefix == 0 else st.binary(max_size=80))
    table = TableMap.parse(memoryview(table_map_body(1, [column])))
    body = rows_body(30, 1, 1, [bitmap([True])], image([column], [True], [value]))
    columns = columns_of(table, Flavor.MYSQL)
    with contextlib.suppress(BinlogError):
        (change,) = RowDecoder(table, columns).changes(RowsEvent.parse(30, memoryview(body)), "log:4: ")
        assert change.after is not None
        found = change.after[0]
        assert found is None or spell(columns[0], found)  # type: ignore[arg-type]  # the image holds it
