"""Compressed events of a buffer opened many at once: MySQL's TRANSACTION_PAYLOAD, MariaDB's compressed rows.

``payload`` and ``rows`` open one after the other and name what is wrong with it. Here whatever is odd, damaged or too
large stays closed, so the rules stand in one place; what is opened has the very bytes that those two give.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import zstandard
from numba import njit
from numpy.typing import NDArray

from binlane.binlog.payload import Compression
from binlane.binlog.rows import COMPRESSED_ROWS, PLAIN_TYPES, ROWS_KINDS, WITH_EXTRA, RowsKind
from binlane.binlog.table_map import TABLE_ID_AND_FLAGS
from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Sizes
from binlane.binlog.vector.frame_kernels import little, packed
from binlane.binlog.vector.frames import BufferOffsets, Frames, SegmentOffsets, as_array
from binlane.binlog.wire import HEADER, EventType

_ANY: Final = 1 << 62
_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
_ZSTD: Final = int(Compression.ZSTD)
_SIZE, _COMPRESSION, _INFLATED = 1, 2, 3
"""Fields of a TRANSACTION_PAYLOAD's head."""
_LONGEST, _LONGEST_WIDTH = 8, 3
"""Bytes of a packed field of that head, and of a rows event's number of columns."""
_HEADER: Final = HEADER.size
_CODE_AT: Final = 4
_SIZE_AT: Final = 9
_ROWS_HEAD: Final = TABLE_ID_AND_FLAGS
_PLAIN: Final = np.zeros(256, np.uint8)
"""By the type of a compressed rows event: that of the plain one."""
_BITMAPS: Final = np.zeros(256, np.uint8)
"""By the same: 0 for other events."""
_EXTRA: Final = np.zeros(256, np.bool_)
for _code in COMPRESSED_ROWS:
    _PLAIN[_code] = PLAIN_TYPES[_code]
    _BITMAPS[_code] = 2 if ROWS_KINDS[_code] is RowsKind.UPDATE else 1
    _EXTRA[_code] = _code in WITH_EXTRA


@dataclass(frozen=True, slots=True)
class Opened:
    """Compressed events, one entry each, in order, and what is in them: events without checksums."""

    event: Ints
    """Their numbers in the frames that they are of."""
    data: Bytes
    start: Ints
    """Where each one's events begin in ``data``; one more, for the end of the last."""


def open_payloads(frames: Frames, most: int, budget: int) -> Opened | None:
    """The TRANSACTION_PAYLOADs that declare up to ``most`` bytes, ``budget`` together; None if there is none.

    Nothing is inflated further than it declares. Of what is inside only the length is looked at.
    """
    count = int(np.count_nonzero(frames.type_code == _PAYLOAD))
    if count == 0:
        return None
    found = np.empty((count, 4), np.int64)
    used = _payload_heads(
        frames.data, frames.offset, frames.type_code, frames.size, frames.header_length, frames.checksum_length,
        most, budget, found,
    )  # fmt: skip
    found = found[:used]
    try:
        return _opened(found[:, 0], _unzipped(frames.data, found))
    except zstandard.ZstdError:
        # one of them is damaged: which one is not told
        kept, pieces = [], []
        for place in range(used):
            try:
                pieces += _unzipped(frames.data, found[place : place + 1])
            except zstandard.ZstdError:
                continue
            kept.append(place)
        return _opened(found[kept, 0], pieces)


def _unzipped(data: Bytes, found: Ints) -> list[bytes]:
    if found.shape[0] == 0:
        return []
    # by the declared sizes, not by those in the frames' own heads: room for more is never made
    frames = zstandard.BufferWithSegments(data.data, found[:, 1:3].astype(np.uint64).tobytes())
    sizes = found[:, 3].astype(np.uint64).tobytes()
    each = zstandard.ZstdDecompressor().multi_decompress_to_buffer(frames, decompressed_sizes=sizes, threads=0)
    return [each[place].tobytes() for place in range(found.shape[0])]


