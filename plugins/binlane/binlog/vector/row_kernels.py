"""Compiled kernels for rows events: the number of rows, and the offsets of their images.

As ``frame_kernels``: they never index outside their buffers, and return an error code and an offset.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog import rows as plain
from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Numbers, Sizes
from binlane.binlog.vector.compiled import AHEAD, inlined, kernel, prefetch
from binlane.binlog.vector.frame_kernels import (
    BAD_EXTRA,
    BAD_OPTIONS,
    BAD_WIDTH,
    NO_COLUMNS,
    NO_IMAGES,
    OK,
    OVERRUN,
    ROLES,
    ROWS,
    SHORT_BODY,
    UNKNOWN_LENGTH,
    little,
    packed,
)
from binlane.binlog.wire import EventType

COMPRESSED: Final = -1
"""The row count of a compressed event, which is not known without decompression."""
_PARTIAL: Final = int(EventType.PARTIAL_UPDATE_ROWS)
_ONE_BYTE: Final = 250
"""The largest length-encoded number in one byte."""
_LONGEST: Final = 3
"""Maximum bytes of a length-encoded width or of value options."""

_HAS_BEFORE, _HAS_AFTER, _HAS_EXTRA, _IS_COMPRESSED, _IS_PARTIAL = 1, 2, 4, 8, 16
SHAPES: Final = np.zeros(256, np.uint8)
for _code, _kind in plain.ROWS_KINDS.items():
    SHAPES[_code] = (
        _HAS_BEFORE * (_kind is not plain.RowsKind.INSERT)
        | _HAS_AFTER * (_kind is not plain.RowsKind.DELETE)
        | _HAS_EXTRA * (_code in plain.WITH_EXTRA)
        | _IS_COMPRESSED * (_code in plain.COMPRESSED_ROWS)
        | _IS_PARTIAL * (_code == _PARTIAL)
    )


@kernel
def _image_end(
    data: Bytes, at: int, end: int, bitmap: int, width: int, rule: Bytes, param: Ints, first: int
) -> tuple[int, int]:
    """(end of the image, code). ``bitmap``: offset of its bitmap of columns; ``first``: the table's first rule."""
    present = 0
    for byte in range((width + 7) >> 3):
        bits = np.int64(data[bitmap + byte])
        if (byte + 1) << 3 > width:
            bits &= (1 << (width & 7)) - 1
        while bits:
            bits &= bits - 1
            present += 1
    nulls = at
    at += (present + 7) >> 3
    if at > end:
        return at, OVERRUN
    seen = 0
    for column in range(width):
        if not (data[bitmap + (column >> 3)] >> (column & 7)) & 1:
            continue
        null = (data[nulls + (seen >> 3)] >> (seen & 7)) & 1
        seen += 1
        if null:
            continue
        prefix = int(np.int64(rule[first + column]))
        if prefix == 0:
            at += param[first + column]
        elif prefix > 4:
            return at, UNKNOWN_LENGTH
        elif prefix > end - at:
            return at, OVERRUN
        else:
            at += prefix + little(data, at, prefix)
        if at > end:
            return at, OVERRUN
    return at, OK


@kernel
def _partial_head(data: Bytes, at: int, end: int, json_columns: int) -> tuple[int, int]:
    """(offset of the after-image behind its head, code)."""
    options, at = packed(data, at, end, _LONGEST)
    if options < 0:
        return at, OVERRUN
    if options & ~1:
        return at, BAD_OPTIONS
    if options:
        at += (json_columns + 7) >> 3
    return at, OK


