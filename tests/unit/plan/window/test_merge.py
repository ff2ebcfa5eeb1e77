"""From shards to lanes and barriers: the shard list's cases, as a window's routes and blocks show them."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from binlane.errors import ConfigError, PlanError
from binlane.model import TableKey
from binlane.plan.barriers import LaneEdges
from binlane.plan.routing import Routing, first_appearance
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.window.barrier_rules import UNREAD
from binlane.plan.window_facts import facts_of
from binlane.plan.window_plan import CROSS_LANE, WindowPlan, lanes_with_work
from binlane.shards.selection import Selection
from binlane.shards.shard_list import hash_lane
from tests.unit.plan.logs import EMPTY_SCHEMA, alone, filtered, rows, settings, statements

ALL = (0, 1, 2, 3)
ALLOWING = settings(filters=Selection(allowed=("UNREAD",)).to_values())
"""A channel that takes statements that are not read."""


def lanes_of(text: str, *databases: str, **changes: object) -> list[int]:
    """The lane of each database's transaction, in a window of one transaction each."""
    log = [rows(number, name) for number, name in enumerate(databases, 1)]
    found = filtered(log, settings(shard_list=text, **changes))
    return [found.routing.databases[name].lane for name in databases]


@pytest.mark.parametrize(
    ("text", "lanes"),
    [
        ("", [hash_lane(name, 3) for name in ("a", "b", "shop_1", "shop_2")]),
        ("a=2\nb=0\n(*)=1\n", [2, 0, 1, 1]),
        ("shop_*=2\n(*)=0\n", [0, 0, 2, 2]),
        ("shop_2=1\nshop_*=2\n(*)=0\n", [0, 0, 2, 1]),
        ("shop_?=1\nshop_*=2\n(*)=0\n", [0, 0, 1, 1]),
        ("(hash-method)=round-robin\n", [0, 1, 2, 0]),
        ("(hash-method)=round-robin\nb=2\n", [0, 2, 1, 2]),
        ("(*)=-1\n", [hash_lane(name, 3) for name in ("a", "b", "shop_1", "shop_2")]),
    ],
    ids=[
        "hash",
        "explicit",
        "glob",
        "explicit-before-glob",
        "first-glob",
        "round-robin",
        "round-robin-of-the-rest",
        "-1",
    ],
)
def test_the_shard_list_places_databases(text: str, lanes: list[int]) -> None:
    assert lanes_of(text, "a", "b", "shop_1", "shop_2") == lanes


def test_round_robin_deals_lanes_out_in_the_order_of_first_appearance_whatever_the_segments() -> None:
    names = ["z", "m", "a", "z", "k", "a", "b"]
    log = [rows(number, name) for number, name in enumerate(names, 1)]
    expected = {"z": 0, "m": 1, "a": 2, "k": 0, "b": 1}
    for cuts in ((), (1,), (3, 4), (1, 2, 3, 4, 5, 6)):
        found = filtered(log, settings(shard_list="(hash-method)=round-robin\n"), cuts=cuts)
        assert {name: route.lane for name, route in found.routing.databases.items()} == expected


def test_load_places_shards_by_their_bytes_whatever_the_segments() -> None:
    sizes = {"z": 100, "m": 900, "a": 400, "k": 10, "b": 500}
    log = [rows(number, name, count=count) for number, (name, count) in enumerate(sizes.items(), 1)]
    log += [statements(6, f"DELETE FROM t{' ' * 1000}", database="k"), rows(7, "k", "b"), rows(8, "z", count=60)]
    loads = settings(shard_list="(hash-method)=load\n")
    expected = {"m": 0, "b": 1, "a": 2, "k": 2, "z": 1}
    found = [filtered(log, loads, cuts=cuts, columnar=True) for cuts in ((), (1,), (3, 4), (1, 2, 3, 4, 5, 6, 7))]
    for each in found:
        assert {name: route.lane for name, route in each.routing.databases.items()} == expected
        assert each.routing.to_json() == found[0].routing.to_json()


