"""Rows events made of row images: many rows an event, many events a BINLOG statement, all tables at once.

A stretch of a log of many tenants has hundreds of tables with a few rows each, so nothing here is done table by table
but what stands before a table's rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from binlane.binlog.rows import RowsFlag
from binlane.binlog.wire import HEADER, EventType
from binlane.model import RowCounts

Ints = NDArray[np.int64]

DELETE, UPDATE, INSERT = range(3)
"""Kinds of a row, as numbers for arrays."""
KINDS: Final = 3
_CODES: Final = np.array(
    [
        [EventType.DELETE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.WRITE_ROWS_V1],
        [EventType.DELETE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.WRITE_ROWS_V2],
    ],
    np.uint8,
)
_TYPE_AT: Final = 4
_SIZE_AT: Final = 9
_FLAGS_AT: Final = HEADER.size + 6
_STMT_END: Final = int(RowsFlag.STMT_END)


@dataclass(frozen=True, slots=True)
class Front:
    """What the rows events of a table begin with."""

    table_map: bytes
    """The whole TABLE_MAP event, without checksum. Rows events have its time, its server's id and its table id."""
    width: int
    """Columns."""
    is_v2: bool
    """Whether the rows events are of version 2."""

    @property
    def template(self) -> bytes:
        """An event up to its bitmaps, without type and size."""
        head = self.table_map[:_TYPE_AT] + b"\0" + self.table_map[_TYPE_AT + 1 : _SIZE_AT]
        extra = b"\x02\0" if self.is_v2 else b""
        packed = bytes([self.width]) if self.width < 251 else b"\xfc" + self.width.to_bytes(2, "little")
        table_id = self.table_map[HEADER.size : HEADER.size + 6]
        return head.ljust(HEADER.size, b"\0") + table_id + b"\0\0" + extra + packed


@dataclass(frozen=True, slots=True)
class Rows:
    """Row changes, those of a table together, in the order in which they are to be written."""

    table: Ints
    """Each row's place among the fronts."""
    kind: Ints
    images: Ints
    """(rows, 4): start and end of the image before and of the one after; -1 for one that the kind does not have."""

    def counts(self, of: Ints, groups: int) -> Ints:
        """(groups, kinds): rows of each kind in each group; ``of`` is each row's group."""
        return np.bincount(of * KINDS + self.kind, minlength=groups * KINDS).reshape(-1, KINDS)


def row_counts(counts: Ints) -> RowCounts:
    """One group of ``Rows.counts``."""
    return RowCounts(int(counts[INSERT]), int(counts[UPDATE]), int(counts[DELETE]))


def payloads(
    data: NDArray[np.uint8], fronts: Sequence[Front], rows: Rows, event_bytes: int, payload_bytes: int
) -> Iterator[tuple[bytes, RowCounts]]:
    """Self-contained sequences of events of at most ``payload_bytes``, about, with the rows in each.

    An event holds rows of one table and kind with at most ``event_bytes`` of images, or one row. In each payload a
    table's TABLE_MAP stands before its events, and its last event carries STMT_END_F.
    """
    if rows.table.size == 0:
        return
    length = np.where(rows.images[:, 0] >= 0, rows.images[:, 1] - rows.images[:, 0], 0)
    length += np.where(rows.images[:, 2] >= 0, rows.images[:, 3] - rows.images[:, 2], 0)
    first = np.empty(rows.table.size, np.int64)
    first = first[: _cut(rows.table, rows.kind, length, event_bytes, first)]
    table, kind = rows.table[first], rows.kind[first]
    templates = [front.template for front in fronts]
    width = np.array([front.width for front in fronts], np.int64)
    head, map_size = _lengths(templates), _lengths([front.table_map for front in fronts])
    bitmaps = ((width + 7) >> 3)[table] * np.where(kind == UPDATE, 2, 1)
    size = head[table] + bitmaps + np.add.reduceat(length, first)
    payload, has_map = np.empty(first.size, np.int64), np.empty(first.size, np.bool_)
    _pack(table, size, map_size, payload_bytes, payload, has_map)
    end = np.cumsum(size + np.where(has_map, map_size[table], 0))
    # the next event begins with its TABLE_MAP: another table, or another payload
    is_last = np.append(has_map[1:], True)
    out = np.empty(int(end[-1]), np.uint8)
    _write(
        data, rows.images, np.append(first, rows.table.size), table,
        _CODES[np.array([front.is_v2 for front in fronts], np.int64)[table], kind], size, has_map, is_last,
        _joined(templates), head, _joined([front.table_map for front in fronts]), map_size, width, out,
    )  # fmt: skip
    counts = rows.counts(np.repeat(payload, np.diff(np.append(first, rows.table.size))), int(payload[-1]) + 1)
    at = 0
    for number, last in enumerate(np.append(np.flatnonzero(np.diff(payload)), first.size - 1).tolist()):
        yield out[at : end[last]].tobytes(), row_counts(counts[number])
        at = int(end[last])