@kernel
def rows_head(data: Bytes, at: int, end: int, shape: int, expected: int) -> tuple[int, int, int]:
    """(code, offset of the first bitmap, offset of the images) of a rows body [at, end)."""
    at += 8
    if shape & _HAS_EXTRA:
        if end - at < 2:
            return SHORT_BODY, at, at
        length = little(data, at, 2)
        if length < 2:
            return BAD_EXTRA, at, at
        if length > end - at:
            return SHORT_BODY, at, at
        at += length
    width, at = packed(data, at, end, _LONGEST)
    if width != expected:
        return BAD_WIDTH, at, at
    bitmaps = ((width + 7) >> 3) * (2 if shape & 3 == 3 else 1)
    if bitmaps > end - at:
        return SHORT_BODY, at, at
    return OK, at, at + bitmaps


@kernel
def _count_event(
    data: Bytes, at: int, end: int, shape: int, table: Ints, rule: Bytes, param: Ints, images: Ints, used: int
) -> tuple[int, int]:
    """(rows, code) of one rows body [at, end). ``images`` is filled from row ``used`` on if it has room for any."""
    width = table[1]
    code, bitmap, at = rows_head(data, at, end, shape, width)
    if code != OK:
        return 0, code
    after_bitmap = bitmap + ((width + 7) >> 3) if shape & _HAS_BEFORE else bitmap
    count = 0
    empty = at == end
    while at < end or (empty and count == 0):
        row = at
        middle = at
        if shape & _HAS_BEFORE:
            at, code = _image_end(data, at, end, bitmap, width, rule, param, table[0])
            middle = at
        if code == OK and shape & _IS_PARTIAL:
            at, code = _partial_head(data, at, end, table[2])
        if code == OK and shape & _HAS_AFTER:
            at, code = _image_end(data, at, end, after_bitmap, width, rule, param, table[0])
        if code != OK:
            return count, NO_IMAGES if empty else code
        if at == row and not empty:
            return count, NO_COLUMNS
        if used + count < images.shape[0]:
            images[used + count, 0] = row if shape & _HAS_BEFORE else -1
            images[used + count, 1] = middle if shape & _HAS_BEFORE else -1
            images[used + count, 2] = middle if shape & _HAS_AFTER else -1
            images[used + count, 3] = at if shape & _HAS_AFTER else -1
        count += 1
    return count, OK