def test_each_shards_transactions_stay_in_one_lane_by_load() -> None:
    log = [rows(number, "abc"[number % 3], count=number) for number in range(1, 31)]
    found = filtered(log, settings(shard_list="(hash-method)=load\n"), columnar=True, cuts=(7, 19))
    lanes = {name: route.lane for name, route in found.routing.databases.items()}
    assert sorted(lanes.values()) == [0, 1, 2]
    for name, lane in lanes.items():
        seqnos = [seqno for seqno in range(1, 31) if "abc"[seqno % 3] == name]
        assert sum(header.transactions for header, _ in found.lanes[lane]) == len(seqnos)
        assert (found.seqnos(lane)[0][0], found.seqnos(lane)[-1][1]) == (seqnos[0], seqnos[-1])


def test_first_appearance_orders_by_seqno_and_then_by_name() -> None:
    assert first_appearance([(5, "b"), (2, "c"), (5, "a"), (1, "b")]) == ("b", "c", "a")


def test_a_critical_shard_makes_a_barrier_of_all_lanes_in_the_serialized_lane() -> None:
    found = filtered([rows(1, "a"), rows(2, "ref"), rows(3, "b")], settings(shard_list="(critical)=ref\n"))
    assert found.barriers() == [(2, 2, 3, ALL, {"reference shard": 1})]
    assert found.seqnos(3) == [(2, 2)]


def test_a_critical_shard_with_a_lane_of_its_own_is_applied_there_between_all_lanes() -> None:
    found = filtered(
        [rows(1, "a"), rows(2, "ref"), rows(3, "ref")], settings(shard_list="(critical)=ref\nref=1\n(*)=0\n")
    )
    assert found.barriers() == [(2, 3, 1, (0, 1, 2), {"reference shard": 2})]
    assert found.seqnos(1) == [(2, 3)]


def test_a_transaction_over_two_lanes_meets_just_those_and_goes_to_the_lowest() -> None:
    found = filtered([rows(1, "a", "c"), rows(2, "c"), rows(3, "b")], settings(shard_list="a=2\nb=0\nc=1\n"))
    assert found.barriers() == [(1, 1, 1, (1, 2), {"several lanes": 1})]
    assert [found.seqnos(lane) for lane in ALL] == [[(3, 3)], [(1, 1), (2, 2)], [], []]


def test_a_transaction_over_two_databases_of_one_lane_needs_no_barrier() -> None:
    found = filtered([rows(1, "a", "b"), rows(2, "a")], settings(shard_list="a=2\nb=2\n"))
    assert found.barriers() == []
    assert found.seqnos(2) == [(1, 2)]


@pytest.mark.parametrize(
    ("transaction", "cause"),
    [
        (alone(2, "CREATE USER u"), "global"),
        (alone(2, "FLUSH PRIVILEGES"), "global"),
        (statements(2, "DELETE d.t"), "unknown: "),
        (statements(2, "INSERT INTO a.v VALUES (1)"), "unknown: "),
        (statements(2, "INSERT INTO t SELECT * FROM other.t"), "unknown: "),
    ],
    ids=["account", "flush", "unreadable", "view", "second-database"],
)
def test_global_and_unknown_shards_make_a_barrier_of_all_lanes(transaction: tuple[bytes, ...], cause: str) -> None:
    schema = dataclasses.replace(EMPTY_SCHEMA, views=frozenset({TableKey("a", "v")}))
    found = filtered([rows(1, "a"), transaction, rows(3, "a")], ALLOWING, schema=schema)
    ((first, last, owner, participants, causes),) = found.barriers()
    assert (first, last, owner, participants) == (2, 2, 3, ALL)
    assert all(name.startswith(cause) for name in causes)


