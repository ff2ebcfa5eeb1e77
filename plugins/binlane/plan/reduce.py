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
    index_rows,
    row_images,
    table_layouts,
    table_maps,
)
from binlane.binlog.joining import joined
from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsFlag, RowsKind
from binlane.binlog.synthesis import DELETE, INSERT, KINDS, UPDATE, Front, Rows, payloads, row_counts
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, EventType
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
_KIND_OF: Final = np.zeros(256, np.int64)
"""Of a rows event's type, what ``synthesis`` calls its rows."""
for _code, _kind in ROWS_KINDS.items():
    _KIND_OF[_code] = {RowsKind.DELETE: DELETE, RowsKind.UPDATE: UPDATE, RowsKind.INSERT: INSERT}[_kind]
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
        if not self.keys:
            return
        frames, tables = self._stretch._frames, len(self.keys)
        codes = frames.type_code[self._event]
        is_v2 = np.zeros(tables, np.bool_)
        # of the source's first event of each table
        seen, first = np.unique(self._table, return_index=True)
        is_v2[seen] = np.isin(codes[first], list(_V2))
        fronts = [
            Front(bytes(frames.data.data[at : at + size]), table.width, v2)
            for at, size, table, v2 in zip(
                frames.offset[self.map_events].tolist(),
                frames.size[self.map_events].tolist(),
                self.maps,
                is_v2.tolist(),
                strict=True,
            )
        ]
        rows = self._rows_left()
        for payload, counts in payloads(frames.data, fronts, rows, min(_EVENT_BYTES, self.room), payload_bytes):
            result.items.append(Item(ItemKind.ROWS, joined(payload), counts))
        read = np.bincount(self._table * KINDS + _KIND_OF[codes], minlength=tables * KINDS).reshape(-1, KINDS)
        saved = rows.counts(rows.table, tables) - read
        result.saved |= {key: row_counts(counts) for key, counts in zip(self.keys, saved, strict=True)}

    def _rows_left(self) -> Rows:
        """Table by table, phase by phase; within a phase in the order in which their keys were met."""
        left, table = self._left, self._entry_table[: self._count]
        gone = np.flatnonzero((left == folding.DELETE) | (left == folding.SPLIT))
        changed = np.flatnonzero(left == folding.UPDATE)
        come = np.flatnonzero((left == folding.INSERT) | (left == folding.SPLIT))
        restored = np.flatnonzero(self._restored)
        nothing = np.full((self._count + restored.size, 2), -1, np.int64)
        kept = self._kept[restored, :2]
        phases = (
            (DELETE, table[gone], self._before[gone], nothing),
            (INSERT, restored, nothing, kept),
            (DELETE, restored, kept, nothing),
            (UPDATE, table[changed], self._before[changed], self._now[changed]),
            (INSERT, table[come], nothing, self._now[come]),
        )
        sizes = [tables.size for _, tables, _, _ in phases]
        of = np.concatenate([tables for _, tables, _, _ in phases])
        order = np.argsort(of * len(phases) + np.repeat(np.arange(len(phases)), sizes), kind="stable")
        before = np.concatenate([images[:size] for size, (_, _, images, _) in zip(sizes, phases, strict=True)])
        after = np.concatenate([images[:size] for size, (_, _, _, images) in zip(sizes, phases, strict=True)])
        kind = np.repeat([kind for kind, *_ in phases], sizes)
        return Rows(of[order], kind[order], np.hstack((before, after))[order])
