"""``[collations]`` over the text of a statement and over its session."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.collations import Collations

RULES = Collations((("utf8mb4_0900_ai_ci", "utf8mb4_unicode_520_nopad_ci"), ("utf8_general_ci", "utf8mb3_unicode_ci")))
CONTEXT = SessionContext(charset_client=45, collation_server=255, default_collation_for_utf8mb4=255)
C = "COLLATE utf8mb4_unicode_520_nopad_ci"
CASES = {
    "CREATE TABLE t (a CHAR(1) COLLATE utf8mb4_0900_ai_ci)": f"CREATE TABLE t (a CHAR(1) {C})",
    "CREATE TABLE t (a CHAR(1) COLLATE UTF8MB4_0900_AI_CI)": f"CREATE TABLE t (a CHAR(1) {C})",
    "CREATE TABLE t (a CHAR(1)) COLLATE='utf8mb4_0900_ai_ci'":
        "CREATE TABLE t (a CHAR(1)) COLLATE=utf8mb4_unicode_520_nopad_ci",
    "CREATE TABLE t (a CHAR(1) COLLATE utf8mb3_general_ci)": "CREATE TABLE t (a CHAR(1) COLLATE utf8mb3_unicode_ci)",
    "CREATE TABLE t (a CHAR(1) COLLATE utf8mb4_bin)": None,
    "CREATE TABLE t (a CHAR(1)) CHARSET=utf8mb4": f"CREATE TABLE t (a CHAR(1)) CHARSET=utf8mb4 {C}",
    "CREATE TABLE t (a CHAR(1)) CHARSET=utf8mb4 COLLATE=utf8mb4_bin": None,
    "CREATE TABLE t (a CHAR(1)) COLLATE=utf8mb4_bin CHARSET=utf8mb4": None,
    "CREATE TABLE t (a CHAR(1) CHARACTER SET utf8mb4 NOT NULL, b INT COMMENT 'COLLATE')":
        f"CREATE TABLE t (a CHAR(1) CHARACTER SET utf8mb4 {C} NOT NULL, b INT COMMENT 'COLLATE')",
    "CREATE TABLE t (a CHAR(1) CHARSET utf8mb4 BINARY)": None,
    "CREATE TABLE t (a CHAR(1) CHARSET utf8mb4, b CHAR(1) COLLATE latin1_bin)":
        f"CREATE TABLE t (a CHAR(1) CHARSET utf8mb4 {C}, b CHAR(1) COLLATE latin1_bin)",
    "CREATE TABLE t (a CHAR(1) CHARSET latin1) CHARSET latin1": None,
    "CREATE TABLE t (a INT AS (CAST(b AS CHAR CHARACTER SET utf8mb4)))": None,
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4": f"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 {C}",
    "ALTER TABLE t MODIFY a CHAR(1) CHARSET utf8mb4, ADD b CHAR(1) CHARSET utf8mb4":
        f"ALTER TABLE t MODIFY a CHAR(1) CHARSET utf8mb4 {C}, ADD b CHAR(1) CHARSET utf8mb4 {C}",
    "CREATE DATABASE d /*!40100 DEFAULT CHARACTER SET utf8mb4 */":
        f"CREATE DATABASE d /*!40100 DEFAULT CHARACTER SET utf8mb4 {C} */",
    "INSERT INTO t SELECT a COLLATE utf8mb4_0900_ai_ci, 'COLLATE utf8mb4_0900_ai_ci' FROM u":
        f"INSERT INTO t SELECT a {C}, 'COLLATE utf8mb4_0900_ai_ci' FROM u",
    "INSERT INTO t SELECT CONVERT(a USING utf8mb4) FROM `collate`": None,
    "CREATE TABLE `utf8mb4_0900_ai_ci` (`charset` INT, `collate` INT)": None,
    "CREATE FUNCTION f (a CHAR(1)) RETURNS CHAR(1) CHARSET utf8mb4 RETURN a":
        f"CREATE FUNCTION f (a CHAR(1)) RETURNS CHAR(1) CHARSET utf8mb4 {C} RETURN a",
    "CREATE FUNCTION f () RETURNS INT RETURN (SELECT CONVERT('a' USING utf8mb4) = 'a')": None,
    "CREATE TABLE t (a CHAR(1) COMMENT 'ß😀' COLLATE utf8mb4_0900_ai_ci)":
        f"CREATE TABLE t (a CHAR(1) COMMENT 'ß😀' {C})",
    "CREATE TABLE t (a CHAR(1) COLLATE 'utf8mb4_0900_ai_ci": None,
}  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), CASES.items())
def test_only_collations_and_bare_character_sets_change(sql: str, expected: str | None) -> None:
    found, _ = RULES.statement(sql.encode(), CONTEXT, Flavor.MYSQL, Flavor.MARIADB)
    assert found.decode() == (sql if expected is None else expected)


@pytest.mark.parametrize("rules", [Collations(), RULES])
def test_a_collation_that_the_other_family_has_under_another_name_is_named_so(rules: Collations) -> None:
    mysqls = b"CREATE TABLE t (a CHAR(1) COLLATE utf8_croatian_ci, b CHAR(1) COLLATE utf8mb4_Croatian_ci)"
    mariadbs = (
        b"CREATE TABLE t (a CHAR(1) COLLATE utf8mb3_croatian_mysql561_ci, "
        b"b CHAR(1) COLLATE utf8mb4_croatian_mysql561_ci)"
    )
    named = b"CREATE TABLE t (a CHAR(1) COLLATE utf8mb3_croatian_ci, b CHAR(1) COLLATE utf8mb4_croatian_ci)"
    assert rules.statement(mysqls, SessionContext(), Flavor.MYSQL, Flavor.MARIADB)[0] == mariadbs
    assert rules.statement(mariadbs, SessionContext(), Flavor.MARIADB, Flavor.MYSQL)[0] == named
    assert rules.statement(mysqls, SessionContext(), Flavor.MYSQL, Flavor.MYSQL)[0] == mysqls
    own = Collations((("utf8mb4_croatian_ci", "utf8mb4_bin"),))
    assert b"b CHAR(1) COLLATE utf8mb4_bin" in own.statement(mysqls, SessionContext(), Flavor.MYSQL, Flavor.MARIADB)[0]


def test_a_bare_character_set_stays_where_the_session_says_nothing_of_it() -> None:
    sql = b"CREATE TABLE t (a CHAR(1)) CHARSET=utf8mb4"
    assert RULES.statement(sql, SessionContext(), Flavor.MYSQL, Flavor.MARIADB)[0] == sql


def test_a_mariadb_session_says_its_defaults_for_itself() -> None:
    rules = Collations((("utf8mb4_uca1400_ai_ci", "utf8mb4_0900_ai_ci"),))
    context = SessionContext(character_set_collations=((45, 2304),), collation_connection=2304)
    sql, session = rules.statement(b"CREATE TABLE t (a CHAR(1)) CHARSET utf8mb4", context, Flavor.MARIADB, Flavor.MYSQL)
    assert sql == b"CREATE TABLE t (a CHAR(1)) CHARSET utf8mb4 COLLATE utf8mb4_0900_ai_ci"
    assert (session.character_set_collations, session.collation_connection) == (((45, 255),), 255)


def test_the_session_s_own_collations_are_the_target_s() -> None:
    _, session = RULES.statement(b"SELECT 1", CONTEXT, Flavor.MYSQL, Flavor.MARIADB)
    assert (session.collation_server, session.default_collation_for_utf8mb4, session.charset_client) == (1270, 1270, 45)
