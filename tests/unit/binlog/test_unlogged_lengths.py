"""Rows whose lengths the log does not tell are counted if every way to divide them gives the same number."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.rows import RowsEvent, count_rows
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.unlogged_lengths import count_rows_of_any_length, may_have_fractions
from binlane.binlog.wire import EventType
from binlane.errors import BinlogError
from binlane.model import Flavor

C = ColumnType
WIDTHS = {C.TIMESTAMP: (4, 5, 5, 6, 6, 7, 7), C.TIME: (3, 4, 4, 5, 5, 5, 6), C.DATETIME: (8, 6, 6, 7, 7, 7, 8)}


def table(*codes: int, nullable: int = 0xFE) -> TableMap:
    body = bytes(6) + b"\1\0" + b"\1a\0" + b"\1t\0" + bytes((len(codes), *codes)) + b"\0" + bytes((nullable,))
    return TableMap.parse(memoryview(body), flavor=Flavor.MARIADB)


def inserted(width: int, *rows: bytes) -> RowsEvent:
    head = bytes(6) + b"\1\0" + bytes((width,)) + bytes(((1 << width) - 1,))
    return RowsEvent.parse(EventType.WRITE_ROWS_V1, memoryview(head + b"".join(rows)))


def row(number: int, *widths: int | None) -> bytes:
    """An id and values of so many bytes; None: NULL."""
    nulls = sum(1 << at for at, width in enumerate(widths, 1) if width is None) | 0xFF << (len(widths) + 1) & 0xFF
    return bytes((nulls,)) + struct.pack("<i", number) + b"".join(b"\xee" * width for width in widths if width)


@pytest.mark.parametrize("digits", range(7))
@pytest.mark.parametrize("code", WIDTHS)
def test_rows_of_each_precision_are_counted(code: ColumnType, digits: int) -> None:
    width = WIDTHS[code][digits]
    rows = [row(n, None if n == 3 else width, 4) for n in range(7)]
    found = count_rows_of_any_length(inserted(3, *rows), table(C.LONG, code, C.LONG))
    assert found == (7, width == WIDTHS[code][0])


def test_rows_that_can_be_divided_in_two_ways_are_refused() -> None:
    """One row of an id, TIME(6), TIMESTAMP(6) and a number, or one without a fraction and one of NULLs."""
    logged, rows = table(C.LONG, C.TIME, C.TIMESTAMP, C.LONG), (row(1, 3, 5, 4), row(2, None, None, None))
    assert len(b"".join(rows)) == len(row(1, 6, 7, 4))
    with pytest.raises(BinlogError, match=r"MariaDB 5\.3 columns"):
        count_rows_of_any_length(inserted(4, *rows), logged)


@pytest.mark.parametrize("last", [b"\x7e", b"\xf7"], ids=["bits-behind-the-columns", "null-in-not-null"])
def test_bytes_that_are_no_bitmap_of_nulls_begin_no_row(last: bytes) -> None:
    """By the lengths of the log alone, the end of the row is another one: of NULLs and a number."""
    logged = table(C.LONG, C.TIME, C.TIMESTAMP, C.LONG)
    event = inserted(4, row(1, 5, 7, 4)[:-5] + last + struct.pack("<i", 2))
    assert count_rows(event, logged) == 2
    assert count_rows_of_any_length(event, logged) == (1, False)


def test_other_tables_are_counted_as_they_are_logged() -> None:
    logged = table(C.LONG, C.LONG)
    event = inserted(2, row(1, 4), row(2, None))
    assert not may_have_fractions(logged)
    assert count_rows_of_any_length(event, logged) == (count_rows(event, logged), True) == (2, True)
    with pytest.raises(BinlogError, match="a row image reaches"):
        count_rows_of_any_length(inserted(2, row(1, 5)), logged)
