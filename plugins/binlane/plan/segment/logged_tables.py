"""The tables of one segment, as far as it decides whether their rows can be dealt by primary key."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.rows import ROWS_KINDS, RowsKind
from binlane.binlog.vector.arrays import Flags
from binlane.binlog.wire import HEADER, EventType
from binlane.kernels import rows as row_kernels
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.segment.columns import SegmentColumns

_INSERTS: Final = np.zeros(256, np.bool_)
_INSERTS[[code for code, kind in ROWS_KINDS.items() if kind is RowsKind.INSERT]] = True


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table as one segment, or a whole window, logs its rows."""

    layouts: frozenset[tuple[bytes, tuple[int, ...]]]
    """Types and metadata of its columns, one for each definition."""
    is_whole: bool
    """Each row image has all columns."""

    inserted_bytes: int = 0
    """Of its events with inserted rows."""

    def __or__(self, other: LoggedTable) -> LoggedTable:
        return LoggedTable(
            self.layouts | other.layouts,
            self.is_whole and other.is_whole,
            self.inserted_bytes + other.inserted_bytes,
        )

    def has_columns(self, width: int) -> bool:
        """Whether all of its rows are logged in one definition, of so many columns."""
        return [len(types) for types, _ in self.layouts] == [width]


def hides_rows(columns: SegmentColumns) -> bool:
    """Whether the segment has transactions that are still compressed, whose row events are not among its events."""
    return bool((columns.frames.type_code == EventType.TRANSACTION_PAYLOAD).any())


def lack_columns(columns: SegmentColumns) -> Flags:
    """Whether a row image of each table lacks a column, by the table's number."""
    frames = columns.frames
    partial = np.zeros(len(columns.tables), np.bool_)
    row_kernels.find_partial(
        frames.data, frames.offset, frames.type_code, frames.size, HEADER.size, frames.checksum_length,
        columns.number, np.array([len(table.column_types) for table in columns.tables], np.int64), partial,
    )  # fmt: skip
    return partial


def logged_tables(columns: SegmentColumns) -> dict[TableKey, LoggedTable]:
    """The tables of a segment's row events."""
    frames, partial = columns.frames, lack_columns(columns)
    inserts = (columns.number >= 0) & _INSERTS[frames.type_code]
    inserted = np.bincount(columns.number[inserts], frames.size[inserts], len(columns.tables)).astype(np.int64)
    found: dict[TableKey, LoggedTable] = {}
    for table, lacks, size in zip(columns.tables, partial.tolist(), inserted.tolist(), strict=True):
        key = TableKey(table.database, table.table)
        one = LoggedTable(frozenset({(table.column_types, table.metadata)}), not lacks, size)
        found[key] = found[key] | one if key in found else one
    return found
