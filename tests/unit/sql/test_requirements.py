"""What DDL and account statements ask of a server, told from their words, and what only looks like it."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.precheck.target.portability import FEATURES
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect
from binlane.sql.requirements import (
    BARE_CHARSET,
    BY_SESSION,
    CHANGED,
    CHARSET,
    COLLATION,
    CONVERTED,
    DATABASE_CHARSET,
    DATABASE_DEFAULT,
    DATABASE_SET,
    DEFINER,
    ENCRYPTED,
    ENGINE,
    PLUGIN,
    PRIVILEGE,
    SESSION_COLLATION,
    TRUSTED_FUNCTION,
    TRUSTED_MAKER,
    Requirement,
    requirements_of,
    requirements_of_session,
    resolved,
    without_missing,
)

CASES = [
    ("DROP FUNCTION f", {("object or account of somebody", "function d.f", "")}),
    ("CREATE TABLE t (id INT, j JSON)", {("JSON column", "d.t.j", "")}),
    ("CREATE TABLE t (`j` json NOT NULL, b INT)", {("JSON column", "d.t.j", "")}),
    ("ALTER TABLE x.t ADD COLUMN j JSON AFTER id", {("JSON column", "x.t.j", "")}),
    ("ALTER TABLE t CHANGE a j JSON", {("JSON column", "d.t.j", "")}),
    ("CREATE TABLE t (j JSON DEFAULT '{}', n INT)",
     {("JSON column", "d.t.j", ""), ("default of a BLOB, TEXT or JSON column", "d.t", "")}),
    ("ALTER TABLE t ADD COLUMN `b` TEXT NOT NULL DEFAULT 'x'",
     {("default of a BLOB, TEXT or JSON column", "d.t", "")}),
    ("CREATE TABLE t (g INT AS (d->'$.a') STORED, h INT AS (d->>'$.b'))",
     {("JSON operator", "d.t", "->"), ("JSON operator", "d.t", "->>")}),
    ("ALTER TABLE t ADD KEY k ((CAST(a->'$.x' AS UNSIGNED ARRAY)))",
     {("JSON operator", "d.t", "->"), ("functional key", "d.t", "")}),
    ("CREATE VIEW v AS SELECT CAST(a AS JSON) AS j FROM t", {("CAST AS JSON", "d.v", "")}),
    ("UPDATE t SET a = CAST(b AS JSON), c = d->'$.e' WHERE id = 1",
     {("CAST AS JSON", "d.t", ""), ("JSON operator", "d.t", "->")}),
    ("UPDATE t SET a = CONVERT(b USING utf8mb4) = 'x'", {(CONVERTED, "d.t", "utf8mb4")}),
    ("INSERT INTO t SELECT CAST(b AS CHAR CHARACTER SET latin1), CHAR(c USING utf8mb4) FROM u",
     {(CONVERTED, "d.t", "latin1"), (CONVERTED, "d.t", "utf8mb4")}),
    ("DELETE FROM t WHERE b = _ucs2'x'", {(CONVERTED, "d.t", "ucs2")}),
    ("UPDATE t JOIN u USING (id) SET a = CONVERT(b USING utf8mb4) COLLATE utf8mb4_bin = _latin1'x' COLLATE latin1_bin",
     set()),
    ("UPDATE t SET utf8mb4 = 1, _latin1 = 2 WHERE (binary = 3)", set()),
    ("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.j->>'$.x'",
     {("JSON operator", "d.t", "->>"), (TRUSTED_MAKER, "d.t", "TRIGGER")}),
    ("CREATE TABLE t (e VECTOR(3) NOT NULL)", {("VECTOR column", "d.t.e", "")}),
    ("CREATE TABLE t (u UUID PRIMARY KEY, i INET6, k INET4 DEFAULT NULL)",
     {("UUID column", "d.t.u", ""), ("INET6 column", "d.t.i", ""), ("INET4 column", "d.t.k", "")}),
    ("CREATE FUNCTION f() RETURNS INT RETURN 5",
     {(TRUSTED_FUNCTION, "d", ""), (TRUSTED_MAKER, "d", "FUNCTION")}),
    ("CREATE DEFINER=`a`@`%` FUNCTION x.f() RETURNS INT MODIFIES SQL DATA RETURN 5",
     {(TRUSTED_FUNCTION, "x", ""), (TRUSTED_MAKER, "x", "FUNCTION"), (DEFINER, "function x.f", "a@%")}),
    ("CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 5", {(TRUSTED_MAKER, "d", "FUNCTION")}),
    ("CREATE FUNCTION f() RETURNS INT NO SQL RETURN 5", {(TRUSTED_MAKER, "d", "FUNCTION")}),
    ("CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN 5", {(TRUSTED_MAKER, "d", "FUNCTION")}),
    ("CREATE DEFINER=`a`@`%` TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
     {(TRUSTED_MAKER, "d.t", "TRIGGER"), (DEFINER, "trigger d.g", "a@%")}),
    ("CREATE ALGORITHM=UNDEFINED DEFINER=`a b`@`10.%` SQL SECURITY DEFINER VIEW `v` AS select 1",
     {(DEFINER, "view d.v", "a b@10.%")}),
    ("CREATE OR REPLACE ALGORITHM=MERGE DEFINER='a'@'%' SQL SECURITY INVOKER VIEW x.v AS select 1",
     {(DEFINER, "view x.v", "a@%"), (CHANGED, "view x.v", "")}),
    ("ALTER DEFINER=`a`@`%` EVENT e COMMENT 'x'", {(DEFINER, "event d.e", "a@%"), (CHANGED, "event d.e", "")}),
    ("CREATE DEFINER=`a`@`%` PROCEDURE IF NOT EXISTS p() SELECT 'x@y', z@w", {(DEFINER, "procedure d.p", "a@%")}),
    ("CREATE VIEW v AS SELECT 'DEFINER=a@b'", set()),
    ("DROP PROCEDURE IF EXISTS x.p", {(CHANGED, "procedure x.p", "")}),
    ("ALTER FUNCTION p COMMENT 'x'", {(CHANGED, "function d.p", "")}),
    ("DROP VIEW v, x.w", {(CHANGED, "view d.v", ""), (CHANGED, "view x.w", "")}),
    ("DROP EVENT e", {(CHANGED, "event d.e", "")}),
    ("DROP TRIGGER g", set()),
    ("DROP USER a@`%`, 'it''s'@localhost", {(CHANGED, "account a@%", ""), (CHANGED, "account it's@localhost", "")}),
    ("RENAME USER a@h TO b@h", {(CHANGED, "account a@h", ""), (CHANGED, "account b@h", "")}),
    ("REVOKE SELECT ON d.* FROM 'a'@'h'", {(CHANGED, "account a@h", "")}),
    ("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB `page_compressed`=1",
     {("storage engine", "d.t", "innodb"), ("option of MariaDB", "d.t", "PAGE_COMPRESSED")}),
    ("SET STATEMENT foreign_key_checks=0 FOR INSERT INTO t VALUES (1)", {("SET STATEMENT", "d.t", "")}),
    ("DELETE FROM t WHERE a = 1 RETURNING *", {("RETURNING", "d.t", "")}),
    ("UPDATE t FOR PORTION OF p FROM '2020-01-01' TO '2020-02-01' SET a = 1", {("period", "d.t", "")}),
    ("INSERT INTO t VALUES ROW(1), ROW(2)", {("VALUES ROW", "d.t", "")}),
    ("INSERT INTO t VALUES (1) AS fresh ON DUPLICATE KEY UPDATE a = fresh.a", {("alias of inserted rows", "d.t", "")}),
    ("WITH c AS (SELECT 1 AS a) UPDATE t SET a = 2", {("WITH in front of UPDATE or DELETE", "d.t", "")}),
    ("CREATE DATABASE e COMMENT 'x'", {("comment of a database", "e", "")}),
    ("ALTER SCHEMA e READ ONLY = 1", {("option of MySQL", "e", "READ ONLY")}),
    ("CREATE SEQUENCE s", {("sequence", "d.s", "")}),
    ("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", {("system versioning", "d.t", "")}),
    ("ALTER TABLE t ADD SYSTEM VERSIONING", {("system versioning", "d.t", "")}),
    ("ALTER TABLE t ADD s BIGINT(20) UNSIGNED AS ROW START", {("history by transaction ids", "d.t", "")}),
    ("CREATE TABLE t (b BIGINT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START)", set()),
    ("CREATE TABLE t (s DATE, e DATE, PERIOD FOR p (s, e), UNIQUE (s, p WITHOUT OVERLAPS))", {("period", "d.t", "")}),
    ("CREATE OR REPLACE TABLE t (a INT)", {("OR REPLACE", "d.t", "")}),
    ("CREATE OR REPLACE PROCEDURE p() SELECT 1", {("OR REPLACE", "d", "")}),
    ("ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT", {("IF EXISTS", "d.t", "")}),
    ("CREATE INDEX IF NOT EXISTS i ON t (a)", {("IF EXISTS", "d.t", "")}),
    ("CREATE TABLE t (v VARCHAR(9) COMPRESSED, x TEXT COMPRESSED)", {("compressed column", "d.t", "")}),
    ("CREATE TABLE t (a INT, KEY k ((a + 1)))", {("functional key", "d.t", "")}),
    ("CREATE TABLE t (a INT, UNIQUE KEY k (a, (LOWER(b))))", {("functional key", "d.t", "")}),
    ("CREATE INDEX i ON d.t ((a + 1))", {("functional key", "d.t", "")}),
    ("CREATE TABLE t (a INT, KEY k (a) INVISIBLE)", {("invisible key", "d.t", "")}),
    ("ALTER TABLE t ALTER INDEX i INVISIBLE", {("invisible key", "d.t", "")}),
    ("CREATE INDEX i ON t (a) IGNORED", {("ignored key", "d.t", "")}),
    ("CREATE TABLE t (a INT, CHECK (a > 0) NOT ENFORCED)", {("check that is not enforced", "d.t", "")}),
    ("CREATE TABLE t (p POINT NOT NULL SRID 4326)", {("SRID", "d.t", "")}),
    ("CREATE TABLE t (a INT) ENGINE=Aria PAGE_CHECKSUM=1",
     {(ENGINE, "d.t", "aria"), ("option of MariaDB", "d.t", "PAGE_CHECKSUM")}),
    ("CREATE TABLE t (a INT) ENCRYPTION='Y'", {("option of MySQL", "d.t", "ENCRYPTION")}),
    ("CREATE TABLE t (a CHAR(3) COLLATE utf8mb4_0900_ai_ci) DEFAULT CHARSET=utf8mb4",
     {(COLLATION, "d.t", "utf8mb4_0900_ai_ci"), (CHARSET, "d.t", "utf8mb4"), (BARE_CHARSET, "d.t", "utf8mb4")}),
    ("ALTER TABLE t CONVERT TO CHARACTER SET gb18030", {(CHARSET, "d.t", "gb18030"), (BARE_CHARSET, "d.t", "gb18030")}),
    ("CREATE TABLE t (a CHAR(3) CHARSET utf8mb4 NOT NULL COLLATE utf8mb4_bin, b INT)",
     {(COLLATION, "d.t", "utf8mb4_bin"), (CHARSET, "d.t", "utf8mb4")}),
    ("CREATE TABLE t (a CHAR(3)) COLLATE=utf8mb4_bin, COMMENT='x', CHARSET=utf8mb4",
     {(COLLATION, "d.t", "utf8mb4_bin"), (CHARSET, "d.t", "utf8mb4")}),
    ("ALTER TABLE t ADD a CHAR(3) CHARSET utf8mb4, ADD b CHAR(3) COLLATE utf8mb4_bin",
     {(COLLATION, "d.t", "utf8mb4_bin"), (CHARSET, "d.t", "utf8mb4"), (BARE_CHARSET, "d.t", "utf8mb4")}),
    ("CREATE DATABASE z COLLATE utf8mb4_uca1400_ai_ci", {(COLLATION, "z", "utf8mb4_uca1400_ai_ci")}),
    ("CREATE USER u IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$xx'",
     {(PLUGIN, "CREATE USER", "caching_sha2_password")}),
    ("CREATE USER u IDENTIFIED VIA ed25519 USING 'x'",
     {("IDENTIFIED VIA", "CREATE USER", ""), (PLUGIN, "CREATE USER", "ed25519")}),
    ("CREATE USER u IDENTIFIED BY PASSWORD '*00'", {("IDENTIFIED BY PASSWORD", "CREATE USER", "")}),
    ("CREATE ROLE r WITH ADMIN u", {("role administrator", "CREATE ROLE", "")}),
    ("GRANT SELECT, BINLOG REPLAY ON *.* TO u", {("privilege of MariaDB", "GRANT", "BINLOG REPLAY")}),
    ("GRANT BACKUP_ADMIN ON *.* TO u", {("privilege of MySQL", "GRANT", "BACKUP_ADMIN")}),
    ("ANALYZE TABLE t UPDATE HISTOGRAM ON a", {("histogram", "d.t", "")}),
    ("CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
     {("spatial reference system", "CREATE SPATIAL REFERENCE SYSTEM", "")}),
]  # fmt: skip
LOOKS_LIKE_IT = [
    "CREATE FUNCTION f RETURNS STRING SONAME 'f.so'",
    "CREATE PROCEDURE p() SELECT 5",
    "DROP TRIGGER g",
    "INSERT INTO t (a) SELECT returning_ FROM s ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "INSERT INTO t SELECT a AS x FROM s",
    "CREATE TABLE t (j VARCHAR(9) DEFAULT '->', b TEXT DEFAULT ('x'), c BLOB DEFAULT NULL, d INT DEFAULT 5, text INT)",
    "CREATE TABLE t (a TEXT, b INT DEFAULT 1, text INT DEFAULT 1, blob_ INT DEFAULT 2 COMMENT 'TEXT DEFAULT 1')",
    "INSERT INTO t VALUES ('a->b', 'CAST(x AS JSON)')",
    "CREATE VIEW v AS SELECT '->' AS json, a AS json FROM t",
    "CREATE TABLE t (json INT, uuid CHAR(36) DEFAULT (UUID()), vector BLOB, inet6 INT, KEY json (json))",
    "ALTER TABLE t ADD json INT, DROP COLUMN uuid, RENAME COLUMN a TO json, ADD KEY vector (vector)",
    "CREATE TABLE t (engine VARCHAR(10), charset VARCHAR(5), srid INT, period INT, CHECK (engine = charset))",
    "CREATE TABLE t (a INT PRIMARY KEY, CHECK ((a > 1)), b INT AS ((a + 1)) STORED UNIQUE, c INT INVISIBLE)",
    "CREATE TABLE t (a INT UNIQUE INVISIBLE, b INT DEFAULT ((1)))",
    "CREATE TABLE t (a INT, KEY (a), c CHAR(9) INVISIBLE) ROW_FORMAT=COMPRESSED",
    "CREATE TABLE sequence (a INT COMMENT 'JSON, SYSTEM VERSIONING')",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE TABLE IF NOT EXISTS t (a INT)",
    "DROP TABLE IF EXISTS t",
    "DROP DATABASE IF EXISTS z",
    "CREATE SPATIAL INDEX i ON t (g)",
    "CREATE PROCEDURE p() BEGIN DECLARE j JSON; SELECT 1 FROM t WHERE SRID = 4; END",
    "GRANT SELECT ON read_only.t TO u",
    "GRANT my_role TO u",
    "CREATE TABLE `t (JSON",
]


def asked(sql: str) -> set[tuple[str, str, str]]:
    flavor = Flavor.MARIADB
    found = requirements_of(sql, analyze(sql, database="d", flavor=flavor), Dialect(flavor))
    of_databases = (DATABASE_DEFAULT, DATABASE_SET, ENCRYPTED)
    return {(one.feature, one.subject, one.detail) for one in found if one.feature not in of_databases}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (s TEXT)", {(DATABASE_DEFAULT, "d")}),
        (
            "CREATE TABLE x.t (s TEXT CHARSET latin1, FOREIGN KEY (a) REFERENCES y.u (a))",
            {(DATABASE_DEFAULT, "x")},
        ),
        ("CREATE TEMPORARY TABLE t (s TEXT) ENGINE=InnoDB", {(DATABASE_DEFAULT, "d")}),
        ("CREATE TABLE t AS SELECT a FROM x.u", {(DATABASE_DEFAULT, "d")}),
        ("CREATE TABLE t (s TEXT) DEFAULT CHARSET=utf8mb4", set()),
        ("CREATE TABLE t (s TEXT) CHARACTER SET utf8mb4", set()),
        ("CREATE TABLE t (s TEXT) COLLATE=utf8mb4_bin", set()),
        ("CREATE TABLE t LIKE x.u", set()),
        ("CREATE TABLE t (LIKE x.u)", set()),
        ("ALTER TABLE t ADD s TEXT", set()),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", {(DATABASE_DEFAULT, "d")}),
        ("ALTER TABLE x.t DEFAULT CHARSET = DEFAULT", {(DATABASE_DEFAULT, "x")}),
        ("CREATE TABLE t (s TEXT) CHARACTER SET DEFAULT", {(DATABASE_DEFAULT, "d")}),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1, ALTER s SET DEFAULT 'a'", set()),
        ("CREATE FUNCTION x.f(a TEXT) RETURNS TEXT DETERMINISTIC RETURN a", {(DATABASE_DEFAULT, "x")}),
        ("CREATE PROCEDURE p(a TEXT) SELECT a", {(DATABASE_DEFAULT, "d")}),
        ("CREATE TRIGGER g BEFORE INSERT ON x.t FOR EACH ROW SET NEW.a = 1", {(DATABASE_DEFAULT, "x")}),
        ("CREATE DATABASE x", {(DATABASE_SET, "x")}),
        ("ALTER DATABASE x CHARACTER SET latin1", {(DATABASE_SET, "x")}),
        ("DROP SCHEMA x", {(DATABASE_SET, "x")}),
    ],
)
def test_objects_that_take_their_databases_default_collation_have_a_requirement(
    sql: str, expected: set[tuple[str, str]]
) -> None:
    found = requirements_of(sql, analyze(sql, database="d", flavor=Flavor.MARIADB), Dialect(Flavor.MARIADB))
    assert {(one.feature, one.subject) for one in found if one.feature in (DATABASE_DEFAULT, DATABASE_SET)} == expected


@pytest.mark.parametrize(
    ("clause", "is_named"),
    [
        ("", False),
        (
            "FIELDS TERMINATED BY ',' (@a) SET s = CONVERT(@a USING latin1), t = CAST(@a AS CHAR CHARACTER SET ascii)",
            False,
        ),
        ("CHARACTER SET utf8mb4", True),
        ("PARTITION (p0, p1) CHARACTER SET utf8mb4 IGNORE 1 LINES", True),
        ("PARTITION (p0, p1) LINES TERMINATED BY ';'", False),
    ],
)
def test_a_file_without_a_character_set_takes_that_of_the_session_s_database(clause: str, is_named: bool) -> None:
    for table in ("t", "`x`.t"):
        sql = f"LOAD DATA LOCAL INFILE 'f' INTO TABLE {table} {clause}"
        facts = analyze(sql, database="d", flavor=Flavor.MARIADB)
        found = [
            each for each in requirements_of(sql, facts, Dialect(Flavor.MARIADB)) if each.feature == DATABASE_CHARSET
        ]
        assert bool(found) == (not is_named)
        of_session = SessionContext(database="d")
        assert [resolved(each, of_session) for each in found] == [Requirement(DATABASE_CHARSET, "d")] * len(found)
        of_session = SessionContext(database="d", collation_database=33)
        assert [resolved(each, of_session) for each in found] == [None] * len(found)


@pytest.mark.parametrize(("sql", "expected"), CASES)
def test_a_requirement_names_its_table(sql: str, expected: set[tuple[str, str, str]]) -> None:
    assert asked(sql) == expected


@pytest.mark.parametrize("sql", LOOKS_LIKE_IT)
def test_names_and_comments_ask_for_nothing(sql: str) -> None:
    assert asked(sql) == set()


@pytest.mark.parametrize(
    ("flavor", "sql", "expected"),
    [
        (Flavor.MYSQL, "CREATE TABLE t (id INT) ENCRYPTION='Y' COMMENT='x'", {("d.t", "")}),
        (Flavor.MYSQL, 'ALTER TABLE t /*!80016 ENCRYPTION "y" */', {("d.t", "")}),
        (Flavor.MYSQL, "ALTER DATABASE x DEFAULT ENCRYPTION = 'Y'", {("x", "")}),
        (Flavor.MYSQL, "ALTER TABLESPACE s ENCRYPTION='Y'", {("ALTER TABLESPACE", "")}),
        (Flavor.MYSQL, "ALTER INSTANCE ROTATE INNODB MASTER KEY", {("ALTER INSTANCE", "")}),
        (Flavor.MYSQL, "ALTER INSTANCE RELOAD TLS", set()),
        (Flavor.MYSQL, "CREATE DATABASE x", {("x", BY_SESSION)}),
        (Flavor.MYSQL, "CREATE DATABASE x ENCRYPTION='N'", set()),
        (Flavor.MYSQL, "CREATE TABLE t (encryption CHAR(1) DEFAULT 'Y') COMMENT='ENCRYPTION=Y'", set()),
        (Flavor.MARIADB, "CREATE TABLE t (a INT) `ENCRYPTED`='YES'", {("d.t", "ENCRYPTED=YES")}),
        (
            Flavor.MARIADB,
            "ALTER TABLE t ENCRYPTED=YES, ENCRYPTION_KEY_ID = 5",
            {("d.t", "ENCRYPTED=YES ENCRYPTION_KEY_ID=5")},
        ),
        (Flavor.MARIADB, "CREATE TABLE t (encrypted INT, KEY (encrypted))", set()),
    ],
)
def test_what_is_encrypted_needs_a_key(flavor: Flavor, sql: str, expected: set[tuple[str, str]]) -> None:
    found = requirements_of(sql, analyze(sql, database="d", flavor=flavor), Dialect(flavor))
    assert {(one.subject, one.detail) for one in found if one.feature == ENCRYPTED} == expected


def test_a_session_says_whether_a_new_database_is_encrypted() -> None:
    requirement = Requirement(ENCRYPTED, "x", BY_SESSION)
    assert resolved(requirement, SessionContext(default_table_encryption=True)) == Requirement(ENCRYPTED, "x")
    assert resolved(requirement, SessionContext()) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO t SELECT a FROM other.s JOIN third.u", {(PRIVILEGE, "other"), (PRIVILEGE, "third")}),
        ("INSERT INTO x.t SELECT a FROM x.s", set()),
        ("INSERT INTO t SELECT table_name FROM information_schema.tables", set()),
        ("UPDATE d.t, other.s SET t.a = s.a", {(PRIVILEGE, "other")}),
        ("CREATE TABLE t LIKE other.s", set()),
    ],
)
def test_a_statement_needs_to_read_what_it_does_not_write(sql: str, expected: set[tuple[str, str]]) -> None:
    facts = analyze(sql, database="d", flavor=Flavor.MYSQL)
    context = SessionContext(charset_client=8, collation_connection=8, collation_server=255)
    found = {(one.feature, one.subject or one.detail) for one in requirements_of_session(context, facts)}
    collations = {one.detail for one in requirements_of_session(context, facts) if one.feature == SESSION_COLLATION}
    assert {one for one in found if one[0] == PRIVILEGE} == expected
    assert collations == {"8", "255"}


@pytest.mark.parametrize(
    ("sql", "is_left_out"),
    [
        ("RENAME TABLE t TO u", True),
        ("ALTER TABLE t DROP COLUMN a", False),
        ("DROP INDEX i ON t", False),
        ("ALTER TABLE t ADD COLUMN b INT", False),
        ("CREATE TABLE t (id INT)", False),
        ("DROP TABLE t", False),
        ("INSERT INTO t VALUES (1)", False),
    ],
)
def test_a_session_that_leaves_out_what_is_missing_asks_for_that(sql: str, is_left_out: bool) -> None:
    facts = analyze(sql, database="d", flavor=Flavor.MARIADB)
    found = {*without_missing(sql, facts, SessionContext(if_exists=True))}
    assert found == ({Requirement("IF EXISTS", "d.t", "by sql_if_exists")} if is_left_out else set())
    assert not {*without_missing(sql, facts, SessionContext(if_exists=False))}


def test_every_feature_is_one_that_the_precheck_knows() -> None:
    names = {feature for _, expected in CASES for feature, _, _ in expected}
    asked_otherwise = {
        ENGINE,
        COLLATION,
        CHARSET,
        BARE_CHARSET,
        CONVERTED,
        PLUGIN,
        TRUSTED_FUNCTION,
        TRUSTED_MAKER,
        DEFINER,
        CHANGED,
    }
    assert names <= FEATURES.keys() | asked_otherwise


def test_a_create_if_not_exists_requires_features_unless_the_table_exists() -> None:
    sql = "CREATE TABLE IF NOT EXISTS t (j JSON)"
    found = requirements_of(sql, analyze(sql, database="d", flavor=Flavor.MYSQL), Dialect(Flavor.MYSQL))
    assert found == {
        Requirement("JSON column", "d.t.j", unless="d.t"),
        Requirement(DATABASE_DEFAULT, "d", unless="d.t"),
    }


def test_requirements_are_ordered() -> None:
    assert sorted([Requirement("b", "t"), Requirement("a", "u")])[0].feature == "a"


@pytest.mark.parametrize(
    ("pairs", "charset", "stood_for"),
    [
        ((), "utf8mb4", None),
        (((45, 2304),), "utf8mb4", "utf8mb4 = utf8mb4_uca1400_ai_ci"),
        (((45, 45),), "utf8mb4", None),
        (((33, 2048), (45, 45)), "utf8", "utf8mb3 = utf8mb3_uca1400_ai_ci"),
        (((33, 2048),), "latin1", None),
    ],
)
def test_a_bare_character_set_asks_for_what_the_session_had_put_in_its_place(
    pairs: tuple[tuple[int, int], ...], charset: str, stood_for: str | None
) -> None:
    found = resolved(Requirement(BARE_CHARSET, "d.t", charset), SessionContext(character_set_collations=pairs))
    assert found == (None if stood_for is None else Requirement(BARE_CHARSET, "d.t", stood_for))
