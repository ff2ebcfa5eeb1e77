"""Which tables are folded, and by which columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.model import Flavor, TableKey
from binlane.plan.block.reducible_tables import Exclusions, TableRule, table_rules, why_not_folded
from binlane.schema.model import Column, Generated, Key, KeyColumn, Schema, Table

NAME = TableKey("shop", "Orders")


def column(name: str, data_type: str = "int", **more: object) -> Column:
    return replace(Column(name, 1, data_type), **more)  # type: ignore[arg-type]


def key(name: str, *columns: str | None, unique: bool = True) -> Key:
    return Key(name, unique, name == "PRIMARY", tuple(KeyColumn(each) for each in columns))


COLUMNS = (column("Id", unsigned=True, auto_increment=True), column("mail", "varchar"), column("n"), column("note"))
TABLE = Table(NAME, "InnoDB", COLUMNS, (key("PRIMARY", "id"), key("mail", "MAIL"), key("n", "n", unique=False)))
NOTHING = Exclusions({}, {})


def schema(table: Table) -> Schema:
    return Schema(Flavor.MARIADB, "10.11.19-MariaDB", tables={table.key: table})


VIRTUAL = replace(TABLE, columns=(*COLUMNS[:2], column("n", generated=Generated.VIRTUAL), COLUMNS[3]))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param(TABLE, TableRule(4, (0,), (0, 1), 0, False), id="unique-keys"),
        pytest.param(
            replace(TABLE, columns=(column("id"), *COLUMNS[1:])), TableRule(4, (0,), (0, 1), None), id="no-counter"
        ),
        pytest.param(
            replace(TABLE, columns=(column("id", auto_increment=True), *COLUMNS[1:])),
            TableRule(4, (0,), (0, 1), 0, True), id="signed-counter",
        ),
        pytest.param(
            replace(TABLE, keys=(key("PRIMARY", "n", "id"), key("mail", "mail", "note"))),
            TableRule(4, (0, 2), (0, 1, 2, 3), 0, False), id="composite-keys",
        ),
        pytest.param(
            replace(TABLE, keys=(key("PRIMARY", "id"), key("f", None))), TableRule(4, (0,), (0, 1, 2, 3), 0, False),
            id="functional-key",
        ),
        pytest.param(VIRTUAL, TableRule(4, (0,), (0, 1), 0, False), id="virtual-column-in-no-unique-key"),
        pytest.param(
            replace(VIRTUAL, keys=(key("PRIMARY", "id"), key("n", "n"))), TableRule(4, (0,), (0, 1, 2, 3), 0, False),
            id="virtual-column-in-a-unique-key",
        ),
    ],
)  # fmt: skip
def test_a_table_is_folded_by_its_primary_key_and_all_that_its_unique_keys_are_made_of(
    table: Table, expected: TableRule
) -> None:
    assert table_rules(schema(table), NOTHING) == {NAME: expected}
    assert why_not_folded(schema(table), NOTHING, NAME) is None


@pytest.mark.parametrize(
    ("table", "excluded", "reason"),
    [
        pytest.param(replace(TABLE, keys=TABLE.keys[1:]), NOTHING, "no primary key", id="no-primary-key"),
        pytest.param(
            replace(TABLE, columns=(column("id", "double", auto_increment=True), *COLUMNS[1:])), NOTHING,
            "AUTO_INCREMENT column is not an integer", id="counter-of-another-type",
        ),
        pytest.param(
            replace(TABLE, columns=(*COLUMNS[:3], column("note", "time (old format)", fsp=3))), NOTHING,
            "MariaDB 5.3's format", id="length-that-is-not-logged",
        ),
        pytest.param(
            replace(VIRTUAL, keys=(key("PRIMARY", "n"),)), NOTHING, "its whole primary key", id="virtual-primary"
        ),
        pytest.param(
            TABLE, Exclusions({TableKey("SHOP", "orders"): "a DDL"}, {}), "a DDL", id="named-by-a-ddl-in-other-case"
        ),
        pytest.param(TABLE, Exclusions({}, {"Shop": "its database"}), "its database", id="database-of-a-ddl"),
        pytest.param(TABLE, Exclusions({}, {}, "unread"), "unread", id="everything"),
    ],
)  # fmt: skip
def test_tables_that_are_not_folded_have_a_reason(table: Table, excluded: Exclusions, reason: str) -> None:
    assert table_rules(schema(table), excluded) == {}
    assert reason in str(why_not_folded(schema(table), excluded, NAME))


def test_tables_that_share_their_columns_have_rules_by_their_own_keys() -> None:
    """As tenants' tables share both, where they are the same."""
    one, other = (replace(TABLE, key=TableKey("shop", name)) for name in ("one", "other"))
    other = replace(other, keys=(key("PRIMARY", "n"),))
    both = Schema(Flavor.MARIADB, "10.11.19-MariaDB", tables={one.key: one, other.key: other})
    assert {name.table: rule.primary for name, rule in table_rules(both, NOTHING).items()} == {
        "one": (0,),
        "other": (2,),
    }
