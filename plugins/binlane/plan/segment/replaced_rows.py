"""Rows that MariaDB's REPLACE has updated in place, with images that lack columns.

REPLACE gives every column that it does not name its default. Where the server updates the old row instead of deleting
it, the log has an update, whose image after the change has, with ``binlog_row_image`` MINIMAL or NOBLOB, the named
columns alone: the source's row has defaults in the others, and a replica's keeps the old values (seen on 10.11).
Nothing in the log tells the defaults, so such transactions are named.

An update by UPDATE looks the same in NOBLOB. So the statement that the log has with the rows decides, where there is
one (``binlog_annotate_row_events``, ON by default): a REPLACE, or a LOAD DATA that may be one. Behind the call of a
routine, and without a statement, an update counts as replaced in MINIMAL if its image after the change has the key of
the one before and other columns, since UPDATE leaves the key out unless it changes it.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from binlane.binlog.rows import RowsEvent
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.wire import EventType
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.plan.segment.columns import UPDATE, SegmentColumns
from binlane.plan.segment.logged_tables import lack_columns
from binlane.sql.parse.unsafe import LOGGED_IN_PART
from binlane.sql.plain_statement import parted, plain

_WORD: Final = re.compile(rb"\w+")
_REPLACES: Final = re.compile(rb"\bREPLACE\b", re.IGNORECASE)
_BLOBS: Final = frozenset({140, 245, 249, 250, 251, 252, 255})
"""Types that NOBLOB leaves out of an image: blobs, compressed ones, JSON, geometries."""
_HARMLESS: Final = frozenset({b"UPDATE", b"INSERT"})


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The update events of a segment whose rows REPLACE has written, ascending."""

    columns: SegmentColumns
    events: Ints

    @classmethod
    def of(cls, columns: SegmentColumns) -> ReplacedRows | None:
        """None if there are none."""
        if columns.log.format.flavor is not Flavor.MARIADB:
            return None
        lacking = np.flatnonzero(lack_columns(columns)).tolist()
        if not lacking:
            return None
        # all definitions that the segment has of such a table
        partial = {(table.database, table.table) for table in map(columns.tables.__getitem__, lacking)}
        numbers = [n for n, one in enumerate(columns.tables) if (one.database, one.table) in partial]
        updates = np.flatnonzero((columns.role == UPDATE) & np.isin(columns.number, numbers))
        if not updates.size:
            return None
        frames = columns.frames
        texts = np.flatnonzero(frames.type_code == EventType.ANNOTATE_ROWS)
        begins = np.flatnonzero(frames.type_code == EventType.MARIADB_GTID)
        found = []
        for event in updates.tolist():
            at = int(np.searchsorted(texts, event)) - 1
            is_there = at >= 0 and texts[at] > begins[max(int(np.searchsorted(begins, event)) - 1, 0)]
            text = bytes(frames.body(int(texts[at]))) if is_there else b""
            rows = RowsEvent.parse(int(frames.type_code[event]), frames.body(event))
            if _is_replaced(rows, columns.tables[int(columns.number[event])].column_types, text):
                found.append(event)
        return cls(columns, np.array(found, np.int64)) if found else None

    def between(self, first: int, end: int) -> Ints:
        """Those of the events [first, end)."""
        return self.events[np.searchsorted(self.events, first) : np.searchsorted(self.events, end)]

    def name(self, event: int) -> str:
        """How a plan names it."""
        table = self.columns.tables[int(self.columns.number[event])]
        return f"REPLACE of {table.database}.{table.table}{LOGGED_IN_PART}"


def _is_replaced(rows: RowsEvent, types: bytes, text: bytes) -> bool:
    before, after = (int.from_bytes(each or b"", "little") for each in (rows.columns_before, rows.columns_after))
    width = (1 << rows.width) - 1
    if after & width == width:
        return False
    # the log has the text without its session, which does not matter for the first word
    session = SessionContext()
    match = _WORD.match(parted(plain(text, session, Flavor.MARIADB), session, Flavor.MARIADB)[1])
    word = b"" if match is None else match.group().upper()
    if word in (b"REPLACE", b"LOAD"):
        return _REPLACES.search(text) is not None
    is_minimal = any(not before >> number & 1 and kind not in _BLOBS for number, kind in enumerate(types))
    return word not in _HARMLESS and is_minimal and before & after & width == before & width != after & width
