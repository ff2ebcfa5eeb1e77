"""Partial images of MariaDB's sequences, whose columns have the type of the sequence since 11.5."""

from __future__ import annotations

import pytest

from binlane.apply.rows.sequences import with_whole_rows
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import HEADER, EventType
from binlane.model import TableKey

TABLE_ID = (9).to_bytes(6, "little")


def event(kind: EventType, body: bytes) -> bytes:
    return HEADER.pack(0, kind, 1, HEADER.size + len(body), 0, 0) + body


def payload(code: ColumnType, rows: bytes) -> bytes:
    long = ColumnType.LONGLONG
    types = bytes((8, *(4 * (code,)), long, long, ColumnType.TINY, long))
    table_map = event(EventType.TABLE_MAP, TABLE_ID + b"\1\0\3app\0\1s\0" + types + b"\0\0")
    return table_map + event(EventType.WRITE_ROWS_V1, TABLE_ID + b"\1\0" + rows)


@pytest.mark.parametrize(
    ("code", "width", "maximum"),
    [
        (ColumnType.LONGLONG, 8, (1 << 63) - 2),
        (ColumnType.LONGLONG, 8, (1 << 64) - 2),
        (ColumnType.LONG, 4, (1 << 31) - 2),
        (ColumnType.INT24, 3, (1 << 24) - 2),
        (ColumnType.SHORT, 2, (1 << 15) - 2),
        (ColumnType.TINY, 1, 126),
    ],
)
def test_missing_columns_of_a_sequence_have_its_type(code: ColumnType, width: int, maximum: int) -> None:
    row = (1, -1, maximum, 1, -1, 100, 0, 7)
    partial = bytes([8, 0b1000_0001, 0]) + (5).to_bytes(width, "little") + (8).to_bytes(8, "little")
    numbers = b"".join((value % (1 << 8 * width)).to_bytes(width, "little") for value in (5, *row[1:4]))
    options = b"".join((value % (1 << 64)).to_bytes(8, "little") for value in row[4:6])
    expected = payload(code, bytes([8, 0xFF, 0]) + numbers + options + b"\0" + (8).to_bytes(8, "little"))
    keys = []

    def of_target(key: TableKey) -> tuple[int, ...]:
        keys.append(key)
        return row

    assert with_whole_rows(payload(code, partial), of_target) == expected
    assert keys == [TableKey("app", "s")]
