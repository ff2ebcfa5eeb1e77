"""The reducer: a range of row events becomes its net effect, in as few many-row events as possible.

A range holds row events only. Row images of one key are folded as bytes (``fold_rows`` has the algebra). The
remaining changes are written table by table: deletes (and the old half of each update that changes a unique key), then
updates, then inserts. This order violates no key: the source's final state satisfies all keys, and the rows left after
the deletes are part of both the first and the final state. Tables that must not be folded keep their events in order,
in front of the others: folded tables have no foreign keys, so the order between tables does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsKind
from binlane.binlog.rows_payload import ending_statement
from binlane.binlog.vector import fold_rows
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import count_events, first_appearances, row_images, strip_events
from binlane.binlog.vector.row_events import DELETE, INSERT, KINDS, UPDATE, Fronts, Rows, payloads, row_counts
from binlane.binlog.wire import EventType
from binlane.model import Item, ItemKind, RowCounts, TableKey
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.row_range import RowRange

_NAME: Final = "block"
_EVENT_BYTES: Final = 128 << 10
"""Approximate bytes of row images in one synthesized event."""
_HEAD_BYTES: Final = 2 << 10
"""Upper bound of the bytes in front of an event's images: its header, its flags, two bitmaps of 4,096 columns."""
_UNFIT: Final = np.zeros(256, np.bool_)
"""Event types whose row images are compressed or partial in the log."""
_UNFIT[[EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS]] = True
_IS_V2: Final = np.zeros(256, np.bool_)
_IS_V2[[EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2]] = True
_KIND_OF: Final = np.zeros(256, np.int64)
"""The kind of rows in ``row_events`` for each type of rows event."""
for _code, _kind in ROWS_KINDS.items():
    _KIND_OF[_code] = {RowsKind.DELETE: DELETE, RowsKind.UPDATE: UPDATE, RowsKind.INSERT: INSERT}[_kind]
_KIND_OF_PHASE: Final = np.array([DELETE, INSERT, DELETE, UPDATE, INSERT], np.int64)
"""By phase of ``fold_rows``."""


@dataclass(frozen=True, slots=True)
class Loose:
    """An event that is not folded: a TABLE_MAP (``counts`` None) or a rows event."""

    event: bytes
    counts: RowCounts | None


@dataclass(slots=True)
class Reduced:
    """The net effect of a range of row events."""

    loose: list[Loose] = field(default_factory=list)
    """Events of tables that are not folded, in order; sent before ``items``."""
    items: list[Item] = field(default_factory=list)
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes written minus read, by folded table."""
    lane: int | None = None
    """The lane whose share this is; None: all lanes together."""


@dataclass(frozen=True, slots=True)
class Reducer:
    """Folds ranges of row events of one window. Equal ranges give equal bytes."""

    rules: Mapping[TableKey, TableRule]
    payload_bytes: int
    """Usual bytes of events in one BINLOG statement."""
    largest_bytes: int
    """Most bytes of events in one BINLOG statement: the target takes no more."""
    lane_of: Callable[[TableKey], int] | None = None
    """The lane of each table's changes; None: they stay together."""
    folds: bool = True
    """False: all changes keep their order, and are only dealt."""

    def reduce(self, events: bytes) -> Reduced:
        """The net effect of TABLE_MAP and rows events without checksums, of a reducer that does not deal."""
        [reduced] = self.shares(RowRange.of(events, self.rules)) or [Reduced()]
        return reduced

    def shares(self, row_range: RowRange) -> list[Reduced]:
        """The net effect of a range whose ``FoldTables`` have this reducer's rules: one share for each lane that has
        changes, or all in one."""
        return _Reduction(self, row_range).shares()


