"""A segment with its compressed transactions replaced by uncompressed ones, so that the kernels need no special case.

Only payloads of one simple transaction (BEGIN, tables and rows, XID) and MariaDB's compressed rows are decompressed.
Other payloads, and damaged or too large ones, stay compressed and are read as single transactions
(``binlog.transactions``), which raises the errors. Every event keeps its position in the source's log.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.decompress import lay_out, open_payloads, open_rows
from binlane.binlog.vector.frames import BufferOffsets, Frames, SegmentOffsets
from binlane.binlog.wire import BufferOffset, EventType, SegmentOffset
from binlane.kernels import payloads
from binlane.lazy_dataclass import dataclass

_T = EventType
_MOST: Final = 16 << 20
"""Maximum decompressed bytes of one payload or event; larger ones are read as single transactions."""
_BUDGET: Final = 128 << 20
"""Maximum decompressed bytes of one segment, which are in memory while it is read, for a short time twice."""
_ROWS: Final = np.zeros(256, np.bool_)
"""Event types allowed between BEGIN and XID."""
for _code in (
    *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
    *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
    *(_T.TABLE_MAP, _T.ROWS_QUERY),
):
    _ROWS[_code] = True


@dataclass(frozen=True, slots=True)
class Inflated:
    """A segment with decompressed events in place of payloads and compressed rows."""

    data: memoryview
    _at: BufferOffsets
    """Offset of each event in ``data``."""
    _segment: SegmentOffsets
    """Offset of each event, or of its payload, in the segment."""

    def segment_offset(self, offset: BufferOffset) -> SegmentOffset:
        """The offset in the segment for an event's beginning or end at ``offset`` in ``data``."""
        place = int(np.searchsorted(self._at, offset, "right")) - 1
        return SegmentOffset(offset if place < 0 else int(self._segment[place]) + (offset - int(self._at[place])))


def inflated(frames: Frames) -> Inflated | None:
    """The segment of these frames with decompressed payloads and rows; None if nothing can be decompressed."""
    # a log has only one of the two, by its server's family
    if (opened := open_payloads(frames, _MOST, _BUDGET)) is not None:
        wanted = np.empty(opened.event.size, np.bool_)
        payloads.plain_inside(opened.data, opened.start, int(_T.QUERY), int(_T.XID), _ROWS, wanted)
    elif (opened := open_rows(frames, _MOST, _BUDGET)) is not None:
        wanted = np.ones(opened.event.size, np.bool_)
    if opened is None or not wanted.any():
        return None
    data, at, segment = lay_out(frames, opened, wanted)
    return Inflated(data.data, at, segment)
