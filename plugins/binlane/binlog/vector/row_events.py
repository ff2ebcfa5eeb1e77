"""Builds rows events from row images: many rows in an event, many events in a BINLOG statement, all tables together.

Logs of many tenants have hundreds of tables with a few rows each, so only the heads of events are built table by table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.vector.arrays import Ints, distinct
from binlane.binlog.vector.join_statements import TABLES
from binlane.binlog.wire import HEADER, EventType
from binlane.kernels import row_events as kernels
from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts

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
_HEADER: Final = HEADER.size
_POST_HEADER: Final = 8
"""Bytes of a rows event's table id and flags."""
_NO_EXTRA: Final = 2
"""The length of version 2's extra data, which counts itself."""
_PACKED_IN_ONE: Final = 251
"""Numbers of columns below this are one byte."""
_ID_BYTES: Final = 6
_OF_BYTE: Final = 256 ** np.arange(_ID_BYTES, dtype=np.int64)
"""The weight of each byte of a table id."""


@dataclass(frozen=True, slots=True)
class Fronts:
    """The heads of each table's rows events."""

    table_maps: bytes
    """Whole TABLE_MAP events without checksums. Rows events get their time, server id and table id."""
    map_size: Ints
    """Bytes of each table's TABLE_MAP."""
    width: Ints
    """Number of columns of each table."""
    is_v2: NDArray[np.bool_]
    """Whether a table's rows events are of version 2."""

    def maps(self) -> NDArray[np.uint8]:
        """The TABLE_MAP events with new, distinct table ids, because a restarted server reuses ids."""
        events = np.frombuffer(self.table_maps, np.uint8)
        at = (np.cumsum(self.map_size) - self.map_size + _HEADER)[:, None] + np.arange(_ID_BYTES)
        if distinct(events[at] @ _OF_BYTE).size < at.shape[0]:
            events = events.copy()
            events[at] = np.arange(1, at.shape[0] + 1)[:, None] // _OF_BYTE & 0xFF
        return events

    @property
    def head(self) -> Ints:
        """Bytes before the bitmaps in a rows event, by table."""
        packed = np.where(self.width < _PACKED_IN_ONE, 1, 3)
        return HEADER.size + _POST_HEADER + np.where(self.is_v2, _NO_EXTRA, 0) + packed


@dataclass(frozen=True, slots=True)
class Rows:
    """Row changes, grouped by table, in the order in which they are written."""

    table: Ints
    """Each row's index in the fronts."""
    kind: Ints
    images: Ints
    """(rows, 4): start and end of the before-image and of the after-image; -1 for an image that the kind does not
    have."""

    def part(self, wanted: NDArray[np.bool_]) -> Rows:
        """The ``wanted`` rows."""
        return Rows(self.table[wanted], self.kind[wanted], self.images[wanted])

    def counts(self, of: Ints, groups: int) -> Ints:
        """(groups, kinds): rows of each kind in each group; ``of`` is each row's group."""
        return np.bincount(of * KINDS + self.kind, minlength=groups * KINDS).reshape(-1, KINDS)


def row_counts(counts: Ints) -> RowCounts:
    """One group of ``Rows.counts``."""
    return RowCounts(int(counts[INSERT]), int(counts[UPDATE]), int(counts[DELETE]))


def payloads(
    data: NDArray[np.uint8], fronts: Fronts, rows: Rows, event_bytes: int, payload_bytes: int
) -> Iterator[tuple[bytes, RowCounts]]:
    """BINLOG payloads of about ``payload_bytes`` at most, each with its rows, in as few statements as possible.

    An event has rows of one table and kind, with at most ``event_bytes`` of images or a single row.
    """
    if rows.table.size == 0:
        return
    length = np.where(rows.images[:, 0] >= 0, rows.images[:, 1] - rows.images[:, 0], 0)
    length += np.where(rows.images[:, 2] >= 0, rows.images[:, 3] - rows.images[:, 2], 0)
    first = np.empty(rows.table.size, np.int64)
    first = first[: kernels.cut(rows.table, rows.kind, length, event_bytes, first)]
    table, kind = rows.table[first], rows.kind[first]
    map_size = fronts.map_size
    bitmaps = ((fronts.width + 7) >> 3)[table] * np.where(kind == UPDATE, 2, 1)
    size = fronts.head[table] + bitmaps + np.add.reduceat(length, first)
    payload, has_map = np.empty(first.size, np.int64), np.empty(first.size, np.bool_)
    kernels.pack(table, size, map_size, payload_bytes, payload, has_map)
    end = np.cumsum(size + np.where(has_map, map_size[table], 0))
    last = np.append(np.flatnonzero(np.diff(payload)), first.size - 1)
    is_last = np.append(np.diff(_statements(payload, has_map)) > 0, True)
    out = np.empty(int(end[-1]), np.uint8)
    kernels.write(
        data, rows.images, np.append(first, rows.table.size), table, _CODES[fronts.is_v2.astype(np.int64)[table], kind],
        size, has_map, is_last, np.append(-1, np.flatnonzero(is_last)),
        fronts.maps(), np.cumsum(map_size) - map_size, map_size, fronts.width, fronts.is_v2, out,
    )  # fmt: skip
    counts = rows.counts(np.repeat(payload, np.diff(np.append(first, rows.table.size))), last.size)
    edges = [0, *end[last].tolist()]
    for number, (start, stop) in enumerate(pairwise(edges)):
        yield out[start:stop].tobytes(), row_counts(counts[number])


def _statements(payload: Ints, has_map: NDArray[np.bool_]) -> Ints:
    """The number of each event's statement: a statement opens at most ``TABLES`` tables, and each payload begins with a
    new statement."""
    maps = np.cumsum(has_map)
    before = maps[np.flatnonzero(np.diff(payload, prepend=-1))] - 1
    return np.asarray(payload * (maps[-1] + 1) + (maps - 1 - before[payload]) // TABLES)
