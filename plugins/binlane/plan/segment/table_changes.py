"""How a segment changes tables: the facts by which the size of blocks is chosen (``plan.window.size_choice``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import distinct
from binlane.binlog.wire import EventType
from binlane.lazy_dataclass import dataclass
from binlane.plan.block.size_choice import USUAL_TRANSACTIONS
from binlane.plan.segment.columns import INSERT, SegmentColumns

_BEGINS: Final = (EventType.MARIADB_GTID, EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED)
"""Every transaction begins with one of these events."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Row changes of a segment, or of a window."""

    rows: int = 0
    existing: int = 0
    """Those of rows that are there already: updates and deletes."""
    opened: int = 0
    """How often blocks of the usual size open a table: the sum over the blocks of the tables that each changes."""

    def __add__(self, other: Changes) -> Changes:
        return Changes(self.rows + other.rows, self.existing + other.existing, self.opened + other.opened)


def changes_of(columns: SegmentColumns, lanes: int) -> Changes:
    """The row changes of a segment whose transactions ``lanes`` lanes apply.

    The lane of a transaction is not known yet. Blocks of all lanes that lie side by side hold ``lanes`` times a block's
    transactions, and no table is in two of them unless its shard is divided.
    """
    events = np.flatnonzero(columns.role >= INSERT)
    rows = columns.rows[events]
    begins = np.cumsum(np.isin(columns.frames.type_code, _BEGINS))
    blocks = begins[events].astype(np.int64) // (USUAL_TRANSACTIONS * lanes)
    opened = distinct(blocks * len(columns.tables) + columns.number[events]).size
    return Changes(int(rows.sum()), int(rows[columns.role[events] > INSERT].sum()), int(opened))
