"""Statements that another server answers differently are told from those that only look like it."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect
from binlane.sql.parse.unsafe import UNSAFE_FUNCTIONS, is_row_order_open
from tests.unit.plan.logs import filtered, rows, statements

UNSAFE = [
    ("INSERT INTO t VALUES (1, UUID())", "UUID()"),
    ("INSERT INTO t VALUES (1, uuid()), (2, UUID()), (3, UUID())", "UUID()"),
    ("INSERT INTO t SELECT a, @@server_id FROM s", "@@server_id"),
    ("UPDATE t SET a = @@GLOBAL.hostname", "@@GLOBAL.hostname"),
    ("INSERT INTO t VALUES (mariadb_schema.uuid())", "UUID()"),
    ("INSERT INTO t SELECT MariaDB_Schema.`sleep`(9)", "SLEEP()"),
    ("UPDATE t SET a = TRIM('x' FROM oracle_schema.uuid())", "UUID()"),
    ("INSERT INTO t SET a = CURRENT_USER", "CURRENT_USER()"),
    ("DELETE FROM t WHERE a = FOUND_ROWS()", "FOUND_ROWS()"),
    ("DELETE FROM t WHERE a IN (SELECT a FROM s LIMIT 1) LIMIT 1", "LIMIT without ORDER BY"),
    ("DELETE FROM t LIMIT ROWS EXAMINED 5", "LIMIT ROWS EXAMINED"),
    ("INSERT INTO t (SELECT a FROM s ORDER BY a LIMIT 1) UNION (SELECT a FROM s LIMIT 1)", "LIMIT without ORDER BY"),
    ("CREATE TABLE t SELECT UUID() AS a", "UUID()"),
    ("CREATE TABLE t SELECT DEFAULT(a) AS a, UUID() AS b FROM s", "UUID()"),
    ("CREATE TABLE t SELECT a FROM s LIMIT 0, 1", "LIMIT without ORDER BY"),
    ("INSERT INTO t SELECT a FROM s LIMIT 10 OFFSET 0", "LIMIT without ORDER BY"),
    ("INSERT INTO t SELECT a FROM s LIMIT @n", "LIMIT without ORDER BY"),
    # of a body
    ("INSERT INTO t SELECT a FROM s LIMIT n", "LIMIT without ORDER BY"),
    ("INSERT INTO t SELECT a FROM s LIMIT `o`, n", "LIMIT without ORDER BY"),
    ("INSERT INTO t VALUES (@@timestamp)", "@@timestamp"),
    ("INSERT INTO t VALUES (@@insert_id)", "@@insert_id"),
    ("UPDATE t SET a = @@session.rand_seed1", "@@session.rand_seed1"),
    ("UPDATE t SET a = @@collation_database", "@@collation_database"),
    ("INSERT INTO t VALUES (PS_CURRENT_THREAD_ID())", "PS_CURRENT_THREAD_ID()"),
    ("INSERT INTO t VALUES (ENCRYPT('a'))", "ENCRYPT()"),
    ("INSERT IGNORE INTO t SELECT a FROM s", "INSERT IGNORE ... SELECT"),
    ("INSERT IGNORE t (a) (SELECT a FROM s)", "INSERT IGNORE ... SELECT"),
    ("INSERT LOW_PRIORITY IGNORE INTO t SELECT a FROM s ORDER BY a UNION SELECT a FROM r", "INSERT IGNORE ... SELECT"),
    ("INSERT IGNORE INTO t WITH s AS (SELECT a FROM r) SELECT a FROM s", "INSERT IGNORE ... SELECT"),
    ("REPLACE INTO t SELECT a FROM s", "REPLACE ... SELECT"),
    ("REPLACE t SELECT a FROM t", "REPLACE ... SELECT"),
    ("INSERT INTO t SELECT a FROM s ON DUPLICATE KEY UPDATE a = 1", "INSERT ... SELECT ... ON DUPLICATE KEY UPDATE"),
    ("CREATE TABLE t (UNIQUE (a)) IGNORE SELECT a FROM s", "CREATE TABLE ... IGNORE SELECT"),
    ("CREATE TABLE t (UNIQUE (a)) REPLACE AS SELECT a FROM s", "CREATE TABLE ... REPLACE SELECT"),
    (
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM s",
        "CREATE TABLE ... SELECT with AUTO_INCREMENT",
    ),
    ("CREATE TABLE t (UNIQUE (a)) REPLACE (SELECT a FROM s)", "CREATE TABLE ... REPLACE SELECT"),
    ("CREATE TABLE t (UNIQUE (a)) REPLACE WITH c AS (SELECT 1) SELECT a FROM s", "CREATE TABLE ... REPLACE SELECT"),
    ("CREATE TEMPORARY TABLE t (UNIQUE (a)) IGNORE (SELECT a FROM s)", "CREATE TABLE ... IGNORE SELECT"),
    ("CREATE TEMPORARY TABLE t AS SELECT UUID() u", "UUID()"),
    ("CREATE TEMPORARY TABLE t SELECT a FROM s LIMIT 100", "LIMIT without ORDER BY"),
    (
        "CREATE TEMPORARY TABLE t (a SET('x'), id INT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM s",
        "CREATE TABLE ... SELECT with AUTO_INCREMENT",
    ),
    ("CREATE TEMPORARY TABLE t SELECT table_name FROM information_schema.tables", "tables of information_schema"),
    ("CREATE TABLE t AS VALUES ROW(UUID())", "UUID()"),
    ("CREATE TABLE t (a CHAR(36)) AS VALUES (1), (UUID())", "UUID()"),
    ("UPDATE IGNORE t SET a = a + 1", "UPDATE IGNORE"),
    ("UPDATE LOW_PRIORITY IGNORE t, s SET t.a = s.a", "UPDATE IGNORE"),
    ("INSERT INTO t SELECT a FROM s FOR UPDATE SKIP LOCKED", "SKIP LOCKED"),
    ("INSERT INTO t SELECT a FROM s FOR UPDATE NOWAIT", "NOWAIT"),
    ("INSERT INTO t SELECT COUNT(*) FROM performance_schema.threads", "tables of performance_schema"),
    ("INSERT INTO t SELECT COUNT(*) FROM information_schema.tables", "tables of information_schema"),
    ("INSERT INTO t SELECT sys_version FROM sys.version", "tables of sys"),
    ("ALTER TABLE t ADD id INT AUTO_INCREMENT PRIMARY KEY", "AUTO_INCREMENT for the rows there are of a.t"),
    ("ALTER TABLE b.t CHANGE x y BIGINT NOT NULL AUTO_INCREMENT", "AUTO_INCREMENT for the rows there are of b.t"),
    ("ALTER TABLE t DISCARD TABLESPACE", "DISCARD TABLESPACE"),
    ("ALTER TABLE t DISCARD PARTITION p0, p1 TABLESPACE", "DISCARD TABLESPACE"),
    ("ALTER TABLE t IMPORT TABLESPACE", "IMPORT TABLESPACE"),
    ("ALTER TABLE t IMPORT PARTITION ALL TABLESPACE", "IMPORT TABLESPACE"),
]
OF_MARIADB = [
    ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "ALTER IGNORE ... ADD UNIQUE"),
    ("ALTER ONLINE IGNORE TABLE t ADD b INT, ADD PRIMARY KEY (a)", "ALTER IGNORE ... ADD UNIQUE"),
    ("SET STATEMENT max_statement_time = 3 FOR UPDATE IGNORE t SET a = 1", "UPDATE IGNORE"),
    ("INSERT INTO t VALUES (PREVIOUS VALUE FOR s)", "LASTVAL()"),
    ("UPDATE t SET a = previous value for `a`.s WHERE id = 1", "LASTVAL()"),
    ("ALTER TABLE t ADD n INT DEFAULT (PREVIOUS VALUE FOR s)", "LASTVAL() as the default of a new column"),
]
IN_ORACLE = [
    ("DELETE FROM t WHERE ROWNUM <= 5", "ROWNUM()"),
    ("UPDATE t SET n = rownum", "ROWNUM()"),
    ("INSERT INTO t SELECT a FROM u WHERE rownum < 3", "ROWNUM()"),
    ("UPDATE t SET d = SYSDATE WHERE id = 1", "SYSDATE()"),
    ("INSERT INTO t VALUES (1, SYSDATE + INTERVAL 1 DAY)", "SYSDATE()"),
    ("CREATE OR REPLACE TABLE t AS SELECT SYSDATE AS d", "SYSDATE()"),
    ("ALTER TABLE t ADD d DATETIME DEFAULT SYSDATE", "SYSDATE() as the default of a new column"),
    ("INSERT INTO t VALUES (s.currval)", "LASTVAL()"),
    ("INSERT INTO t VALUES (a.`s`.NextVal)", "NEXTVAL()"),
]
"""Only under MariaDB's sql_mode ORACLE."""
SAFE = [
    "INSERT INTO mariadb_schema.uuid (a) VALUES (1)",
    "UPDATE t SET a = app.uuid(), b = x.mariadb_schema.uuid()",
    "INSERT IGNORE user (a) VALUES (1)",
    "INSERT INTO `user` () VALUES ()",
    "REPLACE LOW_PRIORITY `version` (a) VALUES (1)",
    "INSERT INTO t WITH RECURSIVE user (a) AS (SELECT 1) SELECT a FROM user ORDER BY a",
    "INSERT INTO t WITH `user` (a) AS (SELECT 1) SELECT a FROM `user` ORDER BY a",
    "CREATE TABLE IF NOT EXISTS user (a INT, KEY user (a), CONSTRAINT user UNIQUE user (a)) SELECT 1 AS a",
    "INSERT INTO t VALUES (1, 'UUID()')",
    "INSERT INTO version (a) VALUES (1)",
    "UPDATE t SET user = 1, version = 2",
    "INSERT INTO t VALUES (@@session.sql_mode, @x, NOW(), RAND(), CONNECTION_ID())",
    "DELETE FROM t ORDER BY a LIMIT 1",
    "CREATE TABLE t AS SELECT a FROM s LIMIT 0",
    "INSERT INTO t SELECT a FROM s LIMIT 7, 0",
    "INSERT INTO t SELECT a FROM s LIMIT 0 OFFSET 7",
    "CREATE TABLE t (a VARCHAR(36) DEFAULT (UUID()))",
    "CREATE PROCEDURE p() INSERT INTO t VALUES (UUID())",
    "GRANT SELECT ON a.* TO CURRENT_USER()",
    "INSERT IGNORE INTO t VALUES (1), (2)",
    "INSERT IGNORE INTO t SELECT 1, 2",
    "INSERT IGNORE INTO t SELECT a FROM s ORDER BY a",
    "REPLACE INTO t SELECT 1",
    "REPLACE INTO t SELECT a FROM s ORDER BY a",
    "INSERT INTO t SELECT a FROM s",
    "INSERT INTO t SELECT a FROM s ORDER BY a ON DUPLICATE KEY UPDATE a = 1",
    "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
    "CREATE TABLE t SELECT a FROM s",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) SELECT a FROM s ORDER BY a",
    "CREATE OR REPLACE TABLE t SELECT a FROM s",
    "CREATE OR REPLACE TABLE t (b VARCHAR(9) AS (REPLACE(a, 'x', 'y'))) SELECT a FROM s",
    "CREATE TEMPORARY TABLE t SELECT a FROM s",
    "CREATE TEMPORARY TABLE t SELECT a FROM s ORDER BY a LIMIT 3",
    "CREATE TEMPORARY TABLE t LIKE s",
    "CREATE TABLE t AS VALUES (1), (2)",
    "CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1))",
    "CREATE TABLE t (`ignore` INT) SELECT a AS `ignore` FROM s",
    "UPDATE IGNORE t SET a = a + 1 ORDER BY id",
    "INSERT INTO t VALUES (ENCRYPT('a', 'salt'))",
    "INSERT INTO sys_t SELECT skip FROM locked",
    "ALTER TABLE t AUTO_INCREMENT = 7",
    "ALTER TABLE t AUTO_INCREMENT 7, ADD b INT",
    "ALTER TABLE t ADD `auto_increment` INT",
    "ALTER TABLE t ADD UNIQUE (a)",
    "ALTER TABLE t ADD discard INT",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)",
]


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "part"), UNSAFE)
def test_unsafe_parts_of_statements_are_named(sql: str, part: str, flavor: Flavor) -> None:
    assert analyze(sql, database="a", flavor=flavor).unsafe == part


