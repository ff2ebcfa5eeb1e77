"""The reducer: a stretch of row events becomes its net effect, as few many-row events.

Within a stretch nothing but row events stands. Images of one key are folded as bytes (``binlog.folding`` has the
algebra); what is left is written table by table: deletes (with the old halves of updates that change a unique key),
then updates, then inserts. The source's final state satisfies its own constraints, and what the deletes leave is a part
of both the first and the final state, so this order never collides. Tables that may not be folded keep their events in
order, before the others: folded tables have no foreign keys, so the order between tables does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog import folding, kernels
from binlane.binlog.frames import (
    Frames,
    TableIndex,
    count_rows,
    frame,
    gather,
    index_rows,
    row_images,
    table_layouts,
    table_maps,
)
from binlane.binlog.joining import joined
from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsFlag, RowsKind
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, EventType, build_event
from binlane.model import Item, ItemKind, RowCounts, TableKey
from binlane.plan.table_rules import TableRule

Ints = NDArray[np.int64]

_NAME: Final = "block"
_EVENT_BYTES: Final = 128 << 10
"""Row images in one synthesized event, about."""
_HEAD_BYTES: Final = 2 << 10
"""More than stands before the images of an event: its header, its flags, two bitmaps of 4,096 columns."""
_UNFIT: Final = frozenset({EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS})
_V2: Final = frozenset({EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2})
_CODES: Final[Mapping[tuple[RowsKind, bool], int]] = {
    (RowsKind.INSERT, False): EventType.WRITE_ROWS_V1,
    (RowsKind.UPDATE, False): EventType.UPDATE_ROWS_V1,
    (RowsKind.DELETE, False): EventType.DELETE_ROWS_V1,
    (RowsKind.INSERT, True): EventType.WRITE_ROWS_V2,
    (RowsKind.UPDATE, True): EventType.UPDATE_ROWS_V2,
    (RowsKind.DELETE, True): EventType.DELETE_ROWS_V2,
}
_FLAGS_AT: Final = HEADER.size + 6


@dataclass(frozen=True, slots=True)
class Loose:
    """An event that keeps its place: a TABLE_MAP (``counts`` None) or a rows event."""

    event: bytes
    counts: RowCounts | None


@dataclass(slots=True)
class Reduced:
    """A stretch's net effect."""

    loose: list[Loose] = field(default_factory=list)
    """Events of tables that are not folded, in order; to be sent before ``items``."""
    items: list[Item] = field(default_factory=list)
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes written less those read, by folded table."""


@dataclass(frozen=True, slots=True)
class Reducer:
    """Folds stretches of row events of one window. The same stretch gives the same bytes."""

    rules: Mapping[TableKey, TableRule]
    payload_bytes: int
    """Bytes of events in one BINLOG statement, usually."""
    largest_bytes: int
    """Bytes of events in the largest one that the target takes."""

    def reduce(self, events: bytes) -> Reduced:
        """The net effect of TABLE_MAP and rows events without checksums."""
        return _Stretch(self, events).reduced()


class _Stretch:
    def __init__(self, reducer: Reducer, events: bytes) -> None:
        self._reducer = reducer
        self._frames: Frames = frame(events, 0, 0)
        self._frames.check(_NAME)
        self._index: TableIndex = index_rows(self._frames, _NAME)
        self._maps = table_maps(self._frames, self._index, _NAME)
        self._is_rows = np.isin(self._frames.type_code, list(ROWS_KINDS))
        self._keys = [TableKey(table.database, table.table) for table in self._maps]

    def reduced(self) -> Reduced:
        unfit = np.isin(self._frames.type_code, list(_UNFIT))
        if unfit.any() or not self._maps:
            return Reduced(loose=list(self._loose(set(self._keys))))
        counts, images = row_images(self._frames, self._index, self._maps, _NAME)
        kept_in_order = self._not_folded()
        while True:
            folded = _Folding(self, counts, images, kept_in_order)
            if folded.misfits:
                kept_in_order |= folded.misfits
                continue
            result = Reduced(loose=list(self._loose(kept_in_order, counts)))
            folded.emit(result, self._reducer.payload_bytes)
            return result

    def _not_folded(self) -> set[TableKey]:
        """Tables without a rule, of another shape than the rule's, or with an image that lacks columns."""
        found = set()
        shape: dict[TableKey, TableMap] = {}
        for key, table in zip(self._keys, self._maps, strict=True):
            rule = self._reducer.rules.get(key)
            first = shape.setdefault(key, table)
            same = first.column_types == table.column_types and first.metadata == table.metadata
            if rule is None or rule.width != table.width or not same:
                found.add(key)
        width = np.array([table.width for table in self._maps], np.int64)[self._index.number]
        shapes = np.where(self._is_rows, kernels.SHAPES[self._frames.type_code], 0).astype(np.int64)
        lacking = np.zeros(self._frames.offset.size, np.bool_)
        folding.incomplete(self._frames.data, self._frames.offset, self._frames.size, shapes, width, lacking)
        for number in np.unique(self._index.number[lacking]).tolist():
            found.add(self._keys[number])
        return found

    def _loose(self, keys: set[TableKey], counts: Ints | None = None) -> Iterator[Loose]:
        """The events of ``keys`` in order. A statement whose last rows event is folded ends with the one before."""
        if not keys:
            return
        if counts is None:
            counts = count_rows(self._frames, self._index, self._maps, _NAME)
        wanted = np.array([key in keys for key in self._keys], np.bool_)[self._index.number]
        held: list[Loose] = []
        last_rows = -1
        for event in range(self._frames.offset.size):
            at = int(self._frames.offset[event])
            data = bytes(self._frames.data.data[at : at + int(self._frames.size[event])])
            is_rows = bool(self._is_rows[event])
            if wanted[event]:
                if is_rows:
                    last_rows = len(held)
                kind = ROWS_KINDS.get(int(self._frames.type_code[event]))
                held.append(Loose(data, None if kind is None else _count(kind, int(counts[event]))))
            if is_rows and data[_FLAGS_AT] & RowsFlag.STMT_END:
                yield from _ended(held, last_rows)
                held, last_rows = [], -1
        yield from _ended(held, last_rows)


