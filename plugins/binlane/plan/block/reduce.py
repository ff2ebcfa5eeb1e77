"""The reducer: a range of row events becomes its net effect, in as few many-row events as possible.

A range holds row events only. Row images of one key are folded as bytes (``kernels.folding`` has the algebra). The
remaining changes are written table by table: deletes (and the old half of each update that changes a unique key), then
updates, then inserts. This order violates no key: the source's final state satisfies all keys, and the rows left after
the deletes are part of both the first and the final state. Tables that must not be folded keep their events in order,
in front of the others: folded tables have no foreign keys, so the order between tables does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsEvent, RowsKind
from binlane.binlog.rows_payload import ending_statement
from binlane.binlog.unlogged_lengths import count_rows_of_any_length
from binlane.binlog.vector.arrays import Ints, distinct
from binlane.binlog.vector.frames import count_events, first_appearances, row_images
from binlane.binlog.vector.row_events import Rows
from binlane.binlog.wire import EventType
from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import Item, ItemKind, RowCounts, TableKey
from binlane.plan.block.deal import Deal
from binlane.plan.block.folding import Folding
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.row_range import RowRange
from binlane.plan.block.selected_rows import SelectedRows

_NAME: Final = "block"
_UNFIT: Final = np.zeros(256, np.bool_)
"""Event types whose row images are compressed or partial in the log."""
_UNFIT[[EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS]] = True
_BY_KEY: Final = -1
"""In place of a lane: by primary key."""


@dataclass(frozen=True, slots=True)
class Loose:
    """An event that is not folded: a TABLE_MAP (``counts`` None) or a rows event."""

    event: bytes
    counts: RowCounts | None


@dataclass(slots=True)
class Reduction:
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
    deal: Deal | None = None
    """The lanes that get the changes; None: they stay together."""
    folds: bool = True
    """False: all changes keep their order, and are only dealt."""

    def reduce(self, events: bytes) -> Reduction:
        """The net effect of TABLE_MAP and rows events without checksums, of a reducer that does not deal."""
        [reduced] = self.shares(RowRange.of(events, self.rules)) or [Reduction()]
        return reduced

    def shares(self, row_range: RowRange) -> list[Reduction]:
        """The net effect of a range whose ``FoldTables`` have this reducer's rules: one share for each lane that has
        changes, or all in one."""
        return _Reduction(self, row_range).shares()


class _Reduction:
    def __init__(self, reducer: Reducer, row_range: RowRange) -> None:
        self.reducer, self.row_range, self.tables = reducer, row_range, row_range.tables
        self.frames = self.tables.frames.select(row_range.events)
        self.number = self.tables.number[row_range.events]
        self.apart = np.append(self.tables.apart, [False])[self.number]
        self.readable = np.where(self.apart, -1, self.number).astype(np.int32)
        """As ``number``, without the tables whose rows cannot be read."""
        self.used, self.first = first_appearances(self.number, len(self.tables.maps))
        """Table numbers in order of appearance, and the index of each one's first event in the range."""
        self.key_of_used: list[int] = self.tables.key_of[self.used].tolist()

    def shares(self) -> list[Reduction]:
        if self.used.size == 0:
            return []
        if not self.reducer.folds or _UNFIT[self.frames.type_code].any():
            kept_in_order, counts, folded = set(self.key_of_used), None, None
        else:
            counts, images, lacking = row_images(self.frames, self.readable, self.tables.layouts, _NAME)
            kept_in_order = self._not_folded(lacking)
            # a second pass: without the first's misfits, images have other room, which may make new misfits
            while (folded := Folding(self._selected(counts, images, kept_in_order))).misfits:
                kept_in_order |= folded.misfits
        shares: dict[int | None, Reduction] = {}
        for lane, keys in self._by_lane(kept_in_order).items():
            if lane == _BY_KEY:
                self._add(shares, *self._by_key(keys))
            else:
                shares.setdefault(lane, Reduction(lane=lane)).loose.extend(self._loose(keys, counts))
        if folded is not None and folded.selected.key_ids:
            self._add(shares, folded.selected, folded.rows_left())
        return list(shares.values())

    def _selected(self, counts: Ints, images: Ints, kept_in_order: set[int]) -> SelectedRows:
        """The rows of the tables that are to be folded."""
        wanted = [key for key in dict.fromkeys(self.key_of_used) if key not in kept_in_order]
        return SelectedRows(
            self.row_range, self.frames, (self.used, self.first), wanted, (counts, images), self.reducer.largest_bytes
        )

    def _by_key(self, keys: set[int]) -> tuple[SelectedRows, Rows]:
        """The rows of tables that are dealt by key, in order. Raises PlanError for a row without its whole image, which
        the scan has not seen (``plan.window.placement``)."""
        chosen = np.isin(self.tables.key_of[self.number], list(keys))
        number = np.where(chosen, self.number, -1).astype(np.int32)
        counts, images, lacking = row_images(self.frames, number, self.tables.layouts, _NAME)
        if not self.tables.fits[self.number[chosen]].all() or lacking.any():
            names = ", ".join(str(self.tables.keys[key]) for key in sorted(keys))
            raise PlanError(
                f"{names}: expected rows with all of their columns, which go by primary key, found others; report this "
                'as a bug, and set lanes.divide = "table" to go on'
            )
        maps, rows = (self.used, self.first), (counts, images)
        found = SelectedRows(self.row_range, self.frames, maps, sorted(keys), rows, self.reducer.largest_bytes)
        return found, found.by_key()

    def _add(self, shares: dict[int | None, Reduction], selected: SelectedRows, rows: Rows) -> None:
        """Add rows to their lanes' shares, in BINLOG statements of about ``payload_bytes`` at most."""
        deal, saved = self.reducer.deal, selected.saved(rows)
        lanes = None if deal is None else self._lanes_of_rows(deal, selected, rows)
        for lane in (None,) if lanes is None else distinct(lanes).tolist():
            share = shares.setdefault(lane, Reduction(lane=lane))
            part = rows if lanes is None else rows.part(lanes == lane)
            for payload, counts in selected.payloads(part, self.reducer.payload_bytes):
                share.items.append(Item(ItemKind.ROWS, payload, counts))
        first = shares.setdefault(None if deal is None else 0, Reduction(lane=None if deal is None else 0))
        first.saved |= saved

    def _lanes_of_rows(self, deal: Deal, selected: SelectedRows, rows: Rows) -> Ints:
        lanes: Ints = self._lanes_of(deal, selected.key_ids)[rows.table]
        by_key = lanes == _BY_KEY
        if by_key.any():
            lanes[by_key] = selected.lanes_of(rows.part(by_key), deal)
        return lanes

    def _lanes_of(self, deal: Deal, keys: Sequence[int]) -> Ints:
        """The lane of each table, or ``_BY_KEY``."""
        found = [deal.lane_of(self.tables.keys[key]) for key in keys]
        return np.array([_BY_KEY if lane is None else lane for lane in found], np.int64)

    def _by_lane(self, keys: set[int]) -> dict[int | None, set[int]]:
        """The tables of each lane."""
        ordered, deal = sorted(keys), self.reducer.deal
        if deal is None:
            return {None: keys} if keys else {}
        lanes = self._lanes_of(deal, ordered)
        return {lane: {ordered[at] for at in np.flatnonzero(lanes == lane)} for lane in distinct(lanes).tolist()}

    def _not_folded(self, lacking: NDArray[np.bool_]) -> set[int]:
        """Keys without a rule, with TABLE_MAPs of different layouts, or with an image that lacks columns."""
        tables, found, shape = self.tables, set[int](), dict[int, int]()
        shapes = tables.layouts.tables[self.used, 0].tolist()
        for key, fits, one in zip(self.key_of_used, tables.fits[self.used].tolist(), shapes, strict=True):
            if not fits or shape.setdefault(key, one) != one:
                found.add(key)
        for number in distinct(self.number[lacking]).tolist():
            found.add(int(tables.key_of[number]))
        return found

    def _loose(self, keys: set[int], counts: Ints | None = None) -> Iterator[Loose]:
        """The events of ``keys`` in order. If a statement's last rows event is folded, the one before ends it."""
        if not keys:
            return
        if counts is None:
            counts = count_events(self.frames, self.readable, self.tables.maps, self.tables.layouts, _NAME)
        counts = self._with_those_apart(counts)
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

    def _with_those_apart(self, counts: Ints) -> Ints:
        """The rows of each event, with those that cannot be read."""
        counts = counts.copy()
        for event in np.flatnonzero(self.apart & (self.frames.type_code != EventType.TABLE_MAP)).tolist():
            rows = RowsEvent.parse(int(self.frames.type_code[event]), self.frames.body(event))
            counts[event], _ = count_rows_of_any_length(rows, self.tables.maps[self.number[event]])
        return counts


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
