"""Decompresses the events of a buffer together: MySQL's TRANSACTION_PAYLOAD, MariaDB's compressed rows.

``payload`` and ``rows`` decompress single events and raise errors for damage. This module leaves unusual, damaged or
too large events compressed, so only those two have the rules; decompressed bytes are the same as theirs.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from binlane.binlog.rows import COMPRESSED_ROWS, PLAIN_TYPES, ROWS_KINDS, WITH_EXTRA, RowsKind
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.frames import BufferOffsets, Frames, SegmentOffsets, as_array
from binlane.binlog.wire import HEADER, EventType
from binlane.kernels import payloads
from binlane.lazy_dataclass import dataclass

_ANY: Final = 1 << 62
_PAYLOAD: Final = int(EventType.TRANSACTION_PAYLOAD)
_HEADER: Final = HEADER.size
_CODE_AT: Final = 4
_SIZE_AT: Final = 9
_PLAIN: Final = np.zeros(256, np.uint8)
"""The type of the uncompressed rows event, by the compressed one's."""
_BITMAPS: Final = np.zeros(256, np.uint8)
"""By the same: 0 for other events."""
_EXTRA: Final = np.zeros(256, np.bool_)
for _code in COMPRESSED_ROWS:
    _PLAIN[_code] = PLAIN_TYPES[_code]
    _BITMAPS[_code] = 2 if ROWS_KINDS[_code] is RowsKind.UPDATE else 1
    _EXTRA[_code] = _code in WITH_EXTRA


@dataclass(frozen=True, slots=True)
class Opened:
    """Decompressed events without checksums, one entry for each compressed event, in order."""

    event: Ints
    """Numbers of the compressed events in their frames."""
    data: Bytes
    start: Ints
    """Offset of each entry's events in ``data``, and the end of the last."""


def open_payloads(frames: Frames, most: int, budget: int) -> Opened | None:
    """Decompress the TRANSACTION_PAYLOADs that declare up to ``most`` bytes, ``budget`` together; None if there is
    none.

    No payload is decompressed beyond its declared size. Only the length of the result is checked.
    """
    count = int(np.count_nonzero(frames.type_code == _PAYLOAD))
    if count == 0:
        return None
    found = np.empty((count, 4), np.int64)
    used = payloads.payload_heads(
        frames.data, frames.offset, frames.type_code, frames.size, HEADER.size, frames.checksum_length,
        most, budget, found,
    )  # fmt: skip
    found = found[:used]
    try:
        return _opened(found[:, 0], _unzipped(frames.data, found))
    except zstandard.ZstdError:
        # one payload is damaged; the error does not say which
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
    # by the declared sizes, not by those in the zstd frames' heads, so that no more memory is allocated
    frames = zstandard.BufferWithSegments(data.data, found[:, 1:3].astype(np.uint64).tobytes())
    sizes = found[:, 3].astype(np.uint64).tobytes()
    each = zstandard.ZstdDecompressor().multi_decompress_to_buffer(frames, decompressed_sizes=sizes, threads=0)
    return [each[place].tobytes() for place in range(found.shape[0])]


def open_rows(frames: Frames, most: int, budget: int) -> Opened | None:
    """As ``open_payloads``, for MariaDB's compressed rows events, each of which becomes one uncompressed event."""
    count = int(np.count_nonzero(_BITMAPS[frames.type_code]))
    if count == 0:
        return None
    found = np.empty((count, 5), np.int64)
    used = payloads.rows_heads(
        frames.data,
        frames.offset,
        frames.type_code,
        frames.size,
        _BITMAPS,
        _EXTRA,
        frames.checksum_length,
        most,
        budget,
        found,
    )
    view = frames.data.data
    kept, pieces = [], []
    begins = frames.offset[found[:used, 0]].tolist()
    for place, (begin, (_, head, at, end, declared)) in enumerate(zip(begins, found[:used].tolist(), strict=True)):
        stream = zlib.decompressobj()
        try:
            # one byte more than declared, to detect a longer stream
            rows = stream.decompress(view[at:end], declared + 1)
        except zlib.error:
            continue
        if len(rows) == declared and stream.eof and not stream.unused_data:
            kept.append(place)
            pieces.append(b"".join((view[begin:head], rows)))
    return _opened(found[kept, 0], pieces, _PLAIN[frames.type_code[found[kept, 0]]])


def largest_inflated(frames: Frames) -> tuple[int, int]:
    """The event with the largest declared size, and that size; (-1, 0) if no event is compressed. Decompresses
    nothing."""
    found = np.empty((int(np.count_nonzero(frames.type_code == _PAYLOAD)), 4), np.int64)
    used = 0
    if found.size:
        used = payloads.payload_heads(
            frames.data, frames.offset, frames.type_code, frames.size, HEADER.size, frames.checksum_length,
            _ANY, _ANY, found,
        )  # fmt: skip
    rows = np.empty((int(np.count_nonzero(_BITMAPS[frames.type_code])), 5), np.int64)
    if rows.size:
        used = payloads.rows_heads(
            frames.data,
            frames.offset,
            frames.type_code,
            frames.size,
            _BITMAPS,
            _EXTRA,
            frames.checksum_length,
            _ANY,
            _ANY,
            rows,
        )
        found = rows
    if used == 0:
        return -1, 0
    largest = int(found[:used, -1].argmax())
    return int(found[largest, 0]), int(found[largest, -1])


def _opened(events: Ints, pieces: Sequence[bytes], types: NDArray[np.uint8] | None = None) -> Opened | None:
    """``types``: given if each piece is one event: the types to write into the events' headers, with their sizes."""
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
    """The frames' buffer with the ``wanted`` entries of ``opened`` in place of their compressed events.

    Every event has room for a checksum. Also the offsets in the new buffer of pieces that moved, and for each of them
    the offset of the piece, or of its compressed event, in the frames' buffer, which is the segment.
    """
    chosen = np.flatnonzero(wanted)
    start, end, event = opened.start[chosen], opened.start[chosen + 1], opened.event[chosen]
    tail = frames.checksum_length
    inside = payloads.count_events(opened.data, start, end)
    replaced = int(frames.size[event].sum(dtype=np.int64))
    room = frames.data.size - replaced + int((end - start).sum()) + tail * inside
    # pieces: each decompressed event, the bytes before each compressed one, and the rest
    at, source = np.empty((2, inside + event.size + 1), np.int64)
    out = np.empty(room, np.uint8)
    payloads.lay_out(frames.data, frames.offset, frames.size, event, opened.data, start, end, tail, out, at, source)
    return as_array(out), BufferOffsets(at), SegmentOffsets(source)