class _Reduction:
    def __init__(self, reducer: Reducer, row_range: RowRange) -> None:
        self.reducer, self.row_range, self.tables = reducer, row_range, row_range.tables
        self.frames = self.tables.frames.select(row_range.events)
        self.number = self.tables.number[row_range.events]
        self.used, self.first = first_appearances(self.number, len(self.tables.maps))
        """Table numbers in order of appearance, and the index of each one's first event in the range."""
        self.key_of_used: list[int] = self.tables.key_of[self.used].tolist()

    def shares(self) -> list[Reduced]:
        if self.used.size == 0:
            return []
        if not self.reducer.folds or _UNFIT[self.frames.type_code].any():
            kept_in_order, counts, folded = set(self.key_of_used), None, None
        else:
            counts, images, lacking = row_images(self.frames, self.number, self.tables.layouts, _NAME)
            kept_in_order = self._not_folded(lacking)
            # a second pass: without the first's misfits, images have other room, which may make new misfits
            while (folded := _Folding(self, counts, images, kept_in_order)).misfits:
                kept_in_order |= folded.misfits
        found: dict[int | None, Reduced] = {}
        for lane, keys in self._by_lane(kept_in_order).items():
            found[lane] = Reduced(list(self._loose(keys, counts)), lane=lane)
        if folded is not None:
            lanes = self.lanes_of(folded.key_ids)
            for lane, each in folded.shares(lanes, self.reducer.payload_bytes):
                share = found.setdefault(lane, Reduced(lane=lane))
                share.items, share.saved = each.items, each.saved
        return list(found.values())

    def lanes_of(self, keys: Sequence[int]) -> Ints | None:
        """The lane of each table; None if the reducer does not deal."""
        lane_of = self.reducer.lane_of
        return None if lane_of is None else np.array([lane_of(self.tables.keys[key]) for key in keys], np.int64)

    def _by_lane(self, keys: set[int]) -> dict[int | None, set[int]]:
        """The tables of each lane."""
        ordered = sorted(keys)
        lanes = self.lanes_of(ordered)
        if lanes is None:
            return {None: keys} if keys else {}
        return {lane: {ordered[at] for at in np.flatnonzero(lanes == lane)} for lane in np.unique(lanes).tolist()}

    def _not_folded(self, lacking: NDArray[np.bool_]) -> set[int]:
        """Keys without a rule, with TABLE_MAPs of different layouts, or with an image that lacks columns."""
        tables, found, shape = self.tables, set[int](), dict[int, int]()
        shapes = tables.layouts.tables[self.used, 0].tolist()
        for key, fits, one in zip(self.key_of_used, tables.fits[self.used].tolist(), shapes, strict=True):
            if not fits or shape.setdefault(key, one) != one:
                found.add(key)
        for number in np.unique(self.number[lacking]).tolist():
            found.add(int(tables.key_of[number]))
        return found

    def _loose(self, keys: set[int], counts: Ints | None = None) -> Iterator[Loose]:
        """The events of ``keys`` in order. If a statement's last rows event is folded, the one before ends it."""
        if not keys:
            return
        if counts is None:
            counts = count_events(self.frames, self.number, self.tables.maps, self.tables.layouts, _NAME)
        wanted = np.isin(self.tables.key_of[self.number], list(keys))
        ends = self.frames.ends_statement(np.arange(self.frames.offset.size))
        codes, lengths = self.frames.type_code.tolist(), self.row_range.lengths()
        data, at = self.row_range.part(wanted).payload(), 0
        held: list[Loose] = []
        last_rows = -1
        for event, (code, is_wanted, size) in enumerate(zip(codes, wanted.tolist(), lengths.tolist(), strict=True)):
            kind = ROWS_KINDS.get(code)
            if is_wanted:
                if kind is not None:
                    last_rows = len(held)
                held.append(Loose(data[at : at + size], None if kind is None else _count(kind, int(counts[event]))))
                at += size
            if kind is not None and ends[event]:
                yield from _ended(held, last_rows)
                held, last_rows = [], -1
        yield from _ended(held, last_rows)


def _ended(held: list[Loose], last_rows: int) -> Iterator[Loose]:
    """The events of one statement up to its last rows event, which gets STMT_END_F."""
    for place, loose in enumerate(held[: last_rows + 1]):
        yield Loose(ending_statement(loose.event), loose.counts) if place == last_rows else loose


def _count(kind: RowsKind, rows: int) -> RowCounts:
    return RowCounts(
        rows if kind is RowsKind.INSERT else 0,
        rows if kind is RowsKind.UPDATE else 0,
        rows if kind is RowsKind.DELETE else 0,
    )


