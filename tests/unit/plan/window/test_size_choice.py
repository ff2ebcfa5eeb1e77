"""What "auto" stands for in a window, and that the plan is the one of the channel that says so itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.choices import Divide, Reduce
from binlane.model import Barrier, TableKey
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.size_choice import SizeChoice
from binlane.plan.division import Division
from binlane.plan.routing import Routing
from binlane.plan.segment.map import scan_segment
from binlane.plan.segment.table_changes import Changes
from binlane.plan.window.size_choice import (
    EXISTING_SHARE,
    FEW_CHANGES,
    FEWEST_TRANSACTIONS,
    MOST_TRANSACTIONS,
    size_choice,
)
from binlane.plan.window_plan import WindowPlan
from tests.unit.plan.logs import Filtered, filtered, rows, segment_of, settings

AUTO = settings(reduce="auto", block_transactions=None)
ENOUGH = AUTO.lanes * FEWEST_TRANSACTIONS
UPDATES = Changes(rows=1_000_000, existing=900_000, opened=1_000)
INSERTS = Changes(rows=1_000_000, opened=1_000)
FLEET = Changes(rows=60_000, opened=20_000)
ROUTING = Routing(AUTO.lanes, {}, {}, ())
SHARED = replace(ROUTING, division=Division(3, ("a",), {}, {}, False))
MEETING = replace(ROUTING, barriers=(Barrier(5, 5, 3, (0, 1, 2, 3), {}),))


@pytest.mark.parametrize(
    ("changed", "transactions", "changes", "routing", "expected", "because"),
    [
        ({}, ENOUGH, UPDATES, ROUTING, ("window", 1000), "90% of the row changes are updates and deletes"),
        ({}, ENOUGH, INSERTS, ROUTING, ("block", 1000), "0% of the row changes"),
        ({}, ENOUGH, FLEET, ROUTING, ("window", 7000), "3.0 row changes for each table"),
        ({}, ENOUGH - 1, FLEET, ROUTING, ("block", 7000), "about 3,999 transactions of a lane"),
        ({}, ENOUGH, UPDATES, MEETING, ("block", 1000), "about 1,333 transactions of a lane"),
        ({}, 3 * ENOUGH, UPDATES, MEETING, ("window", 1000), "90%"),
        ({}, ENOUGH, UPDATES, SHARED, ("block", 1000), "all lanes share the blocks of divided shards"),
        ({"block_seconds": 5}, ENOUGH, FLEET, ROUTING, ("block", 1000), "blocks.seconds is set"),
        ({"consistency": "any_time"}, ENOUGH, FLEET, ROUTING, ("block", 1000), 'lanes.consistency = "any_time"'),
        ({"small_blocks": "x is set"}, ENOUGH, FLEET, ROUTING, ("block", 1000), "x is set"),
        ({"block_transactions": 50}, ENOUGH, FLEET, ROUTING, ("block", 50), "blocks.transactions is set"),
        ({"reduce": "block"}, ENOUGH, FLEET, ROUTING, ("block", 7000), "blocks.reduce is set; 3.0 row changes"),
        ({"reduce": "block"}, ENOUGH, UPDATES, ROUTING, ("block", 1000), "blocks.reduce is set"),
        ({"reduce": "window"}, ENOUGH, FLEET, ROUTING, ("window", 7000), "blocks.reduce is set"),
        ({"reduce": "window"}, 1, Changes(), ROUTING, ("window", 1000), "blocks.reduce is set"),
        ({"reduce": "off"}, ENOUGH, FLEET, ROUTING, ("off", 1000), "blocks.reduce is set"),
        ({}, ENOUGH, Changes(), ROUTING, ("block", 1000), "0% of the row changes"),
    ],
    ids=[
        *("updates", "inserts", "fleet", "small-window", "short-stretches", "long-stretches", "divided"),
        *(
            "seconds",
            "any-time",
            "one-by-one",
            "number",
            "block-of-a-fleet",
            "block",
            "window-of-a-fleet",
            "window",
            "off",
            "no-rows",
        ),
    ],
)
def test_the_choice_and_its_reason(
    changed: dict[str, object],
    transactions: int,
    changes: Changes,
    routing: Routing,
    expected: tuple[str, int],
    because: str,
) -> None:
    found = size_choice(replace(AUTO, **changed), transactions, changes, routing)  # type: ignore[arg-type]
    assert found is not None
    assert (found.reduce, found.transactions) == expected
    assert found.because.startswith(because)


def test_the_limits_of_the_choice_are_those_of_its_constants() -> None:
    def of(changes: Changes, chosen: object = "auto") -> SizeChoice:
        found = size_choice(replace(AUTO, reduce=str(chosen)), ENOUGH, changes, ROUTING)
        assert found is not None
        return found

    enough = int(EXISTING_SHARE * 1000)
    assert of(Changes(1000, enough, 1)).reduce is Reduce.WINDOW
    assert of(Changes(1000, enough - 1, 1)).reduce is Reduce.BLOCK
    assert of(Changes(FEW_CHANGES * 10, 0, 10)).reduce is Reduce.BLOCK
    assert of(Changes(FEW_CHANGES * 10 - 1, 0, 10)).reduce is Reduce.WINDOW
    assert of(Changes(10, 0, 10), "block").transactions == MOST_TRANSACTIONS


def test_a_channel_that_says_both_has_no_choice_and_its_files_none_either() -> None:
    chosen = settings(reduce="block", block_transactions=4)
    assert size_choice(chosen, ENOUGH, FLEET, ROUTING) is None
    found = filtered([rows(1, "a")], chosen, columnar=True)
    assert (found.routing.size, found.plan.size) == (None, None)
    data, segment = segment_of([rows(1, "a")])
    assert scan_segment(data, segment, chosen, lambda _: False).changes is None


def test_the_scan_counts_rows_and_the_tables_that_blocks_of_all_lanes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlane.plan.segment.table_changes.USUAL_TRANSACTIONS", 1)
    log = [rows(1, "a", count=5), rows(2, "b", "c"), rows(3, "a"), rows(4, "a"), rows(5, "a"), rows(6, "a")]
    data, segment = segment_of(log)
    scanned = scan_segment(data, segment, replace(AUTO, divide=Divide.TABLE), lambda _: False)
    # three lanes: the first two transactions, the next three, the last
    assert scanned.changes == Changes(rows=11, existing=0, opened=5)


@pytest.mark.parametrize(("databases", "reduce", "transactions"), [(40, "window", 7000), (1, "block", 1000)])
def test_the_blocks_are_those_of_the_channel_that_says_so_itself(
    databases: int, reduce: str, transactions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlane.plan.window.size_choice.FEWEST_TRANSACTIONS", 1)
    log = [rows(number, f"d{number % databases}", count=2) for number in range(1, 121)]
    reducer = Reducer({TableKey(f"d{n}", "t"): TableRule(1, (0,), (0,)) for n in range(databases)}, 1 << 16, 1 << 16)

    def of(**changes: object) -> Filtered:
        return filtered(log, settings(**changes), cuts=(50,), columnar=True, reducer=reducer)

    found, said = of(reduce="auto", block_transactions=None), of(reduce=reduce, block_transactions=transactions)
    assert found.lanes == said.lanes
    assert found.plan.size is not None
    assert (found.plan.size.reduce, found.plan.size.transactions) == (reduce, transactions)
    assert WindowPlan.from_json(found.plan.to_json()) == found.plan
    assert replace(found.plan, size=None, digest="") == replace(said.plan, digest="")