@inlined
def _full_images(data: Bytes, at: int, end: int, shape: int, width: int) -> int:
    """Offset of the images in a rows body if they have all columns and nothing is unusual; else -1."""
    at += 8
    if shape & _HAS_EXTRA:
        if end - at < 2:
            return -1
        extra = int(np.int64(data[at]) | np.int64(data[at + 1]) << 8)
        if extra < 2:
            return -1
        at += extra
    length = (width + 7) >> 3
    bitmaps = 2 * length if shape & 3 == 3 else length
    if end - at <= 1 + bitmaps or not 0 < width <= _ONE_BYTE or data[at] != width or shape & _IS_PARTIAL:
        return -1
    at += 1
    for byte in range(bitmaps):
        left = width - ((byte if byte < length else byte - length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[at + byte] & wanted != wanted:
            return -1
    return at + bitmaps


@inlined
def _value_end(data: Bytes, at: int, end: int, prefix: int) -> int:
    """The end of a value whose first ``prefix`` bytes are its length; beyond ``end`` if it does not fit."""
    if prefix > 4 or prefix > end - at:
        return end + 1
    length = np.int64(data[at])
    for byte in range(1, prefix):
        length |= np.int64(data[at + byte]) << (8 * byte)
    return int(at + prefix + length)


@kernel
def _full_rows(
    data: Bytes, at: int, end: int, shape: int, width: int, first: int, rule: Bytes, param: Ints, images: Ints,
    used: int,
) -> int:  # fmt: skip
    """As ``_count_event``, for images of all columns, as in nearly all events; -1 for other or unusual events.

    Calls no function: a call with arrays costs more than reading an image.
    """
    at = _full_images(data, at, end, shape, width)
    if at < 0:
        return -1
    rows, room = 0, images.shape[0] - used
    halves = 2 if shape & 3 == 3 else 1
    before = 0 if shape & _HAS_BEFORE else 2
    while at < end:
        for half in range(halves):
            nulls = at
            at += (width + 7) >> 3
            if at > end:
                return -1
            for column in range(width):
                if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
                    continue
                prefix = rule[first + column]
                at = at + param[first + column] if prefix == 0 else _value_end(data, at, end, prefix)
                if at > end:
                    return -1
            if rows < room:
                images[used + rows, before + 2 * half] = nulls
                images[used + rows, before + 2 * half + 1] = at
        if rows < room and halves == 1:
            images[used + rows, 2 - before] = images[used + rows, 3 - before] = -1
        rows += 1
    return rows


@kernel
def _lacks_columns(data: Bytes, at: int, end: int, shape: int, width: int) -> bool:
    """Whether the images of a rows body with a complete head lack columns."""
    _, bitmap, images = rows_head(data, at, end, shape, width)
    length = (width + 7) >> 3
    for place in range(images - bitmap):
        left = width - ((place % length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[bitmap + place] & wanted != wanted:
            return True
    return False


@kernel
def find_partial(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, header_len: int, tail: int, number: Numbers, width: Ints,
    found: Flags,
) -> None:  # fmt: skip
    """Sets ``found`` of each table with an event whose images lack columns, hold differences or are compressed."""
    for event in range(offset.size):
        prefetch(data, offset[min(event + AHEAD, offset.size - 1)] + header_len)
        table = number[event]
        if table < 0 or found[table] or ROLES[kind[event]] != ROWS:
            continue
        shape = SHAPES[kind[event]]
        if shape & (_IS_COMPRESSED | _IS_PARTIAL):
            found[table] = True
            continue
        at, end = offset[event] + header_len, offset[event] + size[event] - tail
        if _full_images(data, at, end, shape, width[table]) < 0:
            code, _, _ = rows_head(data, at, end, shape, width[table])
            found[table] = code != OK or _lacks_columns(data, at, end, shape, width[table])


@kernel
def count(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, header_len: int, tail: int, number: Numbers, tables: Ints,
    rule: Bytes, param: Ints, rows: Ints, images: Ints, lacking: Flags,
) -> tuple[int, int]:  # fmt: skip
    """Fills ``rows``, ``images`` as far as it has room, and ``lacking``: whether the images lack columns.

    Returns (code, event where it stopped).
    """
    used = 0
    for event in range(offset.size):
        rows[event] = lacking[event] = 0
        prefetch(data, offset[min(event + AHEAD, offset.size - 1)] + header_len)
        if number[event] < 0 or ROLES[kind[event]] != ROWS:
            continue
        shape = SHAPES[kind[event]]
        if shape & _IS_COMPRESSED:
            rows[event] = COMPRESSED
            continue
        at = offset[event] + header_len
        end = offset[event] + size[event] - tail
        table = number[event]
        count = _full_rows(data, at, end, shape, tables[table, 1], tables[table, 0], rule, param, images, used)
        if count < 0:
            count, code = _count_event(data, at, end, shape, tables[table], rule, param, images, used)
            if code != OK:
                return code, event
            lacking[event] = _lacks_columns(data, at, end, shape, tables[table, 1])
        rows[event] = count
        used += count
    return OK, offset.size


@kernel
def value_ranges(data: Bytes, images: Ints, width: int, rule: Bytes, param: Ints, column: int, ranges: Ints) -> bool:
    """Fills ``ranges`` with start and end of a column's value in each full image; whether none of them is NULL.

    ``rule`` and ``param``: of all columns up to this one, without the value's length in its first bytes.
    """
    for row in range(images.size):
        nulls = images[row]
        at = nulls + ((width + 7) >> 3)
        for before in range(column + 1):
            if (data[nulls + (before >> 3)] >> (before & 7)) & 1:
                if before == column:
                    return False
                continue
            start = at + rule[before]
            at = start + (param[before] if rule[before] == 0 else little(data, at, rule[before]))
        ranges[row, 0], ranges[row, 1] = start, at
    return True
