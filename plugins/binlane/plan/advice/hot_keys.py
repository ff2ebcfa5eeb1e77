"""The primary keys that change most often, in memory that does not grow with the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from binlane.binlog.row_values import RowDecoder
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.charsets import guessed_text
from binlane.binlog.types.literals import quoted, spell
from binlane.binlog.vector.arrays import Ints, Words
from binlane.errors import BinlogError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor

MOST: Final = 12
"""Keys that are shown."""
KEPT: Final = 1 << 16
"""Keys that are counted from segment to segment."""
_LONGEST: Final = 64
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class HotKey:
    """A row that changes often."""

    table: str
    key: str
    """The values of its primary key."""
    changes: int
    """At least so many."""


@dataclass(slots=True)
class HotKeys:
    """Counts the changes of each key by its hash."""

    missed: int = 0
    """A key may have been changed so many times more than is counted here; 0: all counts are exact."""
    _changes: dict[int, int] = field(default_factory=dict)
    _shown: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, own: Words, image: Ints, number: Ints, shown: Callable[[int, int], tuple[str, str]]) -> None:
        """Add a segment's row changes: ``own``: the hash of each row's key, 0 for none; ``image``: where an image of
        the row begins; ``number``: its table. ``shown``: names of table and key by table and image."""
        rows = np.flatnonzero(own)
        found, first, changes = np.unique(own[rows], return_index=True, return_counts=True)
        lost = 0
        if found.size > KEPT:
            # a segment may have millions of keys: too many to look at one by one
            lost = int(np.partition(changes, -KEPT - 1)[-KEPT - 1])
            chosen = (changes > lost) | np.isin(found, np.array(list(self._changes), np.uint64))
            found, first, changes = found[chosen], first[chosen], changes[chosen]
        place = dict(zip(found.tolist(), rows[first].tolist(), strict=True))
        for value, count in zip(found.tolist(), changes.tolist(), strict=True):
            self._changes[value] = self._changes.get(value, 0) + count
        # a key that is shown at the end is among the first when its last change has been counted
        for value, _ in self._first():
            if value not in self._shown and value in place:
                row = place[value]
                self._shown[value] = shown(int(number[row]), int(image[row]))
        if len(self._changes) > KEPT:
            ordered = sorted(self._changes.items(), key=_rank)
            lost = max(lost, ordered[KEPT][1])
            self._changes = dict(ordered[:KEPT])
            self._shown = {value: text for value, text in self._shown.items() if value in self._changes}
        self.missed += lost

    def first(self) -> tuple[HotKey, ...]:
        """The keys that have changed more than once, the hottest first."""
        return tuple(HotKey(*self._shown[value], count) for value, count in self._first() if count > 1)

    def _first(self) -> list[tuple[int, int]]:
        return sorted(self._changes.items(), key=_rank)[:MOST]


def _rank(entry: tuple[int, int]) -> tuple[int, int]:
    return -entry[1], entry[0]


def shown_key(table: TableMap, flavor: Flavor, places: Sequence[int], data: memoryview, image: int) -> tuple[str, str]:
    """A table's name, and the values of its columns ``places`` in the full image that begins at ``image``."""
    columns = columns_of(table, flavor)
    decoder = RowDecoder(table, columns)
    at, values = image + (table.width + 7) // 8, dict[int, bytes]()
    for place, (prefix, length) in enumerate(decoder.rules[: max(places) + 1]):
        if not data[image + (place >> 3)] >> (place & 7) & 1:
            size = int.from_bytes(data[at : at + prefix], "little") if prefix else length
            values[place] = bytes(data[at + prefix : at + prefix + size])
            at += prefix + size
    texts = []
    for place in places:
        try:
            value = decoder.readers[place](values[place])
        except (ValueError, BinlogError):
            value = values[place]
        text = guessed_text(value) if isinstance(value, bytes) else None
        texts.append((spell(columns[place], value) if text is None else quoted(text))[:_LONGEST])
    return f"{table.database}.{table.table}", ", ".join(texts)
