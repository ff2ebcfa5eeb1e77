"""The columns that an ALTER TABLE adds, drops, renames, or gives another type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.tables.converted_columns import _FollowedTables, column_changes, kind_of
from binlane.schema.letter_case import ANY_CASE
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


@pytest.mark.parametrize(
    ("firsts", "later", "is_empty"),
    [
        pytest.param({}, None, True, id="no rows at all"),
        pytest.param({"aa": 30}, None, True, id="rows behind the statement alone"),
        pytest.param({"aa": 15}, None, False, id="rows before the statement"),
        pytest.param({"aa": 20}, None, False, id="rows up to the statement"),
        pytest.param({"aa": 3, "bb": 15}, None, False, id="rows of another definition than a former table's"),
        pytest.param({"aa": 3}, None, True, id="rows of a former table of the name alone"),
        pytest.param({"aa": 3}, 15, False, id="rows of the definition of a former table"),
        pytest.param({"aa": 3}, 25, True, id="the same behind the statement"),
    ],
)
def test_a_table_that_the_window_has_made_is_empty_before_its_first_rows(
    firsts: dict[str, int], later: int | None, is_empty: bool
) -> None:
    """The statement has seqno 20, the table is made by 10. A source with lower_case_table_names = 1 logs rows of
    app._t_gho for what its statements call App._T_gho. Files are read only where the plan cannot tell."""
    asked = list[tuple[TableKey, int]]()

    def first_rows(key: TableKey, after: int) -> int | None:
        asked.append((key, after))
        return later

    situation: Any = SimpleNamespace(
        plan=SimpleNamespace(table_maps={TableKey("app", "_t_gho"): firsts}),
        compared=ANY_CASE.table,
        needs=SimpleNamespace(statements=False, loads=False),
        first_rows=first_rows,
    )
    followed = _FollowedTables(situation)
    followed.made[TableKey("app", "_t_gho")] = 10
    assert followed.is_empty(TableKey("App", "_T_gho"), 20) is is_empty
    assert asked == ([(TableKey("app", "_t_gho"), 10)] if firsts == {"aa": 3} else [])
