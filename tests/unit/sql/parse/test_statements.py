"""Statement text -> facts: one table of cases for each family, and the lookalikes that a careless reader falls for."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor, TableKey
from binlane.sql.parse import queries
from binlane.sql.parse.analyze import StatementFacts, StatementKind, analyze, last_word
from binlane.sql.parse.lexer import Dialect

DML, DDL, GLOBAL = StatementKind.DML, StatementKind.DDL, StatementKind.GLOBAL
TRANSACTION, LOAD_DATA, UNKNOWN = StatementKind.TRANSACTION, StatementKind.LOAD_DATA, StatementKind.UNKNOWN


def read(sql: str, flavor: Flavor = Flavor.MARIADB, database: str | None = "d") -> StatementFacts:
    return analyze(sql, database=database, flavor=flavor)


def tables(facts: StatementFacts) -> str:
    return " ".join(sorted(map(str, facts.tables)))


CHANGES = [
    ("INSERT INTO t VALUES (1,'a'),(2,'b')", "d.t"),
    ("INSERT t SET a=1, b=(SELECT MAX(x) FROM e.u)", "d.t e.u"),
    ("INSERT INTO `x`.t (a, `b`) SELECT a FROM o.p JOIN r USING (id) ON DUPLICATE KEY UPDATE a=1", "d.r o.p x.t"),
    ("INSERT INTO t SELECT * FROM a.x, b.y z, (SELECT 1 FROM c.w) v", "a.x b.y c.w d.t"),
    ("INSERT IGNORE INTO t PARTITION (p0, p1) () VALUES ()", "d.t"),
    ("INSERT INTO t (a) VALUES (1) AS new (m) ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM e.u) + new.m", "d.t e.u"),
    ("INSERT INTO t (a) VALUES (1) RETURNING id, (SELECT 1 FROM e.u)", "d.t e.u"),
    ("INSERT INTO t (SELECT * FROM (VALUES (1,2)) v)", "d.t"),
    ("INSERT INTO t TABLE e.u", "d.t e.u"),
    ("INSERT INTO t VALUES ROW(1,2), ROW(3,4)", "d.t"),
    ("INSERT INTO t WITH c AS (SELECT * FROM e.u) SELECT * FROM c", "d.t e.u"),
    ("REPLACE DELAYED x.t (a) VALUES (NOW()), (UUID())", "x.t"),
    ("UPDATE t SET a=1", "d.t"),
    ("UPDATE IGNORE t1, e.t2 AS z SET t1.a=z.a, z.b=DEFAULT WHERE t1.id IN (SELECT id FROM g.h)", "d.t1 e.t2 g.h"),
    ("UPDATE a.t AS x LEFT JOIN b.u AS y ON x.i=y.i SET x.v=(SELECT MAX(v) FROM c.w)", "a.t b.u c.w"),
    ("WITH c AS (SELECT * FROM k.l) UPDATE t JOIN c ON c.id=t.id SET t.a=c.a", "d.t k.l"),
    ("UPDATE t FOR PORTION OF p FROM '2020-01-01' TO '2021-01-01' SET a=1", "d.t"),
    ("DELETE FROM t WHERE a='x' ORDER BY b LIMIT 1", "d.t"),
    ("DELETE a, b FROM x.t1 AS a INNER JOIN y.t2 b WHERE a.id=b.id", "x.t1 y.t2"),
    ("DELETE FROM x.t1, y.t2 USING x.t1 INNER JOIN y.t2 USING (id)", "x.t1 y.t2"),
    ("DELETE a.* FROM x.t1 AS a", "x.t1"),
    ("DELETE FROM a.*, b USING (x.a AS a JOIN y.b AS b ON a.i = b.i) WHERE a.i = 1", "x.a y.b"),
    ("DELETE a FROM x.t1 AS a JOIN y.t2 USING (id)", "x.t1 y.t2"),
    ("DELETE HISTORY FROM t BEFORE SYSTEM_TIME TIMESTAMP '2020-01-01'", "d.t"),
    ("DELETE history FROM history JOIN e.u USING (id)", "d.history e.u"),
    ("DELETE FROM t WHERE id IN (SELECT id FROM e.u) RETURNING a", "d.t e.u"),
    ("WITH c AS (SELECT id FROM e.u) DELETE FROM t WHERE id IN (SELECT id FROM c)", "d.t e.u"),
    ("TABLE foo", "d.foo"),
    ("(SELECT 1 FROM a.t) UNION ALL (SELECT 2 FROM b.t) ORDER BY 1", "a.t b.t"),
    ("SELECT 1 FROM DUAL", ""),
    ("SELECT 1 FROM `dual`", "d.dual"),
    ("DO SLEEP(1)", ""),
    ("DO (SELECT 1 FROM e.u)", "e.u"),
    ("SET STATEMENT max_statement_time=1, sql_mode='' FOR INSERT INTO q.t VALUES (1)", "q.t"),
    ("SET STATEMENT sql_mode='' FOR SET STATEMENT binlog_format=ROW, tx_read_only=ON FOR DELETE FROM t", "d.t"),
    ("SET STATEMENT max_statement_time=(SELECT 1 FROM e.u FOR UPDATE) FOR INSERT INTO t VALUES (1)", "d.t e.u"),
    ("SET STATEMENT max_statement_time=NEXT VALUE FOR e.s, sql_mode='' FOR INSERT INTO t VALUES (1)", "d.t e.s"),
    ("INSERT INTO t VALUES (NEXTVAL(s.q)), (NEXT VALUE FOR r.q), (PREVIOUS VALUE FOR p.q)", "d.t p.q r.q s.q"),
    ("INSERT INTO t SELECT a FROM u PARTITION (p0) USE INDEX FOR JOIN (i) WHERE a->'$.x' = 1", "d.t d.u"),
    ("INSERT INTO t SELECT a FROM u LEFT JOIN w ON 1 FOR UPDATE OF u, w SKIP LOCKED", "d.t d.u d.w"),
    ("INSERT INTO t SELECT a FROM e.u LOCK IN SHARE MODE", "d.t e.u"),
    ("INSERT INTO t SELECT STRAIGHT_JOIN SQL_NO_CACHE a FROM u STRAIGHT_JOIN e.v IGNORE KEY (k)", "d.t d.u e.v"),
    ("INSERT INTO t SELECT _utf8mb4'x' 'y', N'z', x'41', @@a, @b := 4 FROM { OJ x LEFT JOIN y.z ON 1 }", "d.t d.x y.z"),
    ("INSERT INTO t SELECT NTH_VALUE(a, 1) FROM FIRST RESPECT NULLS OVER (PARTITION BY z) FROM e.u", "d.t e.u"),
    ("INSERT INTO t SELECT EXTRACT(YEAR FROM a), TRIM(BOTH 'x' FROM b), SUBSTRING(c FROM 1 FOR 2) FROM e.u", "d.t e.u"),
    ("INSERT INTO t SELECT * FROM e.u FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01'", "d.t e.u"),
    ("INSERT INTO t SELECT 1 FROM JSON_TABLE('[]', '$[*]' COLUMNS (a INT PATH '$.a')) AS j, e.u", "d.t e.u"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "named"), CHANGES)
def test_a_change_names_every_table_it_reads_or_writes(sql: str, named: str) -> None:
    facts = read(sql)
    assert (facts.kind, facts.reason, tables(facts)) == (DML, None, named)
    assert facts.databases == {table.database for table in facts.tables}
    assert not facts.commits_implicitly
    assert not facts.routines_used


SCOPES = [
    ("WITH c AS (SELECT 1) SELECT * FROM c", ""),
    ("WITH c AS (SELECT * FROM c) SELECT * FROM c", "d.c"),
    ("WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT * FROM c", ""),
    ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", ""),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a, b", "d.b"),
    ("WITH c AS (SELECT 1) SELECT * FROM e.c", "e.c"),
    ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x JOIN c", "d.c"),
    ("WITH c AS (SELECT 1) SELECT (SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM c))", ""),
    ("WITH c AS (SELECT 1) SELECT * FROM C", "d.C"),
]


@pytest.mark.parametrize(("sql", "named"), SCOPES)
def test_a_common_table_expression_hides_a_table_in_its_scope_alone(sql: str, named: str) -> None:
    assert tables(read(sql)) == named


DEFINITIONS = [
    ("CREATE DATABASE foo", {"foo"}, ""),
    ("CREATE SCHEMA IF NOT EXISTS `b-c` DEFAULT CHARACTER SET utf8mb4", {"b-c"}, ""),
    ("DROP DATABASE IF EXISTS foo", {"foo"}, ""),
    ("ALTER DATABASE foo CHARACTER SET utf8mb4", {"foo"}, ""),
    ("ALTER DATABASE CHARACTER SET utf8mb4", {"d"}, ""),
    ("ALTER SCHEMA ENCRYPTION='Y'", {"d"}, ""),
    ("CREATE TABLE t (a INT COMMENT 'REFERENCES x.y')", {"d"}, "d.t"),
    ("CREATE OR REPLACE TABLE a.b LIKE c.d", {"a", "c"}, "a.b c.d"),
    ("CREATE TABLE a.b (LIKE c.d)", {"a", "c"}, "a.b c.d"),
    ("CREATE TABLE x.t (a INT REFERENCES p (id), FOREIGN KEY (b) REFERENCES q.r (id))", {"x", "q"}, "q.r x.p x.t"),
    ("CREATE TABLE m (a INT) ENGINE=MERGE UNION=(e.x, y) INSERT_METHOD=LAST", {"d", "e"}, "d.m d.y e.x"),
    ("CREATE TABLE t (a INT DEFAULT (NEXT VALUE FOR s.q))", {"d", "s"}, "d.t s.q"),
    ("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", {"d"}, "d.t"),
    ("CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10))", {"d"}, "d.t"),
    ("DROP TABLE `a`.`b`, c /* generated by server */", {"a", "d"}, "a.b d.c"),
    ("DROP TABLE IF EXISTS x.t RESTRICT", {"x"}, "x.t"),
    ("DROP TABLE x.t WAIT 5", {"x"}, "x.t"),
    ("ALTER ONLINE IGNORE TABLE IF EXISTS t ADD COLUMN `rename` INT COMMENT 'RENAME TO x.y'", {"d"}, "d.t"),
    ("ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j, RENAME KEY k TO l", {"d"}, "d.t"),
    ("ALTER TABLE x.t ADD FOREIGN KEY (a) REFERENCES y.p (id)", {"x", "y"}, "x.t y.p"),
    ("ALTER TABLE t DROP COLUMN c, ALGORITHM=INSTANT", {"d"}, "d.t"),
    ("TRUNCATE TABLE x.y", {"x"}, "x.y"),
    ("TRUNCATE y", {"d"}, "d.y"),
    ("CREATE UNIQUE INDEX i USING BTREE ON a.b (c)", {"a"}, "a.b"),
    ("DROP INDEX i ON b", {"d"}, "d.b"),
    ("CREATE PROCEDURE p() BEGIN SELECT 1; DROP TABLE a.b; END", {"d"}, ""),
    ("CREATE DEFINER=`root`@`localhost` FUNCTION f(a INT) RETURNS INT RETURN (SELECT 1 FROM x.y)", {"d"}, ""),
    ("CREATE EVENT e.v ON SCHEDULE EVERY 1 DAY DO DELETE FROM x.y", {"e"}, ""),
    ("ALTER EVENT e.v RENAME TO f.w DO ALTER TABLE x.y RENAME TO z.z", {"e", "f"}, ""),
    ("ALTER PROCEDURE x.p COMMENT 'y'", {"x"}, ""),
    ("DROP FUNCTION IF EXISTS x.f", {"x"}, ""),
    ("DROP PROCEDURE p", {"d"}, ""),
    ("DROP TRIGGER IF EXISTS x.tr", {"x"}, ""),
    ("DROP EVENT e.v", {"e"}, ""),
    ("DROP VIEW IF EXISTS x.v, w", {"x", "d"}, "d.w x.v"),
    ("ANALYZE TABLE a, b.c", {"d", "b"}, "b.c d.a"),
    ("ANALYZE TABLE a.t PERSISTENT FOR ALL, b.t", {"a", "b"}, "a.t b.t"),
    (
        "ANALYZE TABLE a.t PERSISTENT FOR COLUMNS (x, y) INDEXES (i), b.t PERSISTENT FOR COLUMNS ALL INDEXES (), c",
        {"a", "b", "d"},
        "a.t b.t d.c",
    ),
    ("ANALYZE TABLE a.t UPDATE HISTOGRAM ON x, y WITH 8 BUCKETS", {"a"}, "a.t"),
    ("REPAIR TABLE a.t, b.t QUICK USE_FRM", {"a", "b"}, "a.t b.t"),
    ("OPTIMIZE TABLE a.t, b.t WAIT 5", {"a", "b"}, "a.t b.t"),
    ("OPTIMIZE NO_WRITE_TO_BINLOG TABLE k", {"d"}, "d.k"),
    ("REPAIR LOCAL TABLE k.l", {"k"}, "k.l"),
    ("LOCK TABLES a AS b READ LOCAL, c.d WRITE", {"d", "c"}, "c.d d.a"),
    ("CREATE SEQUENCE s.q START WITH 1", {"s"}, "s.q"),
    ("CREATE PACKAGE BODY x.p AS END", {"x"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "databases", "named"), DEFINITIONS)
def test_a_definition_names_its_object_and_those_it_needs(sql: str, databases: set[str], named: str) -> None:
    facts = read(sql)
    assert (facts.kind, facts.reason, tables(facts)) == (DDL, None, named)
    assert facts.databases == databases
    assert facts.commits_implicitly


def key(text: str) -> TableKey:
    return TableKey(*text.split("."))


RENAMES = [
    ("RENAME TABLE a TO x.b, y.c TO d", [("d.a", "x.b"), ("y.c", "d.d")]),
    ("RENAME TABLES IF EXISTS a NOWAIT TO b", [("d.a", "d.b")]),
    ("ALTER TABLE t RENAME TO e.u", [("d.t", "e.u")]),
    ("ALTER TABLE t ADD a INT, RENAME AS u", [("d.t", "d.u")]),
]
EXCHANGES = [
    ("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE e.v WITHOUT VALIDATION", [("d.t", "e.v"), ("e.v", "d.t")], ""),
    ("ALTER TABLE t CONVERT TABLE e.v TO PARTITION p1 VALUES LESS THAN (5)", [("e.v", "d.t")], "e.v"),
    ("ALTER TABLE t CONVERT PARTITION p1 TO TABLE e.v", [("d.t", "e.v")], ""),
]


@pytest.mark.parametrize(("sql", "renames"), RENAMES)
def test_a_rename_tells_old_and_new_names_in_order(sql: str, renames: list[tuple[str, str]]) -> None:
    facts = read(sql)
    assert facts.renames == tuple((key(old), key(new)) for old, new in renames)
    assert facts.databases == {name.split(".")[0] for pair in renames for name in pair}


@pytest.mark.parametrize(("sql", "exchanges", "dropped"), EXCHANGES)
def test_rows_that_change_places_rename_no_table(sql: str, exchanges: list[tuple[str, str]], dropped: str) -> None:
    facts = read(sql)
    assert (facts.renames, facts.moves) == ((), facts.exchanges)
    assert facts.exchanges == tuple((key(old), key(new)) for old, new in exchanges)
    assert " ".join(map(str, facts.dropped)) == dropped
    assert facts.databases == {"d", "e"}


def test_a_view_is_known_as_one_and_names_what_it_is_defined_on() -> None:
    facts = read(
        "/*!50001 CREATE ALGORITHM=UNDEFINED */ /*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */ "
        "/*!50001 VIEW v (a) AS SELECT a FROM k.t WHERE a > 1 WITH CASCADED CHECK OPTION */"
    )
    assert (facts.kind, tables(facts)) == (DDL, "d.v k.t")
    assert facts.views == {TableKey("d", "v")}
    assert read("ALTER VIEW x.v AS SELECT 1").views == {TableKey("x", "v")}


def test_a_trigger_is_known_by_its_table_whatever_its_body_says() -> None:
    facts = read(
        "CREATE DEFINER=CURRENT_USER() TRIGGER s.tr BEFORE INSERT ON s.t FOR EACH ROW "
        "BEGIN INSERT INTO x.y VALUES (1); END"
    )
    assert (facts.databases, tables(facts)) == (frozenset({"s"}), "s.t")
    assert facts.triggered == {TableKey("s", "t")}


def test_a_routine_is_known_by_its_database() -> None:
    assert read("CREATE PROCEDURE x.p() SELECT 1").routine_databases == {"x"}
    assert read("CREATE FUNCTION f() RETURNS INT RETURN 1").routine_databases == {"d"}
    assert read("ALTER PROCEDURE x.p COMMENT ''").routine_databases == frozenset()


@pytest.mark.parametrize(
    ("sql", "temporary", "create_select", "commits", "if_exists"),
    [
        ("CREATE TABLE t AS SELECT 1 AS a FROM e.u", False, True, True, False),
        ("CREATE TABLE t (a INT) WITH c AS (SELECT 1 FROM e.u) SELECT * FROM c", False, True, True, False),
        ("CREATE TABLE t (a INT) IGNORE (SELECT 1 FROM e.u)", False, True, True, False),
        ("CREATE TABLE t (a INT) START TRANSACTION", False, True, False, False),
        ("CREATE TABLE t (a INT) START TRANSACTION ENGINE=InnoDB COMMENT='c'", False, True, False, False),
        ("CREATE TABLE t (a INT) COMMENT=') START TRANSACTION'", False, False, True, False),
        ("CREATE TEMPORARY TABLE t (a INT)", True, False, False, False),
        ("CREATE TEMPORARY TABLE t SELECT 1 FROM e.u", True, True, False, False),
        ("DROP TEMPORARY TABLE IF EXISTS `d`.`t` /* generated by server */", True, False, False, True),
        ("DROP TABLE IF EXISTS t", False, False, True, True),
        ("DROP TABLE t", False, False, True, False),
    ],
)
def test_the_flags_of_a_table_definition(
    sql: str, temporary: bool, create_select: bool, commits: bool, if_exists: bool
) -> None:
    facts = read(sql)
    assert facts.kind is DDL
    assert (facts.temporary, facts.create_select) == (temporary, create_select)
    assert (facts.commits_implicitly, facts.drops_if_exists) == (commits, if_exists)
    assert ("e" in facts.databases) == ("e.u" in sql)


def test_a_foreign_key_to_another_database_is_a_reference() -> None:
    assert read("CREATE TABLE a.t (x INT, FOREIGN KEY (x) REFERENCES b.p (id))").references == {"b"}
    assert read("CREATE TABLE a.t (x INT, FOREIGN KEY (x) REFERENCES p (id))").references == {"a"}
    assert read("CREATE TABLE a.t (x INT)").references == frozenset()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE USER 'u'@'%' IDENTIFIED BY 'p'", "ALTER USER u ACCOUNT LOCK", "DROP USER IF EXISTS u",
        "RENAME USER a TO b",
        "CREATE ROLE r", "GRANT SELECT ON `a`.* TO 'u'@'%'", "REVOKE ALL ON x.y FROM u", "SET PASSWORD FOR u = 'x'",
        "SET DEFAULT ROLE r FOR u", "FLUSH TABLES", "FLUSH NO_WRITE_TO_BINLOG PRIVILEGES", "SET GLOBAL x = 1",
        "SET PERSIST x = 1", "INSTALL PLUGIN p SONAME 'p.so'", "UNINSTALL COMPONENT 'file://c'",
        "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "CREATE TABLESPACE ts ADD DATAFILE 'ts.ibd'",
        "CREATE UNDO TABLESPACE u ADD DATAFILE 'u.ibu'", "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "CREATE RESOURCE GROUP g TYPE=USER", "CREATE AGGREGATE FUNCTION f RETURNS STRING SONAME 'f.so'",
        "DROP SERVER s", "UNLOCK TABLES", "START SLAVE", "LOCK INSTANCE FOR BACKUP",
    ],
)  # fmt: skip
def test_server_wide_operations_are_global(sql: str) -> None:
    facts = read(sql)
    assert (facts.kind, facts.databases) == (GLOBAL, frozenset())
    assert facts.commits_implicitly != sql.startswith(("SET GLOBAL", "SET PERSIST"))


@pytest.mark.parametrize(
    ("sql", "ends_or_begins"),
    [
        ("BEGIN", True), ("begin work", True), ("START TRANSACTION READ ONLY", True), ("COMMIT", True),
        ("COMMIT /* implicit, from Xid_log_event */", True), ("ROLLBACK", True), ("ROLLBACK TO SAVEPOINT x", False),
        ("ROLLBACK WORK TO x", False), ("SAVEPOINT `x`", False), ("RELEASE SAVEPOINT x", False),
        ("XA START X'31',X'',1", True), ("XA COMMIT X'31',X'',1 ONE PHASE", True), ("XA END X'31'", True),
    ],
)  # fmt: skip
def test_transaction_control_says_nothing_about_databases(sql: str, ends_or_begins: bool) -> None:
    facts = read(sql)
    assert (facts.kind, facts.databases, facts.ends_or_begins) == (TRANSACTION, frozenset(), ends_or_begins)
    assert not facts.commits_implicitly


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("LOAD DATA INFILE 'x' INTO TABLE t", "d.t"),
        ("LOAD DATA LOCAL INFILE 'INTO TABLE a.b' REPLACE INTO TABLE `x`.`t` FIELDS TERMINATED BY ','", "x.t"),
        ("LOAD DATA INFILE 'x' INTO TABLE t CHARACTER SET utf8 (a, @b) SET c = (SELECT 1 FROM w.z)", "d.t w.z"),
        ("LOAD DATA INFILE 'x' INTO TABLE t (a, @b) SET d = CONCAT(@b, 'x')", "d.t"),
        ("LOAD XML INFILE 'x' INTO TABLE e.t ROWS IDENTIFIED BY '<r>'", "e.t"),
    ],
)  # fmt: skip
def test_load_data_goes_by_its_statement(sql: str, named: str) -> None:
    facts = read(sql)
    assert (facts.kind, tables(facts), facts.routines_used) == (LOAD_DATA, named, False)


@pytest.mark.parametrize(
    ("sql", "databases"),
    [
        ("INSERT INTO x.t VALUES (f(1))", {"x", "d"}),
        ("INSERT INTO x.t VALUES (1), (2), (e.f())", {"x", "e"}),
        ("UPDATE x.t SET a = `now`()", {"x", "d"}),
        ("SELECT MAX (a) FROM x.t", {"x", "d"}),
        ("INSERT INTO x.t SELECT 1 FROM x.u WHERE g(a) IN (1, 2)", {"x", "d"}),
        ("CALL p(1, 2)", {"d"}),
        ("CALL e.p", {"e"}),
        ("DO myfunc(2)", {"d"}),
        ("INSERT INTO f (a) VALUES (f(1))", {"d"}),
        ("LOAD DATA INFILE 'x' INTO TABLE x.t (a) SET b = f(a)", {"x", "d"}),
        ("INSERT INTO x.t VALUES (1) ON DUPLICATE KEY UPDATE a = f(a)", {"x", "d"}),
        ("DELETE FROM x.t WHERE a = 1 RETURNING f(a)", {"x", "d"}),
    ],
)
def test_a_call_that_is_not_the_servers_own_is_a_routine(sql: str, databases: set[str]) -> None:
    facts = read(sql)
    assert facts.reason is None
    assert facts.routines_used
    assert facts.databases == databases


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO f (a) VALUES (VALUES(a), DEFAULT(a), COUNT(a))",
        "SELECT a IN (1), NOT (b), a AND (c), CASE WHEN (a) THEN (b) ELSE (c) END, INTERVAL (1) DAY + a FROM t",
        "SELECT 1 FROM t WHERE a = ANY (SELECT 1) OR MATCH (a) AGAINST ('x')",
        "SELECT ROW_NUMBER() OVER (ORDER BY a), CAST(a AS CHAR(10)), CONVERT(a, DECIMAL(10,2)) FROM t",
        "WITH f (a, b) AS (SELECT 1, 2) SELECT * FROM f",
        "SELECT * FROM (SELECT 1) AS f (a)",
        "SELECT 'f(1)', `f` FROM t -- f(1)",
        "INSERT INTO t VALUES (1) AS f (a) ON DUPLICATE KEY UPDATE b = f.a",
    ],
)
def test_text_that_resembles_a_call_is_no_routine(sql: str) -> None:
    facts = read(sql)
    assert (facts.reason, facts.routines_used) == (None, False)


def test_builtin_functions_differ_between_the_servers() -> None:
    assert read("SELECT NVL(a, 1) FROM t", Flavor.MYSQL).routines_used
    assert not read("SELECT NVL(a, 1) FROM t", Flavor.MARIADB).routines_used
    assert read("SELECT BIN_TO_UUID(a) FROM t", Flavor.MARIADB).routines_used


LOOKALIKES = [
    ("INSERT INTO t VALUES ('x; DROP TABLE a.b', \"INSERT INTO c.d\")", "d.t"),
    ("INSERT INTO t VALUES ('it''s', 'a\\'; DELETE FROM x.y; -- ')", "d.t"),
    ("/* DROP TABLE a.b; */ DELETE /* FROM x.y */ FROM t # FROM z.z", "d.t"),
    ("-- DELETE FROM a.b\nDELETE FROM t", "d.t"),
    ("DELETE FROM t WHERE a=1--1", "d.t"),
    ("DELETE FROM t WHERE a = 'from x.y' AND b = \"from y.z\"", "d.t"),
    ("UPDATE `from` SET `set` = 'where' WHERE `x.y`.`select` = 1", "d.from"),
    ("INSERT INTO `x.y`.`t``z` VALUES (1)", "x.y.t`z"),
    ("INSERT INTO `in to`.` t` VALUES (1)", "in to. t"),
    ("INSERT INTO x . t VALUES (1)", "x.t"),
    ("INSERT INTO x.`t` VALUES (1);", "x.t"),
    ("INSERT INTO 1db.2t VALUES (1)", "1db.2t"),
    ("INSERT INTO db.1e5 VALUES (1)", "db.1e5"),
    ("INSERT INTO été.tâble$ VALUES (1)", "été.tâble$"),
    ("/*!50001 INSERT INTO a.t */ /*!VALUES (1)*/", "a.t"),
    ("INSERT INTO t /*!50001 SELECT 1 FROM a.b /* c.d */ */", "a.b d.t"),
    ("INSERT INTO t VALUES (1 /* 99999 , (SELECT 1 FROM a.b) */)", "d.t"),
    ("INSERT INTO t SELECT 1 FROM a.order WHERE `a`.`order`.key = 1", "a.order d.t"),
    ("DROP TABLE `DROP TABLE x.y`", "d.DROP TABLE x.y"),
    ("INSERT INTO t SELECT 2*/*c*/3", "d.t"),
    ("insert into t values (1, 'a' 'b' -- c.d\n 'e')", "d.t"),
    ("UPDATE t SET a = 'where' 'limit', b = @`set x.y` WHERE c = @'from z.z'", "d.t"),
]


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("sql", "named"), LOOKALIKES)
def test_strings_quotes_and_comments_are_no_sql(sql: str, named: str, flavor: Flavor) -> None:
    facts = read(sql, flavor)
    assert (facts.reason, tables(facts)) == (None, named)


def test_mariadb_comments_are_sql_on_mariadb_alone() -> None:
    sql = "INSERT INTO t /*M!100100 SELECT 1 FROM a.b */ /*!SELECT 1*/"
    assert read(sql, Flavor.MARIADB).kind is UNKNOWN
    assert tables(read(sql, Flavor.MYSQL)) == "d.t"
    assert tables(read("INSERT INTO t /*M!100100 SELECT 1 FROM a.b */")) == "a.b d.t"


def test_double_quotes_follow_the_sql_mode() -> None:
    sql = 'INSERT INTO "x"."t""u" SELECT "a" FROM e.u'
    facts = analyze(sql, database="d", sql_mode_ansi_quotes=True, flavor=Flavor.MYSQL)
    assert tables(facts) == 'e.u x.t"u'
    assert read(sql).kind is UNKNOWN


def test_backslashes_follow_the_sql_mode() -> None:
    sql = r"INSERT INTO t VALUES ('\'), ((SELECT 1 FROM a.b)), ('\')"
    plain = analyze(sql, database="d", no_backslash_escapes=True, flavor=Flavor.MYSQL)
    assert tables(plain) == "a.b d.t"
    assert read(sql, Flavor.MYSQL).kind is UNKNOWN


UNREADABLE = [
    ("", True), (";", True), ("/* only a comment */", True), ("gibberish", True),
    ("SHOW TABLES", True), ("CREATE THING x", True), ("CREATE TABLE a.b.c (x INT)", True),
    ("DROP TABLE t; DROP TABLE u", True),
    ("ALTER DATABASE charset charset utf8", True),
    ("INSERT INTO t SELECT 1; DROP TABLE x", False), ("INSERT INTO t VALUES ('x", False), ("DELETE FROM `t", False),
    ("SELECT 1 /* open", False), ("SELECT 1 /*!50001 + 1", False), ("SELECT 1 FROM (t", False), ("SET @a = 1", False),
    ("SET SESSION x = 1", False), ("SET NAMES utf8", False), ("SELECT a INTO OUTFILE 'x' FROM t", False),
    ("BEGIN NOT ATOMIC SELECT 1; END", False), ("INSERT INTO t VALUES (?)", False),
    ("INSERT INTO t VALUES (\x01)", False),
    ("INSERT INTO t\ufffd VALUES (1)", False), ("UPDATE t WHERE a = 1", False), ("INSERT INTO t", False),
    ("INSERT INTO t SELECT s.nextval FROM dual", False), ("XA RECOVER", False),
    ("WITH c AS (SELECT 1) INSERT t SELECT 1", False), ("INSERT INTO t 5", False),
    ("INSERT INTO t VALUES (1) AS n b", False), ("SET STATEMENT a=1 INSERT INTO t VALUES (1)", False),
    ("SELECT 1 FROM a.b.c", False),
    ("LOAD DATA INFILE 'x'", False), ("LOAD DATA INFILE 'x' INTO TABLE t (SELECT 1 FROM e.u)", False),
    ("INSERT INTO t (a + 1) VALUES (1)", False), ("DELETE t", False), ("DELETE FROM t JOIN u USING (id)", False),
    ("SELECT a INTO x FROM t", False), ("SELECT 1 FROM t USE INDEX", False), ("SELECT 1 /*!1 + /*!1 2 */ */", False),
    ("RENAME TABLE a TO b c", True), ("TRUNCATE t u", True), ("LOCK TABLES t READ x", True), ("DROP TABLE t u", True),
    ("CREATE TABLE t LIKE u v", True), ("ALTER TABLE t ADD a INT DEFAULT (SELECT 1 FROM e.u)", True),
    ("CREATE INDEX i", True), ("CREATE TRIGGER g BEFORE INSERT", True), ("CREATE TRIGGER g BEFORE INSERT ON t", True),
    ("DROP FUNCTION x.f y", True), ("DROP TRIGGER x y", True), ("DROP DATABASE x y", True), ("RENAME TABLE a", True),
    ("CREATE TABLE (a INT)", True), ("DROP TABLE x.*", True), ("CREATE VIEW v SELECT 1", True), ("REPAIR t", True),
]  # fmt: skip


NOT_READ: Final = f"{'(' * 101}1{')' * 101}"
"""An expression that both servers take, and no reader."""


@pytest.mark.parametrize(
    ("statement", "commits"),
    [("CREATE TABLE t", True), ("ALTER VIEW v AS", True), ("INSERT INTO t", False), ("REPLACE t", False)],
)
def test_what_is_not_read_behind_set_statement_commits_by_its_own_verb(statement: str, commits: bool) -> None:
    facts = read(f"SET STATEMENT max_statement_time = 3 FOR {statement} SELECT {NOT_READ}")
    assert (facts.kind, facts.commits_implicitly) == (UNKNOWN, commits)


READ_AS_THE_SERVERS_DO = [
    ("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = IF(VALUES(t.a) > t.a, VALUES(`t`.`a`), t.a)", "d.t"),
    (
        "INSERT INTO t (a) SELECT b FROM u ON DUPLICATE KEY UPDATE a = (VALUES(a)) + (SELECT MAX(c) FROM e.w)",
        "d.t d.u e.w",
    ),
    ("UPDATE t SET a = CAST(b AS UNSIGNED INT), c = CAST(d AS SIGNED INTEGER)", "d.t"),
    ("CREATE VIEW v AS SELECT CAST(a AS CHAR(9) CHARACTER SET latin1 COLLATE DEFAULT) AS a FROM t", "d.t d.v"),
    ("CREATE VIEW v AS SELECT CAST(a AS NATIONAL CHAR) AS a FROM t GROUP BY b DESC, c ASC WITH ROLLUP", "d.t d.v"),
    ("CREATE VIEW v AS SELECT CAST(a AS CHAR ASCII), CONVERT(a, UNSIGNED INTEGER) FROM t", "d.t d.v"),
    ("CREATE VIEW v AS SELECT CONVERT((SELECT a FROM e.u), DECIMAL(10,2)) FROM t", "d.t d.v e.u"),
    ("CREATE VIEW v AS SELECT CAST((SELECT CAST(a AS DOUBLE) FROM e.u) AS DATETIME(6)) FROM t", "d.t d.v e.u"),
    ("CREATE VIEW v AS SELECT a LIKE b ESCAPE 3 IN (SELECT c FROM e.u) FROM t", "d.t d.v e.u"),
    ("CREATE VIEW v AS SELECT 1 LIKE '%' ESCAPE (1 IN (SELECT 1 FROM e.u)) AS x, escape FROM t", "d.t d.v e.u"),
    ("CREATE VIEW v AS SELECT BINARY ~ a, BINARY (a), - BINARY a FROM t", "d.t d.v"),
    ("CREATE TABLE t TABLE e.u ORDER BY a LIMIT 3", "d.t e.u"),
    ("INSERT INTO t TABLE e.u", "d.t e.u"),
]
"""With the tables."""


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("sql", "named"), READ_AS_THE_SERVERS_DO)
def test_what_the_servers_take_and_sqlglot_does_not_is_read(sql: str, named: str, flavor: Flavor) -> None:
    facts = read(sql, flavor)
    assert (facts.reason, tables(facts)) == (None, named)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("INSERT INTO t VALUES (1, IGNORE) ON DUPLICATE KEY UPDATE a = IGNORE", "d.t"),
        ("UPDATE t, e.u SET t.a = IGNORE, e.u.b = IGNORE WHERE t.a = u.a", "d.t e.u"),
        ("INSERT INTO t SELECT CAST(a AS INET6), CAST('1.2.3.4' AS inet4) FROM e.u", "d.t e.u"),
        ("INSERT INTO t SELECT COLUMN_GET(a, 'x' AS CHAR(10) CHARSET utf8) FROM e.u", "d.t e.u"),
        ("UPDATE t SET a = COLUMN_ADD(a, 'x', 2 AS DECIMAL(10,2), 'y', (SELECT b FROM e.u) AS CHAR)", "d.t e.u"),
        ("CREATE VIEW v AS SELECT COLUMN_CREATE('x', a AS INT, 'y', b AS VARCHAR(9) CHARACTER SET latin1) FROM t",
         "d.t d.v"),
        ("CREATE VIEW v AS SELECT CAST(a AS INTERVAL DAY_SECOND(6)) FROM t", "d.t d.v"),
        ("INSERT INTO t SELECT GROUP_CONCAT(a ORDER BY b SEPARATOR ', ' LIMIT 1) FROM e.u", "d.t e.u"),
        ("INSERT INTO t SELECT GROUP_CONCAT(DISTINCT a LIMIT 3 OFFSET 1), GROUP_CONCAT(a LIMIT 1, 2) FROM e.u",
         "d.t e.u"),
        ("INSERT INTO t SELECT a FROM e.u LIMIT ROWS EXAMINED 9", "d.t e.u"),
        ("INSERT INTO t SELECT a FROM e.u LIMIT 3 ROWS EXAMINED 9", "d.t e.u"),
        ("INSERT INTO t WITH RECURSIVE c (a, b) AS (SELECT a, b FROM e.u UNION SELECT a + 1, b FROM c)"
         " CYCLE a, b RESTRICT SELECT * FROM c", "d.t e.u"),
        ("CREATE VIEW v AS SELECT ENCRYPT('x') AS a FROM t", "d.t d.v"),
        ("UPDATE t SET a = LAST_VALUE(@a := a, @b := b, 1)", "d.t"),
    ],
)  # fmt: skip
def test_what_mariadb_alone_takes_is_read(sql: str, named: str) -> None:
    facts = read(sql, Flavor.MARIADB)
    assert (facts.reason, tables(facts)) == (None, named)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("INSERT INTO t SELECT CAST(a AS POINT) FROM e.u", "d.t e.u"),
        ("CREATE VIEW v AS SELECT JSON_VALUE(a, '$.x' RETURNING UNSIGNED ERROR ON EMPTY) FROM t", "d.t d.v"),
        ("UPDATE t SET a = JSON_VALUE(b, '$.x' RETURNING CHAR(9) CHARACTER SET utf8mb4 DEFAULT 'c' ON ERROR)", "d.t"),
        ("CREATE VIEW v AS SELECT 1 FROM t WHERE 3 MEMBER OF (CAST(a AS UNSIGNED ARRAY))", "d.t d.v"),
    ],
)
def test_what_mysql_alone_takes_is_read(sql: str, named: str) -> None:
    facts = read(sql, Flavor.MYSQL)
    assert (facts.reason, tables(facts)) == (None, named)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE t SET a = CAST(b AS (SELECT 1 FROM e.u))",
        "UPDATE t SET a = CAST(b AS CHAR (SELECT 1 FROM e.u))",
        "UPDATE t SET a = CONVERT(b, CHAR, (SELECT 1 FROM e.u))",
        "UPDATE t SET a = COLUMN_GET(b, 'x' AS CHAR (SELECT 1 FROM e.u))",
        "UPDATE t SET a = (SELECT GROUP_CONCAT(b LIMIT (SELECT 1 FROM e.u)) FROM t)",
    ],
)
def test_no_table_is_passed_over_as_a_part_of_a_type(sql: str, flavor: Flavor) -> None:
    facts = read(sql, flavor)
    assert facts.kind is UNKNOWN or "e.u" in tables(facts)


@pytest.mark.parametrize(
    "sql",
    [
        # words that are left out of a query elsewhere are names here: no table behind them is overlooked
        "INSERT INTO t SELECT 1 FROM (SELECT 1) cycle, e.u restrict",
        "INSERT INTO t SELECT 1 FROM (SELECT 1 AS x) cycle JOIN e.u ON 1 JOIN w restrict",
        "INSERT INTO t SELECT 1 FROM rows examined, e.u",
        "INSERT INTO t SELECT 1 FROM rows examined JOIN e.u",
        "INSERT INTO t SELECT inet6 FROM x AS inet6, e.u AS inet4",
        "INSERT INTO t SELECT HIGH_PRIORITY escape(a) FROM e.u",
        "INSERT INTO t SELECT json_duality_object(WITH (e.u) 1) FROM e.u",
        "INSERT INTO t SELECT national FROM e.u national",
    ],
)
@pytest.mark.parametrize("flavor", Flavor)
def test_a_name_that_is_a_word_of_a_clause_hides_no_table(sql: str, flavor: Flavor) -> None:
    facts = read(sql, flavor)
    assert facts.kind is UNKNOWN or TableKey("e", "u") in facts.tables
    assert facts.kind is UNKNOWN or facts.routines_used == ("escape(" in sql)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("CREATE JSON RELATIONAL DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM t", "d.t d.v"),
        ("CREATE OR REPLACE JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT(WITH (INSERT, NO DELETE) '_id': a, 'x': "
         "(SELECT JSON_ARRAYAGG(JSON_DUALITY_OBJECT(WITH UPDATE 'b': u.b)) FROM e.u WHERE u.a = t.a)) FROM t",
         "d.t d.v e.u"),
        ("ALTER JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM t", "d.t d.v"),
    ],
)  # fmt: skip
def test_views_of_documents_are_read(sql: str, named: str) -> None:
    facts = read(sql, Flavor.MYSQL)
    assert (facts.kind, tables(facts), facts.views) == (StatementKind.DDL, named, frozenset({TableKey("d", "v")}))


@pytest.mark.parametrize(
    ("sql", "database", "kind", "dropped_in"),
    [
        ("DROP FUNCTION f", "d", StatementKind.DDL, {"d"}),
        ("DROP FUNCTION IF EXISTS f", "d", StatementKind.DDL, {"d"}),
        # in no database only a loadable one can be meant
        ("DROP FUNCTION f", None, StatementKind.GLOBAL, set()),
        ("DROP FUNCTION f g", "d", UNKNOWN, set()),
        ("DROP SPATIAL REFERENCE SYSTEM IF EXISTS 4120", "d", StatementKind.GLOBAL, set()),
        ("CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 990 NAME 'n' DEFINITION 'x' ORGANIZATION 'o' IDENTIFIED BY 990 "
         "DESCRIPTION 'd'", "d", StatementKind.GLOBAL, set()),
        ("CREATE SPATIAL REFERENCE SYSTEM 990 NAME 'n' SELECT 1", "d", UNKNOWN, set()),
        ("DROP SPATIAL REFERENCE SYSTEM 1, 2", "d", UNKNOWN, set()),
    ],
)  # fmt: skip
def test_what_is_nobody_s_database_is_read(
    sql: str, database: str | None, kind: StatementKind, dropped_in: set[str]
) -> None:
    facts = analyze(sql, database=database, flavor=Flavor.MYSQL)
    assert (facts.kind, set(facts.dropped_in)) == (kind, dropped_in)


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("CREATE THING x", "THING"),
        ("TRUNCATE t u", "u"),
        ("UPDATE t WHERE a = 1", "t"),
        ("ALTER TABLE t ADD a INT DEFAULT (SELECT 1 FROM e.u)", "SELECT"),
        ("INSERT INTO t SELECT a WITHIN GROUP FROM u", "GROUP"),
        ("INSERT INTO t VALUES ('x", "("),
        ("INSERT INTO t VALUES (1)", ""),
    ],
)
def test_the_word_at_which_reading_stopped_is_told(sql: str, word: str) -> None:
    assert last_word(sql, database="d", dialect=Dialect(Flavor.MYSQL)) == word


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "expression",
    [
        "DEFAULT(a)",
        "DEFAULT (`t`.`a`)",
        "MATCH(a) AGAINST ((SELECT c FROM e.u))",
        "(match `t`.`a`,`t`.`b` against ('x' in boolean mode))",
        "MATCH (a, b) AGAINST (CONCAT('x', f.g()) IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION) > 0.5",
        "MATCH (a) AGAINST ('x' WITH QUERY EXPANSION) + MATCH (b) AGAINST (('y'))",
        "(SELECT 1 FROM JSON_TABLE(t.a, '$[*]' COLUMNS (x INT EXISTS PATH '$.x', NESTED PATH '$.y[*]' COLUMNS"
        " (z INT PATH '$' DEFAULT '0' ON EMPTY NULL ON ERROR))) AS j)",
    ],
)
def test_the_grammar_of_the_servers_own_is_read_in_queries(expression: str, flavor: Flavor) -> None:
    named = "d.t d.v e.u" if "e.u" in expression else "d.t d.v"
    facts = read(f"CREATE VIEW v AS SELECT {expression} AS x FROM t", flavor)
    assert (facts.reason, tables(facts), facts.routines_used) == (None, named, "f.g()" in expression)


@pytest.mark.parametrize("flavor", Flavor)
def test_only_behind_a_path_are_columns_those_of_a_json_table(flavor: Flavor) -> None:
    facts = read("CREATE VIEW v AS SELECT json_table(a + columns (other.evil(1))) AS x FROM t", flavor)
    assert facts.databases == {"d", "other"}


@pytest.mark.parametrize(("sql", "commits"), UNREADABLE)
def test_statements_that_cannot_be_read_exactly_are_unknown_with_a_reason(sql: str, commits: bool) -> None:
    facts = read(sql)
    assert facts.kind is UNKNOWN
    assert facts.reason
    assert (facts.databases, facts.tables) == (frozenset(), frozenset())
    assert facts.commits_implicitly == commits


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE t", "expected FROM"),
        ("SELECT 1 /*!1 + /*!1 2 */ */", "a version comment inside a version comment"),
        ("SELECT 1 /*!1 + 2", "a version comment without an end"),
        ("INSERT INTO t VALUES ('x", "a quote without an end"),
        ("INSERT INTO secret VALUES (1", "a parenthesis without an end"),
        ("INSERT INTO secret VALUES (1);;DROP TABLE secret", "more than one statement, or a placeholder"),
    ],
)
def test_a_reason_says_what_is_wrong_and_never_whose(sql: str, reason: str) -> None:
    assert read(sql).reason == reason


def test_packages_are_mariadbs() -> None:
    assert read("DROP PACKAGE BODY x.p", Flavor.MARIADB).databases == {"x"}
    assert read("DROP PACKAGE BODY x.p", Flavor.MYSQL).kind is UNKNOWN


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("UPDATE t SET a = CASE id " + "".join(f"WHEN {n} THEN 'x' " for n in range(20_000)) + "END", "d.t"),
        ("DELETE FROM t WHERE a = 1" + "".join(f" OR (a = {n} AND b = 2)" for n in range(12_000)), "d.t"),
        ("INSERT INTO t SELECT 1 FROM u" + "".join(f" UNION ALL SELECT {n}" for n in range(12_000)), "d.t d.u"),
        ("DELETE FROM t WHERE a IN (SELECT 1 FROM e.v)" + " OR EXISTS (SELECT 1 FROM u)" * 12_000, "d.t d.u e.v"),
    ],
    ids=["CASE", "OR", "UNION ALL", "EXISTS"],
)
def test_a_statement_of_a_batch_of_rows_is_read(text: str, named: str) -> None:
    facts = read(text)
    assert facts.is_read, facts.reason
    assert tables(facts) == named


def test_a_table_that_the_parser_overlooks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = queries._named_tables
    monkeypatch.setattr(queries, "_named_tables", lambda text: parsed(text)[:1])
    assert read("SELECT 1 FROM e.overlooked_not").kind is DML
    for sql in ("SELECT 1 FROM e.t JOIN overlooked", "SELECT (SELECT 1 FROM (x.overlooked)) FROM e.t"):
        assert read(sql).reason == "a table that only one of two readings found"


def test_an_unqualified_name_without_a_default_database_is_unknown() -> None:
    for database in (None, ""):
        assert read("INSERT INTO t VALUES (1)", database=database).kind is UNKNOWN
        assert tables(read("INSERT INTO x.t VALUES (1)", database=database)) == "x.t"


def test_bytes_that_are_no_text_hide_a_name_but_not_a_value() -> None:
    assert tables(read("INSERT INTO t VALUES ('\ufffd')")) == "d.t"


MYSQL_LISTS = [
    ("insert into a.t select id+10,x from b.t", {"a", "b"}),
    ("update a.t, b.t set a.t.x=b.t.x, b.t.x=9 where a.t.id=b.t.id", {"a", "b"}),
    ("delete a.t from a.t join c.t on a.t.id=c.t.id", {"a", "c"}),
    ("insert into c.t (id,x) values (77,(select max(id) from d.u))", {"c", "d"}),
    ("with q as (select * from c.t) update d.t join q using (id) set d.t.x=q.x", {"c", "d"}),
    ("create table a.t3 as select * from c.t", {"a", "c"}),
    ("rename table a.t2 to b.t9, d.t to d.tt, d.tt to d.t", {"a", "b", "d"}),
    ("alter table b.t9 rename to c.t9", {"b", "c"}),
    ("CREATE DEFINER=`root`@`localhost` trigger a.tr before insert on a.t for each row set new.x=1", {"a"}),
    ("CREATE DEFINER=`root`@`localhost` PROCEDURE `d`.`p`()\nbegin insert into a.t values (1,1); end", {"d"}),
    ("alter event d.e rename to a.e", {"a", "d"}),
    ("insert into a.t select id+3000, 1 from tmp1", {"a", "d"}),
    ("DROP TABLE IF EXISTS `nosuch`.`t1`,`a`.`nosuch` /* generated by server */", {"a", "nosuch"}),
    ("update b.t set x = 1 /*!80000 , id = id + 100000 */ /* 99999 , foo = 1 */ where id=2", {"b"}),
    ("CREATE LIBRARY `d`.`lib1`\n    LANGUAGE javascript\nAS $$export function f(n) {return n}$$", {"d"}),
]


@pytest.mark.parametrize(("sql", "logged"), MYSQL_LISTS)
def test_the_databases_are_those_that_mysql_9_7_logged_for_the_statement(sql: str, logged: set[str]) -> None:
    assert read(sql, Flavor.MYSQL).databases == logged


DEFINED = [
    ("CREATE TABLE t (a INT REFERENCES p (a)) UNION = (m)", "d.t"),
    ("CREATE TABLE t LIKE e.u", "d.t"),
    ("CREATE OR REPLACE TABLE t AS SELECT * FROM e.u", "d.t"),
    ("CREATE TEMPORARY TABLE t SELECT * FROM u", "d.t"),
    ("CREATE VIEW v AS SELECT * FROM e.u", "d.v"),
    ("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "d.t"),
    ("CREATE UNIQUE INDEX i ON t (a)", "d.t"),
    ("DROP INDEX i ON t", "d.t"),
    ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES e.p (a), RENAME TO u", "d.t d.u"),
    ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", "d.t d.u"),
    ("RENAME TABLE t TO u, e.x TO e.y", "d.t d.u e.x e.y"),
    ("DROP TABLE IF EXISTS t, e.u", "d.t e.u"),
    ("DROP VIEW v", "d.v"),
    ("CREATE SEQUENCE s", "d.s"),
    ("TRUNCATE t", ""),
    ("ANALYZE TABLE t, e.u", ""),
    ("OPTIMIZE TABLE t", ""),
    ("LOCK TABLES t READ", ""),
    ("INSERT INTO t SELECT * FROM u", ""),
]


@pytest.mark.parametrize(("sql", "defined"), DEFINED)
def test_only_what_a_statement_may_change_is_defined_by_it(sql: str, defined: str) -> None:
    facts = read(sql)
    assert facts.kind is not UNKNOWN
    assert " ".join(sorted(map(str, facts.defines))) == defined


@pytest.mark.parametrize(
    ("sql", "may_define"),
    [
        ("DROP FUNCTION IF EXISTS f", False),
        ("CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x' DEFINITION 'y'", False),
        ("DROP SPATIAL REFERENCE SYSTEM 4120", False),
        ("ALTER TABLE t COMMENT 'open", True),
        ("CREATE SPATIAL INDEX i ON t (a)", False),
    ],
)
def test_a_statement_that_is_not_read_may_define_any_table_unless_it_can_define_none(
    sql: str, may_define: bool
) -> None:
    assert read(sql, Flavor.MYSQL).may_define_any is may_define


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("definer", ["u@", "`u`@", "u@`%`", "`(`", "CURRENT_USER()"])
def test_what_a_definition_makes_is_read_behind_each_definer(definer: str, flavor: Flavor) -> None:
    head = f"CREATE DEFINER={definer}"
    assert read(f"{head} TRIGGER x.g BEFORE INSERT ON x.t FOR EACH ROW SET @a = 1", flavor).triggered == {
        TableKey("x", "t")
    }
    assert read(f"{head} SQL SECURITY INVOKER VIEW x.v AS SELECT 1 AS a", flavor).views == {TableKey("x", "v")}
    assert read(f"{head} FUNCTION x.f() RETURNS INT RETURN 1", flavor).routine_databases == {"x"}
    assert read(f"{head} EVENT x.e ON SCHEDULE EVERY 1 DAY DO SELECT 1", flavor).kind is DDL
