"""The keys of a segment's row changes, found over arrays; each distinct key is decoded once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

import numpy as np

from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column as LoggedColumn
from binlane.binlog.types.readers import Reader
from binlane.binlog.types.type_codes import LengthRule
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.frames import Frames, TableIndex, row_images, table_layouts
from binlane.binlog.wire import HEADER, EventType
from binlane.errors import UnsupportedEventError
from binlane.kernels.rows import value_ranges
from binlane.lazy_dataclass import dataclass
from binlane.schema.model import Column
from binlane.verify.rows.column_text import Key, key_text
from binlane.verify.rows.keys import IntegerKeys, Integers

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
    """Of all columns."""

    def keys(self, data: Bytes, images: Ints, width: int) -> Collection[Key] | None:
        """The distinct keys of the full images that begin at ``images``; None if a column is NULL, which no key's
        column is."""
        rules = self.rules[: max(self.places) + 1]
        rule, length = (np.array(part, kind) for part, kind in zip(zip(*rules, strict=True), _RULE, strict=True))
        ranges = []
        for place in self.places:
            found = np.empty((images.size, 2), np.int64)
            if not value_ranges(data, images, width, rule, length, place, found):
                return None
            ranges.append(found)
        if all(LOGGED_TYPES[each.type_code].bits for each in self.logged):
            numbers = (_integers(data, found[:, 0], each) for found, each in zip(ranges, self.logged, strict=True))
            return IntegerKeys.distinct([tuple(numbers)])
        values = ([data.data[start:end].tobytes() for start, end in found.tolist()] for found in ranges)
        distinct = zip(*set(zip(*values, strict=True)), strict=True)
        texts = (
            map(partial(key_text, column), map(read, raw))
            for column, read, raw in zip(self.columns, self.readers, distinct, strict=True)
        )
        return set(zip(*texts, strict=True))


def _integers(data: Bytes, start: Ints, column: LoggedColumn) -> Integers:
    """The little-endian integers of a column."""
    size = LOGGED_TYPES[column.type_code].bits >> 3
    raw = np.zeros((start.size, 8), np.uint8)
    raw[:, :size] = data[start[:, None] + np.arange(size)]
    values, unused = raw.view("<u8" if column.unsigned else "<i8").ravel(), 64 - 8 * size
    integers: Integers = values << unused >> unused
    return integers


def can_read(frames: Frames) -> bool:
    """Whether all row images are in the buffer as they are."""
    return not _HIDDEN[frames.type_code].any()


def statements(frames: Frames, post_header: int) -> Ints:
    """The events that may tell of changes besides rows events; of the statements all but BEGIN. ``post_header``: bytes
    before a statement's status variables."""
    events = np.flatnonzero(_TOLD[frames.type_code])
    if post_header <= _STATUS_AT + 1:
        return events  # of a server before MySQL 5.0
    body = frames.offset[events] + HEADER.size
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
) -> dict[int, Collection[Key]] | None:
    """The distinct keys by the number of their table. ``wanted``: by number; None: its rows are of no interest.

    None if an image lacks columns, or a column's length is not known from the log: the rows have to be read one by one.
    """
    keyed = np.array([each is not None for each in wanted], np.bool_)
    events = np.flatnonzero(_ROWS[frames.type_code])
    events = events[keyed[index.number[events]]] if keyed.size else events[:0]
    if not events.size:
        return {}
    if any(each is not None and each.rules != maps[at].column_length_spec() for at, each in enumerate(wanted)):
        return None
    try:
        counts, images, lacking = row_images(frames.select(events), index.number[events], table_layouts(maps), name)
    except UnsupportedEventError:
        return None
    if lacking.any():
        return None
    # numpy sorts numbers of two bytes in linear time
    table_of = np.repeat(index.number[events].astype(np.min_scalar_type(len(maps))), counts)
    order = np.argsort(table_of, kind="stable")
    used, first = np.unique(table_of[order], return_index=True)
    keys = {}
    # the beginnings of the images before and after each change; -1: it has no such image
    for table, pairs in zip(used.tolist(), np.split(images[:, ::2][order], first[1:]), strict=True):
        columns = wanted[table]
        assert columns is not None
        own = columns.keys(frames.data, pairs[pairs >= 0], maps[table].width)
        if own is None:
            return None
        keys[table] = own
    return keys
