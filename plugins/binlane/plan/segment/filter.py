"""The channel's filter over a segment's arrays; ``transaction.filter`` does the same part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.wire import EventType
from binlane.choices import FilterPolicy
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.shards.selection import Selection, Undecided


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The filter's verdicts; arrays have an entry for each event."""

    is_out: Flags
    """TABLE_MAPs and rows events that are left out."""
    is_counted: Flags
    """Rows events among them that belong to tables which the filter leaves out."""
    _to_decode: Ints
    """Before each event, the number of events of statements that need decoding: statements whose last rows event is
    left out while another one stays, so STMT_END_F must move; and rows that the filter refuses."""
    _rows_left: Ints
    """Before each event, the number of rows events that stay."""

    def split(self, first: Ints, end: Ints) -> tuple[Flags, Flags]:
        """For transactions with the events [first, end): which need decoding, and which have no rows event left."""
        to_decode = self._to_decode[end] > self._to_decode[first]
        empty = self._rows_left[end] == self._rows_left[first]
        return to_decode, empty


class TableVerdicts:
    """The filter's decision for each of a segment's tables, by the table's number."""

    def __init__(self, selection: Selection, tables: Sequence[TableMap]) -> None:
        if not selection.looks_at_rows:
            # the database alone decides, and deletes are no exception: a fleet's log has 10,000 tables
            rules = {name: selection.database(name)[1] for name in {table.database for table in tables}}
            self.all_rows = self.deletes = [rules[table.database] for table in tables]
            return
        keys = [TableKey(table.database, table.table) for table in tables]
        self.all_rows = [selection.table(key) for key in keys]
        self.deletes = [_deletes(selection, key) for key in keys]

    def rule(self, number: int) -> str:
        """The rule that leaves out the table's rows, or its deletes."""
        rule = self.all_rows[number] or self.deletes[number]
        assert rule is not None
        return rule


def _deletes(selection: Selection, key: TableKey) -> str | None:
    """The rule that leaves out a table's deletes; FilterPolicy.REFUSE if a rule refuses them."""
    try:
        return selection.rows(key, is_delete=True)
    except Undecided:
        return FilterPolicy.REFUSE


def event_filter(
    type_code: NDArray[np.uint8],
    is_map: Flags,
    is_rows: Flags,
    is_delete: Flags,
    ends: Flags,
    number: NDArray[np.int32],
    verdicts: TableVerdicts,
) -> EventFilter:
    """The verdicts for a segment's events. ``number``: the table of each TABLE_MAP and rows event."""
    is_table = is_map | is_rows
    table = np.where(is_table, number, 0)
    out = np.array([rule is not None for rule in verdicts.all_rows] or [False], np.bool_)[table]
    refuses = [rule == FilterPolicy.REFUSE for rule in verdicts.deletes]
    leaves_out = [rule is not None and not each for rule, each in zip(verdicts.deletes, refuses, strict=True)]
    out_if_deleted = np.array(leaves_out or [False], np.bool_)[table]
    refused = np.array(refuses or [False], np.bool_)[table] & is_delete
    excluded = (is_table & out) | (is_delete & out_if_deleted)
    # a new statement begins after STMT_END_F, and after any event that belongs to no statement
    edge = ~is_table & ~np.isin(type_code, (EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS))
    edge[1:] |= ends[:-1]
    group = np.cumsum(edge)
    size = int(group[-1]) + 1 if group.size else 1
    left = np.bincount(group[is_rows & ~excluded], minlength=size)
    touched = np.bincount(group[excluded], minlength=size) > 0
    ends_out = np.bincount(group[ends & excluded], minlength=size) > 0
    useless_map = is_map & (touched & (left == 0))[group]
    to_decode = ((touched & (left > 0) & ends_out)[group] & is_table) | refused
    return EventFilter(
        is_out=excluded | useless_map,
        is_counted=excluded & is_rows,
        _to_decode=np.concatenate(([0], np.cumsum(to_decode))),
        _rows_left=np.concatenate(([0], np.cumsum(is_rows & ~excluded))),
    )