def test_unknown_can_be_given_a_lane_and_still_meets_all() -> None:
    found = filtered([alone(1, "CREATE USER u")], settings(shard_list="\\#GLOBAL=2\n"))
    assert found.barriers() == [(1, 1, 2, (0, 1, 2), {"global": 1})]


JOINED = dataclasses.replace(EMPTY_SCHEMA, references=frozenset({(TableKey("child", "t"), TableKey("base", "t"))}))


def test_databases_that_foreign_keys_join_share_a_lane_and_an_entry() -> None:
    log = [rows(1, "child"), rows(2, "base"), rows(3, "child", "base"), rows(4, "x")]
    found = filtered(log, settings(shard_list="child=2\nx=0\n"), schema=JOINED)
    assert {name: (route.shard, route.lane) for name, route in found.routing.databases.items()} == {
        "base": ("base", 2), "child": ("base", 2), "x": ("x", 0)
    }  # fmt: skip
    assert found.barriers() == []


def test_members_of_a_group_in_different_lanes_are_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"shard_list/orders\.list:1.*foreign keys join"):
        filtered([rows(1, "child")], settings(shard_list="child=2\nbase=0\n"), schema=JOINED)


def test_a_database_joined_to_a_critical_one_is_critical() -> None:
    found = filtered([rows(1, "x"), rows(2, "child")], settings(shard_list="(critical)=base\n"), schema=JOINED)
    assert found.barriers() == [(2, 2, 3, ALL, {"reference shard": 1})]


def test_a_foreign_key_made_in_the_window_to_a_critical_shard_serializes_the_whole_window() -> None:
    key = alone(2, "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES ref.t (a)")
    found = filtered([rows(1, "a"), key, rows(3, "a"), rows(4, "b")], settings(shard_list="(critical)=ref\n"))
    ((first, last, owner, participants, causes),) = found.barriers()
    assert (first, last, owner, participants) == (1, 4, 3, ALL)
    assert list(causes) == ["reference shard joined by a foreign key of this window"]
    assert [seqno for block in found.seqnos(3) for seqno in range(block[0], block[1] + 1)] == [1, 2, 3, 4]


def test_any_time_sends_the_whole_window_through_the_serialized_lane() -> None:
    log = [rows(1, "a"), rows(2, "b"), alone(3, "CREATE USER u"), rows(4, "c")]
    found = filtered(log, settings(consistency="any_time"))
    assert found.barriers() == [(1, 4, 3, ALL, {"any_time": 4})]
    assert found.plan.lanes_to_run == (3,)
    assert found.plan.lanes_with_work == ALL
    assert filtered(log, settings()).plan.lanes_to_run == ALL
    assert found.seqnos(3) == [(1, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([rows(1, "a"), rows(2, "a")], 1),
        ([rows(1, "a"), rows(2, "b"), rows(3, "c"), rows(4, "d"), rows(5, "e")], 3),
        ([rows(1, "a"), alone(2, "CREATE USER u")], 4),
    ],
    ids=["one lane", "all parallel lanes", "a barrier"],
)
def test_only_lanes_with_blocks_have_work_unless_lanes_meet(log: list[tuple[bytes, ...]], expected: int) -> None:
    plan = filtered(log, settings()).plan
    assert len(plan.lanes_with_work) == len(plan.lanes_to_run) == expected
    assert facts_of(plan).lanes_with_work == plan.lanes_with_work
    assert {lane for lane in plan.all_lanes if plan.files[lane]} <= {*plan.lanes_with_work}


def test_a_window_without_blocks_is_left_to_lane_0() -> None:
    assert lanes_with_work([0, 0, 0], 0) == (0,)


