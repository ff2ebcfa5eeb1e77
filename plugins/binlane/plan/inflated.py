"""A segment with its compressed transactions laid out as plain ones: what the kernels then take as they take any other.

Only payloads that hold one plain transaction are opened (BEGIN, tables and rows, XID); everything else, and everything
that is damaged or too large, stays as it is and goes the way of single transactions (``binlog.transactions``), which
names what is wrong. So the rules stand in one place. Every event keeps the place in the source's log that it has there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from binlane.binlog.frames import Frames
from binlane.binlog.payload import Compression, TransactionPayload
from binlane.binlog.wire import HEADER, EventType

Ints = NDArray[np.int64]

_T = EventType
_MOST: Final = 16 << 20
"""Inflated bytes of one payload, at most: larger ones are read event by event."""
_BUDGET: Final = 128 << 20
"""Inflated bytes of one segment, which stay in memory while it is read, and twice for a moment."""
_ROWS: Final = frozenset(
    {
        *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
        *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
        *(int(_T.TABLE_MAP), int(_T.ROWS_QUERY)),
    }
)
_SIZE_AT: Final = 9
_CONTENT_UNKNOWN: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Inflated:
    """A segment without the payloads that could be opened."""

    data: bytes
    _at: Ints
    """Where each event begins in ``data``."""
    _source: Ints
    """Where it, or its payload, begins in the segment."""

    def source(self, offset: int) -> int:
        """The place in the segment of the event at ``offset``."""
        place = int(np.searchsorted(self._at, offset, "right")) - 1
        return offset if place < 0 else int(self._source[place]) + (offset - int(self._at[place]))


def inflated(frames: Frames) -> Inflated | None:
    """The segment of those frames with its plain payloads opened; None if there is none."""
    payloads = np.flatnonzero(frames.type_code == _T.TRANSACTION_PAYLOAD)
    if payloads.size == 0 or frames.header_length != HEADER.size:
        return None
    inflator, tail = zstandard.ZstdDecompressor(), bytes(frames.checksum_length)
    pieces: list[bytes | memoryview] = []
    at: list[int] = []
    source: list[int] = []
    done = copied = opened = 0
    for event in payloads.tolist():
        start = int(frames.offset[event])
        inner = _opened(frames.body(event), inflator, _BUDGET - opened)
        events = None if inner is None else list(_events(inner, tail))
        if not events:
            continue
        opened += len(inner or b"")
        pieces.append(frames.data.data[copied:start])
        at.append(done)
        source.append(copied)
        done += start - copied
        for piece in events:
            at.append(done)
            source.append(start)
            pieces.append(piece)
            done += len(piece)
        copied = start + int(frames.size[event])
    if not at:
        return None
    pieces.append(frames.data.data[copied:])
    at.append(done)
    source.append(copied)
    return Inflated(b"".join(pieces), np.array(at, np.int64), np.array(source, np.int64))


def _opened(body: memoryview, inflator: zstandard.ZstdDecompressor, room: int) -> bytes | None:
    try:
        payload = TransactionPayload.parse(body)
        declared = payload.uncompressed_size
        if declared > min(_MOST, room):
            return None
        if payload.compression is Compression.NONE:
            found = bytes(payload.payload)
        else:
            said = zstandard.get_frame_parameters(payload.payload).content_size
            if said not in (declared, _CONTENT_UNKNOWN):
                return None
            found = inflator.decompress(payload.payload, max_output_size=declared, allow_extra_data=False)
    except (ValueError, zstandard.ZstdError):
        return None
    return found if len(found) == declared else None


def _events(inner: bytes, tail: bytes) -> Iterator[bytes]:
    """The events with room for a checksum, of one plain transaction; none of anything else."""
    found, at, role = [], 0, int(_T.QUERY)
    while at + HEADER.size <= len(inner):
        code, size = inner[at + 4], int.from_bytes(inner[at + _SIZE_AT : at + _SIZE_AT + 4], "little")
        if size < HEADER.size or at + size > len(inner):
            return
        is_last = at + size == len(inner)
        if code != (_T.XID if is_last else role) and not (role == _T.TABLE_MAP and not is_last and code in _ROWS):
            return
        role = int(_T.TABLE_MAP)
        longer = (size + len(tail)).to_bytes(4, "little")
        found.append(b"".join((inner[at : at + _SIZE_AT], longer, inner[at + _SIZE_AT + 4 : at + size], tail)))
        at += size
    if at == len(inner) and len(found) > 1:
        yield from found
