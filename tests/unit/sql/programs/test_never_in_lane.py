"""What must not run in the session of a lane, whatever the channel allows."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.programs.of_server import never_in_lane
from binlane.sql.temporary_routines import tokens_of

_JAVASCRIPT = "LANGUAGE JAVASCRIPT"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SET @x = RELEASE_ALL_LOCKS()", "RELEASE_ALL_LOCKS()"),
        ("RETURN `release_all_locks` ()", "RELEASE_ALL_LOCKS()"),
        ("SET @x = WAIT_FOR_EXECUTED_GTID_SET('')", "WAIT_FOR_EXECUTED_GTID_SET()"),
        ("KILL CONNECTION_ID()", "KILL"),
        ("SET /* x */ GLOBAL read_only = 1", "SET GLOBAL"),
        ("SET @@global.read_only = 1", "SET GLOBAL"),
        ("SET PERSIST read_only = 1", "SET GLOBAL"),
        ("BEGIN SHUTDOWN; END", "SHUTDOWN"),
        ("RESET MASTER", "RESET MASTER"),
        ("PURGE BINARY LOGS TO 'x'", "PURGE BINARY"),
        ("STOP SLAVE", "STOP SLAVE"),
        ("SELECT 1 INTO OUTFILE 'x'", "INTO OUTFILE"),
        ("BINLOG 'x'", "BINLOG"),
        ("FLUSH TABLES", "FLUSH TABLES"),
        ("LOCK TABLES t WRITE", "LOCK TABLES"),
        ("UNLOCK TABLES", "UNLOCK TABLES"),
        ("INSTALL SONAME 'x'", "INSTALL SONAME"),
        ("UNINSTALL PLUGIN x", "UNINSTALL PLUGIN"),
        ("XA START 'x'", "XA START"),
        ("BEGIN SAVEPOINT a; ROLLBACK TO a; END", None),
        ("SET @x = GET_LOCK('x', 1), @y = RELEASE_LOCK('x')", None),
        ("SET @@global.`read_only` = 1", "SET GLOBAL"),
        ("CREATE OR REPLACE SERVER x FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')", "CREATE SERVER"),
        ("SET DEFAULT ROLE NONE TO x", "SET DEFAULT"),
        ("CLONE LOCAL DATA DIRECTORY = '/x'", "CLONE LOCAL"),
        ("SET ROLE NONE", "SET ROLE"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return 1; $$", "LANGUAGE JAVASCRIPT"),
        # characteristics come in any order
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT DETERMINISTIC SQL SECURITY INVOKER AS 'x'", _JAVASCRIPT),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT USING (l AS m) AS 'x'", _JAVASCRIPT),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT NO SQL AS $$ return 1; $$", _JAVASCRIPT),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE `javascript` AS 'x'", _JAVASCRIPT),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE SQL LANGUAGE JAVASCRIPT COMMENT 'x' AS 'x'", _JAVASCRIPT),
        (
            "CREATE FUNCTION f(a INT) RETURNS SET('a', 'b') CHARACTER SET utf8mb4 LANGUAGE JAVASCRIPT AS 'x'",
            _JAVASCRIPT,
        ),
        ("CREATE DEFINER=CURRENT_USER() PROCEDURE d.p(IN a INT) LANGUAGE JAVASCRIPT COMMENT 'x' AS 'x'", _JAVASCRIPT),
        (
            "CREATE DEFINER=view@h FUNCTION begin() RETURNS INT LANGUAGE JAVASCRIPT DETERMINISTIC AS 'x'",
            _JAVASCRIPT,
        ),
        ("CREATE FUNCTION f(language INT) RETURNS INT RETURN language DIV 2", None),
        ("CREATE PROCEDURE p(OUT a INT, language INT) SET a = language DIV 2", None),
        ("CREATE PROCEDURE p(language INT) SET @x = language DIV 2", None),
        ("CREATE VIEW v AS SELECT `function`, f(1), language FROM t", None),
        ("CREATE PROCEDURE p() a: BEGIN SELECT language AS x FROM t; UPDATE t SET language = 1; END", None),
        ("CREATE PROCEDURE p() COMMENT 'x' SELECT language FROM t", None),
        ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.language = 1", None),
        ("CREATE VIEW v AS SELECT f(1), language FROM t ORDER BY language DESC", None),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE SQL RETURN (SELECT language AS language FROM t)", None),
        ("SELECT MATCH (a) AGAINST ('x' IN NATURAL LANGUAGE MODE) AS language INTO @x FROM t", None),
        ("SET NAMES latin1", "SET NAMES"),
        ("BEGIN IF x THEN CREATE OR REPLACE TABLE t (a INT); END IF; END", "CREATE TABLE"),
        ("CREATE TABLE t (a INT)", "CREATE TABLE"),
        ("BEGIN SET x = 1; ALTER TABLE t ADD b INT; END", "ALTER TABLE"),
        ("BEGIN DROP TABLE IF EXISTS t; END", "DROP TABLE"),
        ("CREATE DEFINER=`a`@`b` FUNCTION f() RETURNS INT BEGIN TRUNCATE TABLE t; RETURN 1; END", "TRUNCATE TABLE"),
        ("CREATE DEFINER=`a`@`b` TRIGGER r BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.a = 1; END", None),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", None),
        ("BEGIN CREATE TEMPORARY TABLE t (a INT); DROP TEMPORARY TABLE t; END", None),
        ("BEGIN CREATE OR REPLACE TEMPORARY TABLE t (a INT); INSERT INTO create_table VALUES (1); END", None),
        ("SET SESSION TRANSACTION READ ONLY", "SET TRANSACTION"),
        ("SET SESSION sql_mode = '', LOCAL sql_select_limit = 0", "SET SESSION sql_select_limit"),
        ("SET x = 1, `sql_select_limit` = 0", "SET sql_select_limit"),
        ("CREATE TRIGGER r BEFORE UPDATE ON t FOR EACH ROW SET sql_select_limit = 0", "SET sql_select_limit"),
        ("BEGIN sql_select_limit := 0; END", "SET sql_select_limit"),
        ("SET @@sql_mode = '', @@local.`sql_select_limit` = 0", "SET @@local."),
        ("SET @@sql_select_limit = 0", "SET @@sql_select_limit"),
        ("IF x THEN SET sql_select_limit = 0; END IF", "SET sql_select_limit"),
        ("UPDATE t SET a = 1; SET sql_select_limit = 0", "SET sql_select_limit"),
        ("SET @@session.sql_mode = '', time_zone = '+01:00', @@max_sp_recursion_depth = 9, NEW.wait_timeout = 1", None),
        ("UPDATE t SET wait_timeout = 2, role = 3, transaction = 1, names = 4", None),
        ("INSERT INTO t SET sql_select_limit = 1, server_id = 2", None),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE server_id = 3, wait_timeout = 4", None),
        ("IF @@session.sql_select_limit = 3 OR (SELECT a, @@server_id = 4) THEN SET x = 1; END IF", None),
        ("UPDATE t SET flush = 1, lock_tables = 2, xa = 3 WHERE t.kill = 'KILL'", None),
        ("SET PASSWORD FOR root@localhost = PASSWORD('x')", "SET PASSWORD"),
        ("SET PASSWORD = 'x'", "SET PASSWORD"),
        ("SET PASSWORD TO RANDOM", "SET PASSWORD"),
        ("CREATE PROCEDURE p() SQL SECURITY INVOKER SET @x = (SELECT 1), PASSWORD FOR a = 'x'", "SET PASSWORD"),
        ("CREATE TRIGGER r BEFORE UPDATE ON t FOR EACH ROW SET PASSWORD = 'x'", "SET PASSWORD"),
        ("CREATE PROCEDURE p() SQL SECURITY INVOKER GRANT ALL ON *.* TO x", "GRANT"),
        ("IF x THEN REVOKE GRANT OPTION ON *.* FROM x; END IF", "REVOKE"),
        ("UPDATE t SET password = 'x', a = 1; INSERT INTO t SET a = 1, password = 'y'", None),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1, password = 'y'", None),
        ("BEGIN SET `password` = 1, NEW.password = 2; SELECT password, `grant`, t.revoke FROM t; END", None),
        ("SELECT a.release_all_locks, 'RELEASE_ALL_LOCKS()' FROM a", None),
        ("SELECT * FROM t FOR UPDATE", None),
    ],
)
def test_one_table_says_what_must_not_run_in_a_lane(body: str, expected: str | None) -> None:
    for flavor in Flavor:
        tokens = tokens_of(body, flavor)
        assert tokens is not None
        assert never_in_lane(tokens) == expected


def test_a_definition_of_the_log_is_none_of_a_body() -> None:
    tokens = tokens_of("ALTER TABLE t ADD a INT DEFAULT (UUID_SHORT())", Flavor.MARIADB)
    assert tokens is not None
    assert (never_in_lane(tokens, is_body=False), never_in_lane(tokens)) == (None, "ALTER TABLE")


@pytest.mark.parametrize("sql", ["SET PASSWORD FOR a = 'x'", "GRANT SELECT ON a.* TO b", "REVOKE SELECT ON a.* FROM b"])
def test_an_account_statement_of_the_log_is_none_of_a_body(sql: str) -> None:
    for flavor in Flavor:
        tokens = tokens_of(sql, flavor)
        assert tokens is not None
        assert never_in_lane(tokens, is_body=False) is None