@pytest.mark.parametrize(("sql", "part"), OF_MARIADB)
def test_unsafe_parts_that_mariadb_alone_has(sql: str, part: str) -> None:
    assert analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe == part


@pytest.mark.parametrize(("sql", "part"), IN_ORACLE)
def test_functions_that_oracle_calls_without_parentheses(sql: str, part: str) -> None:
    facts = analyze(sql, database="a", flavor=Flavor.MARIADB, sql_mode_ansi_quotes=True, oracle=True)
    assert facts.unsafe == part
    for flavor in Flavor:
        assert analyze(sql, database="a", flavor=flavor, sql_mode_ansi_quotes=True).unsafe is None


def test_columns_of_these_names_are_no_calls_in_oracle() -> None:
    for sql in (
        'UPDATE t SET "ROWNUM" = 1, b = t.rownum, c = "sysdate"',
        "INSERT INTO t SELECT a AS rownum FROM rownum.u",
        "INSERT INTO t VALUES (1, 'SYSDATE')",
    ):
        facts = analyze(sql, database="a", flavor=Flavor.MARIADB, sql_mode_ansi_quotes=True, oracle=True)
        assert facts.unsafe is None, sql


CALLS: Final = (
    "INSERT INTO t VALUES (TRIM(BOTH '-' FROM {call}))",
    "UPDATE t SET a = EXTRACT(HOUR FROM {call})",
    "INSERT INTO t SELECT SUBSTRING({call} FROM 1) FROM s",
    "INSERT INTO t SELECT s.a FROM s JOIN r ON {call} = s.a",
    "INSERT INTO t SELECT s.a FROM s JOIN x.index i ON {call} = s.a",
    "INSERT INTO t SELECT HIGH_PRIORITY {call}",
    "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = {call}",
)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("statement", CALLS)
def test_a_call_is_one_wherever_an_expression_stands(statement: str, flavor: Flavor) -> None:
    for name in (*UNSAFE_FUNCTIONS, "ENCRYPT"):
        for spelled in (name, f"`{name.lower()}`", f"`{name}` "):
            sql = statement.format(call=f"{spelled}()")
            assert analyze(sql, database="a", flavor=flavor).unsafe == f"{name}()", sql


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("default", ["TRIM('x' FROM UUID())", "`uuid`()"])
def test_a_default_calls_a_function_however_it_is_spelled(default: str, flavor: Flavor) -> None:
    facts = analyze(f"ALTER TABLE t ADD a CHAR(36) DEFAULT ({default})", database="a", flavor=flavor)
    assert facts.unsafe == "UUID() as the default of a new column"


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("sql", SAFE)
def test_safe_statements_have_no_unsafe_part(sql: str, flavor: Flavor) -> None:
    assert analyze(sql, database="a", flavor=flavor).unsafe is None


