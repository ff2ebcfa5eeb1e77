"""Blocks of 10, 100 and 1,000 transactions in a row: whether they share a key, what folds in them, what they open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.arrays import Ints, Words
from binlane.binlog.vector.frames import TableLayouts, row_images, table_layouts
from binlane.binlog.wire import EventType
from binlane.kernels import write_sets
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.advice.hot_keys import HotKeys, shown_key
from binlane.plan.advice.table_keys import KeyLayout, KeyOfRow, TableKeys
from binlane.plan.segment.columns import INSERT, Run, SegmentColumns

SIZES: Final = (10, 100, 1000)
"""Transactions in a row. Each divides the next, so that a block begins only where all smaller ones do."""
KEYS: Final = 1 << 20
"""Most keys of a block that are remembered; of a block with more, less is known."""
_HIDDEN: Final = np.zeros(256, np.bool_)
"""Events whose row images are not in the log as they are."""
_HIDDEN[[EventType.PARTIAL_UPDATE_ROWS, *COMPRESSED_ROWS]] = True


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """The full blocks of one size; those that a log's end cuts off are not counted."""

    size: int
    """Transactions."""
    free: int
    """Blocks of which no two transactions share a key."""
    shared: int
    unknown: int
    """Blocks without a shared key as far as their keys are known: the others have statements, or rows whose keys the
    log does not have."""
    chains: int
    """The sum of each block's longest chain: transactions that have to follow one another, since each shares a key with
    the one before; at least so many."""
    rows: int
    """Row changes of tables with known keys."""
    left: int
    """Different rows among these: so many row changes are left, about, where a block is folded."""
    opened: int
    """How often blocks open a table: the sum of each block's tables."""
    all_rows: int
    """Row changes of all tables."""

    @property
    def blocks(self) -> int:
        """Full blocks."""
        return self.free + self.shared + self.unknown

    @property
    def chain(self) -> float:
        """The longest chain of a block, on average; 0 without blocks."""
        return self.chains / max(self.blocks, 1)


class WriteSets:
    """Counts the blocks of a log, segment by segment; memory does not grow with the log."""

    def __init__(self, keys: TableKeys, first_seqno: int, sizes: Sequence[int] = SIZES) -> None:
        """``sizes``: each divides the next."""
        self.hot = HotKeys()
        self.unkeyed: set[TableKey] = set()
        """Tables whose rows are compared as a whole, since no key of theirs is known that identifies a row."""
        self.unknown: set[TableKey] = set()
        """Tables of which not all keys are known."""
        self._keys, self._sizes = keys, np.array(sizes, np.int64)
        self._blocks = np.zeros((len(sizes), write_sets.FACTS), np.int64)
        self._blocks[:, write_sets.BEGIN] = first_seqno
        self._depth = np.zeros((len(sizes), sizes[-1]), np.int64)
        self._numbers: dict[TableKey, int] = {}
        self._opened = np.empty((len(sizes), 0), np.int64)
        # the kernel touches few of these pages unless a block has many keys
        self._slots = np.zeros(4 * KEYS, np.uint64)
        self._who = np.empty((4 * KEYS, 3), np.int64)
        self._used = np.zeros(KEYS + 1, np.int64)

    def add(self, columns: SegmentColumns, unknown: Sequence[int]) -> None:
        """Add the next segment. ``unknown``: seqnos of transactions with changes besides rows. Raises
        UnsupportedEventError for rows with columns of unknown length."""
        seqno_of, kinds = seqnos(columns), columns.frames.type_code
        events = np.flatnonzero(columns.role >= INSERT)
        is_hidden = _HIDDEN[kinds[events]]
        hidden = np.concatenate((np.flatnonzero(kinds == EventType.TRANSACTION_PAYLOAD), events[is_hidden]))
        events = events[~is_hidden]
        number = columns.number[events]
        chosen, layouts = columns.frames.select(events), table_layouts(columns.tables)
        counts, images, lacking = row_images(chosen, number, layouts, columns.segment.name)
        beyond = sorted({*unknown, *seqno_of[hidden].tolist(), *seqno_of[events[lacking]].tolist()})
        used = set(number.tolist())
        tables = [self._keys_of(table) if place in used else None for place, table in enumerate(columns.tables)]
        whole = np.repeat(~lacking, counts)
        rows = _Rows(
            np.repeat(seqno_of[events], counts)[whole], np.repeat(number, counts).astype(np.int64)[whole], images[whole]
        )
        own = self._count(columns, layouts, KeyLayout.of(tables), rows, np.array(beyond, np.int64))

        def shown(table: int, image: int) -> tuple[str, str]:
            keys = tables[table]
            assert keys is not None, "a row with a key has a table with a key"
            flavor, data = columns.log.format.flavor, columns.frames.data.data
            return shown_key(columns.tables[table], flavor, keys[0].places, data, image)

        image = np.where(rows.images[:, 0] >= 0, rows.images[:, 0], rows.images[:, 2])
        self.hot.add(own, image, rows.number, shown)

    def finish(self, last_seqno: int) -> tuple[BlockCounts, ...]:
        """The counts of a log that ends with ``last_seqno``."""
        write_sets.move_to(last_seqno + 1, self._blocks, self._sizes, self._depth, self._slots, self._used)
        return tuple(
            BlockCounts(size, *found[write_sets.FREE :])
            for size, found in zip(self._sizes.tolist(), self._blocks.tolist(), strict=True)
        )

    def _keys_of(self, table: TableMap) -> tuple[KeyOfRow, ...] | None:
        name, found = TableKey(table.database, table.table), self._keys.of(table)
        if found is None:
            self.unknown.add(name)
        elif found[0].kind == write_sets.WHOLE_ROW:
            self.unkeyed.add(name)
        return found

    def _count(
        self, columns: SegmentColumns, layouts: TableLayouts, keys: KeyLayout, rows: _Rows, unknown: Ints
    ) -> Words:
        """Count the rows; returns the hash of each row's own key."""
        names = [TableKey(table.database, table.table) for table in columns.tables]
        ids = np.array([self._numbers.setdefault(name, len(self._numbers)) for name in names], np.int64)
        new = np.full((self._sizes.size, len(self._numbers) - self._opened.shape[1]), -1, np.int64)
        self._opened = np.concatenate((self._opened, new), axis=1)
        ranges = np.empty((max((table.width for table in columns.tables), default=0), 2), np.int64)
        own = np.empty(rows.seqno.size, np.uint64)
        write_sets.count(
            columns.frames.data, rows.images, rows.seqno, rows.number, layouts.tables, layouts.rule, layouts.length,
            ranges, keys.is_told, ids, self._opened, keys.key_at, keys.seed, keys.kind, keys.place_at, keys.place,
            keys.prefix, unknown, self._blocks, self._sizes, self._depth, self._slots, self._who, self._used, own,
        )  # fmt: skip
        return own


@dataclass(frozen=True, slots=True)
class _Rows:
    """A segment's row changes with all columns."""

    seqno: Ints
    number: Ints
    """Each row's table."""
    images: Ints


def seqnos(columns: SegmentColumns) -> Ints:
    """The seqno of each event's transaction; events between transactions have that of the one before."""
    found = np.full(columns.frames.offset.size, columns.segment.first_seqno, np.int64)
    for step in columns.walk():
        if isinstance(step, Run):
            found[step.first] = step.seqno + np.arange(step.size)
        else:
            found[int(np.searchsorted(columns.frames.offset, step.transaction.start))] = step.seqno
    return np.maximum.accumulate(found)
