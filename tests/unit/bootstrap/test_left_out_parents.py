"""Foreign keys to tables that the filter leaves out, taken from the definitions that a copy makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.left_out_parents import definition_without, keys_left_out, notes_of, schema_without
from binlane.model import Flavor, TableKey
from binlane.schema.model import ForeignKey, Schema, Table
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
LINES = (
    "CREATE TABLE `orders` (\n  `id` int NOT NULL COMMENT ',\\n  CONSTRAINT `last` FOREIGN KEY',\n  PRIMARY KEY (`id`)",
    "  KEY `f;``k` (`customer`)",
    "  CONSTRAINT `f;``k` FOREIGN KEY (`customer`) REFERENCES `crm`.`customers` (`id`)",
    "  CONSTRAINT `stays` FOREIGN KEY (`article`) REFERENCES `articles` (`id`) ON DELETE CASCADE",
    "  CONSTRAINT `last` FOREIGN KEY (`region`) REFERENCES `crm`.`regions` (`id`)",
    "  CONSTRAINT `c` CHECK (`id` > 0)",
)
END = "\n) ENGINE=InnoDB COMMENT='x'"


def definition(*lines: str) -> Definition:
    return Definition("TABLE", "shop", "orders", (",\n".join(lines) + END).encode())


def test_the_keys_whose_parents_are_left_out_are_known() -> None:
    assert keys_left_out(TABLE, SELECTION) == (KEYS[0], KEYS[2])
    assert keys_left_out(TABLE, Selection()) == ()


@pytest.mark.parametrize("last", [5, 6], ids=["at the end", "in the middle"])
def test_a_definition_loses_these_keys_alone(last: int) -> None:
    lines = LINES[:last]
    found = definition_without(definition(*lines), (KEYS[0], KEYS[2]))
    assert found == definition(*(each for each in lines if "`crm`" not in each))
    assert definition_without(definition(*lines), ()) == definition(*lines)


def test_a_schema_loses_them_too() -> None:
    schema = Schema(Flavor.MYSQL, "9.7.0", tables={CHILD: TABLE})
    assert schema_without(schema, {CHILD: KEYS[:1]}).tables == {CHILD: replace(TABLE, foreign_keys=KEYS[1:])}
    assert schema_without(schema, {}).tables == schema.tables


def test_each_of_them_is_said() -> None:
    [first, second] = notes_of({CHILD: (KEYS[0], KEYS[2]), TableKey("shop", "articles"): ()})
    assert first.startswith(
        "table shop.orders: made without its foreign key f;`k to crm.customers, which the channel's"
    )
    assert "crm.regions" in second