class _Folding:
    """One pass of the folding kernel over the rows of the folded tables."""

    def __init__(self, reduction: _Reduction, counts: Ints, images: Ints, kept_in_order: set[int]) -> None:
        self._reduction, self._frames, tables = reduction, reduction.frames, reduction.tables
        newest = dict(zip(reduction.key_of_used, range(reduction.used.size), strict=True))
        """The last TABLE_MAP of each key, as an index into ``used``; keys in order of appearance."""
        self.key_ids = [key for key in newest if key not in kept_in_order]
        self.misfits: set[int] = set()
        if not self.key_ids:
            return
        self._newest = np.array([newest[key] for key in self.key_ids], np.int64)
        place = np.full(len(tables.keys), -1, np.int64)
        place[self.key_ids] = np.arange(len(self.key_ids))
        local = np.repeat(place[tables.key_of[reduction.number]], counts)
        codes = np.repeat(self._frames.type_code, counts)
        mine = local >= 0
        if not mine.all():
            local, codes, images = local[mine], codes[mine], images[mine]
        self._table, self._codes, self._images = local, codes, images
        self._fold()

    def _fold(self) -> None:
        all_tables, keys = self._reduction.tables, self.key_ids
        layouts = all_tables.layouts
        of_map = layouts.tables[self._reduction.used[self._newest]]
        tables = np.column_stack((of_map[:, :2], all_tables.flag_at[keys], all_tables.ends[keys]))
        counters = all_tables.counters[keys]
        # the room for one event's images in the largest BINLOG statement, behind TABLE_MAP and header
        map_events = self._reduction.row_range.events[self._reduction.first[self._newest]]
        self._fronts = strip_events(all_tables.frames, map_events)
        self._front_size = RowRange(all_tables, map_events).lengths()
        self.room = self._reduction.reducer.largest_bytes - int(self._front_size.max()) - _HEAD_BYTES
        # one memory layout for any number of tables: the kernel is compiled anew for each layout
        self._width = np.ascontiguousarray(of_map[:, 1])
        rows, data = 2 * self._images.shape[0], self._frames.data
        slots = np.full(1 << (2 * rows + 1).bit_length(), -1, np.int32)
        self._entry_table, hashes, image = np.empty(rows, np.int64), np.empty(rows, np.uint64), np.empty(rows, np.int64)
        # not initialized: the kernel fills an entry when it creates it
        self._before, self._now = np.empty((rows, 2), np.int64), np.empty((rows, 2), np.int64)
        self._kept, was_absent = np.zeros((len(keys), 3), np.int64), np.empty(rows, np.uint8)
        highest, written = np.zeros((len(keys), 2), np.uint64), np.zeros(len(keys), np.uint64)
        misfit = np.zeros(len(keys), np.uint8)
        self._count = fold_rows.fold(
            data, self._images, self._table, tables, layouts.rule, layouts.length, all_tables.flags, counters,
            slots, hashes, image, self._entry_table, self._before, self._now, self._kept, highest,
            was_absent, misfit,
        )  # fmt: skip
        self._left, unsure = np.empty(self._count, np.int64), np.zeros(len(keys), np.uint8)
        fold_rows.judge(
            data, self._count, self._entry_table, self._before, self._now, tables, layouts.rule, layouts.length,
            all_tables.flags, counters, was_absent, self._left, written, unsure,
        )  # fmt: skip
        # a before-image and an after-image from two events may be too long for one event
        length = (self._before[:, 1] - self._before[:, 0] + self._now[:, 1] - self._now[:, 0])[: self._count]
        too_long = length > self.room
        self._left[(self._left == fold_rows.UPDATE) & too_long] = fold_rows.SPLIT
        # the highest AUTO_INCREMENT value was inserted and deleted: write both, so that the target's counter moves
        self._restored = highest[:, 1] > np.maximum(highest[:, 0], written)
        self.misfits = {keys[table] for table in np.flatnonzero(misfit).tolist()} | {
            keys[table]
            for table in np.flatnonzero(self._restored).tolist()
            if unsure[table] or self._stays(int(self._kept[table, 2]))
        }

    def _stays(self, entry: int) -> bool:
        """Whether the entry's row exists on the target after the deletes."""
        return int(self._before[entry, 0]) >= 0 and int(self._left[entry]) not in (fold_rows.DELETE, fold_rows.SPLIT)

    def shares(self, lanes: Ints | None, payload_bytes: int) -> Iterator[tuple[int | None, Reduced]]:
        """The remaining changes, table by table, in BINLOG statements of about ``payload_bytes`` at most.

        ``lanes``: the lane of each table; None: all in one share.
        """
        if not self.key_ids:
            return
        tables = len(self.key_ids)
        # events get the version of the first rows event of their table in the log
        seen, first = np.unique(self._table, return_index=True)
        is_v2 = np.zeros(tables, np.bool_)
        is_v2[seen] = _IS_V2[self._codes[first]]
        fronts = Fronts(self._fronts, self._front_size, self._width, is_v2)
        rows = self._rows_left()
        read = np.bincount(self._table * KINDS + _KIND_OF[self._codes], minlength=tables * KINDS).reshape(-1, KINDS)
        saved = rows.counts(rows.table, tables) - read
        keys = self._reduction.tables.keys
        for lane in (None,) if lanes is None else np.unique(lanes).tolist():
            mine = np.full(tables, True) if lanes is None else lanes == lane
            part = rows if lanes is None else rows.part(mine[rows.table])
            share = Reduced(lane=lane)
            for payload, counts in payloads(
                self._frames.data, fronts, part, min(_EVENT_BYTES, self.room), payload_bytes
            ):
                share.items.append(Item(ItemKind.ROWS, payload, counts))
            share.saved = {keys[self.key_ids[each]]: row_counts(saved[each]) for each in np.flatnonzero(mine).tolist()}
            yield lane, share

    def _rows_left(self) -> Rows:
        """The remaining changes by table and phase; within a phase in the order of their keys' first events."""
        left, tables = self._left, self._entry_table[: self._count]
        ends = np.zeros(len(self.key_ids) * fold_rows.PHASES, np.int64)
        count = fold_rows.places(left, tables, self._restored, ends)
        bucket, images = np.empty(count, np.int64), np.full((count, 4), -1, np.int64)
        fold_rows.arrange(left, tables, self._before, self._now, self._restored, self._kept, ends, bucket, images)
        table, phase = np.divmod(bucket, fold_rows.PHASES)
        return Rows(table, _KIND_OF_PHASE[phase], images)
