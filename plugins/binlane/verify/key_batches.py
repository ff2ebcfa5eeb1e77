"""Rows compared by their keys: the conditions that both servers read fastest, with several batches under way.

A server needs as long to find a row by its own condition as to hash it. Windows often have most keys of a stretch of a
table, new rows above all: such a stretch is compared whole, as one range. The other rows in it are compared, too, so
its equality proves that of the keys; if it is not equal, its keys are compared without the other rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import field
from itertools import islice
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.verify.rows.column_text import ComparedTable, Key, is_integer
from binlane.verify.rows.keys import KeySet
from binlane.verify.rows.sides import BATCH, Difference, Pair, PendingHashes, conditions_of
from binlane.verify.throttle import Throttle

_STRETCH: Final = 5 * BATCH
"""Keys of a range."""
_OTHERS: Final = 2
"""A range may have this many rows for each of its keys."""
_LOOKED_AT: Final = 40
"""Stretches whose rows the target estimates in one statement."""
_UNDER_WAY: Final = 3
"""Batches that the servers have, so that neither waits for the other, or for this program."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Keys of one table, in order."""

    table: ComparedTable
    keys: Sequence[Key]
    range: str | None = None
    """The condition for all rows between the first key and the last; None: the keys alone are compared."""

    def parts(self) -> Iterator[Batch]:
        """Its keys alone, in batches of a size that servers read by conditions."""
        for at in range(0, len(self.keys), BATCH):
            yield Batch(self.table, self.keys[at : at + BATCH])


@dataclass(slots=True)
class KeyComparison:
    """Compares rows of tables by their keys. ``throttle``: with a limit, one batch is under way at a time."""

    pair: Pair
    throttle: Throttle
    _differs: set[TableKey] = field(default_factory=set)
    """Tables in whose ranges other rows than the keys' differ."""

    def compare(self, some: Iterable[tuple[ComparedTable, KeySet]]) -> Iterator[tuple[int, list[Difference]]]:
        """The number of keys and the rows that differ, batch by batch."""
        batches, limit = self._batches(some), 1 if self.throttle.is_on else _UNDER_WAY
        begun = deque[tuple[Batch, PendingHashes]]()
        try:
            for batch in batches:
                # a limit counts from a batch's beginning to its end
                self.throttle.begin()
                begun.append((batch, self._ask(batch)))
                if len(begun) == limit:
                    yield self._answer(*begun.popleft())
            while begun:
                yield self._answer(*begun.popleft())
        finally:
            # nobody may close a session that is at work
            for _, asked in begun:
                wait(asked.hashes)

    def _ask(self, batch: Batch) -> PendingHashes:
        if batch.range is None:
            return self.pair.ask(batch.table, conditions_of(batch.table, batch.keys))
        return self.pair.ask(batch.table, dict.fromkeys(batch.table.flavors, batch.range))

    def _answer(self, batch: Batch, asked: PendingHashes) -> tuple[int, list[Difference]]:
        if batch.range is None:
            found = asked.answer()[1]
        elif asked.is_equal():
            found = []
        else:
            found = self._without_others(batch)
            if not found:
                self._differs.add(batch.table.target)
        self.throttle.end(len(batch.keys))
        return len(batch.keys), found

    def _without_others(self, batch: Batch) -> list[Difference]:
        """The rows that differ among the keys of a range that is not equal."""
        parts = list(batch.parts())
        if len(parts) == 1:
            # on a busy source it is these rows, most likely: they are read at once
            return self.pair.differences(batch.table, conditions_of(batch.table, batch.keys))
        return [one for part in parts for one in self._ask(part).answer()[1]]

    def _batches(self, some: Iterable[tuple[ComparedTable, KeySet]]) -> Iterator[Batch]:
        stretches = (stretch for table, keys in some for stretch in _stretches(table, keys))
        while looked_at := list(islice(stretches, _LOOKED_AT)):
            ranges = self._ranges(looked_at)
            for number, stretch in enumerate(looked_at):
                if number in ranges and stretch.table.target not in self._differs:
                    yield Batch(stretch.table, stretch.keys, ranges[number])
                else:
                    yield from stretch.parts()

    def _ranges(self, stretches: Sequence[Batch]) -> dict[int, str]:
        """The conditions of the stretches that have few other rows, by the target's estimate."""
        ranges = {
            number: between(stretch.table, stretch.keys)
            for number, stretch in enumerate(stretches)
            if all(map(is_integer, stretch.table.key))
        }
        if not ranges:
            return {}
        queries = (
            f"SELECT 1 FROM {self.pair.target.name(stretches[number].table)} WHERE {where}"
            for number, where in ranges.items()
        )
        rows = self.pair.target.execute(f"EXPLAIN FORMAT=TRADITIONAL {' UNION ALL '.join(queries)}")
        place = -3 if self.pair.target.flavor(stretches[0].table) is Flavor.MYSQL else -2
        # MariaDB has a row of the union itself, behind all others; NULL: no row
        estimated = zip(ranges.items(), rows, strict=False)
        return {
            number: where
            for (number, where), row in estimated
            if int(row[place] or 0) <= _OTHERS * len(stretches[number].keys)
        }


def between(table: ComparedTable, keys: Sequence[Key]) -> str:
    """The condition for all rows from the first of these integer keys to the last, and possibly more: columns that have
    one value in both, and the next one's range."""
    first, last = keys[0], keys[-1]
    conditions = []
    for column, low, high in zip(table.key, first, last, strict=True):
        name = identifier(column.name)
        if low != high:
            conditions.append(f"{name} BETWEEN {low} AND {high}")
            break
        conditions.append(f"{name} = {low}")
    return " AND ".join(conditions)


def _stretches(table: ComparedTable, keys: KeySet) -> Iterator[Batch]:
    ordered = keys.in_order(table)
    for at in range(0, len(ordered), _STRETCH):
        yield Batch(table, ordered[at : at + _STRETCH])
