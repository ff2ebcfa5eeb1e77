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

from binlane.binlog.vector.arrays import Numbers
from binlane.binlog.vector.frames import Frames, TableLayouts
from binlane.binlog.wire import HEADER
from binlane.kernels import narrowing

_HEADER: Final = HEADER.size


def narrowed(frames: Frames, number: Numbers, layouts: TableLayouts, keys: Sequence[Sequence[int]]) -> bytes:
    """The events of ``frames``, which have no checksums, some of them with shorter images; never longer than before.

    ``number``: the table of each event as an index into ``layouts`` and ``keys``, or -1. ``keys``: the columns of each
    table's primary key, from 0 and ascending; empty for a table whose events are copied. Events whose bytes are no
    rows of their table are copied, too. Raises ValueError for events with checksums.
    """
    if frames.checksum_length:
        raise ValueError("expected events as in a BINLOG statement, without checksums")
    counts = np.array([len(key) for key in keys], np.int64)
    columns = np.array([column for key in keys for column in key], np.int64)
    out = np.empty(int(frames.size.sum(dtype=np.int64)), np.uint8)
    used = narrowing.narrow(
        frames.data, frames.offset, frames.type_code, frames.size, number, layouts.tables, layouts.rule, layouts.length,
        np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))), columns, out,
    )  # fmt: skip
    return out[:used].tobytes()
