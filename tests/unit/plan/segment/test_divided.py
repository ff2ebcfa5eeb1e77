"""Divided shards in the plan job's map: the lanes share all blocks, and each row change is in one lane, its table's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.rows_payload import check_self_contained
from binlane.errors import PlanError
from binlane.model import ItemKind, RowCounts, TableKey
from binlane.plan.division import Division, Placement, table_lane
from binlane.plan.routing import Routing
from tests.tiers import examples
from tests.unit.plan.logs import EMPTY_SCHEMA, Filtered, alone, filtered, rows, settings, statements
from tests.unit.plan.segment.test_lane_writer import REDUCER, Log, flat, windows

LANES = (0, 1, 2)
CHOSEN = settings(
    shard_list="(critical)=r\n(divided)=a, d*\nb=1\nc=2\n", fold_gap=1, block_transactions=3, payload_bytes=400,
    reduce="block",
)  # fmt: skip


def tables_of(found: Filtered, lane: int) -> set[TableKey]:
    """The tables whose rows a lane writes."""
    items = [item for _, items in found.lanes.get(lane, []) for item in items if item.kind is ItemKind.ROWS]
    return {table for item in items for table in check_self_contained(item.payload)}


@hypothesis_settings(max_examples=examples(40), deadline=None)
@given(windows(), st.data())
def test_the_columnar_version_gives_the_same_bytes(log: Log, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    chosen = replace(
        CHOSEN,
        block_bytes=data.draw(st.sampled_from([1, 100, 160, 1 << 20])),
        commits_together=data.draw(st.booleans()),
    )
    plain, columnar = (filtered(log, chosen, cuts=cuts, columnar=version, reducer=REDUCER) for version in (False, True))
    for lane in range(4):
        assert flat(columnar, lane) == flat(plain, lane)
    assert columnar.plan.to_json() == plain.plan.to_json()


@pytest.mark.parametrize(("reduce", "together"), [("block", False), ("block", True), ("window", False)])
@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(windows(), st.data())
def test_each_lane_has_each_block_and_each_row_change_is_in_one_lane(
    reduce: str, together: bool, log: Log, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    chosen = replace(CHOSEN, reduce=reduce, commits_together=together)
    found = filtered(log, chosen, cuts=cuts, reducer=REDUCER, columnar=True)
    division = found.plan.division
    if division is None:
        assert not {name for name in found.routing.databases if name in "ad"}
        return
    if reduce == "block":
        headers = [[header for header, _ in found.lanes.get(lane, [])] for lane in LANES]
        assert headers[0] == headers[1] == headers[2]
        assert sum(header.transactions for lane in (0, 3) for header, _ in found.lanes.get(lane, [])) == len(log)
    for lane in LANES:
        assert {division.lane_of(table) for table in tables_of(found, lane)} <= {lane}
    items = [item for blocks in found.lanes.values() for _, items in blocks for item in items]
    written = sum((item.rows for item in items), RowCounts())
    assert written == found.plan.rows == sum((table.written for table in found.plan.tables.values()), RowCounts())
    assert all(barrier.participants == (0, 1, 2, 3) and barrier.owner == 3 for barrier in found.routing.barriers)


def test_what_is_not_rows_of_the_shard_alone_meets_all_lanes() -> None:
    log = [
        rows(1, "a"), statements(2, "DELETE FROM t"), rows(3, "a", "b"), rows(4, "b", "c"), rows(5, "b"),
        alone(6, "CREATE TABLE x (i INT)", "b"), rows(7, "a"), alone(8, "CREATE TABLE x (i INT)", "a"),
    ]  # fmt: skip
    found = filtered(log, replace(CHOSEN, fold_gap=0), reducer=REDUCER)
    assert [(barrier[0], barrier[1], barrier[4]) for barrier in found.barriers()] == [
        (2, 4, {"several lanes": 2, "statement of a divided shard": 1}),
        (8, 8, {"statement of a divided shard": 1}),
    ]


def test_rows_alone_need_no_barrier_where_shares_commit_together() -> None:
    log = [
        rows(1, "a"), statements(2, "DELETE FROM t"), rows(3, "a", "b"), rows(4, "b", "c"), rows(5, "ref"),
        rows(6, "ref", "b"), alone(7, "CREATE TABLE x (i INT)", "ref"), rows(8, "a"),
    ]  # fmt: skip
    chosen = replace(CHOSEN, fold_gap=0, shard_list="(divided)=a\n(critical)=ref\n", commits_together=True)
    found = filtered(log, chosen, reducer=REDUCER)
    assert [(barrier[0], barrier[1], barrier[4]) for barrier in found.barriers()] == [
        (2, 2, {"statement of a divided shard": 1}),
        (7, 7, {"reference shard": 1}),
    ]
    division = found.plan.division
    assert division is not None
    assert {name: division.databases[name] is None for name in ("a", "b", "ref")} == {
        "a": True,
        "b": False,
        "ref": True,
    }
    blocks = {lane: [(each.first_seqno, each.last_seqno) for each, _ in found.lanes.get(lane, [])] for lane in range(4)}
    assert blocks[0] == blocks[1] == blocks[2]
    assert [last for _, last in blocks[3]] == [2, 7]


def test_a_window_without_changes_of_a_divided_shard_is_planned_as_ever() -> None:
    log = [rows(1, "b"), rows(2, "c"), rows(3, "b", "c")]
    found = filtered(log, CHOSEN)
    assert found.routing.division is None
    assert found.barriers() == [(3, 3, 1, (1, 2), {"several lanes": 1})]


def test_databases_and_tables_that_foreign_keys_join_go_together() -> None:
    ends = (TableKey("a", "child"), TableKey("b", "parent"))
    schema = replace(EMPTY_SCHEMA, references=frozenset({ends}))
    chosen = replace(CHOSEN, shard_list="(divided)=b\nc=2\n")
    division = filtered(
        [rows(1, "a"), rows(2, "b"), rows(3, "c")], chosen, schema=schema, reducer=REDUCER
    ).plan.division
    assert division is not None
    assert (division.shards, division.databases) == (("a",), {"a": None, "b": None, "c": 2})
    assert division.lane_of(ends[0]) == division.lane_of(ends[1]) == table_lane(ends[0], 3)
    assert division.placed(ends[1]).reason == "foreign keys join it to a.child"
    assert division.lane_of(TableKey("c", "parent")) == 2


@pytest.mark.parametrize("folds", [False, True])
def test_names_are_compared_as_the_target_compares_them(folds: bool) -> None:
    division = Division(64, ("a",), {"a": None, "A": None}, {TableKey("a", "t"): Placement(2, "x")}, folds)
    assert division.lane_of(TableKey("a", "t")) == 2
    assert (division.placed(TableKey("A", "T")).reason == "x") is folds
    assert (division.lane_of(TableKey("a", "Mixed")) == division.lane_of(TableKey("A", "MIXED"))) is folds


def test_a_database_that_the_scan_has_not_seen_has_no_lane() -> None:
    with pytest.raises(PlanError, match=r"b\.t: no lane for its database"):
        Division(3, ("a",), {"a": None}, {}, False).lane_of(TableKey("b", "t"))


def test_context_and_plan_keep_the_division() -> None:
    found = filtered([rows(1, "a"), rows(2, "b")], CHOSEN, reducer=REDUCER)
    assert found.plan.division is not None
    assert Routing.from_json(found.routing.to_json(), "context").division == found.plan.division
    assert type(found.plan).from_json(found.plan.to_json()) == found.plan
