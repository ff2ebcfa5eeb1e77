"""How a repair's plan is cut into transactions, and what keeps a plan from being changed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.repair import execution as run
from binlane.repair.plan import Action, DefinitionRepair, RepairPlan, RowRepair, UnrepairedTable, plan_repair
from binlane.schema.model import Schema, Table
from binlane.state.records.verifications import DRIFT, Suspect

TABLE = TableKey("shop", "orders")
LARGE = 64 * "a"
DEFINITION = DefinitionRepair("view", "shop", "v", ("",), ("USE `shop`", "CREATE VIEW ..."))


def row(*values: str | None) -> RowRepair:
    return RowRepair(TABLE, ("1",), (), values, None)


@pytest.mark.parametrize(
    ("rows", "cut"),
    [
        ((), []),
        ((row("1"), row("2"), row("3"), row("4")), [3, 1]),
        ((row(f"100:{LARGE}"), row(f"900:{LARGE}"), row("1"), row("2"), row("3")), [1, 3, 1]),
        ((row("1"), row("5", None, f"2000:{LARGE}"), row("2")), [1, 1, 1]),
        ((RowRepair(TABLE, ("1",), (), None, row("1").source), row("1")), [2]),
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


STORED = """{
 "format": 1, "channel": "shop", "uuid": "3e11fa47-71ca-11e1-9e33-c80aa9429562", "seqno": 41,
 "rows": [
  {"table": ["shop", "orders"], "key": ["1"], "columns": ["note"],
   "source": ["1", "27"], "target": ["1", null], "changes": [["note", null, "'"]],
   "primary_key": [["id", "1"]]},
  {"table": ["shop", "orders"], "key": ["2"], "columns": [], "source": null,
   "target": ["2", "61"], "changes": [], "primary_key": []},
  {"table": ["shop", "orders"], "key": ["3"], "columns": [],
   "source": ["3", "4:abababababababababababababababababababababababababababababababab"], "target": null,
   "changes": [], "primary_key": []}
 ],
 "left": [{"table": ["shop", "log"], "why": "the table does not exist on the target"}],
 "definitions": [],
 "digest": "dcbf45fe9a07953b6f7ba4f3d8b21a85079de86a4db093ea2f97bec820a3bf76"
}"""


def test_a_stored_plan_is_read_and_written_alike() -> None:
    plan = RepairPlan.from_json(STORED.encode(), "x")
    assert [one.action for one in plan.rows] == [Action.UPDATE, Action.DELETE, Action.INSERT]
    assert plan.rows[0] == RowRepair(
        TABLE, ("1",), ("note",), ("1", "27"), ("1", None), (("note", None, "'"),), (("id", "1"),)
    )
    assert plan.left == (UnrepairedTable(TableKey("shop", "log"), "the table does not exist on the target"),)
    assert [*json.loads(plan.to_json()).items()] == [*json.loads(STORED).items()]


def test_a_plan_comes_back_as_it_was_and_no_value_of_it_can_be_changed() -> None:
    left = UnrepairedTable(TableKey("shop", "log"), "no key")
    plan = RepairPlan("shop", "u", 7, (row("1", None), row("ü")), (left,), (DEFINITION,))
    assert RepairPlan.from_json(plan.to_json(), "x") == plan
    stored = json.loads(plan.to_json())
    for name, value in (("seqno", 8), ("uuid", "v"), ("rows", []), ("left", []), ("definitions", [])):
        with pytest.raises(PlanError, match=r"^x: expected content of SHA-256 "):
            RepairPlan.from_json(json.dumps({**stored, name: value}).encode(), "x")
    changed = [{**stored["rows"][0], "source": None}, *stored["rows"][1:]]
    with pytest.raises(PlanError, match=r"^x: expected content of SHA-256 "):
        RepairPlan.from_json(json.dumps({**stored, "rows": changed}).encode(), "x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: expected JSON: "),
        (b"[1]", "x: $: expected an object, got list; `binlane verify --repair` writes such a plan"),
        (b"{}", "x: expected format 1 of a repair's plan, got None"),
        (b'{"format": 2}', "x: expected format 1 of a repair's plan, got 2"),
        (b'{"format": 1}', "x: $: key 'channel' is missing; `binlane verify --repair` writes such a plan"),
        (STORED.replace(" 41,", ' "41",').encode(), "x: $.seqno: expected int, got '41'; "),
        (STORED.replace('{"table"', '{"action": "insert", "table"', 1).encode(), "x: $.rows[0]: unknown key 'action'"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(PlanError, match="^" + re.escape(message)):
        RepairPlan.from_json(data, "x")


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
    [left] = kept.left
    assert (left.table, left.why.split(":")[0]) == (TABLE, "rows that only the target has are kept")
