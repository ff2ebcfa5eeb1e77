"""The columns that an ALTER TABLE adds, drops, renames, or gives another type."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.precheck.tables.converted_columns import column_changes, kind_of
from binlane.sql.parse.lexer import Dialect, Token, lex


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("ALTER TABLE t MODIFY a INT", [("a", "a", "int")]),
        ("ALTER TABLE d.t MODIFY COLUMN IF EXISTS `A` VARCHAR(3) NULL, ENGINE = InnoDB", [("a", "a", "varchar")]),
        ("ALTER TABLE t CHANGE COLUMN a b DECIMAL(10, 2), ADD c TEXT", [("a", "b", "decimal"), ("", "c", "text")]),
        (
            "ALTER TABLE `add`.`modify` ADD COLUMN IF NOT EXISTS a INT, RENAME COLUMN b TO c",
            [("", "a", "int"), ("b", "c", "")],
        ),
        ("ALTER TABLE t ADD (a INT, b DECIMAL(5, 2), KEY (a))", [("", "a", "int"), ("", "b", "decimal")]),
        ("ALTER TABLE t DROP a, DROP COLUMN IF EXISTS b, DROP KEY k", [("a", "", ""), ("b", "", "")]),
        ("ALTER TABLE t ADD INDEX k (a), ADD PARTITION (PARTITION p VALUES LESS THAN (9)), DROP PARTITION q", []),
        ("ALTER TABLE t ALTER b SET DEFAULT 1, RENAME TO u, RENAME INDEX i TO j", []),
    ],
)
def test_the_columns_that_a_statement_changes_are_read(sql: str, changes: list[tuple[str, str, str]]) -> None:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MYSQL), tokens)
    assert list(column_changes(tokens)) == changes


def test_names_of_one_type_are_of_one_kind() -> None:
    assert kind_of("INTEGER") == kind_of("bigint") == "whole"
    assert kind_of("inet6") == "inet6"
