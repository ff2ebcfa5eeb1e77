"""MariaDB's own spellings for a MySQL target."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.sql.other_family import as_in_family

CASES = {
    "CREATE TABLE t (a INT, b INT AS (a + 1) PERSISTENT, c INT GENERATED ALWAYS AS ((a)) persistent NOT NULL)":
        "CREATE TABLE t (a INT, b INT AS (a + 1) STORED, c INT GENERATED ALWAYS AS ((a)) STORED NOT NULL)",
    "ALTER TABLE t ADD b INT AS (a) PERSISTENT": "ALTER TABLE t ADD b INT AS (a) STORED",
    "CREATE TABLE persistent (`PERSISTENT` INT COMMENT ') PERSISTENT')": None,
    "ANALYZE TABLE t PERSISTENT FOR ALL": None,
    "SET STATEMENT max_statement_time=10 FOR ALTER TABLE t ADD b INT AS (a) PERSISTENT":
        "ALTER TABLE t ADD b INT AS (a) STORED",
    "SET STATEMENT unique_checks=0, Lock_Wait_Timeout = (1 + 2) FOR INSERT INTO t VALUES ('FOR')":
        "INSERT INTO t VALUES ('FOR')",
    "SET STATEMENT time_zone = IF(1, 'FOR', '+00:00') FOR DELETE FROM t": "DELETE FROM t",
    "SET STATEMENT default_storage_engine='MyISAM' FOR CREATE TABLE t (a INT)": None,
    "SET STATEMENT sql_mode='', default_storage_engine='MyISAM' FOR CREATE TABLE t (a INT)": None,
    "SET STATEMENT insert_id=7 FOR INSERT INTO t VALUES (1)": None,
    "SET STATEMENT sql_mode='ANSI_QUOTES' FOR INSERT INTO t VALUES (1)": None,
    "SET STATEMENT time_zone=''": None,
    "SET STATEMENT time_zone='' FOR": None,
    "INSERT INTO statement VALUES ('SET STATEMENT a=1 FOR x')": None,
}  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), CASES.items())
def test_what_is_the_same_in_other_words_gets_them(sql: str, expected: str | None) -> None:
    found = as_in_family(sql.encode(), SessionContext(), Flavor.MARIADB, Flavor.MYSQL).decode()
    assert found == (sql if expected is None else expected)
    assert as_in_family(sql.encode(), SessionContext(), Flavor.MARIADB, Flavor.MARIADB).decode() == sql
