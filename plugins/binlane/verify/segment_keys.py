"""The keys of a segment's row changes, found in machine code; each distinct key is decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.readers import Reader
from binlane.binlog.types.type_codes import LengthRule
from binlane.binlog.vector import fold_rows
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.frames import Frames, TableIndex, TableLayouts, row_images, table_layouts
from binlane.binlog.wire import EventType
from binlane.errors import UnsupportedEventError
from binlane.schema.model import Column
from binlane.verify.rows.column_text import Key, key_text

_HIDDEN: Final = np.zeros(256, np.bool_)
"""Events whose rows are not in the log as they are."""
_HIDDEN[[EventType.TRANSACTION_PAYLOAD, EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS]] = True
_ROWS: Final = np.isin(np.arange(256), list(ROWS_KINDS))


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Where the primary key stands in the images of a TABLE_MAP, and how it is read."""

    columns: tuple[Column, ...]
    """In the key's order."""
    places: tuple[int, ...]
    readers: tuple[Reader, ...]
    rules: tuple[LengthRule, ...]
    """Of all columns up to the key's last."""

    def key(self, data: memoryview, at: int, width: int) -> Key:
        """The key of the full image that begins at ``at``."""
        nulls, at = at, at + ((width + 7) >> 3)
        found: dict[int, str] = {}
        for number, (prefix, length) in enumerate(self.rules):
            if data[nulls + (number >> 3)] >> (number & 7) & 1:
                continue
            if prefix:
                length = int.from_bytes(data[at : at + prefix], "little")
                at += prefix
            if number in self.places:
                place = self.places.index(number)
                found[place] = key_text(self.columns[place], self.readers[place](bytes(data[at : at + length])))
            at += length
        return tuple(found[place] for place in range(len(self.columns)))


def can_read(frames: Frames) -> bool:
    """Whether all row images are in the buffer as they are."""
    return not _HIDDEN[frames.type_code].any()


def distinct_keys(
    frames: Frames, index: TableIndex, maps: Sequence[TableMap], wanted: Sequence[KeyColumns | None], name: str
) -> Iterator[tuple[int, Key]] | None:
    """The distinct keys with the number of their table. ``wanted``: by number; None: its rows are of no interest.

    None if an image lacks columns, or a column's length is not known from the log: the rows have to be read one by one.
    """
    keyed = np.array([each is not None for each in wanted], np.bool_)
    events = np.flatnonzero(_ROWS[frames.type_code])
    events = events[keyed[index.number[events]]] if keyed.size else events[:0]
    if not events.size:
        return iter(())
    chosen, number = frames.select(events), index.number[events]
    layouts = table_layouts(maps)
    try:
        counts, images, lacking = row_images(chosen, number, layouts, name)
    except UnsupportedEventError:
        return None
    if lacking.any():
        return None
    return _folded(frames.data, np.repeat(number, counts).astype(np.int64), images, layouts, wanted)


def _folded(
    data: Bytes, table_of: Ints, images: Ints, layouts: TableLayouts, wanted: Sequence[KeyColumns | None]
) -> Iterator[tuple[int, Key]]:
    """The keys that ``fold_rows`` finds; its net changes are not used."""
    widths = layouts.tables[:, 1]
    flag_at = np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)[:-1]))
    flags = np.zeros(int(widths.sum()), np.uint8)
    ends = np.zeros(len(wanted), np.int64)
    for number, each in enumerate(wanted):
        if each is not None:
            flags[flag_at[number] + np.array(each.places)] = fold_rows.PRIMARY
            ends[number] = len(each.rules)
    tables = np.column_stack((layouts.tables[:, :2], flag_at, ends, np.zeros_like(ends)))
    rows, count = 2 * images.shape[0], len(wanted)
    slots = np.full(1 << (2 * rows + 1).bit_length(), -1, np.int32)
    entry_table, hashes, image = np.empty(rows, np.int64), np.empty(rows, np.uint64), np.empty(rows, np.int64)
    before, now = np.empty((rows, 2), np.int64), np.empty((rows, 2), np.int64)
    found = fold_rows.fold(
        data, images, table_of, tables, layouts.rule, layouts.length, flags, np.full((count, 2), -1, np.int64),
        slots, hashes, image, entry_table, before, now, np.zeros((count, 3), np.int64),
        np.zeros((count, 2), np.uint64), np.empty(rows, np.uint8), np.zeros(count, np.uint8),
    )  # fmt: skip
    view, width = data.data, widths.tolist()
    for number, at in zip(entry_table[:found].tolist(), image[:found].tolist(), strict=True):
        columns = wanted[number]
        assert columns is not None
        yield number, columns.key(view, at, width[number])