def open_rows(frames: Frames, most: int, budget: int) -> Opened | None:
    """As ``open_payloads``, MariaDB's compressed rows events: in each is one event, of the plain type."""
    count = int(np.count_nonzero(_BITMAPS[frames.type_code]))
    if count == 0 or frames.header_length != _HEADER:
        return None
    found = np.empty((count, 5), np.int64)
    used = _rows_heads(
        frames.data, frames.offset, frames.type_code, frames.size, frames.checksum_length, most, budget, found
    )
    view = frames.data.data
    kept, pieces = [], []
    begins = frames.offset[found[:used, 0]].tolist()
    for place, (begin, (_, head, at, end, declared)) in enumerate(zip(begins, found[:used].tolist(), strict=True)):
        stream = zlib.decompressobj()
        try:
            # one byte more than declared: enough to see that there is more
            rows = stream.decompress(view[at:end], declared + 1)
        except zlib.error:
            continue
        if len(rows) == declared and stream.eof and not stream.unused_data:
            kept.append(place)
            pieces.append(b"".join((view[begin:head], rows)))
    return _opened(found[kept, 0], pieces, _PLAIN[frames.type_code[found[kept, 0]]])


def largest_inflated(frames: Frames) -> tuple[int, int]:
    """The event that declares most inflated bytes, and how many; (-1, 0) if none does. Nothing is inflated for it."""
    found = np.empty((int(np.count_nonzero(frames.type_code == _PAYLOAD)), 4), np.int64)
    used = 0
    if found.size:
        used = _payload_heads(
            frames.data, frames.offset, frames.type_code, frames.size, frames.header_length, frames.checksum_length,
            _ANY, _ANY, found,
        )  # fmt: skip
    rows = np.empty((int(np.count_nonzero(_BITMAPS[frames.type_code])), 5), np.int64)
    if rows.size and frames.header_length == _HEADER:
        used = _rows_heads(
            frames.data, frames.offset, frames.type_code, frames.size, frames.checksum_length, _ANY, _ANY, rows
        )
        found = rows
    if used == 0:
        return -1, 0
    largest = int(found[:used, -1].argmax())
    return int(found[largest, 0]), int(found[largest, -1])


def _opened(events: Ints, pieces: Sequence[bytes], types: NDArray[np.uint8] | None = None) -> Opened | None:
    """``types``: each piece is one event, and this its type, which with its size goes into its header."""
    if not pieces:
        return None
    start = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=start[1:])
    data = np.frombuffer(bytearray().join(pieces), np.uint8)
    if types is not None:
        data[start[:-1] + _CODE_AT] = types
        sizes = np.diff(start).astype("<u4").view(np.uint8).reshape(-1, 4)
        data[start[:-1, None] + np.arange(_SIZE_AT, _SIZE_AT + 4)] = sizes
    return Opened(np.ascontiguousarray(events), as_array(data), start)


def lay_out(frames: Frames, opened: Opened, wanted: NDArray[np.bool_]) -> tuple[Bytes, BufferOffsets, SegmentOffsets]:
    """The frames' buffer with the ``wanted`` ones of ``opened`` in place of the events that held them.

    Every event has room for a checksum. Also the places in it where something begins that stood elsewhere, and where
    each of those, or the event that held it, begins in the frames' buffer, which is the segment.
    """
    chosen = np.flatnonzero(wanted)
    start, end, event = opened.start[chosen], opened.start[chosen + 1], opened.event[chosen]
    tail = frames.checksum_length
    inside = _events(opened.data, start, end)
    replaced = int(frames.size[event].sum(dtype=np.int64))
    room = frames.data.size - replaced + int((end - start).sum()) + tail * inside
    # a piece for each of the events, one for what stands before each compressed one, and the rest
    at, source = np.empty((2, inside + event.size + 1), np.int64)
    out = np.empty(room, np.uint8)
    _lay_out(frames.data, frames.offset, frames.size, event, opened.data, start, end, tail, out, at, source)
    return as_array(out), BufferOffsets(at), SegmentOffsets(source)


