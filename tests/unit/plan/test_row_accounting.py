"""Tallies of segments add up to the window's."""

from __future__ import annotations

from binlane.model import RowCounts, TableKey
from binlane.plan.row_accounting import Tally

ONE, OTHER = TableKey("a", "t"), TableKey("b", "t")


def test_the_counts_of_two_segments_are_added_by_table() -> None:
    first, second = Tally(), Tally()
    for tally, key in ((first, ONE), (second, ONE), (second, OTHER)):
        tally.add_table(key, RowCounts(3, 2, 1))
        tally.add_saved(key, RowCounts(-1, -2))
        tally.add_shard(key.database, 1, 2, 6)
    first.merge(second)
    assert first.tables == {ONE: RowCounts(6, 4, 2), OTHER: RowCounts(3, 2, 1)}
    assert first.saved == {ONE: RowCounts(-2, -4), OTHER: RowCounts(-1, -2)}
    assert {name: (each.lane, each.transactions, each.rows) for name, each in first.shards.items()} == {
        "a": (1, 4, 12),
        "b": (1, 2, 6),
    }
    assert second.tables == {ONE: RowCounts(3, 2, 1), OTHER: RowCounts(3, 2, 1)}, "the other tally stays as it was"