def _ended(held: list[Loose], last_rows: int) -> Iterator[Loose]:
    """The events of one statement, up to its last rows event, which ends it."""
    for place, loose in enumerate(held[: last_rows + 1]):
        if place == last_rows:
            flags = loose.event[_FLAGS_AT] | RowsFlag.STMT_END
            yield Loose(loose.event[:_FLAGS_AT] + bytes([flags]) + loose.event[_FLAGS_AT + 1 :], loose.counts)
        else:
            yield loose


def _count(kind: RowsKind, rows: int) -> RowCounts:
    return RowCounts(
        rows if kind is RowsKind.INSERT else 0,
        rows if kind is RowsKind.UPDATE else 0,
        rows if kind is RowsKind.DELETE else 0,
    )


class _Folding:
    """One pass of the kernel over the rows of the tables that are folded."""

    def __init__(self, stretch: _Stretch, counts: Ints, images: Ints, kept_in_order: set[TableKey]) -> None:
        self._stretch = stretch
        self.keys = [key for key in dict.fromkeys(stretch._keys) if key not in kept_in_order]
        self.misfits: set[TableKey] = set()
        if not self.keys:
            return
        place = {key: number for number, key in enumerate(self.keys)}
        local = np.array([place.get(key, -1) for key in stretch._keys], np.int64)[stretch._index.number]
        event = np.repeat(np.arange(counts.size), counts)
        mine = local[event] >= 0
        self._event, self._images = event[mine], np.ascontiguousarray(images[mine])
        self._table = local[self._event]
        self._prepare(place)
        self._fold()

    def _prepare(self, place: Mapping[TableKey, int]) -> None:
        stretch = self._stretch
        self.rules = [stretch._reducer.rules[key] for key in self.keys]
        newest: dict[TableKey, int] = {}
        for number, key in enumerate(stretch._keys):
            if key in place:
                newest[key] = number
        self.maps = [stretch._maps[newest[key]] for key in self.keys]
        self.map_events = [int(stretch._index.first[newest[key]]) for key in self.keys]
        # for the images of one event, in the largest BINLOG statement
        longest_map = int(stretch._frames.size[self.map_events].max())
        self.room = stretch._reducer.largest_bytes - longest_map - _HEAD_BYTES
        layouts = table_layouts(self.maps)
        flag_at = np.concatenate(([0], np.cumsum([rule.width for rule in self.rules])[:-1]))
        self._tables = np.column_stack((layouts.tables[:, :2], flag_at)).astype(np.int64)
        self._rule, self._param = layouts.rule, layouts.length
        self._flags = np.zeros(sum(rule.width for rule in self.rules), np.uint8)
        for at, rule in zip(flag_at.tolist(), self.rules, strict=True):
            self._flags[[at + column for column in rule.unique]] |= folding.UNIQUE
            self._flags[[at + column for column in rule.primary]] |= folding.PRIMARY
        self._counters = np.array(
            [(-1 if rule.counter is None else rule.counter, rule.counter_signed) for rule in self.rules], np.int64
        )

    def _fold(self) -> None:
        rows, tables = 2 * self._images.shape[0], len(self.keys)
        slots = np.full(1 << (2 * rows + 1).bit_length(), -1, np.int64)
        self._entry_table, hashes, image = np.empty(rows, np.int64), np.empty(rows, np.uint64), np.empty(rows, np.int64)
        self._before, self._now = np.full((rows, 2), -1, np.int64), np.full((rows, 2), -1, np.int64)
        self._kept, wobbly = np.zeros((tables, 3), np.int64), np.zeros(rows, np.uint8)
        highest, written = np.zeros((tables, 2), np.uint64), np.zeros(tables, np.uint64)
        data = self._stretch._frames.data
        self._count = folding.fold(
            data, self._images, self._table, self._tables, self._rule, self._param, self._flags, self._counters,
            slots, hashes, image, self._entry_table, self._before, self._now, self._kept, highest,
            wobbly,
        )  # fmt: skip
        if self._count < 0:
            self.misfits = {self.keys[int(self._table[-1 - self._count])]}
            return
        self._left, unsure = np.empty(self._count, np.int64), np.zeros(tables, np.uint8)
        folding.judge(
            data, self._count, self._entry_table, self._before, self._now, self._tables, self._rule, self._param,
            self._flags, self._counters, wobbly, self._left, written, unsure,
        )  # fmt: skip
        # images that came in two events may be too long for one
        length = (self._before[:, 1] - self._before[:, 0] + self._now[:, 1] - self._now[:, 0])[: self._count]
        too_long = length > self.room
        self._left[(self._left == folding.UPDATE) & too_long] = folding.SPLIT
        # the highest AUTO_INCREMENT value came and went: written and deleted, so that the target counts on
        self._restored = highest[:, 1] > np.maximum(highest[:, 0], written)
        self.misfits = {
            self.keys[table]
            for table in np.flatnonzero(self._restored).tolist()
            if unsure[table] or self._stays(int(self._kept[table, 2]))
        }

    def _stays(self, entry: int) -> bool:
        """Whether the key has a row when the deletes are done."""
        return int(self._before[entry, 0]) >= 0 and int(self._left[entry]) not in (folding.DELETE, folding.SPLIT)

    def emit(self, result: Reduced, payload_bytes: int) -> None:
        """Write what is left, table by table, into BINLOG statements of at most ``payload_bytes``, about."""
        writer = _Payloads(result, payload_bytes)
        for table, key in enumerate(self.keys):
            rows = self._table == table
            kinds = self._stretch._frames.type_code[self._event[rows]]
            read = RowCounts()
            for code, changes in zip(*np.unique(kinds, return_counts=True), strict=True):
                read += _count(ROWS_KINDS[int(code)], int(changes))
            synthesis = _Synthesis(self, table, bool(kinds.size and int(kinds[0]) in _V2))
            written = RowCounts()
            for event, counts in synthesis.events():
                writer.add(synthesis.table_map, event, counts)
                written += counts
            writer.end_table()
            result.saved[key] = RowCounts(
                written.inserts - read.inserts, written.updates - read.updates, written.deletes - read.deletes
            )
        writer.flush()

    def ranges(self, table: int) -> Iterator[tuple[RowsKind, Ints]]:
        """What is left of a table, phase by phase: the kind and the images as (offset, end), two a row for updates."""
        entries = np.flatnonzero(self._entry_table[: self._count] == table)
        left = self._left[entries]
        gone = entries[(left == folding.DELETE) | (left == folding.SPLIT)]
        changed = entries[left == folding.UPDATE]
        come = entries[(left == folding.INSERT) | (left == folding.SPLIT)]
        yield RowsKind.DELETE, self._before[gone]
        if self._restored[table]:
            image = self._kept[table : table + 1, :2]
            yield RowsKind.INSERT, image
            yield RowsKind.DELETE, image
        yield RowsKind.UPDATE, np.stack((self._before[changed], self._now[changed]), axis=1).reshape(-1, 2)
        yield RowsKind.INSERT, self._now[come]


