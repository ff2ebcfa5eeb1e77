"""Shortens rows events: of a deleted row its key, of an updated row its key before and the changed columns after.

This is what a source with ``binlog_row_image = MINIMAL`` logs: the servers find the row by the key, and keep the
columns that the after-image does not have. All rows of an event have the same columns, so an updated row also has the
columns that change in other rows of its event. An event of updates becomes several where that takes fewer bytes: their
rows, in the same order, are as if the source had logged them so. Nothing else about events and rows changes.

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
from binlane.binlog.vector.frame_kernels import little, put
from binlane.binlog.vector.frames import Frames, TableLayouts, frame, index_rows, table_layouts
from binlane.binlog.wire import HEADER, EventType

_HEADER: Final = HEADER.size
_SIZE_AT: Final = 9
_FLAGS_AT: Final = _HEADER + 6
_POST_HEADER: Final = 8
_ONE_BYTE: Final = 250
"""The largest number of columns that stands in one byte: events of wider tables are copied."""
_INCOMPLETE: Final = 0xFF & ~int(RowsFlag.COMPLETE_ROWS)
_UNENDED: Final = 0xFF & ~int(RowsFlag.STMT_END)
_EVENT_COST: Final = 160
"""Bytes of images that cost a server as much as one more event, besides its own bytes (MariaDB 10.11)."""
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
        np.empty((2, _ONE_BYTE, 2), np.int64), np.empty((2, _ONE_BYTE, 2), np.int64),
        np.empty((2, _ONE_BYTE), np.uint8), np.empty((2, _ONE_BYTE), np.int64), out,
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
    key_from: Ints, key_columns: Ints, before: Ints, after: Ints, marks: Bytes, sums: Ints, out: Bytes,
) -> int:  # fmt: skip
    """Fills ``out``; returns the bytes used. Room for columns: ``before`` and ``after`` of two rows, ``marks`` of what
    is sent and of what changes, ``sums`` for the bytes of an event's values and for the columns that are sent."""
    used = 0
    for event in range(offset.size):
        start, shape, table = offset[event], _SHAPES[kind[event]], number[event]
        end = start + np.int64(size[event])
        images, written = _NOT_WHOLE, _NOT_WHOLE
        if shape and table >= 0 and key_from[table] < key_from[table + 1]:
            images = _images_at(data, start, end, shape, tables[table, 1])
        if images >= 0:
            first, width = tables[table, 0], tables[table, 1]
            key = key_columns[key_from[table] : key_from[table + 1]]
            if shape & _IS_UPDATE:
                written = _write_updates(
                    data, start, images, end, width, first, rule, param, before, after, key, marks, sums, out, used
                )
            else:
                written = _write_deletes(data, start, images, end, width, first, rule, param, before[0], key, out, used)
        if written < 0:
            written = put(data, start, end, out, used)
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
    found, left, right = np.uint8(0), np.uint64(one), np.uint64(other)
    # no early end, and indexes without a sign: so it is compiled to vector instructions
    for byte in range(np.uint64(length)):
        found |= data[left + byte] ^ data[right + byte]
    return bool(found)


@kernel
def _read_update(
    data: Bytes, at: int, end: int, width: int, first: int, rule: Bytes, param: Ints, before: Ints, after: Ints,
    is_changed: Bytes,
) -> int:  # fmt: skip
    """The end of an update's two images, or -1. Marks the columns that it changes, and no others."""
    at = _columns(data, at, end, width, first, rule, param, before)
    if at < 0:
        return _NOT_WHOLE
    at = _columns(data, at, end, width, first, rule, param, after)
    if at < 0:
        return _NOT_WHOLE
    for column in range(width):
        old, new = before[column, 0], after[column, 0]
        length = before[column, 1] - old
        differs = (old < 0) != (new < 0) or length != after[column, 1] - new or _differ(data, old, new, length)
        is_changed[column] = 1 if differs else 0
    return at


@kernel
def _cost_of_joining(after: Ints, width: int, is_sent: Bytes, is_changed: Bytes, held: Ints) -> int:
    """The bytes that an event and an update get longer by if they are sent with the same columns.

    ``held``: for each column the bytes of its values after the updates that the event has.
    """
    cost = 0
    for column in range(width):
        if is_sent[column] and not is_changed[column]:
            cost += after[column, 1] - after[column, 0]
        elif is_changed[column] and not is_sent[column]:
            cost += held[column]
    return cost


@kernel
def _join(before: Ints, after: Ints, width: int, key: Ints, is_sent: Bytes, is_changed: Bytes, held: Ints) -> int:
    """Adds an update to its event: marks its columns as sent; returns the bytes of its key."""
    for column in range(width):
        held[column] += after[column, 1] - after[column, 0]
        is_sent[column] |= is_changed[column]
    size = 0
    for part in range(key.size):
        size += before[key[part], 1] - before[key[part], 0]
    return size


@kernel
def _listed(wanted: Bytes, width: int, columns: Ints) -> int:
    """Fills ``columns`` with those that are wanted; returns their number."""
    count = 0
    for column in range(width):
        if wanted[column]:
            columns[count] = column
            count += 1
    return count


