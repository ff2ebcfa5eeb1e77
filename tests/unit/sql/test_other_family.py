"""MariaDB's own spellings for a MySQL target."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.sql.other_family import as_in_family, null_as_in_mariadb, read_under_another_mode
from binlane.sql.parse.analyze import analyze
from binlane.sql.plain_statement import plain

CASES = {
    "CREATE TABLE t (a INT, b INT AS (a + 1) PERSISTENT, c INT GENERATED ALWAYS AS ((a)) persistent NOT NULL)":
        "CREATE TABLE t (a INT, b INT AS (a + 1) STORED, c INT GENERATED ALWAYS AS ((a)) STORED NOT NULL)",
    "ALTER TABLE t ADD b INT AS (a) PERSISTENT": "ALTER TABLE t ADD b INT AS (a) STORED",
    "CREATE TABLE persistent (`PERSISTENT` INT COMMENT ') PERSISTENT')": None,
    "ANALYZE TABLE t PERSISTENT FOR ALL": None,
    "CREATE TABLE t (compressed TEXT COMPRESSED, b VARCHAR(9) COMPRESSED=zlib NOT NULL, "
    "c blob /*M!100301 COMPRESSED*/)":
        "CREATE TABLE t (compressed TEXT , b VARCHAR(9) DEFAULT '' NOT NULL, c blob /*M!100301 */)",
    "CREATE TABLE t (a TEXT CHARACTER SET latin1 COMPRESSED NOT NULL, b VARBINARY(9) DEFAULT 'x' COMPRESSED, "
    "c TEXT COLLATE utf8mb4_bin COMPRESSED, d LONGBLOB NOT NULL COMPRESSED, KEY compressed (compressed))":
        "CREATE TABLE t (a TEXT CHARACTER SET latin1 DEFAULT ('') NOT NULL, b VARBINARY(9) DEFAULT 'x' , "
        "c TEXT COLLATE utf8mb4_bin , d LONGBLOB NOT NULL DEFAULT (''), KEY compressed (compressed))",
    "ALTER TABLE t ADD COLUMN (a TEXT COMPRESSED), MODIFY b BLOB compressed AFTER compressed, "
    "CHANGE c d TEXT COMPRESSED":
        "ALTER TABLE t ADD COLUMN (a TEXT ), MODIFY b BLOB  AFTER compressed, CHANGE c d TEXT ",
    "ALTER TABLE t CHANGE text compressed INT, CHANGE COLUMN IF EXISTS `a` compressed INT, DROP compressed": None,
    "ALTER TABLE t ADD INDEX compressed (a), RENAME COLUMN text TO compressed, ALTER compressed SET DEFAULT 1": None,
    "ALTER TABLE charset ROW_FORMAT COMPRESSED": None,
    "ALTER TABLE t ADD (a TEXT COMPRESSED CHECK (a IS NOT NULL), b VARCHAR(9) COMPRESSED DEFAULT 'x' NOT NULL), "
    "ADD text VARCHAR(9) COMPRESSED NOT NULL":
        "ALTER TABLE t ADD (a TEXT  CHECK (a IS NOT NULL), b VARCHAR(9)  DEFAULT 'x' NOT NULL), "
        "ADD text VARCHAR(9) DEFAULT '' NOT NULL",
    "CREATE TABLE t (a INT CHECK (f(a) + compressed), compressed INT) ROW_FORMAT=COMPRESSED": None,
    "CREATE TABLE t (a INT) ROW_FORMAT COMPRESSED SELECT f(a) compressed, text compressed FROM u": None,
    "CREATE TABLE t SELECT f(a) compressed FROM (SELECT text compressed FROM u) v": None,
    "CREATE TABLE t (SELECT f(a) compressed FROM u)": None,
    "CREATE VIEW v AS SELECT f(a) COMPRESSED FROM t": None,
    "SET STATEMENT max_statement_time=10 FOR ALTER TABLE t ADD b INT AS (a) PERSISTENT":
        "ALTER TABLE t ADD b INT AS (a) STORED",
    "SET STATEMENT unique_checks=0, Lock_Wait_Timeout = (1 + 2) FOR INSERT INTO t VALUES ('FOR')":
        "INSERT INTO t VALUES ('FOR')",
    "SET STATEMENT time_zone = IF(1, 'FOR', '+00:00') FOR DELETE FROM t": "DELETE FROM t",
    "SET STATEMENT default_storage_engine='MyISAM' FOR CREATE TABLE t (a INT)": None,
    "SET STATEMENT sql_mode='', default_storage_engine='MyISAM' FOR CREATE TABLE t (a INT)": None,
    "SET STATEMENT insert_id=7 FOR INSERT INTO t VALUES (1)": None,
    "SET STATEMENT sql_mode='ANSI_QUOTES' FOR INSERT INTO t VALUES (1)": None,
    "SET STATEMENT binlog_format = ROW, sql_mode = '', sql_log_bin = 1, insert_id=(7) FOR DELETE FROM t":
        "SET STATEMENT sql_mode = '', insert_id=(7) FOR DELETE FROM t",
    "SET STATEMENT binlog_format=ROW FOR SET STATEMENT max_statement_time = (SELECT 1 FOR UPDATE) FOR DELETE FROM t":
        "DELETE FROM t",
    "SET STATEMENT max_statement_time = f(1) FOR DELETE FROM t": None,
    "SET STATEMENT max_statement_time = (SELECT f(1)), wsrep_on = 0 FOR DELETE FROM t":
        "SET STATEMENT max_statement_time = (SELECT f(1)) FOR DELETE FROM t",
    "SET STATEMENT max_statement_time = (SELECT a FROM b.t) FOR DELETE FROM t": None,
    "SET STATEMENT max_statement_time = NEXT VALUE FOR b.s FOR DELETE FROM t": None,
    "SET STATEMENT time_zone=''": None,
    "SET STATEMENT time_zone='' FOR": None,
    "INSERT INTO statement VALUES ('SET STATEMENT a=1 FOR x')": None,
}  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), CASES.items())
def test_statements_are_rewritten_in_the_other_familys_syntax(sql: str, expected: str | None) -> None:
    found = as_in_family(sql.encode(), SessionContext(), Flavor.MARIADB, Flavor.MYSQL).decode()
    assert found == (sql if expected is None else expected)
    assert as_in_family(sql.encode(), SessionContext(), Flavor.MYSQL, Flavor.MARIADB).decode() == sql
    within = as_in_family(sql.encode(), SessionContext(), Flavor.MARIADB, Flavor.MARIADB).decode()
    # variables of one statement are the only rewrite within the family
    assert within == (found.replace("STORED", "PERSISTENT") if sql.startswith("SET STATEMENT") else sql)


@pytest.mark.parametrize(
    "front",
    [
        "SET STATEMENT",
        "/* 1 */ SET STATEMENT",
        "-- 1\nSET /* 2 */STATEMENT",
        "# 1\nset\nstatement lock_wait_timeout=1 /* ; */,",
    ],
)
def test_a_text_that_was_read_under_another_mode_is_recognised_behind_comments(front: str) -> None:
    sql = f"{front} sql_mode='ANSI_QUOTES' FOR INSERT INTO t SELECT \"a\" FROM u".encode()
    session = SessionContext()
    sql = plain(sql, session, Flavor.MARIADB)
    assert read_under_another_mode(sql, session, Flavor.MARIADB)
    assert not read_under_another_mode(sql, session, Flavor.MYSQL)
    other = sql.replace(b"sql_mode", b"max_statement_time")
    assert not read_under_another_mode(other, session, Flavor.MARIADB)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("(ts TIMESTAMP PRIMARY KEY)", "(ts TIMESTAMP DEFAULT 0 PRIMARY KEY)"),
        ("(ts TIMESTAMP(3) KEY)", "(ts TIMESTAMP(3) DEFAULT 0 KEY)"),
        ("(ts TIMESTAMP, v INT, PRIMARY KEY USING BTREE (v, ts))",
         "(ts TIMESTAMP DEFAULT 0, v INT, PRIMARY KEY USING BTREE (v, ts))"),
        ("(ts TIMESTAMP UNIQUE KEY, v INT PRIMARY KEY)", "(ts TIMESTAMP NULL UNIQUE KEY, v INT PRIMARY KEY)"),
        ("(ts TIMESTAMP NOT NULL)", "(ts TIMESTAMP DEFAULT 0 NOT NULL)"),
        ("AS SELECT x.a timestamp FROM (SELECT 1 a) x", "AS SELECT x.a timestamp FROM (SELECT 1 a) x"),
        ("(ts TIMESTAMP) AS SELECT x.a timestamp FROM x", "(ts TIMESTAMP NULL) AS SELECT x.a timestamp FROM x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", [0, 1 << 24])
def test_columns_of_a_temporary_table_say_what_mariadb_gives_them(columns: str, expected: str, mode: int) -> None:
    context = SessionContext(sql_mode=mode, explicit_defaults_for_timestamp=True)
    sql = f"CREATE TEMPORARY TABLE t {columns}".encode()
    facts = analyze(sql.decode(), database="app", flavor=Flavor.MARIADB)
    # MySQL takes no 0 under NO_ZERO_DATE
    said = expected if not mode else expected.replace("DEFAULT 0", "DEFAULT '1970-01-02 00:00:00'")
    assert null_as_in_mariadb(sql, context, facts)[0].decode() == f"CREATE TEMPORARY TABLE t {said}"
