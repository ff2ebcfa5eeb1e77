"""Rows of a table without a usable key: which of those that differ can the source have changed since the watermark?

Such rows have no identity, but they can be counted. The source's rows were read behind the watermark and before the
log's end, so the log holds every change that lies between the watermark and what was read. A row that the source has
and the target lacks can be new only as often as the log adds it; a row that the target alone has can be gone from the
source only as often as the log removes it. What is beyond that was different at the watermark already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from binlane.binlog.row_values import Change
from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import FLOAT
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.model import Column
from binlane.verify.rows.column_text import Key
from binlane.verify.rows.row_states import Cells, FirstStates, ImageTexts, Unknown, double_of
from binlane.verify.rows.sides import Difference

_Counted = tuple[str | None, ...]
"""A row's texts; floating numbers as ``double_of`` spells them."""


@dataclass(slots=True)
class RowCounts:
    """How often a log adds and removes each row of a table."""

    is_complete: bool = True
    """False: an image leaves out a value, so any row may have been added or removed."""
    _added: Counter[_Counted] = field(default_factory=Counter)
    _removed: Counter[_Counted] = field(default_factory=Counter)

    def take(self, texts: ImageTexts, change: Change) -> None:
        """Count one row change. Columns that a partial after-image leaves out keep the value of the before-image."""
        columns = texts.compared.columns
        before = None if change.before is None else texts.cells(change.before)
        if before is not None:
            self._count(self._removed, columns, before)
        if change.after is not None:
            after = texts.cells(change.after)
            old = after if before is None else before
            kept = (was if cell is Unknown.UNCHANGED else cell for cell, was in zip(after, old, strict=True))
            self._count(self._added, columns, tuple(kept))

    def _count(self, counter: Counter[_Counted], columns: Sequence[Column], cells: Cells) -> None:
        texts = [cell for cell in cells if not isinstance(cell, Unknown)]
        if len(texts) < len(cells):
            self.is_complete = False
        else:
            counter[_counted(columns, texts)] += 1

    def take_back(self, columns: Sequence[Column], one: Difference) -> bool:
        """Whether the log may be why this row differs; each change of the log is the reason for one row only."""
        if not self.is_complete:
            return True
        row, counter = (one.target, self._removed) if one.source is None else (one.source, self._added)
        assert row is not None
        counted = _counted(columns, row)
        if counter[counted] == 0:
            return False
        counter[counted] -= 1
        return True


@dataclass(frozen=True, slots=True)
class LaterRows:
    """What the source's log behind the watermark says of compared rows: their first states where they have a key, and
    how often each is added and removed where they have none."""

    first: FirstStates
    counts: dict[TableKey, RowCounts]

    def wants(self, table: TableKey) -> bool:
        """See ``Recorder``."""
        return table in self.counts or self.first.wants(table)

    def take(self, texts: ImageTexts, change: Change, before: Key | None, after: Key | None) -> None:
        """See ``Recorder``."""
        counts = self.counts.get(texts.compared.target)
        if counts is None:
            self.first.take(texts, change, before, after)
        else:
            counts.take(texts, change)


def _counted(columns: Sequence[Column], row: Sequence[str | None]) -> _Counted:
    return tuple(
        double_of(text) if text is not None and sql_type(column.data_type).values is FLOAT else text
        for column, text in zip(columns, row, strict=True)
    )