OPEN = [
    "UPDATE t SET a = a + 1",
    "UPDATE t, s SET t.a = 1 WHERE t.a = s.a",
    "DELETE FROM t WHERE a IN (SELECT a FROM s ORDER BY a)",
    "INSERT INTO t SELECT a FROM s",
    "INSERT INTO t (SELECT a FROM s) ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "INSERT INTO value SELECT a FROM s",
    "INSERT INTO t SELECT a FROM s ORDER BY a UNION SELECT a FROM r",
    "INSERT INTO t TABLE s",
    "REPLACE INTO t WITH s AS (SELECT 1) SELECT * FROM s",
    "SELECT f(a) FROM t",
    "DO f((SELECT MAX(a) FROM t))",
    "CALL p()",
    "INSERT INTO t VALUES ('",
]
FIXED = [
    "INSERT INTO t VALUES (1), (2)",
    "INSERT INTO t (a) VALUE (1), (2)",
    "INSERT INTO t SET a = (SELECT MAX(a) FROM s)",
    "REPLACE INTO t VALUES (1, f(1)), (2, (SELECT MAX(a) FROM s))",
    "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "INSERT INTO t SELECT a FROM s ORDER BY a",
    "UPDATE t SET a = a + 1 ORDER BY a DESC",
    "DELETE FROM t ORDER BY a",
    "SELECT `a`.`f`(1)",
    "DO f(1)",
]


