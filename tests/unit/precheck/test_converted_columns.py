"""The columns that an ALTER TABLE adds, or gives another type."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.precheck.tables.converted_columns import changed_types, kind_of
from binlane.sql.parse.lexer import Dialect, Token, lex


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("ALTER TABLE t MODIFY a INT", [("a", "a", "int")]),
        ("ALTER TABLE d.t MODIFY COLUMN IF EXISTS `A` VARCHAR(3) NULL, ENGINE = InnoDB", [("a", "a", "varchar")]),
        ("ALTER TABLE t CHANGE COLUMN a b DECIMAL(10, 2), ADD c TEXT", [("a", "b", "decimal"), ("", "c", "text")]),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, RENAME COLUMN b TO c", [("", "a", "int")]),
        ("ALTER TABLE t DROP a, ALTER b SET DEFAULT 1", []),
    ],
)
def test_types_are_read_with_the_names_of_their_columns(sql: str, changes: list[tuple[str, str, str]]) -> None:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MYSQL), tokens)
    assert list(changed_types(tokens)) == changes


def test_names_of_one_type_are_of_one_kind() -> None:
    assert kind_of("INTEGER") == kind_of("bigint") == "whole"
    assert kind_of("inet6") == "inet6"
