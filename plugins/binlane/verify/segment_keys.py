"""The keys of a segment's row changes, found in machine code; each distinct key is decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column as LoggedColumn
from binlane.binlog.types.readers import Reader
from binlane.binlog.types.type_codes import LengthRule
from binlane.binlog.vector import fold_rows
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.frames import (
    Frames,
    TableIndex,
    TableLayouts,
    frame,
    index_rows,
    row_images,
    table_layouts,
    verify_checksums,
)
from binlane.binlog.vector.row_kernels import value_ranges
from binlane.binlog.wire import CHECKSUM_LENGTH, EventType
from binlane.errors import UnsupportedEventError
from binlane.schema.model import Column
from binlane.verify.rows.column_text import Key, key_text

_HIDDEN: Final = np.zeros(256, np.bool_)
"""Events whose rows are not in the log as they are."""
_HIDDEN[[EventType.TRANSACTION_PAYLOAD, EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS]] = True
_T = EventType
_TOLD: Final = np.zeros(256, np.bool_)
_TOLD[[_T.QUERY, _T.QUERY_COMPRESSED, _T.XA_PREPARE, _T.EXECUTE_LOAD_QUERY, _T.INCIDENT]] = True
_DATABASE_AT, _STATUS_AT = 8, 11
"""Where the lengths of a statement's database and status variables are."""
_BEGIN: Final = np.frombuffer(b"BEGIN", np.uint8)
_BEGIN_PLACES: Final = np.arange(_BEGIN.size, 0, -1)
_ROWS: Final = np.isin(np.arange(256), list(ROWS_KINDS))
_RULE: Final = (np.uint8, np.int64)
"""The types of a length rule's two numbers for the kernels."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Where the primary key stands in the images of a TABLE_MAP, and how it is read."""

    columns: tuple[Column, ...]
    """In the key's order."""
    logged: tuple[LoggedColumn, ...]
    readers: tuple[Reader, ...]
    places: tuple[int, ...]
    rules: tuple[LengthRule, ...]
    """Of all columns up to the key's last."""

    def keys(self, data: Bytes, images: Ints, width: int) -> Iterator[Key] | None:
        """The keys of the full images that begin at ``images``; None if a column is NULL, which no key's column is."""
        rule, length = (np.array(part, kind) for part, kind in zip(zip(*self.rules, strict=True), _RULE, strict=True))
        texts: list[Iterator[str]] = []
        for column, logged, read, place in zip(self.columns, self.logged, self.readers, self.places, strict=True):
            ranges = np.empty((images.size, 2), np.int64)
            if not value_ranges(data, images, width, rule, length, place, ranges):
                return None
            if bits := LOGGED_TYPES[logged.type_code].bits:
                texts.append(map(str, _integers(data, ranges[:, 0], bits >> 3, not logged.unsigned)))
            else:
                values = map(read, (data[start:end].tobytes() for start, end in ranges.tolist()))
                texts.append(map(partial(key_text, column), values))
        return zip(*texts, strict=True)


def _integers(data: Bytes, start: Ints, size: int, signed: bool) -> list[int]:
    """Little-endian integers of ``size`` bytes."""
    raw = np.zeros((start.size, 8), np.uint8)
    raw[:, :size] = data[start[:, None] + np.arange(size)]
    values, unused = raw.view("<i8" if signed else "<u8").ravel(), 64 - 8 * size
    found: list[int] = (values << unused >> unused).tolist()
    return found


def load() -> None:
    """Load the machine code of this module: 0.2 s of a core; longer where it must be compiled first."""
    frames = frame(b"", 0, CHECKSUM_LENGTH)
    verify_checksums(frames, "")
    index = index_rows(frames, "")
    _, images, _ = row_images(frames.select(index.first), index.number, table_layouts(()), "")
    rule, length = np.zeros(1, _RULE[0]), np.zeros(1, _RULE[1])
    key = KeyColumns((), (), (), (0,), ((0, 1),))
    _folded(frames.data, index.first, images, TableLayouts(np.array([[0, 1, 0]], np.int64), rule, length), (key,))
    value_ranges(frames.data, index.first, 1, rule, length, 0, np.empty((0, 2), np.int64))


def can_read(frames: Frames) -> bool:
    """Whether all row images are in the buffer as they are."""
    return not _HIDDEN[frames.type_code].any()


def statements(frames: Frames, post_header: int) -> Ints:
    """The events that may tell of changes besides rows events; of the statements all but BEGIN. ``post_header``: bytes
    before a statement's status variables."""
    events = np.flatnonzero(_TOLD[frames.type_code])
    if post_header <= _STATUS_AT + 1:
        return events  # of a server before MySQL 5.0
    body = frames.offset[events] + frames.header_length
    end = frames.offset[events] + frames.size[events] - frames.checksum_length
    queries = np.flatnonzero((frames.type_code[events] == EventType.QUERY) & (end - body > post_header))
    head = body[queries]
    status = frames.data[head + _STATUS_AT] | frames.data[head + _STATUS_AT + 1].astype(np.int64) << 8
    text = head + post_header + status + frames.data[head + _DATABASE_AT] + 1
    begins = queries[text + len(_BEGIN) == end[queries]]
    begins = begins[(frames.data[end[begins][:, None] - _BEGIN_PLACES] == _BEGIN).all(axis=1)]
    return np.delete(events, begins)


def distinct_keys(
    frames: Frames, index: TableIndex, maps: Sequence[TableMap], wanted: Sequence[KeyColumns | None], name: str
) -> dict[int, Iterator[Key]] | None:
    """The distinct keys by the number of their table. ``wanted``: by number; None: its rows are of no interest.

    None if an image lacks columns, or a column's length is not known from the log: the rows have to be read one by one.
    """
    keyed = np.array([each is not None for each in wanted], np.bool_)
    events = np.flatnonzero(_ROWS[frames.type_code])
    events = events[keyed[index.number[events]]] if keyed.size else events[:0]
    if not events.size:
        return {}
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
) -> dict[int, Iterator[Key]] | None:
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
    if not found:
        return {}
    order = np.argsort(entry_table[:found], kind="stable")
    used, begin = np.unique(entry_table[order], return_index=True)
    keys = {}
    for number, entries in zip(used.tolist(), np.split(order, begin[1:]), strict=True):
        columns = wanted[number]
        assert columns is not None
        own = columns.keys(data, image[entries], int(widths[number]))
        if own is None:
            return None
        keys[number] = own
    return keys