def _lengths(parts: Sequence[bytes]) -> Ints:
    return np.array([len(part) for part in parts], np.int64)


def _joined(parts: Sequence[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts), np.uint8)


@njit(cache=True, nogil=True)
def _cut(table: Any, kind: Any, length: Any, limit: int, first: Any) -> int:
    """Fills the first row of each event; returns how many events there are."""
    count, used = 0, 0
    for row in range(table.size):
        if row == 0 or table[row] != table[row - 1] or kind[row] != kind[row - 1] or used + length[row] > limit:
            first[count] = row
            count += 1
            used = 0
        used += length[row]
    return count


@njit(cache=True, nogil=True)
def _pack(table: Any, size: Any, map_size: Any, limit: int, payload: Any, has_map: Any) -> None:
    """Fills, an entry an event: its payload's number, and whether its TABLE_MAP stands right before it."""
    number, used = 0, 0
    for event in range(table.size):
        needed = map_size[table[event]] + size[event]
        is_full = used > 0 and used + needed > limit
        if is_full:
            number += 1
            used = 0
        payload[event] = number
        has_map[event] = event == 0 or is_full or table[event] != table[event - 1]
        used += needed if has_map[event] else size[event]


@njit(cache=True, nogil=True)
def _copy(source: Any, start: Any, end: Any, out: Any, at: Any) -> Any:
    """Where the copy ends."""
    for place in range(end - start):
        out[at + place] = source[start + place]
    return at + end - start


@njit(cache=True, nogil=True)
def _write(
    data: Any, images: Any, first: Any, table: Any, code: Any, size: Any, has_map: Any, is_last: Any,
    templates: Any, head: Any, maps: Any, map_size: Any, width: Any, out: Any,
) -> None:  # fmt: skip
    """Writes all events and their TABLE_MAPs; ``first`` has one entry more than there are events."""
    head_at, map_at = np.cumsum(head) - head, np.cumsum(map_size) - map_size
    at = 0
    for event in range(table.size):
        number = table[event]
        if has_map[event]:
            at = _copy(maps, map_at[number], map_at[number] + map_size[number], out, at)
        start = at
        at = _copy(templates, head_at[number], head_at[number] + head[number], out, at)
        out[start + _TYPE_AT] = code[event]
        for byte in range(4):
            out[start + _SIZE_AT + byte] = (size[event] >> (8 * byte)) & 0xFF
        if is_last[event]:
            out[start + _FLAGS_AT] = _STMT_END
        both = images[first[event], 0] >= 0 and images[first[event], 2] >= 0
        for _ in range(2 if both else 1):
            for column in range(0, width[number], 8):
                left = width[number] - column
                out[at] = 255 if left >= 8 else (1 << left) - 1
                at += 1
        for row in range(first[event], first[event + 1]):
            if images[row, 0] >= 0:
                at = _copy(data, images[row, 0], images[row, 1], out, at)
            if images[row, 2] >= 0:
                at = _copy(data, images[row, 2], images[row, 3], out, at)
