"""The scans of a window's segments as one: each is folded in and let go, for a long window has too many to hold."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from dataclasses import field

import numpy as np

from binlane.binlog.vector.arrays import Ints
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.segment.load import Loads
from binlane.plan.segment.logged_tables import LoggedTable
from binlane.plan.segment.map import ScanSummary
from binlane.plan.segment.table_changes import Changes
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_tables import TemporaryStep
from binlane.plan.transaction.xa import XaEnd, XaPrepareScan


@dataclass(slots=True)
class ScannedWindow:
    """The facts of ScanSummary over several segments. A transaction that is not plain takes 12 bytes."""

    databases: dict[str, int] = field(default_factory=dict)
    """Databases of plain transactions, with the seqno of the first transaction of each."""
    classes: dict[TransactionClass, int] = field(default_factory=dict)
    """The classes of all other transactions, with the seqno of the first transaction of each."""
    prepared: list[XaPrepareScan] = field(default_factory=list)
    resolved: list[XaEnd] = field(default_factory=list)
    temporary: list[TemporaryStep] = field(default_factory=list)
    tables: dict[TableKey, LoggedTable] = field(default_factory=dict)
    hides_rows: bool = False
    changes: Changes = field(default_factory=Changes)
    loads: Loads = field(default_factory=Loads)
    _numbers: dict[TransactionClass, int] = field(default_factory=dict)
    """The place of each class in ``classes``."""
    _seqno: array[int] = field(default_factory=lambda: array("q"))
    _number: array[int] = field(default_factory=lambda: array("i"))
    """Of each transaction that is not plain: its seqno, and the place of its class."""

    @classmethod
    def of(cls, scans: Iterable[ScanSummary]) -> ScannedWindow:
        """The scans of the segments in order."""
        found = cls()
        for scan in scans:
            found.add(scan)
        return found

    def add(self, scan: ScanSummary) -> None:
        """Fold in the next segment's scan."""
        for name, seqno in scan.databases.items():
            self.databases[name] = min(seqno, self.databases.get(name, seqno))
        numbers = [self._numbers.setdefault(described, len(self._numbers)) for described in scan.classes]
        for seqno, at in scan.members:
            described = scan.classes[at]
            self.classes[described] = min(seqno, self.classes.get(described, seqno))
            self._seqno.append(seqno)
            self._number.append(numbers[at])
        self.prepared += scan.prepared
        self.resolved += scan.resolved
        self.temporary += scan.temporary
        for key, logged in scan.tables.items():
            self.tables[key] = self.tables[key] | logged if key in self.tables else logged
        self.hides_rows |= scan.hides_rows
        if scan.changes is not None:
            self.changes += scan.changes
        if scan.loads is not None:
            self.loads.merge(scan.loads)

    def transactions(self, chosen: Collection[TransactionClass]) -> tuple[Ints, Ints]:
        """The transactions of the chosen classes, ascending: their seqnos, and the place of each one's class in
        ``chosen``."""
        seqno, number = np.array(self._seqno, np.int64), np.array(self._number, np.int64)
        place = np.full(len(self._numbers), -1, np.int64)
        place[[self._numbers[described] for described in chosen]] = np.arange(len(chosen))
        place = place[number]
        found = np.flatnonzero(place >= 0)
        found = found[np.argsort(seqno[found], kind="stable")]
        return seqno[found], place[found]
