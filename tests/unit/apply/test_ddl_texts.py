"""What decides how a DDL is run goes by its first words, whatever stands around them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.apply.ddl.outcome import keeps_definitions
from binlane.apply.ddl.text import repeatable, repeated
from binlane.model import Flavor, Item, SessionContext
from binlane.sql.plain_statement import plain
from tests.integration.apply.capture import ddl_item


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLES a TO `x;y`, b TO a, `x;y` TO b",
        "SET STATEMENT lock_wait_timeout=1 FOR RENAME TABLE a TO x, b TO a, x TO b",
        "ALTER TABLE `a;b` EXCHANGE /* 1 */ PARTITION p WITH TABLE u",
        "SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "ALTER TABLE `a;b` CHANGE a b INT FIRST, CHANGE b a INT",
        "ALTER TABLE t DROP COLUMN a, CHANGE b a INT, ADD b INT",
        "ALTER TABLE t DROP A, RENAME COLUMN IF EXISTS `b` TO a, ADD COLUMN IF NOT EXISTS (c DEC(1, 1), B INT)",
        "SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE d.t ADD b INT, DROP COLUMN IF EXISTS a, CHANGE b a INT",
        "ALTER TABLE t DROP c, CHANGE a b INT, CHANGE b a INT FIRST, ADD c INT",
    ],
)
def test_a_statement_that_may_undo_itself_is_recognised(sql: str) -> None:
    assert keeps_definitions(_item(sql))
    assert not keeps_definitions(_item("ALTER TABLE t ADD a INT"))


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t DROP COLUMN x, CHANGE b a INT, ADD y INT",
        "ALTER TABLE t DROP COLUMN a, CHANGE b a INT, ADD y INT",
        "ALTER TABLE t DROP COLUMN a, CHANGE b b BIGINT, ADD a INT",
        "ALTER TABLE t DROP KEY a, RENAME COLUMN b TO a, ADD KEY b (a)",
        "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
        "ALTER TABLE t DROP COLUMN a, RENAME KEY b TO a, ADD b INT",
    ],
)
def test_an_alter_table_that_shows_keeps_no_definitions(sql: str) -> None:
    assert not keeps_definitions(_item(sql))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP /* a */ TABLE a", "DROP   TABLE IF EXISTS a"),
        (
            "SET STATEMENT sql_mode='FOR DROP TABLE x' FOR DROP TABLE a",
            "SET STATEMENT sql_mode='FOR DROP TABLE x' FOR DROP TABLE IF EXISTS a",
        ),
        ("SET STATEMENT sql_mode='x FOR DROP TABLE a' FOR ALTER TABLE a ADD b INT", None),
    ],
)
def test_a_drop_may_run_twice_behind_variables_of_its_own(sql: str, expected: str | None) -> None:
    assert repeatable(_item(sql)).payload.decode() == (sql if expected is None else expected)


def test_accounts_may_be_made_twice_behind_variables_of_their_own() -> None:
    made = repeated(_item("SET STATEMENT sql_mode='' FOR CREATE USER a")).payload
    assert made == b"SET STATEMENT sql_mode='' FOR CREATE USER IF NOT EXISTS a"


def _item(sql: str) -> Item:
    """The item, with its text as the log's decoder gives it."""
    item = ddl_item(sql, "d")
    return replace(item, payload=plain(item.payload, SessionContext(), Flavor.MARIADB))
