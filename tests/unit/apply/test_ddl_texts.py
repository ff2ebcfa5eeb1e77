"""What decides how a DDL is run goes by its first words, whatever stands around them."""

from __future__ import annotations

import pytest

from binlane.apply.ddl.outcome import keeps_definitions
from binlane.apply.ddl.text import without_comments
from tests.integration.apply.capture import ddl_item


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        ("rename /* it's; */ table a TO b", "rename   table a TO b"),
        ("/* 1 */ -- 2\nRENAME TABLE a TO b /* 3 */", "RENAME TABLE a TO b /* 3 */"),
        (
            "# 1\nCREATE -- 2\n OR REPLACE /* 3 */ TABLE t (a INT /* 4 */)",
            "CREATE  \n OR REPLACE   TABLE t (a INT /* 4 */)",
        ),
        ("ALTER EVENT e DO /* body */ DELETE FROM t", "ALTER EVENT e DO /* body */ DELETE FROM t"),
        ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW BEGIN /* body */ END", None),
        ("DROP TABLE `/* a */`, b", None),
        ("ALTER TABLE t COMMENT '/* a */'", None),
    ],
)
def test_comments_in_front_of_and_between_the_first_words_are_left_out(sql: str, plain: str | None) -> None:
    item = ddl_item(sql, "d")
    assert without_comments(item).payload.decode() == (sql if plain is None else plain)


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLES a TO `x;y`, b TO a, `x;y` TO b",
        "SET STATEMENT lock_wait_timeout=1 FOR RENAME TABLE a TO x, b TO a, x TO b",
        "ALTER TABLE `a;b` EXCHANGE /* 1 */ PARTITION p WITH TABLE u",
        "SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "ALTER TABLE `a;b` CHANGE a b INT FIRST, CHANGE b a INT",
    ],
)
def test_a_statement_that_may_undo_itself_is_recognised(sql: str) -> None:
    assert keeps_definitions(sql.encode())
    assert not keeps_definitions(b"ALTER TABLE t ADD a INT")
