"""A segment with its compressed transactions laid out as plain ones: what the kernels then take as they take any other.

Only payloads that hold one plain transaction are opened (BEGIN, tables and rows, XID), and MariaDB's compressed rows;
everything else, and everything that is damaged or too large, stays as it is and goes the way of single transactions
(``binlog.transactions``), which names what is wrong. So the rules stand in one place. Every event keeps the place in
the source's log that it has there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from binlane.binlog.vector.decompress import lay_out, open_payloads, open_rows, plain_inside
from binlane.binlog.vector.frames import BufferOffsets, Frames, SegmentOffsets
from binlane.binlog.wire import HEADER, BufferOffset, EventType, SegmentOffset

_T = EventType
_MOST: Final = 16 << 20
"""Inflated bytes of one payload or event, at most: larger ones are read one after the other."""
_BUDGET: Final = 128 << 20
"""Inflated bytes of one segment, which stay in memory while it is read, and twice for a moment."""
_ROWS: Final = np.zeros(256, np.bool_)
"""What may stand between BEGIN and XID."""
for _code in (
    *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
    *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
    *(_T.TABLE_MAP, _T.ROWS_QUERY),
):
    _ROWS[_code] = True


@dataclass(frozen=True, slots=True)
class Inflated:
    """A segment without the payloads and compressed rows that could be opened."""

    data: memoryview
    _at: BufferOffsets
    """Where each event begins in ``data``."""
    _segment: SegmentOffsets
    """Where it, or its payload, begins in the segment."""

    def segment_offset(self, offset: BufferOffset) -> SegmentOffset:
        """The place in the segment of the event at ``offset`` of ``data``, or of the end of the one before it."""
        place = int(np.searchsorted(self._at, offset, "right")) - 1
        return SegmentOffset(offset if place < 0 else int(self._segment[place]) + (offset - int(self._at[place])))


def inflated(frames: Frames) -> Inflated | None:
    """The segment of those frames with its plain payloads and compressed rows opened; None if there is none."""
    if frames.header_length != HEADER.size:
        return None
    # a server of one family writes one of the two
    if (opened := open_payloads(frames, _MOST, _BUDGET)) is not None:
        wanted = np.empty(opened.event.size, np.bool_)
        plain_inside(opened.data, opened.start, int(_T.QUERY), int(_T.XID), _ROWS, wanted)
    elif (opened := open_rows(frames, _MOST, _BUDGET)) is not None:
        wanted = np.ones(opened.event.size, np.bool_)
    if opened is None or not wanted.any():
        return None
    data, at, segment = lay_out(frames, opened, wanted)
    return Inflated(data.data, at, segment)
