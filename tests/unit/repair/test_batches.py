"""How a repair's plan is cut into transactions, and what keeps a plan from being changed."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.repair import run
from binlane.repair.plan import Action, RepairPlan, RowRepair, plan_repair
from binlane.schema.model import Schema, Table
from binlane.state.records.verifications import DRIFT, Suspect

TABLE = TableKey("shop", "orders")
LARGE = 64 * "a"


def row(*values: str | None) -> RowRepair:
    return RowRepair(TABLE, ("1",), values, None, ())


@pytest.mark.parametrize(
    ("rows", "cut"),
    [
        ((), []),
        ((row("1"), row("2"), row("3"), row("4")), [3, 1]),
        ((row(f"100:{LARGE}"), row(f"900:{LARGE}"), row("1"), row("2"), row("3")), [1, 3, 1]),
        ((row("1"), row("5", None, f"2000:{LARGE}"), row("2")), [1, 1, 1]),
        ((RowRepair(TABLE, ("1",), None, row("1").source, ()), row("1")), [2]),
    ],
)
def test_a_transaction_is_bounded_in_rows_and_in_bytes(
    rows: Sequence[RowRepair], cut: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BATCH", 3)
    monkeypatch.setattr(run, "BYTES", 1000)
    batches = list(run._cut(rows))
    assert [len(batch) for batch in batches] == cut
    assert [each for batch in batches for each in batch] == list(rows)


def test_a_plan_comes_back_as_it_was_and_no_value_of_it_can_be_changed() -> None:
    plan = RepairPlan("shop", "u", 7, (row("1", None), row("ü")), ((TableKey("shop", "log"), "no key"),))
    assert RepairPlan.from_json(plan.to_json(), "x") == plan
    stored = json.loads(plan.to_json())
    for name, value in (("seqno", 8), ("uuid", "v"), ("rows", []), ("left", [])):
        with pytest.raises(PlanError, match=r"^x: expected content of SHA-256 "):
            RepairPlan.from_json(json.dumps({**stored, name: value}).encode(), "x")
    for data in (b"", b"{}", b"[1]", b'{"format": 1}'):
        with pytest.raises(PlanError, match=r"^x: expected a repair plan"):
            RepairPlan.from_json(data, "x")
    with pytest.raises(PlanError, match=r"^x: expected format 1 of a repair's plan, got 2"):
        RepairPlan.from_json(json.dumps({**stored, "format": 2}).encode(), "x")


def test_rows_that_only_the_target_has_stay_where_the_filter_leaves_out_deletions() -> None:
    schema = Schema(Flavor.MARIADB, "", tables={TABLE: Table(TABLE, "InnoDB", ())})
    drift = [
        Suspect(TABLE, ("1",), DRIFT, 7, (), None, ("1",), ""),
        Suspect(TABLE, ("2",), DRIFT, 7, (), ("2",), None, ""),
    ]
    plan = plan_repair("shop", "u", 7, drift, schema, ())
    assert [one.action for one in plan.rows] == [Action.DELETE, Action.INSERT]
    kept = plan_repair("shop", "u", 7, drift, schema, (), keeps_rows=True)
    assert [one.action for one in kept.rows] == [Action.INSERT]
    [(table, why)] = kept.left
    assert (table, why.split(":")[0]) == (TABLE, "rows that only the target has are kept")