@kernel
def _bitmap(columns: Ints, width: int, out: Bytes, at: int) -> int:
    length = (width + 7) >> 3
    for byte in range(length):
        out[at + byte] = 0
    for number in range(columns.size):
        out[at + (columns[number] >> 3)] |= 1 << (columns[number] & 7)
    return at + length


@copying
def _image(data: Bytes, found: Ints, columns: Ints, out: Bytes, at: int) -> int:
    """Writes an image of some columns."""
    nulls = at
    at += (columns.size + 7) >> 3
    for byte in range(nulls, at):
        out[byte] = 0
    for seen in range(columns.size):
        start, end = found[columns[seen], 0], found[columns[seen], 1]
        if start < 0:
            out[nulls + (seen >> 3)] |= 1 << (seen & 7)
        else:
            at = put(data, start, end, out, at)
    return at


@copying
def _write_head(data: Bytes, start: int, length: int, out: Bytes, used: int) -> int:
    """Writes the front of an event up to its bitmaps; returns its end."""
    end = put(data, start, start + length, out, used)
    out[used + _FLAGS_AT] &= _INCOMPLETE
    return end


@kernel
def _write_size(out: Bytes, used: int, written: int) -> None:
    for byte in range(4):
        out[used + _SIZE_AT + byte] = ((written - used) >> (8 * byte)) & 0xFF


@copying
def _write_deletes(
    data: Bytes, start: int, at: int, end: int, width: int, first: int, rule: Bytes, param: Ints, before: Ints,
    key: Ints, out: Bytes, used: int,
) -> int:  # fmt: skip
    """Writes an event of whole images, ``at`` its first one, shorter. Returns the end of what is written, or -1 if the
    images do not end with the event."""
    written = _write_head(data, start, at - start - ((width + 7) >> 3), out, used)
    written = _bitmap(key, width, out, written)
    while at < end:
        at = _columns(data, at, end, width, first, rule, param, before)
        if at < 0:
            return _NOT_WHOLE
        written = _image(data, before, key, out, written)
    _write_size(out, used, written)
    return written


@copying
def _write_updates(
    data: Bytes, start: int, at: int, end: int, width: int, first: int, rule: Bytes, param: Ints, before: Ints,
    after: Ints, key: Ints, marks: Bytes, sums: Ints, out: Bytes, used: int,
) -> int:  # fmt: skip
    """Writes an event of whole images, ``at`` its first one, as one shorter event or several. Returns the end of what
    is written, or -1 if the images do not end with the event, or what is written would be longer than the event."""
    is_sent, is_changed, held = marks[0], marks[1], sums[0]
    front, limit, now, begun = at - start, used + end - start, 0, at
    at = _read_update(data, at, end, width, first, rule, param, before[now], after[now], is_changed)
    if at < 0:
        return _NOT_WHOLE
    while begun < end:
        rows, stop = 1, at
        is_sent[:width] = 0
        held[:width] = 0
        key_bytes = _join(before[now], after[now], width, key, is_sent, is_changed, held)
        while at < end:
            # the update read last is kept as long as it may be its event's only one
            other = 1 - now if rows == 1 else now
            at = _read_update(data, at, end, width, first, rule, param, before[other], after[other], is_changed)
            if at < 0:
                return _NOT_WHOLE
            if _cost_of_joining(after[other], width, is_sent, is_changed, held) > front + _EVENT_COST:
                break
            key_bytes += _join(before[other], after[other], width, key, is_sent, is_changed, held)
            rows, stop, now = rows + 1, at, other
        # rows that an update leaves as they were: an image of no columns is no row for a server
        sent = sums[1, : _listed(is_sent, width, sums[1])]
        if sent.size == 0:
            sent = key
        if used + front + key_bytes + _bytes_of_images(rows, key, sent, held) > limit:
            return _NOT_WHOLE
        written = _write_head(data, start, front - 2 * ((width + 7) >> 3), out, used)
        if stop < end:
            out[used + _FLAGS_AT] &= _UNENDED
        written = _bitmap(sent, width, out, _bitmap(key, width, out, written))
        if rows == 1:
            written = _image(data, after[now], sent, out, _image(data, before[now], key, out, written))
            now = 1 - now
        else:
            written = _write_images(
                data, begun, stop, end, width, first, rule, param, before[1 - now], key, sent, out, written
            )
        _write_size(out, used, written)
        used, begun = written, stop
    return used


@kernel
def _bytes_of_images(rows: int, key: Ints, sent: Ints, held: Ints) -> int:
    """The bytes of the short images of an event of updates, without the values before."""
    size = rows * (((key.size + 7) >> 3) + ((sent.size + 7) >> 3))
    for number in range(sent.size):
        size += held[sent[number]]
    return size


@copying
def _write_images(
    data: Bytes, at: int, stop: int, end: int, width: int, first: int, rule: Bytes, param: Ints, found: Ints,
    key: Ints, sent: Ints, out: Bytes, written: int,
) -> int:  # fmt: skip
    """Writes the updates from ``at`` to ``stop``, which have been read before, with the same columns."""
    while at < stop:
        at = _columns(data, at, end, width, first, rule, param, found)
        written = _image(data, found, key, out, written)
        at = _columns(data, at, end, width, first, rule, param, found)
        written = _image(data, found, sent, out, written)
    return written