class _Synthesis:
    """Builds the rows events of one table."""

    def __init__(self, folded: _Folding, table: int, is_v2: bool) -> None:
        frames = folded._stretch._frames
        self._folded, self._table, self._is_v2 = folded, table, is_v2
        self._data = frames.data
        event = folded.map_events[table]
        at = int(frames.offset[event])
        self.table_map = bytes(frames.data.data[at : at + int(frames.size[event])])
        self._timestamp, _, self._server_id, *_ = HEADER.unpack_from(self.table_map)
        width = folded.maps[table].width
        bitmap = ((1 << width) - 1).to_bytes((width + 7) // 8, "little")
        packed = bytes([width]) if width < 251 else b"\xfc" + width.to_bytes(2, "little")
        self._head = self.table_map[HEADER.size : HEADER.size + 6] + b"\0\0" + (b"\x02\0" if is_v2 else b"") + packed
        self._bitmap = bitmap

    def events(self) -> Iterator[tuple[bytes, RowCounts]]:
        """The events in the order of the phases."""
        limit = min(_EVENT_BYTES, self._folded.room)
        for kind, ranges in self._folded.ranges(self._table):
            per_row = 2 if kind is RowsKind.UPDATE else 1
            length = ranges[:, 1] - ranges[:, 0]
            size = np.concatenate(([0], np.cumsum(length)))[::per_row]
            rows, at = ranges.shape[0] // per_row, 0
            while at < rows:
                after = max(at + 1, int(np.searchsorted(size, size[at] + limit, "right")) - 1)
                chosen = slice(at * per_row, after * per_row)
                images = gather(self._data, ranges[chosen, 0], length[chosen])
                body = self._head + self._bitmap * per_row + images
                code = _CODES[kind, self._is_v2]
                yield (
                    build_event(code, body, timestamp=self._timestamp, server_id=self._server_id),
                    _count(kind, after - at),
                )
                at = after


class _Payloads:
    """Packs synthesized events into self-contained BINLOG statements."""

    def __init__(self, result: Reduced, limit: int) -> None:
        self._result, self._limit = result, limit
        self._events: list[bytes] = []
        self._size, self._counts = 0, RowCounts()
        self._map: bytes | None = None

    def add(self, table_map: bytes, event: bytes, counts: RowCounts) -> None:
        """Take a rows event of the table; its TABLE_MAP goes before the first one in each statement."""
        if self._events and self._size + len(table_map) + len(event) > self._limit:
            self.flush()
        if self._map != table_map:
            self._events.append(table_map)
            self._size += len(table_map)
            self._map = table_map
        self._events.append(event)
        self._size += len(event)
        self._counts += counts

    def end_table(self) -> None:
        """The table's last event ends its statement; nothing happens if it has none here."""
        if self._map is not None:
            event = self._events[-1]
            self._events[-1] = (
                event[:_FLAGS_AT] + bytes([event[_FLAGS_AT] | RowsFlag.STMT_END]) + event[_FLAGS_AT + 1 :]
            )
        self._map = None

    def flush(self) -> None:
        """End the BINLOG statement."""
        self.end_table()
        if self._events:
            self._result.items.append(Item(ItemKind.ROWS, joined(b"".join(self._events)), self._counts))
        self._events, self._size, self._counts = [], 0, RowCounts()
