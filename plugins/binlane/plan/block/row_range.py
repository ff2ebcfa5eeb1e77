"""A range of row events: indexes into the framed events of a segment, or of a few blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.table_map import TableMap
from binlane.binlog.unlogged_lengths import may_have_fractions
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import (
    Frames,
    TableIndex,
    TableLayouts,
    frame,
    index_rows,
    strip_events,
    table_layouts,
)
from binlane.binlog.vector.frames import table_maps as parsed_maps
from binlane.kernels import folding
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.block.reducible_tables import TableRule

_NAME: Final = "block"
_NO_FLAGS: Final[NDArray[np.uint8]] = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class FoldTables:
    """The tables of framed events in the form that the folding kernels take; made once for any number of ranges.

    A table has one number for each of its TABLE_MAP bodies, and one key.
    """

    frames: Frames
    number: NDArray[np.int32]
    """One entry an event, as ``TableIndex.number``."""
    maps: tuple[TableMap, ...]
    """One entry a number."""
    key_of: Ints
    """One entry a number: its index in ``keys``."""
    keys: tuple[TableKey, ...]
    fits: NDArray[np.bool_]
    """One entry a number: whether its key has a rule with the same number of columns."""
    apart: NDArray[np.bool_]
    """One entry a number: tables that are not folded, and whose rows only a server can read (``unlogged_lengths``)."""
    layouts: TableLayouts
    flag_at: Ints
    """One entry a key: where its columns begin in ``flags``."""
    flags: NDArray[np.uint8]
    counters: Ints
    """(keys, 2): the AUTO_INCREMENT column or -1, and whether it is signed."""
    ends: Ints
    """(keys, 2): number of columns up to the last of the primary key, and up to the last of any other unique key."""

    @classmethod
    def of(
        cls, frames: Frames, index: TableIndex, maps: tuple[TableMap, ...], rules: Mapping[TableKey, TableRule]
    ) -> FoldTables:
        """The tables of ``frames``; ``maps`` has an entry for each number of ``index``."""
        places: dict[TableKey, int] = {}
        key_of = np.array(
            [places.setdefault(TableKey(table.database, table.table), len(places)) for table in maps], np.int64
        )
        # tables with equal columns and keys share a rule (``table_rules``), and a fleet has 10,000 of them
        numbers, distinct = dict[int, int](), list[TableRule | None]()
        rule_of = np.empty(len(places), np.int64)
        for place, rule in enumerate(map(rules.get, places)):
            rule_of[place] = number = numbers.setdefault(id(rule), len(distinct))
            if number == len(distinct):
                distinct.append(rule)
        width = np.array([-1 if rule is None else rule.width for rule in distinct], np.int64)[rule_of]
        counters = np.array([_counter(rule) for rule in distinct], np.int64).reshape(-1, 2)[rule_of]
        ends = np.array([_ends(rule) for rule in distinct], np.int64).reshape(-1, 2)[rule_of]
        of_rule = [_flags(rule) for rule in distinct]
        flags = np.concatenate([_NO_FLAGS, *(of_rule[number] for number in rule_of.tolist())])
        fits = width[key_of] == np.array([len(table.column_types) for table in maps], np.int64)
        apart = np.zeros(len(maps), np.bool_)
        for number in np.flatnonzero(~fits).tolist():
            apart[number] = may_have_fractions(maps[number])
        return cls(
            frames, index.number, maps, key_of, tuple(places), fits, apart, table_layouts(maps),
            np.cumsum(np.maximum(width, 0)) - np.maximum(width, 0), flags, counters, ends,
        )  # fmt: skip


def _flags(rule: TableRule | None) -> NDArray[np.uint8]:
    """One entry a column."""
    if rule is None:
        return _NO_FLAGS
    flags = np.zeros(rule.width, np.uint8)
    flags[[*rule.unique]] |= folding.UNIQUE
    flags[[*rule.primary]] |= folding.PRIMARY
    return flags


def _counter(rule: TableRule | None) -> tuple[int, int]:
    """A row of ``FoldTables.counters``."""
    if rule is None:
        return -1, -1
    return -1 if rule.counter is None else rule.counter, rule.counter_signed


def _ends(rule: TableRule | None) -> tuple[int, int]:
    """A row of ``FoldTables.ends``."""
    if rule is None:
        return 0, 0
    others = set(rule.unique) - set(rule.primary)
    return max(rule.primary, default=-1) + 1, max(rule.unique) + 1 if others else 0


@dataclass(frozen=True, slots=True)
class RowRange:
    """TABLE_MAP and rows events of ``tables``: whole statements, in order."""

    tables: FoldTables
    events: Ints
    """Indexes into ``tables.frames``."""

    @classmethod
    def of(cls, payload: bytes, rules: Mapping[TableKey, TableRule]) -> RowRange:
        """All events of a payload without checksums. Raises BinlogError if it is damaged."""
        frames = frame(payload, 0, 0)
        frames.check(_NAME)
        index = index_rows(frames, _NAME)
        tables = FoldTables.of(frames, index, parsed_maps(frames, index, _NAME), rules)
        return cls(tables, np.arange(frames.offset.size, dtype=np.int64))

    @property
    def size(self) -> int:
        """Bytes of the events as a BINLOG payload."""
        return int(self.lengths().sum())

    def lengths(self) -> Ints:
        """Bytes of each event in a BINLOG payload, which has the shortest header and no checksum."""
        frames = self.tables.frames
        return frames.size[self.events].astype(np.int64) - frames.checksum_length

    def payload(self) -> bytes:
        """The events as a BINLOG payload."""
        return strip_events(self.tables.frames, self.events)

    @classmethod
    def joined(cls, row_ranges: Sequence[RowRange]) -> RowRange:
        """The concatenation of ranges of the same tables."""
        return cls(row_ranges[0].tables, np.concatenate([row_range.events for row_range in row_ranges]))

    def part(self, wanted: Ints | NDArray[np.bool_]) -> RowRange:
        """The selected events."""
        return RowRange(self.tables, self.events[wanted])
