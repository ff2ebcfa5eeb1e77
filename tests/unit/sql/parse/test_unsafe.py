"""Statements that another server answers differently are told from those that only look like it."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect
from binlane.sql.parse.statements import analyze
from binlane.sql.parse.unsafe import is_row_order_open
from tests.unit.plan.logs import filtered, rows, statements

UNSAFE = [
    ("INSERT INTO t VALUES (1, UUID())", "UUID()"),
    ("INSERT INTO t VALUES (1, uuid()), (2, UUID()), (3, UUID())", "UUID()"),
    ("INSERT INTO t SELECT a, @@server_id FROM s", "@@server_id"),
    ("UPDATE t SET a = @@GLOBAL.hostname", "@@GLOBAL.hostname"),
    ("INSERT INTO t SET a = CURRENT_USER", "CURRENT_USER()"),
    ("DELETE FROM t WHERE a = FOUND_ROWS()", "FOUND_ROWS()"),
    ("DELETE FROM t LIMIT 1", "LIMIT without ORDER BY"),
    ("INSERT INTO t (SELECT a FROM s ORDER BY a LIMIT 1) UNION (SELECT a FROM s LIMIT 1)", "LIMIT without ORDER BY"),
    ("CREATE TABLE t SELECT UUID() AS a", "UUID()"),
    ("CREATE TABLE t SELECT a FROM s LIMIT 0, 1", "LIMIT without ORDER BY"),
    ("INSERT INTO t SELECT a FROM s LIMIT 10 OFFSET 0", "LIMIT without ORDER BY"),
    ("DELETE FROM t LIMIT @n", "LIMIT without ORDER BY"),
]
SAFE = [
    "INSERT INTO t VALUES (1, 'UUID()')",
    "INSERT INTO version (a) VALUES (1)",
    "UPDATE t SET user = 1, version = 2",
    "INSERT INTO t VALUES (@@session.sql_mode, @@timestamp, @x, NOW(), RAND(), CONNECTION_ID())",
    "DELETE FROM t ORDER BY a LIMIT 1",
    "CREATE TABLE t AS SELECT a FROM s LIMIT 0",
    "INSERT INTO t SELECT a FROM s LIMIT 7, 0",
    "INSERT INTO t SELECT a FROM s LIMIT 0 OFFSET 7",
    "CREATE TABLE t (a VARCHAR(36) DEFAULT (UUID()))",
    "CREATE PROCEDURE p() INSERT INTO t VALUES (UUID())",
    "GRANT SELECT ON a.* TO CURRENT_USER()",
]


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "part"), UNSAFE)
def test_unsafe_parts_of_statements_are_named(sql: str, part: str, flavor: Flavor) -> None:
    assert analyze(sql, database="a", flavor=flavor).unsafe == part


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
        ("ALTER TABLE t ADD n DATETIME DEFAULT NOW(), ALTER n SET DEFAULT (UUID())", None),
        ("ALTER TABLE t MODIFY u CHAR(36) DEFAULT UUID(), ADD n INT DEFAULT 1", None),
        ("ALTER TABLE t ADD uuid INT DEFAULT 1, ADD KEY uuid (uuid)", None),
        ("CREATE TABLE t (u CHAR(36) DEFAULT UUID())", None),
    ],
)
def test_a_new_column_that_servers_fill_with_other_values_is_named(sql: str, part: str | None) -> None:
    found = analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe
    assert found == part or (found is not None and part is not None and found.startswith(part))


def test_a_cipher_that_no_log_has_is_named_where_the_source_can_choose_it() -> None:
    sql = "INSERT INTO t VALUES (AES_ENCRYPT('a', 'key', 'iv'))"
    assert analyze(sql, database="a", flavor=Flavor.MYSQL).unsafe == "AES_ENCRYPT()"
    assert analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe is None
    sql = "ALTER TABLE t ADD c BLOB DEFAULT (AES_ENCRYPT('a', 'key'))"
    assert analyze(sql, database="a", flavor=Flavor.MYSQL).unsafe == "AES_ENCRYPT() as the default of a new column"
    assert analyze(sql, database="a", flavor=Flavor.MARIADB).unsafe is None
