"""Builds TABLE_MAP and ROWS events of any shape, by hand or by Hypothesis. Shared by the tests of this folder."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from binlane.binlog.wire import EventType, build_event

SERVER_ID = 7


@dataclass(frozen=True)
class Column:
    """A column type with its metadata bytes; ``length`` is (0, n) for n bytes, else (length bytes, 0)."""

    code: int
    metadata: bytes
    length: tuple[int, int]


EVERY_COLUMN = {
    "tiny": Column(1, b"", (0, 1)),
    "short": Column(2, b"", (0, 2)),
    "long": Column(3, b"", (0, 4)),
    "float": Column(4, b"\x04", (0, 4)),
    "double": Column(5, b"\x08", (0, 8)),
    "null": Column(6, b"", (0, 0)),
    "timestamp": Column(7, b"", (0, 4)),
    "longlong": Column(8, b"", (0, 8)),
    "int24": Column(9, b"", (0, 3)),
    "date": Column(10, b"", (0, 3)),
    "time": Column(11, b"", (0, 3)),
    "datetime": Column(12, b"", (0, 8)),
    "year": Column(13, b"", (0, 1)),
    "newdate": Column(14, b"", (0, 3)),
    "varchar-255": Column(15, b"\xff\x00", (1, 0)),
    "varchar-256": Column(15, b"\x00\x01", (2, 0)),
    "bit-1": Column(16, b"\x01\x00", (0, 1)),
    "bit-13": Column(16, b"\x05\x01", (0, 2)),
    "bit-64": Column(16, b"\x00\x08", (0, 8)),
    "timestamp2-0": Column(17, b"\x00", (0, 4)),
    "timestamp2-5": Column(17, b"\x05", (0, 7)),
    "datetime2-1": Column(18, b"\x01", (0, 6)),
    "datetime2-6": Column(18, b"\x06", (0, 8)),
    "time2-0": Column(19, b"\x00", (0, 3)),
    "time2-3": Column(19, b"\x03", (0, 5)),
    "blob-compressed": Column(140, b"\x02", (2, 0)),
    "varchar-compressed": Column(141, b"\x2d\x01", (2, 0)),
    "vector": Column(242, b"\x04", (4, 0)),
    "json": Column(245, b"\x04", (4, 0)),
    "decimal-20-7": Column(246, b"\x14\x07", (0, 10)),
    "decimal-65-30": Column(246, b"\x41\x1e", (0, 30)),
    "decimal-9-0": Column(246, b"\x09\x00", (0, 4)),
    "enum-1": Column(254, b"\xf7\x01", (0, 1)),
    "enum-2": Column(254, b"\xf7\x02", (0, 2)),
    "set-8": Column(254, b"\xf8\x08", (0, 8)),
    "tinyblob": Column(252, b"\x01", (1, 0)),
    "blob": Column(252, b"\x02", (2, 0)),
    "mediumblob": Column(252, b"\x03", (3, 0)),
    "longblob": Column(252, b"\x04", (4, 0)),
    "char-80": Column(254, b"\xfe\x50", (1, 0)),
    "char-255": Column(254, b"\xfe\xff", (1, 0)),
    "char-1020": Column(254, b"\xce\xfc", (2, 0)),
    "geometry": Column(255, b"\x04", (4, 0)),
}
"""Metadata as MySQL 9.7 and MariaDB 10.11 wrote it."""


def packed(number: int) -> bytes:
    return bytes([number]) if number < 251 else b"\xfc" + struct.pack("<H", number)


def bitmap(bits: Sequence[bool]) -> bytes:
    data = bytearray((len(bits) + 7) // 8)
    for number, bit in enumerate(bits):
        data[number >> 3] |= bit << (number & 7)
    return bytes(data)


def table_map_body(table_id: int, columns: Sequence[Column], database: str = "db", optional: bytes = b"") -> bytes:
    name = database.encode()
    metadata = b"".join(column.metadata for column in columns)
    return (
        table_id.to_bytes(6, "little")
        + b"\1\0"
        + bytes([len(name)])
        + name
        + b"\0\1t\0"
        + packed(len(columns))
        + bytes(column.code for column in columns)
        + packed(len(metadata))
        + metadata
        + bytes((len(columns) + 7) // 8)
        + optional
    )


def image(columns: Sequence[Column], present: Sequence[bool], values: Sequence[bytes | None]) -> bytes:
    """A row image; ``values`` has an entry for every column, those that are not present are left out."""
    kept = [(column, value) for column, here, value in zip(columns, present, values, strict=True) if here]
    data = bitmap([value is None for _, value in kept])
    for column, value in kept:
        if value is not None:
            prefix = column.length[0]
            data += (len(value).to_bytes(prefix, "little") if prefix else b"") + value
    return data


def rows_body(
    type_code: int, table_id: int, width: int, bitmaps: Sequence[bytes], images: bytes, *, ends: bool = True
) -> bytes:
    extra = b"" if type_code < 30 or type_code in (166, 167, 168) else b"\2\0"
    return table_id.to_bytes(6, "little") + bytes([ends, 0]) + extra + packed(width) + b"".join(bitmaps) + images


def event(type_code: int, body: bytes, log_pos: int = 123_456) -> bytes:
    return build_event(type_code, body, timestamp=1_700_000_000, server_id=SERVER_ID, log_pos=log_pos, flags=0x10)


@dataclass(frozen=True)
class Statement:
    """One table's TABLE_MAP and rows events, with what must be found in them."""

    events: tuple[bytes, ...]
    counts: tuple[int, ...]
    """Rows of each event; 0 for the TABLE_MAP."""
    images: tuple[tuple[bytes | None, bytes | None], ...]