@pytest.mark.parametrize(("sql", "is_open"), [*((sql, True) for sql in OPEN), *((sql, False) for sql in FIXED)])
def test_the_order_of_rows_is_the_server_s_own_unless_the_text_says_it(sql: str, is_open: bool) -> None:
    for flavor in Flavor:
        assert is_row_order_open(sql, Dialect(flavor, False, False)) is is_open


def test_the_plan_names_it_with_its_first_seqno() -> None:
    unsafe = "INSERT INTO t VALUES (1, UUID())"
    found = filtered([rows(1, "a"), statements(2, unsafe), statements(3, unsafe)], cuts=(2,))
    assert found.plan.unsafe == {"UUID()": 2}


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("ALTER TABLE t ADD u CHAR(36) DEFAULT UUID()", "UUID() as the default of a new column"),
        ("ALTER TABLE t ADD n INT, ADD COLUMN u CHAR(36) DEFAULT (CONCAT(UUID(), 1)), ADD KEY (n)", "UUID() as"),
        ("ALTER TABLE t ADD COLUMN (n INT DEFAULT 1, u DOUBLE DEFAULT (RAND()))", "RAND() as"),
        ("ALTER TABLE t ADD n INT DEFAULT NEXTVAL(s)", "NEXTVAL() as"),
        ("ALTER TABLE t ADD n INT DEFAULT (NEXT VALUE FOR s)", "NEXT() as"),
        ("ALTER TABLE t ADD n INT DEFAULT (@@server_id)", "@@server_id as the default of a new column"),
        ("ALTER TABLE t ADD n INT DEFAULT (@chosen + 1)", "@chosen as"),
        ("ALTER TABLE t ADD n INT DEFAULT (@@sql_mode)", None),
        ("ALTER TABLE t ADD n DATETIME DEFAULT NOW(), ALTER n SET DEFAULT (UUID())", None),
        ("ALTER TABLE t MODIFY u CHAR(36) DEFAULT UUID(), ADD n INT DEFAULT 1", None),
        ("ALTER TABLE t ADD uuid INT DEFAULT 1, ADD KEY uuid (uuid)", None),
        ("CREATE TABLE t (u CHAR(36) DEFAULT UUID())", None),
    ],
)
def test_a_new_column_that_servers_fill_with_other_values_is_named(sql: str, part: str | None) -> None:
    found = analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe
    assert found == part or (found is not None and part is not None and found.startswith(part))


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("rest", ["ADD CHECK (t.select > 0)", "RENAME TO app.select", "ADD KEY (a)"])
@pytest.mark.parametrize("front", ["", "SET STATEMENT max_statement_time = 3 FOR "])
@pytest.mark.parametrize(
    ("clause", "part"),
    [
        ("ADD u CHAR(36) DEFAULT (UUID())", "UUID() as the default of a new column"),
        ("ADD id INT AUTO_INCREMENT PRIMARY KEY", "AUTO_INCREMENT for the rows there are of a"),
        ("DISCARD TABLESPACE", "DISCARD TABLESPACE"),
    ],
)
def test_an_alter_is_looked_at_behind_variables_of_its_own(
    clause: str, part: str, front: str, rest: str, flavor: Flavor
) -> None:
    if front and flavor is Flavor.MYSQL:
        return
    facts = analyze(f"{front}ALTER TABLE app.t {clause}, {rest}", database="d", flavor=flavor)
    assert facts.is_read
    assert facts.unsafe is not None
    assert facts.unsafe.startswith(part)


def test_a_cipher_that_no_log_has_is_named_where_the_source_can_choose_it() -> None:
    sql = "INSERT INTO t VALUES (AES_ENCRYPT('a', 'key', 'iv'))"
    assert analyze(sql, database="a", flavor=Flavor.MYSQL).unsafe == "AES_ENCRYPT()"
    assert analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe is None
    sql = "ALTER TABLE t ADD c BLOB DEFAULT (AES_ENCRYPT('a', 'key'))"
    assert analyze(sql, database="a", flavor=Flavor.MYSQL).unsafe == "AES_ENCRYPT() as the default of a new column"
    assert analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe is None
