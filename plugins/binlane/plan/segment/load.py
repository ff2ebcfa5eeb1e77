"""How much of a segment each database has: what ``(hash-method)=load`` places shards by."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from binlane.binlog.transactions import Transaction
from binlane.lazy_dataclass import dataclass
from binlane.plan.segment.columns import Run, SegmentColumns
from binlane.plan.transaction.route_key import TransactionClass


@dataclass(frozen=True, slots=True)
class Load:
    """A part of a log."""

    transactions: int = 0
    rows: int = 0
    """Row changes."""
    bytes: int = 0
    """Of all its events; compressed ones count as they are read (``binlog.vector.inflated_segment``)."""

    def __add__(self, other: Load) -> Load:
        return Load(self.transactions + other.transactions, self.rows + other.rows, self.bytes + other.bytes)


@dataclass(slots=True)
class Loads:
    """The parts of a segment: plain transactions by database, all others by class."""

    databases: dict[str, Load] = field(default_factory=dict)
    classes: dict[TransactionClass, Load] = field(default_factory=dict)

    def add(self, columns: SegmentColumns, described: TransactionClass, transaction: Transaction) -> None:
        """Add a transaction that is not in a run."""
        first, end = np.searchsorted(columns.frames.offset, [transaction.start, transaction.end]).tolist()
        rows = int(columns.rows_before[end] - columns.rows_before[first])
        load = Load(1, rows, int(columns.bytes_before[end] - columns.bytes_before[first]))
        plain = described.plain_database
        if plain is not None:
            self.databases[plain] = self.databases.get(plain, Load()) + load
        else:
            self.classes[described] = self.classes.get(described, Load()) + load

    def add_run(self, columns: SegmentColumns, run: Run) -> None:
        """Add a run."""
        names = columns.databases
        transactions, rows, size = (
            np.bincount(run.database, sums, minlength=len(names)).astype(np.int64).tolist()
            for sums in (
                None,
                columns.rows_before[run.end] - columns.rows_before[run.first],
                columns.bytes_before[run.end] - columns.bytes_before[run.first],
            )
        )
        for name, *found in zip(names, transactions, rows, size, strict=True):
            if found[0]:
                self.databases[name] = self.databases.get(name, Load()) + Load(*found)

    def merge(self, other: Loads) -> None:
        """Add another segment's."""
        for name, load in other.databases.items():
            self.databases[name] = self.databases.get(name, Load()) + load
        for described, load in other.classes.items():
            self.classes[described] = self.classes.get(described, Load()) + load