@njit(cache=True, nogil=True)
def _payload_head(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """(where the zstd stream begins in the body [at, end), inflated size); (-1, -1) for a head that is odd."""
    fields = np.full(4, -1, np.int64)
    while True:
        field, at = packed(data, at, end, _LONGEST)
        if field == 0:
            break
        length, at = packed(data, at, end, _LONGEST)
        if field < 0 or length < 0 or length > end - at:
            return -1, -1
        if field <= _INFLATED:
            fields[field], _ = packed(data, at, at + length, _LONGEST)
        at += length
    # zstandard raises for an empty one
    if end == at or fields[_SIZE] != end - at or fields[_COMPRESSION] != _ZSTD or fields[_INFLATED] <= 0:
        return -1, -1
    return at, fields[_INFLATED]


@njit(cache=True, nogil=True)
def _payload_heads(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, header_len: int, tail: int, most: int, room: int, found: Ints
) -> int:
    """Fills ``found``: (event, where its stream begins, its length, inflated size); returns how many there are."""
    count = 0
    for event in range(offset.size):
        if kind[event] != _PAYLOAD:
            continue
        end = offset[event] + size[event] - tail
        at, declared = _payload_head(data, offset[event] + header_len, end)
        if at >= 0 and declared <= min(most, room):
            found[count, 0], found[count, 1], found[count, 2], found[count, 3] = event, at, end - at, declared
            room -= declared
            count += 1
    return count


@njit(cache=True, nogil=True)
def _rows_head(data: Bytes, at: int, end: int, bitmaps: int, has_extra: bool) -> int:
    """Where the compressed part of the rows body [at, end) begins; -1 for a head that is odd."""
    at += _ROWS_HEAD
    if has_extra:
        if end - at < 2:
            return -1
        length = little(data, at, 2)
        if length < 2:
            return -1
        at += length
    width, at = packed(data, at, end, _LONGEST_WIDTH)
    if width < 0:
        return -1
    at += ((width + 7) >> 3) * bitmaps
    return at if at < end else -1


@njit(cache=True, nogil=True)
def _rows_heads(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, tail: int, most: int, room: int, found: Ints
) -> int:
    """Fills ``found``: (event, where its compressed part begins, its stream, its end, inflated size of the stream).

    Compressed part: 0x80 + length of the size, the size big-endian, a zlib stream.
    """
    count = 0
    for event in range(offset.size):
        bitmaps = int(np.int64(_BITMAPS[kind[event]]))
        if bitmaps == 0:
            continue
        end = offset[event] + size[event] - tail
        head = _rows_head(data, offset[event] + _HEADER, end, bitmaps, _EXTRA[kind[event]])
        if head < 0:
            continue
        length = np.int64(data[head]) - 0x80
        if not 1 <= length <= 4 or end - head <= length:
            continue
        declared = 0
        for byte in range(length):
            declared = declared << 8 | int(np.int64(data[head + 1 + byte]))
        if declared <= min(most, room):
            found[count, 0], found[count, 1], found[count, 2] = event, head, head + 1 + length
            found[count, 3], found[count, 4] = end, declared
            room -= declared
            count += 1
    return count


@njit(cache=True, nogil=True)
def plain_inside(data: Bytes, start: Ints, first: int, last: int, between: Flags, is_plain: Flags) -> None:
    """Fills ``is_plain``: whether [start[n], start[n + 1]) is whole events, of the types that are asked for."""
    for place in range(start.size - 1):
        at, end, count = start[place], start[place + 1], 0
        while end - at >= _HEADER:
            code, size = np.int64(data[at + _CODE_AT]), little(data, at + _SIZE_AT, 4)
            if size < _HEADER or size > end - at:
                break
            if at + size == end:
                at = end if code == last else -1
                break
            if not (code == first if count == 0 else between[code]):
                break
            count += 1
            at += size
        is_plain[place] = count > 0 and at == end


@njit(cache=True, nogil=True)
def _events(data: Bytes, start: Ints, end: Ints) -> int:
    """How many there are."""
    count = 0
    for place in range(start.size):
        at = start[place]
        while at < end[place]:
            at += little(data, at + _SIZE_AT, 4)
            count += 1
    return count


@njit(cache=True, nogil=True)
def _lay_out(
    data: Bytes, offset: Ints, size: Sizes, event: Ints, inner: Bytes, start: Ints, end: Ints, tail: int,
    out: Bytes, at: Ints, source: Ints,
) -> None:  # fmt: skip
    used, copied, piece = 0, 0, 0
    for place in range(event.size + 1):
        until = offset[event[place]] if place < event.size else data.size
        at[piece], source[piece] = used, copied
        piece += 1
        out[used : used + until - copied] = data[copied:until]
        used += until - copied
        if place == event.size:
            break
        copied = until + size[event[place]]
        begin = start[place]
        while begin < end[place]:
            length = little(inner, begin + _SIZE_AT, 4)
            at[piece], source[piece] = used, until
            piece += 1
            out[used : used + length] = inner[begin : begin + length]
            for byte in range(4):
                out[used + _SIZE_AT + byte] = ((length + tail) >> (8 * byte)) & 0xFF
            out[used + length : used + length + tail] = 0
            used += length + tail
            begin += length
