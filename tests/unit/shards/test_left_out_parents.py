"""Foreign keys to tables that the filter leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.bootstrap.copy_checks import parents_left_out
from binlane.model import TableKey
from binlane.schema.model import ForeignKey, Table
from binlane.shards.left_out_parents import keys_left_out
from binlane.shards.selection import Selection

CHILD = TableKey("shop", "orders")
KEYS = tuple(
    ForeignKey(name, (column,), TableKey(database, table), ("id",), "RESTRICT", "RESTRICT")
    for name, column, database, table in (
        ("f;`k", "customer", "crm", "customers"),
        ("stays", "article", "shop", "articles"),
        ("last", "region", "crm", "regions"),
    )
)
TABLE = Table(CHILD, "InnoDB", (), foreign_keys=KEYS)
SELECTION = Selection(exclude_databases=("crm",))


def test_the_keys_whose_parents_are_left_out_are_known() -> None:
    assert keys_left_out(TABLE, SELECTION) == (KEYS[0], KEYS[2])
    assert keys_left_out(TABLE, Selection()) == ()


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
def test_a_key_with_an_action_is_none_that_a_target_may_lack(action: str) -> None:
    for key in (replace(KEYS[0], on_delete=action), replace(KEYS[0], on_update=action)):
        assert keys_left_out(replace(TABLE, foreign_keys=(key,)), SELECTION) == ()


def test_each_of_them_is_said() -> None:
    [first, second] = parents_left_out([TABLE, Table(TableKey("shop", "articles"), "InnoDB", ())], SELECTION)
    assert first.startswith("crm.customers: 1 foreign key of copied tables to it, and the channel's filter")
    assert "shop.orders (DROP FOREIGN KEY `f;``k`)" in first
    assert second.startswith("crm.regions")


def test_a_fleet_has_one_note_for_a_parent() -> None:
    tables = [replace(TABLE, key=TableKey(f"shop{number:04}", "orders")) for number in range(3_000)]
    notes = [*parents_left_out(tables, SELECTION)]
    assert [one.split(":")[0] for one in notes] == ["crm.customers", "crm.regions"]
    assert all("3,000 foreign keys" in one and one.endswith(" and 2,980 more") for one in notes)
    assert max(map(len, notes)) < 2_000
