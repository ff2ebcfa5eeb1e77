"""The channel's filter over a segment's arrays: what ``transaction.filter`` does part by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.wire import EventType
from binlane.choices import FilterPolicy
from binlane.model import TableKey
from binlane.shards.selection import Selection, Undecided


@dataclass(frozen=True, slots=True)
class EventFilter:
    """An entry an event."""

    is_out: Flags
    """Row events and TABLE_MAPs that are not written."""
    is_counted: Flags
    """Of these, the rows events, of tables that the filter leaves out."""
    _awkward: Ints
    """Before each event, how many statements came whose last rows event is out and another one is not: that one has to
    be changed, so their transactions are taken apart one by one. So are those with rows that are refused."""
    _rows_left: Ints
    """Before each event, how many rows events stay."""

    def split(self, first: Ints, end: Ints) -> tuple[Flags, Flags]:
        """Of the transactions whose events are [first, end): those that are awkward, and those with nothing left."""
        awkward = self._awkward[end] > self._awkward[first]
        empty = self._rows_left[end] == self._rows_left[first]
        return awkward, empty


class TableVerdicts:
    """What becomes of each of a segment's tables, by its number."""

    def __init__(self, selection: Selection, tables: Iterable[TableMap]) -> None:
        keys = [TableKey(table.database, table.table) for table in tables]
        self.all_rows = [selection.table(key) for key in keys]
        self.deletes = [_deletes(selection, key) for key in keys]

    def rule(self, number: int) -> str:
        """The rule that leaves out what is left out of a table."""
        rule = self.all_rows[number] or self.deletes[number]
        assert rule is not None
        return rule


def _deletes(selection: Selection, key: TableKey) -> str | None:
    """The rule that leaves out a table's deleted rows; FilterPolicy.REFUSE for one that refuses them."""
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
    """``number``: each row event's and TABLE_MAP's table."""
    is_table = is_map | is_rows
    table = np.where(is_table, number, 0)
    out = np.array([rule is not None for rule in verdicts.all_rows] or [False], np.bool_)[table]
    refuses = [rule == FilterPolicy.REFUSE for rule in verdicts.deletes]
    leaves_out = [rule is not None and not each for rule, each in zip(verdicts.deletes, refuses, strict=True)]
    out_if_deleted = np.array(leaves_out or [False], np.bool_)[table]
    refused = np.array(refuses or [False], np.bool_)[table] & is_delete
    excluded = (is_table & out) | (is_delete & out_if_deleted)
    # a statement's events: behind the one before, and behind everything that is no part of any
    edge = ~is_table & ~np.isin(type_code, (EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS))
    edge[1:] |= ends[:-1]
    group = np.cumsum(edge)
    size = int(group[-1]) + 1 if group.size else 1
    left = np.bincount(group[is_rows & ~excluded], minlength=size)
    touched = np.bincount(group[excluded], minlength=size) > 0
    ends_out = np.bincount(group[ends & excluded], minlength=size) > 0
    useless_map = is_map & (touched & (left == 0))[group]
    awkward = ((touched & (left > 0) & ends_out)[group] & is_table) | refused
    return EventFilter(
        is_out=excluded | useless_map,
        is_counted=excluded & is_rows,
        _awkward=np.concatenate(([0], np.cumsum(awkward))),
        _rows_left=np.concatenate(([0], np.cumsum(is_rows & ~excluded))),
    )
