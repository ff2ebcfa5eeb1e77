"""A repair's plan as an operator reads it before the question: keys and columns as text, nothing that acts."""

from __future__ import annotations

import json

import pytest

from binlane.model import Flavor, SchemaObject, TableKey
from binlane.orchestration.commands.repair import StoredPlan, left_text, plan_text
from binlane.repair.plan import SEQUENCE_COLUMNS, RepairPlan, plan_repair
from binlane.safe_text import printable
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table
from binlane.state.records.verifications import DRIFT, Suspect
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.mend import nothing

TABLE = TableKey("shop", "cust[/x]\x1b")
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("code"),))
COLUMNS = (
    Column("code", 1, "varchar", charset="utf8mb4"),
    Column("name", 2, "varchar", charset="utf8mb4"),
    Column("size", 3, "enum", members=("S", "<b>\u202e")),
)
SCHEMA = Schema(Flavor.MARIADB, "", tables={TABLE: Table(TABLE, "InnoDB", COLUMNS, (PRIMARY,))})


def digits(text: str) -> str:
    return text.encode().hex().upper()


def plan_of(schema: Schema) -> RepairPlan:
    hostile = digits("\x1b[2J\nmine")
    rows = (
        (digits("ä1"), (digits("ä1"), digits("Ann"), "1"), None, ()),
        (digits("ä2"), (digits("ä2"), digits("Bob"), "2"), (digits("ä2"), hostile, None), ("name", "size")),
        (digits("ä3\u202e"), None, (digits("ä3\u202e"), digits("Eve"), "2"), ()),
    )
    drift = [Suspect(TABLE, (key,), DRIFT, 7, columns, ours, theirs, "") for key, ours, theirs, columns in rows]
    return plan_repair("shop", "u", 7, drift, schema, ())


def test_an_operator_reads_keys_and_columns_as_text() -> None:
    plan = plan_of(SCHEMA)
    text = plan_text(StoredPlan(plan, "work/plan.json"))

    assert text.split("\n")[1:] == [
        "shop.cust[/x]\\x1b: 1 to insert, 1 to update, 1 to delete",
        "  insert code='ä1': name='Ann' size='S'",
        "  update code='ä2': name='\\x1b[2J\\nmine' becomes 'Bob'; size=NULL becomes '<b>\\u202e'",
        "  delete code='ä3\\u202e': name='Eve' size='<b>\\u202e'",
    ]
    assert text == printable(text)


def test_the_file_has_the_same_text_and_comes_back_as_it_was() -> None:
    plan = plan_of(SCHEMA)
    stored = plan.to_json()

    assert [row["primary_key"] for row in json.loads(stored)["rows"]] == [
        [["code", "'ä1'"]], [["code", "'ä2'"]], [["code", "'ä3\u202e'"]],
    ]  # fmt: skip
    assert b"\x1b" not in stored
    assert stored.isascii()
    assert RepairPlan.from_json(stored, "x") == plan


def test_a_table_that_was_altered_since_it_was_compared_keeps_its_rows_as_they_were_stored() -> None:
    plan = plan_of(Schema(Flavor.MARIADB, "", tables={TABLE: Table(TABLE, "InnoDB", COLUMNS[:2])}))
    lines = plan_text(StoredPlan(plan, "work/plan.json")).split("\n")[2:]

    assert lines[:2] == [f"  insert key={digits('ä1')}", f"  update key={digits('ä2')}: name, size"]


@pytest.mark.parametrize(("name", "argument"), [("visits", "shop.visits"), ("a.b 'x", "'`shop`.`a.b '\"'\"'x`'")])
def test_a_table_without_a_key_is_left_with_the_command_that_copies_it(name: str, argument: str) -> None:
    key = TableKey("shop", name)
    bare = Schema(Flavor.MARIADB, "", tables={key: Table(key, "InnoDB", COLUMNS)})
    plan = plan_repair("shop", "u", 7, [Suspect(key, (), DRIFT, 7, (), ("1",), None, "")], bare, ())

    said = f"; `binlane recopy shop --table {argument}` copies the table again"
    assert plan_text(StoredPlan(plan, "work/plan.json")).split("\n")[1].endswith(said)
    assert left_text(plan).split("\n")[0] == "still drifted:"
    assert left_text(plan).endswith(said)


SEQUENCE = TableKey("shop", "numbers")
ROW = ("5", "1", "99", "1", "1", "10", "0", "0")


@pytest.mark.parametrize(
    ("source", "target", "left"),
    [
        (ROW, ("11", *ROW[1:]), ["its next value"]),
        (ROW, None, ["its next value"]),
        (None, ROW, ["only the target has it"]),
        (ROW, (*ROW[:4], "7", *ROW[5:]), []),
    ],
)
def test_a_sequence_is_left_with_the_statement_that_sets_it_unless_its_definition_alone_differs(
    source: tuple[str, ...] | None, target: tuple[str, ...] | None, left: list[str]
) -> None:
    columns = tuple(Column(name, place, "bigint") for place, name in enumerate(SEQUENCE_COLUMNS, 1))
    schema = Schema(Flavor.MARIADB, "", tables={SEQUENCE: Table(SEQUENCE, "InnoDB", columns)})
    sides = [(source, None)] * (source is not None) + [(None, target)] * (target is not None)
    drift = [Suspect(SEQUENCE, (), DRIFT, 7, (), ours, theirs, "") for ours, theirs in sides]
    plan = plan_repair("shop", "u", 7, drift, schema, ())

    said = {
        "its next value": "it is a sequence, whose next value is 5 on the source: "
        "ALTER SEQUENCE `shop`.`numbers` RESTART 5",
        "only the target has it": "it is a sequence, and only the target has it",
    }
    assert [(each.table, each.why) for each in plan.left] == [(SEQUENCE, said[each]) for each in left]
    assert plan.rows == ()


def test_an_account_is_left_without_the_name_of_a_table() -> None:
    account = SchemaObject("account 'ann'@'%'", "", "")
    difference = DefinitionDifference(account, "", "there", None, nothing("see SHOW CREATE USER on the source"))
    plan = plan_repair("shop", "u", 7, [], SCHEMA, (), differences=[difference])

    assert left_text(plan).split("\n")[1].startswith("  not repaired: account 'ann'@'%': exists on the source")
