"""The scans of many segments as one: the same routes however the log is cut, and no scan is kept."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from binlane.model import TableKey
from binlane.plan.segment.logged_tables import LoggedTable
from binlane.plan.segment.map import ScanSummary
from binlane.plan.segment.table_changes import Changes
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.window.merge import merge_scans
from binlane.plan.window.scanned import ScannedWindow
from tests.unit.plan.logs import EMPTY_SCHEMA, alone, filtered, manifest_of, rows, segment_of, settings

A_B, B_C = (TransactionClass(frozenset(names), ()) for names in ("ab", "bc"))
KEY = TableKey("a", "t")
LOG = [
    rows(1, "a"),
    rows(2, "a", "b"),
    alone(3, "CREATE TABLE a.n (i INT)"),
    rows(4, "c"),
    rows(5, "b", "c"),
    rows(6, "b"),
    rows(7, "a", "b"),
    rows(8, "a"),
]


class Scan(ScanSummary):
    """One whose end can be seen."""


def test_facts_of_segments_add_up() -> None:
    narrow, wide = (LoggedTable(frozenset({(types, ())}), is_whole=True) for types in (b"\3", b"\3\3"))
    found = ScannedWindow.of(
        [
            ScanSummary({"x": 1, "y": 4}, (A_B,), ((2, 0), (3, 0)), tables={KEY: narrow}, changes=Changes(5, 1, 2)),
            ScanSummary({"y": 6, "z": 7}, (B_C, A_B), ((5, 0), (8, 1)), tables={KEY: wide}, changes=Changes(1, 1, 1)),
        ]
    )
    assert found.databases == {"x": 1, "y": 4, "z": 7}
    assert found.classes == {A_B: 2, B_C: 5}
    assert found.tables == {KEY: narrow | wide}
    assert (found.changes, found.hides_rows) == (Changes(6, 2, 3), False)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ([A_B], [(2, 0), (3, 0), (8, 0)]),
        ([B_C, A_B], [(1, 0), (2, 1), (3, 1), (5, 0), (8, 1)]),
        ([], []),
    ],
    ids=["one-class", "all", "none"],
)
def test_transactions_of_classes_are_ascending_whatever_comes_last(
    chosen: list[TransactionClass], expected: list[tuple[int, int]]
) -> None:
    # as XA COMMITs, whose classes are known when all segments are scanned
    late = ScanSummary({}, (B_C,), ((1, 0),))
    found = ScannedWindow.of([ScanSummary({}, (A_B, B_C), ((2, 0), (3, 0), (5, 1), (8, 0))), late])
    seqnos, places = found.transactions(chosen)
    assert [*zip(seqnos.tolist(), places.tolist(), strict=True)] == expected
    assert found.classes[B_C] == 1


@pytest.mark.parametrize("assigner", ["(hash-method)=round-robin\n", "b=0\n(*)=1\n", "(critical)=c\n"])
def test_routes_do_not_depend_on_where_the_log_is_cut(assigner: str) -> None:
    chosen = settings(shard_list=assigner)
    whole = filtered(LOG, chosen)
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, len(LOG)), n) for n in (1, 3, 7)):
        assert filtered(LOG, chosen, cuts=cuts).routing == whole.routing, cuts


def test_a_scan_is_let_go_when_it_is_folded_in() -> None:
    kept = list[weakref.ref[Scan]]()

    def scans() -> Iterator[ScanSummary]:
        for seqno in range(1, 6):
            scan = Scan({"a": seqno}, (A_B,), ((seqno, 0),))
            kept.append(weakref.ref(scan))
            yield scan
            del scan
            gc.collect()
            # the merge's own variable has the last one
            assert [each() for each in kept[:-1]] == [None] * (len(kept) - 1)

    manifest = dataclasses.replace(manifest_of([segment_of(LOG)[1]]), last_seqno=5)
    merge_scans(manifest, scans(), settings(), EMPTY_SCHEMA)
    assert len(kept) == 5