def _values(columns: Sequence[Column]) -> st.SearchStrategy[list[bytes | None]]:
    def value(column: Column) -> st.SearchStrategy[bytes | None]:
        prefix, fixed = column.length
        longest = 300 if prefix > 1 else 255
        data = st.binary(min_size=fixed, max_size=fixed) if prefix == 0 else st.binary(max_size=longest)
        return st.none() | data

    return st.tuples(*map(value, columns)).map(list)


_KINDS = (
    (EventType.WRITE_ROWS_V1, False, True),
    (EventType.UPDATE_ROWS_V1, True, True),
    (EventType.DELETE_ROWS_V1, True, False),
    (EventType.WRITE_ROWS_V2, False, True),
    (EventType.UPDATE_ROWS_V2, True, True),
    (EventType.DELETE_ROWS_V2, True, False),
)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    columns = draw(st.lists(st.sampled_from(list(EVERY_COLUMN.values())), min_size=1, max_size=18))
    table_id = draw(st.integers(1, 4))
    events = [event(EventType.TABLE_MAP, table_map_body(table_id, columns, draw(st.sampled_from(["a", "b"]))))]
    counts, all_images = [0], []
    number = draw(st.integers(1, 3))
    width = len(columns)
    present = st.just([True] * width) | st.lists(st.booleans(), min_size=width, max_size=width)
    for last in range(number):
        code, before, after = draw(st.sampled_from(_KINDS))
        masks = [draw(present) for _ in range(before + after)]
        data, rows = b"", draw(st.integers(1, 4)) if any(any(mask) for mask in masks) else 1
        for _ in range(rows):
            parts = [image(columns, mask, draw(_values(columns))) for mask in masks]
            data += b"".join(parts)
            all_images.append((parts[0] if before else None, parts[-1] if after else None))
        bitmaps = [bitmap(mask) for mask in masks]
        events.append(event(code, rows_body(code, table_id, width, bitmaps, data, ends=last == number - 1)))
        counts.append(rows)
    return Statement(tuple(events), tuple(counts), tuple(all_images))


def logs() -> st.SearchStrategy[list[Statement]]:
    return st.lists(statements(), max_size=4)
