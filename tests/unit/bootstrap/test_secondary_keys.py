"""Secondary keys that can be built after the rows, by a table's definition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.secondary_keys import can_wait, key_clauses
from binlane.model import TableKey
from binlane.schema.model import Column, ForeignKey, Key, KeyColumn, Table
from binlane.state.records.bootstraps import Size

STATEMENT = """CREATE TABLE `t` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `a` int(11) DEFAULT NULL COMMENT 'KEY `x` (`y`),',
  PRIMARY KEY (`id`),
  UNIQUE KEY `we``ird, (x)` (`a`,`id`),
  KEY `b` (`a` DESC) USING BTREE COMMENT 'one, two'
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4
/*!50100 PARTITION BY KEY (`id`)
PARTITIONS 2 */"""
KEY = TableKey("d", "t")
DEFINITION = Definition("TABLE", "d", "t", STATEMENT.encode())
LARGE = Size(1_000_000, 1 << 30)
ID = Column("id", 1, "bigint", auto_increment=True)
TABLE = Table(
    KEY,
    "InnoDB",
    (ID, Column("a", 2, "int")),
    (
        Key("PRIMARY", True, True, (KeyColumn("id"),)),
        Key("we`ird, (x)", True, False, (KeyColumn("a"), KeyColumn("id"))),
        Key("b", False, False, (KeyColumn("a"),)),
    ),
)


def test_the_clauses_are_those_of_the_definition() -> None:
    assert key_clauses(DEFINITION) == {
        "we`ird, (x)": b"UNIQUE KEY `we``ird, (x)` (`a`,`id`)",
        "b": b"KEY `b` (`a` DESC) USING BTREE COMMENT 'one, two'",
    }


@pytest.mark.parametrize(
    ("table", "size", "parents", "expected"),
    [
        pytest.param(TABLE, LARGE, (), True, id="large"),
        pytest.param(TABLE, Size(10, 1000), (), False, id="small"),
        pytest.param(TABLE, LARGE, (KEY,), False, id="parent"),
        pytest.param(replace(TABLE, keys=TABLE.keys[:1]), LARGE, (), False, id="no secondary key"),
        pytest.param(replace(TABLE, keys=TABLE.keys[1:]), LARGE, (), False, id="a key that AUTO_INCREMENT needs"),
        pytest.param(
            replace(TABLE, foreign_keys=(ForeignKey("f", ("a",), KEY, ("id",), "RESTRICT", "RESTRICT"),)),
            LARGE, (), False, id="child",
        ),
        pytest.param(
            replace(TABLE, keys=(*TABLE.keys[:2], replace(TABLE.keys[2], kind="FULLTEXT"))), LARGE, (), False, id="kind"
        ),
        pytest.param(
            replace(TABLE, keys=(*TABLE.keys, Key("c", False, False, (KeyColumn("a"),)))), LARGE, (), False,
            id="a key that the definition does not show",
        ),
        pytest.param(
            replace(TABLE, keys=(*TABLE.keys[:2], Key("b", False, False, (KeyColumn(None, expression="a + 1"),)))),
            LARGE, (), False, id="functional",
        ),
    ],
)  # fmt: skip
def test_keys_wait_only_where_the_definition_stays_the_same(
    table: Table, size: Size, parents: tuple[TableKey, ...], expected: bool
) -> None:
    assert can_wait(table, size, DEFINITION, parents) is expected