def at(seconds: int, transaction: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple((1_700_000_000 + seconds).to_bytes(4, "little") + event[4:] for event in transaction)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_epochs_meet_at_the_first_transaction_of_each_but_the_window_s_own(columnar: bool) -> None:
    # 1,700,000,000 is 20 s into its minute
    seconds = [0, 10, 39, 40, 41, 100, 99, 161]
    log = [at(second, rows(number, "abc"[number % 3])) for number, second in enumerate(seconds, 1)]
    for cuts in ((), (2, 5)):
        found = filtered(log, settings(consistency="epoch", epoch_seconds=60), cuts=cuts, columnar=columnar)
        assert [(first, last) for first, last, *_ in found.barriers()] == [(4, 4), (6, 6), (8, 8)]
        assert {causes["epoch"] for *_, causes in found.barriers()} == {1}
        assert {participants for _, _, _, participants, _ in found.barriers()} == {ALL}


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_epochs_of_transactions_stay_apart_in_a_folded_stretch(columnar: bool) -> None:
    """Each ends at a multiple of their number; two of them begin with transactions that have barriers of their own."""
    chosen = settings(
        consistency="epoch", epoch_transactions=3, fold_gap=100, shard_list="(critical)=ref\na=0\nb=1\nc=2\n"
    )
    log = [rows(number, *(("a", "b") if number in (4, 6) else ("abc"[number % 3],))) for number in range(1, 12)]
    log[9] = rows(10, "ref")
    found = filtered(log, chosen, cuts=(5,), columnar=columnar)
    assert found.barriers() == [
        (4, 6, 3, ALL, {"several lanes": 2}),
        (7, 7, 3, ALL, {"epoch": 1}),
        (10, 10, 3, ALL, {"reference shard": 1}),
    ]
    assert [(each.seqno, each.gtid_set) for each in found.plan.epochs] == [(3, "0-1-3"), (6, "0-1-6"), (9, "0-1-9")]
    assert WindowPlan.from_json(found.plan.to_json()) == found.plan
    # one lane applies everything, and its blocks end where epochs do
    allowing = dataclasses.replace(chosen, filters=ALLOWING.filters)
    unread = filtered([*log, alone(12, "CREATE FROBNICATE TABLE x")], allowing, columnar=columnar)
    assert [(first, last) for first, last, *_ in unread.barriers()] == [(1, 3), (4, 6), (7, 9), (10, 12)]
    assert unread.seqnos(3) == [(1, 3), (4, 6), (7, 9), (10, 11), (12, 12)]
    assert unread.plan.epochs == found.plan.epochs


def test_epochs_inside_open_temporary_tables_are_left_out() -> None:
    log = [
        rows(1, "a"), alone(2, "CREATE TEMPORARY TABLE a.x (id INT)"), rows(3, "a"), rows(4, "a"),
        alone(5, "DROP TEMPORARY TABLE a.x"), rows(6, "a"), rows(7, "a"),
    ]  # fmt: skip
    found = filtered(log, settings(consistency="epoch", epoch_transactions=3))
    assert [barrier.together for barrier in found.routing.barriers] == [True, False]
    assert [each.seqno for each in found.plan.epochs] == [6]


def test_close_barriers_become_one_stretch_and_lanes_outside_it_keep_their_transactions() -> None:
    chosen = settings(shard_list="a=0\nb=1\nc=2\n", fold_gap=2)
    log = [rows(1, "a", "b"), rows(2, "a"), rows(3, "c"), rows(4, "a", "b"), rows(5, "b"), rows(6, "c")]
    found = filtered(log, chosen)
    assert found.barriers() == [(1, 4, 0, (0, 1), {"several lanes": 2})]
    assert [found.seqnos(lane) for lane in ALL] == [[(1, 4)], [(5, 5)], [(3, 6)], []]


@pytest.mark.parametrize(("block_bytes", "barriers"), [(1 << 20, [(1, 4)]), (1, [(1, 1), (4, 4)])])
def test_barriers_with_more_than_a_block_s_bytes_between_them_stand_alone(
    block_bytes: int, barriers: list[tuple[int, int]]
) -> None:
    log = [rows(1, "a", "b"), rows(2, "a"), rows(3, "c"), rows(4, "a", "b")]
    found = filtered(log, settings(shard_list="a=0\nb=1\nc=2\n", fold_gap=2, block_bytes=block_bytes))
    assert [(first, last) for first, last, *_ in found.barriers()] == barriers


def test_blocks_end_at_the_edges_of_their_lane_s_barriers() -> None:
    log = [rows(number, "ref" if number == 4 else "a") for number in range(1, 8)]
    found = filtered(log, settings(shard_list="(critical)=ref\n(*)=0\n", block_transactions=100))
    assert [found.seqnos(lane) for lane in ALL] == [[(1, 3), (5, 7)], [], [], [(4, 4)]]


def test_a_lanes_stretch_changes_exactly_at_edges() -> None:
    barriers = filtered(
        [rows(n, "ref" if n in (3, 4, 6) else "a") for n in range(1, 9)], settings(shard_list="(critical)=ref\n")
    ).routing.barriers
    edges = LaneEdges(barriers)
    numbers = [edges.stretch(seqno) for seqno in range(1, 9)]
    assert edges.stretches(np.arange(1, 9)).tolist() == numbers
    assert [seqno for seqno, (one, other) in enumerate(itertools.pairwise(numbers), 2) if one != other] == [
        3,
        5,
        6,
        7,
    ]


def test_routes_survive_json_and_a_transaction_that_the_scan_did_not_see_is_refused() -> None:
    found = filtered([rows(1, "a"), rows(2, "a", "b"), alone(3, "CREATE USER u")])
    again = Routing.from_json(found.routing.to_json(), "context.json")
    assert again.to_json() == found.routing.to_json()
    with pytest.raises(PlanError, match="run the plan job again"):
        again.route_of(TransactionClass(frozenset({"never seen"}), ()))
    with pytest.raises(PlanError, match=r"^context\.json: "):
        Routing.from_json(found.routing.to_json()[:-9], "context.json")


def test_a_route_class_has_one_key_in_every_order_and_different_keys_for_different_content() -> None:
    one, same = (TransactionClass(frozenset(names), ()) for names in (("a", "b"), ("b", "a")))
    assert one.key == same.key
    assert len({one.key, TransactionClass(frozenset({"a"}), ()).key, TransactionClass(frozenset(), ()).key}) == 3


@pytest.mark.parametrize(("sql", "is_serial"), [("CREATE FROBNICATE TABLE x", True), ("DROP FUNCTION f", False)])
def test_a_definition_that_is_not_read_may_join_any_databases(sql: str, is_serial: bool) -> None:
    allowing = dataclasses.replace(ALLOWING, fold_gap=0)
    done = filtered([rows(1, "a"), alone(2, sql), rows(3, "b"), rows(4, "a")], allowing)
    assert all(any(UNREAD in cause for cause in causes) == is_serial for *_, causes in done.barriers())
    assert [(first, last) for first, last, *_ in done.barriers()] == ([(1, 4)] if is_serial else [(2, 2)])


@pytest.mark.parametrize("name", ["#FILTERED", "x#FILTERED", "#x"])
def test_a_database_may_be_called_as_the_shard_of_what_the_filter_leaves_out(name: str) -> None:
    """A source's users give databases their names: its transactions with another one must not leave the order."""
    same, other = (
        next(each for each in "abcdefgh" if (hash_lane(each, 3) == hash_lane(name, 3)) is here)
        for here in (True, False)
    )
    found = filtered([rows(1, same), rows(2, name, same), rows(3, same), rows(4, other), rows(5, name, other)])
    lanes = sorted({hash_lane(name, 3), hash_lane(other, 3)})
    assert found.barriers() == [(5, 5, lanes[0], tuple(lanes), {CROSS_LANE: 1})]
    together = [lane for lane in range(4) for first, _ in found.seqnos(lane) if first <= 3]
    assert together == [hash_lane(name, 3)]
