"""Shortens rows events: of a deleted row its key, of an updated row its key before and the changed columns after.

This is what a source with ``binlog_row_image = MINIMAL`` logs: the servers find the row by the key, and keep the
columns that the after-image does not have. All rows of an event have the same columns, so an updated row also has the
columns that change in other rows of its event. Events, rows and their order stay as they are.

Only v1 and v2 events with all columns in every image are shortened; all others are copied.
``tests/unit/binlog/narrowed_plainly.py`` does the same in plain Python; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from binlane.binlog.rows import RowsFlag
from binlane.binlog.vector import compiled
from binlane.binlog.vector.arrays import Bytes, Ints, Numbers, Sizes
from binlane.binlog.vector.compiled import copying, kernel
from binlane.binlog.vector.frame_kernels import little
from binlane.binlog.vector.frames import Frames, TableLayouts, frame, index_rows, table_layouts
from binlane.binlog.wire import HEADER, EventType

_HEADER: Final = HEADER.size
_SIZE_AT: Final = 9
_FLAGS_AT: Final = _HEADER + 6
_POST_HEADER: Final = 8
_ONE_BYTE: Final = 250
"""The largest number of columns that stands in one byte: events of wider tables are copied."""
_INCOMPLETE: Final = 0xFF & ~int(RowsFlag.COMPLETE_ROWS)
_NOT_WHOLE: Final = -1
_NULL: Final = -1
_IS_UPDATE, _IS_DELETE, _HAS_EXTRA = 1, 2, 4
_SHAPES: Final = np.zeros(256, np.uint8)
"""By event type; 0: events that are copied."""
_SHAPES[[EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS_V2]] = _IS_UPDATE
_SHAPES[[EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS_V2]] = _IS_DELETE
_SHAPES[[EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2]] |= _HAS_EXTRA


def narrowed(frames: Frames, number: Numbers, layouts: TableLayouts, keys: Sequence[Sequence[int]]) -> bytes:
    """The events of ``frames``, which have no checksums, some of them with shorter images; never longer than before.

    ``number``: the table of each event as an index into ``layouts`` and ``keys``, or -1. ``keys``: the columns of each
    table's primary key, from 0 and ascending; empty for a table whose events are copied. Events whose bytes are no
    rows of their table are copied, too. Raises ValueError for events with checksums.
    """
    if frames.checksum_length or frames.header_length != _HEADER:
        raise ValueError("expected events as in a BINLOG statement, without checksums")
    counts = np.array([len(key) for key in keys], np.int64)
    columns = np.array([column for key in keys for column in key], np.int64)
    out = np.empty(int(frames.size.sum(dtype=np.int64)), np.uint8)
    used = _narrow(
        frames.data, frames.offset, frames.type_code, frames.size, number, layouts.tables, layouts.rule, layouts.length,
        np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))), columns,
        np.empty((_ONE_BYTE, 2), np.int64), np.empty((_ONE_BYTE, 2), np.int64),
        np.empty(_ONE_BYTE, np.uint8), np.empty(_ONE_BYTE, np.uint8), out,
    )  # fmt: skip
    return out[:used].tobytes()


def load() -> None:
    """Load the machine code of ``narrowed``, or compile it: up to a second, or half a minute once an installation."""
    nothing = frame(b"", 0, 0)
    narrowed(nothing, index_rows(nothing, "").number, table_layouts(()), ())


def is_loaded() -> bool:
    """Whether this process has the machine code of ``narrowed``."""
    return compiled.is_loaded(_narrow)


@copying
def _narrow(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, number: Numbers, tables: Ints, rule: Bytes, param: Ints,
    key_from: Ints, key_columns: Ints, before: Ints, after: Ints, is_key: Bytes, is_sent: Bytes, out: Bytes,
) -> int:  # fmt: skip
    """Fills ``out``; returns the bytes used. Room for one row's columns: ``before``, ``after``, ``is_key``,
    ``is_sent``."""
    used = 0
    for event in range(offset.size):
        start, shape, table = offset[event], _SHAPES[kind[event]], number[event]
        end = start + np.int64(size[event])
        images, written = _NOT_WHOLE, _NOT_WHOLE
        if shape and table >= 0 and key_from[table] < key_from[table + 1]:
            images = _images_at(data, start, end, shape, tables[table, 1])
        if images >= 0:
            first, width = tables[table, 0], tables[table, 1]
            is_key[:width] = 0
            for part in range(key_from[table], key_from[table + 1]):
                is_key[key_columns[part]] = 1
            is_sent[:width] = 0
            rows = _find_changed(data, images, end, shape, width, first, rule, param, before, after, is_sent)
            if rows >= 0:
                written = _write_event(
                    data, start, images, end, rows, shape, width, first, rule, param, before, after, is_key, is_sent,
                    out, used,
                )  # fmt: skip
        if written < 0:
            out[used : used + end - start] = data[start:end]
            written = used + end - start
        used = written
    return used


@kernel
def _images_at(data: Bytes, start: int, end: int, shape: int, width: int) -> int:
    """Offset of an event's row images if they have all columns; else -1."""
    at = start + _HEADER + _POST_HEADER
    if shape & _HAS_EXTRA:
        if end - at < 2:
            return _NOT_WHOLE
        extra = int(np.int64(data[at]) | np.int64(data[at + 1]) << 8)
        if extra < 2 or extra > end - at:
            return _NOT_WHOLE
        at += extra
    length = (width + 7) >> 3
    halves = 2 if shape & _IS_UPDATE else 1
    if not 0 < width <= _ONE_BYTE or end - at <= 1 + halves * length or data[at] != width:
        return _NOT_WHOLE
    at += 1
    for byte in range(halves * length):
        left = width - ((byte % length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[at + byte] & wanted != wanted:
            return _NOT_WHOLE
    return at + halves * length


@kernel
def _columns(data: Bytes, at: int, end: int, width: int, first: int, rule: Bytes, param: Ints, found: Ints) -> int:
    """The end of an image with all columns, -1 if it is not within ``end``. Fills ``found`` with begin and end of each
    value, with its length; -1 for NULL."""
    nulls = at
    at += (width + 7) >> 3
    if at > end:
        return _NOT_WHOLE
    for column in range(width):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            found[column, 0] = found[column, 1] = _NULL
            continue
        found[column, 0] = at
        prefix = int(np.int64(rule[first + column]))
        if prefix == 0:
            at += param[first + column]
        else:
            if prefix > 4 or prefix > end - at:
                return _NOT_WHOLE
            at += prefix + little(data, at, prefix)
        if at > end:
            return _NOT_WHOLE
        found[column, 1] = at
    return at


@kernel
def _differ(data: Bytes, one: int, other: int, length: int) -> bool:
    found = np.uint8(0)
    for byte in range(length):  # no early end: so it is compiled to vector instructions
        found |= data[one + byte] ^ data[other + byte]
    return bool(found)


@kernel
def _find_changed(
    data: Bytes, at: int, end: int, shape: int, width: int, first: int, rule: Bytes, param: Ints, before: Ints,
    after: Ints, is_sent: Bytes,
) -> int:  # fmt: skip
    """The event's rows, -1 if they do not end with it. Sets ``is_sent`` of each column that an update changes in any
    row; ``before`` and ``after`` are the last row's columns then."""
    rows = 0
    while at < end:
        rows += 1
        at = _columns(data, at, end, width, first, rule, param, before)
        if at < 0:
            return _NOT_WHOLE
        if shape & _IS_DELETE:
            continue
        at = _columns(data, at, end, width, first, rule, param, after)
        if at < 0:
            return _NOT_WHOLE
        for column in range(width):
            if is_sent[column]:
                continue
            old, new = before[column, 0], after[column, 0]
            length = before[column, 1] - old
            if (old < 0) != (new < 0) or length != after[column, 1] - new or _differ(data, old, new, length):
                is_sent[column] = 1
    return rows


@kernel
def _bitmap(wanted: Bytes, width: int, out: Bytes, at: int) -> int:
    length = (width + 7) >> 3
    out[at : at + length] = 0
    for column in range(width):
        if wanted[column]:
            out[at + (column >> 3)] |= 1 << (column & 7)
    return at + length


@copying
def _image(data: Bytes, found: Ints, wanted: Bytes, width: int, out: Bytes, at: int) -> int:
    """Writes an image of the wanted columns."""
    present = 0
    for column in range(width):
        present += wanted[column]
    nulls, seen = at, 0
    at += (present + 7) >> 3
    out[nulls:at] = 0
    for column in range(width):
        if wanted[column]:
            start, end = found[column, 0], found[column, 1]
            if start < 0:
                out[nulls + (seen >> 3)] |= 1 << (seen & 7)
            else:
                out[at : at + end - start] = data[start:end]
                at += end - start
            seen += 1
    return at


@copying
def _write_event(
    data: Bytes, start: int, at: int, end: int, rows: int, shape: int, width: int, first: int, rule: Bytes,
    param: Ints, before: Ints, after: Ints, is_key: Bytes, is_sent: Bytes, out: Bytes, used: int,
) -> int:  # fmt: skip
    """Writes an event whose images are whole, shorter; returns the end of what is written. ``before`` and ``after``: as
    ``_find_changed`` left them."""
    length = (width + 7) >> 3
    head = at - start - (2 * length if shape & _IS_UPDATE else length)
    out[used : used + head] = data[start : start + head]
    out[used + _FLAGS_AT] &= _INCOMPLETE
    written = _bitmap(is_key, width, out, used + head)
    if shape & _IS_UPDATE:
        # rows that an update leaves as they were: an image of no columns is no row for a server
        if not is_sent[:width].any():
            is_sent[:width] = is_key[:width]
        written = _bitmap(is_sent, width, out, written)
    for _ in range(rows):
        if rows > 1:
            at = _columns(data, at, end, width, first, rule, param, before)
        written = _image(data, before, is_key, width, out, written)
        if shape & _IS_UPDATE:
            if rows > 1:
                at = _columns(data, at, end, width, first, rule, param, after)
            written = _image(data, after, is_sent, width, out, written)
    whole = written - used
    for byte in range(4):
        out[used + _SIZE_AT + byte] = (whole >> (8 * byte)) & 0xFF
    return written
