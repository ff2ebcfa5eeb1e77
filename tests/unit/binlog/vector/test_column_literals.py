"""Whole columns as literals: the same as value by value, for any bytes that a server may write."""

from __future__ import annotations

import math
import struct
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.literals import literal
from binlane.binlog.types.sql_types import reader_of
from binlane.binlog.types.type_codes import ColumnType as C
from binlane.binlog.vector.column_literals import ColumnLiterals, values_of
from binlane.binlog.vector.frames import as_array
from binlane.model import Flavor
from tests.tiers import examples


def column(code: C, metadata: int = 0, **more: object) -> Column:
    return Column(1, "c", code, metadata, nullable=True, **more)  # type: ignore[arg-type]


SIGNED: Final = {"unsigned": False}
COLUMNS: Final = [
    *(
        column(code, unsigned=unsigned)
        for code in (C.TINY, C.SHORT, C.INT24, C.LONG, C.LONGLONG)
        for unsigned in (0, 1)
    ),
    column(C.LONG),
    column(C.FLOAT, 4),
    column(C.DOUBLE, 8),
    *(
        column(C.NEWDECIMAL, precision << 8 | scale)
        for precision, scale in ((4, 2), (18, 18), (12, 0), (10, 9), (30, 4))
    ),
    column(C.DATE),
    *(column(code, digits) for code in (C.DATETIME2, C.TIMESTAMP2, C.TIME2) for digits in (0, 1, 3, 6)),
    column(C.YEAR),
    column(C.BIT, 0x0101),
    column(C.ENUM, 0xF702),
    column(C.SET, 0xF808),
    column(C.STRING, 0xFE28, charset="latin1"),
    column(C.STRING, 0xFE04, charset="binary"),
    column(C.STRING, 0xFE10, charset="binary", data_type="uuid"),
    column(C.VARCHAR, 300, charset="utf8mb3"),
    column(C.VARCHAR, 30, charset="binary"),
    column(C.BLOB, 2, charset="utf8mb4"),
    column(C.BLOB, 4),
    column(C.GEOMETRY, 4),
    column(C.TIMESTAMP, fsp=3, data_type="timestamp (old format)"),
]
"""One column for each way to read it."""


def rule_of(one: Column) -> tuple[int, int]:
    return one.length_rule(LOGGED_TYPES[one.type_code].length(one.metadata, ""))


def image(prefix: int, value: bytes | None) -> bytes:
    """An image of two columns: this one, and a TINYINT of 7."""
    if value is None:
        return b"\1\7"
    return b"\0" + (len(value).to_bytes(prefix, "little") if prefix else b"") + value + b"\7"


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), one=st.sampled_from(COLUMNS), server=st.sampled_from(Flavor))
def test_a_column_is_spelled_as_its_values_are(data: st.DataObject, one: Column, server: Flavor) -> None:
    prefix, size = rule_of(one)
    usual = st.binary(max_size=60) if prefix else st.binary(min_size=size, max_size=size)
    small = usual if prefix else st.integers(0, 3).map(lambda low: bytes(size - 1) + bytes([low]))
    values = data.draw(st.lists(st.one_of(st.none(), usual, small), min_size=1, max_size=8))
    values = [value for value in values if value is None or is_read(one, value)] or [None]
    assert spelled(one, values, server) == [
        "NULL" if value is None else exact(one, literal(one, reader_of(one, text=False)(value), server))
        for value in values
    ]


def is_read(one: Column, value: bytes) -> bool:
    try:
        reader_of(one, text=False)(value)
    except (ValueError, struct.error):
        return False
    return True


def spelled(one: Column, values: list[bytes | None], server: Flavor = Flavor.MYSQL) -> list[str]:
    rule = rule_of(one)
    images = [image(rule[0], value) for value in values]
    buffer = as_array(b"".join(images))
    begins = np.cumsum([0, *map(len, images[:-1])])
    literals = ColumnLiterals.of([one, column(C.TINY, unsigned=False)], [rule, (0, 1)], server)
    start, end = literals.places(buffer, begins)
    assert values_of(buffer, start[0], end[0]) == values
    assert literals.column(1, buffer, start[1], end[1]) == ["7"] * len(values)
    return [exact(one, text) for text in literals.column(0, buffer, start[0], end[0])]


def exact(one: Column, text: str) -> str:
    """The literal, or the number that a literal of a floating-point type gives: they have several spellings."""
    if one.type_code not in (C.FLOAT, C.DOUBLE) or text == "NULL":
        return text
    assert "e" in text  # otherwise it would be a DECIMAL
    return f"{float(text)!r} {math.copysign(1, float(text))}"


@pytest.mark.parametrize(
    ("one", "value"),
    [
        (column(C.DOUBLE, 8), struct.pack("<d", math.inf)),
        (column(C.NEWDECIMAL, 4 << 8 | 2), b"\xff\xff"),
        (column(C.DATETIME2), b"\x80\0\0\0\x3f"),
        (column(C.DATETIME2), bytes(5)),
        (column(C.DATE), b"\xff\xff\xff"),
        (column(C.DATETIME2, 2), b"\x80\0\0\0\0\xff"),
    ],
)
def test_bytes_that_no_server_writes_are_refused(one: Column, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        spelled(one, [value])


@pytest.mark.parametrize(
    ("one", "values", "literals"),
    [
        (column(C.NEWDECIMAL, 4 << 8 | 2), [b"\x8c\x32", b"\x73\xcd", b"\x7f\xff"], ["12.50", "-12.50", "0.00"]),
        (column(C.DATETIME2, 2), [b"\x80\0\0\0\0\0"], ["'0000-00-00 00:00:00.00'"]),
        (column(C.DATETIME2, 2), [b"\x99\xb2\xb9\x42\x83\x63"], ["'2024-02-28 20:10:03.99'"]),
        (column(C.TIMESTAMP2), [bytes(4), b"\xff\xff\xff\xff"], ["'0000-00-00 00:00:00'", "'2106-02-07 06:28:15'"]),
        (column(C.LONGLONG, unsigned=True), [b"\xff" * 8, bytes(8)], ["18446744073709551615", "0"]),
        (column(C.LONGLONG, unsigned=False), [b"\xff" * 8, bytes(7) + b"\x80"], ["-1", "-9223372036854775808"]),
        (column(C.VARCHAR, 9, charset="utf8mb4"), [b"\0'\\", b""], ["_utf8mb4 X'00275c'", "_utf8mb4 X''"]),
        (column(C.YEAR), [b"\0", b"\x7c"], ["0", "2024"]),
    ],
)  # fmt: skip
def test_values_at_the_limits_are_exact(one: Column, values: list[bytes | None], literals: list[str]) -> None:
    assert spelled(one, values) == literals
