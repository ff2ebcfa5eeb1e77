"""What the servers spell otherwise than their client in one statement is named, and nothing else is."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.sql.server_composed import (
    comment_in_grant,
    hidden_clause,
    in_its_charset,
    is_composed_table,
    spelled_twice,
    unlike_composed,
    without_transaction_clause,
)

MARIADB, MYSQL = Flavor.MARIADB, Flavor.MYSQL
LATIN1, UTF8MB4 = 8, 45
PLAIN = 0x100000
UMLAUT = "ü".encode()
CREATE = b"CREATE DEFINER=`a`@`%` "


def context(collation: int | None, sql_mode: int = 0) -> SessionContext:
    return SessionContext(charset_client=collation, sql_mode=sql_mode)


NAMED = [
    (b"CREATE DEFINER=`" + UMLAUT + b"`@`%` TRIGGER t BEFORE INSERT ON u FOR EACH ROW SET @a = 1", "definer", MARIADB),
    (CREATE + b"PROCEDURE `p`()\n    COMMENT '" + UMLAUT + b"'\nSELECT 1", "routine's comment", MARIADB),
    (
        CREATE + b"FUNCTION `p`(a INT) RETURNS int\n    NO SQL\n    COMMENT 'a" + UMLAUT + b"'\nRETURN 1",
        "comment",
        MYSQL,
    ),
    (
        CREATE + b"FUNCTION `f`(a INT) RETURNS enum('x','" + UMLAUT + b"')\nRETURN '\xfc'",
        "values that a function",
        MARIADB,
    ),
    (
        CREATE + b"FUNCTION `f`() RETURNS set('" + UMLAUT + b"') CHARSET latin1\nRETURN 1",
        "values that a function",
        MYSQL,
    ),
    (CREATE + b"PROCEDURE `" + UMLAUT + b"`()\nSELECT 1", "routine's name", MYSQL),
    (b"CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` VIEW `" + UMLAUT + b"` AS SELECT 1", "view's name", MYSQL),
    (b"CREATE TABLE `t` (\n  `" + UMLAUT + b"` int NOT NULL\n) ENGINE=InnoDB", "LIKE a temporary table", MYSQL),
    (b"CREATE TABLE IF NOT EXISTS `t` (\n  `a` int\n) COMMENT='" + UMLAUT + b"'", "LIKE a temporary table", MARIADB),
    (b'CREATE OR REPLACE TABLE "t" (\n  "' + UMLAUT + b'" int\n)', "LIKE a temporary table", MARIADB),
    (b"CREATE TABLE `d`.`t` (\n  `" + UMLAUT + b"` int\n)", "LIKE a temporary table", MYSQL),
    (b"CREATE TABLE d.t (\n  " + UMLAUT + b" int\n)", "LIKE a temporary table", MARIADB),
    (CREATE + b"PROCEDURE `d`.`" + UMLAUT + b"`()\nSELECT 1", "routine's name", MYSQL),
    (b"CREATE DEFINER=a@`%` PROCEDURE IF NOT EXISTS d." + UMLAUT + b"()\nSELECT 1", "routine's name", MYSQL),
    (b"CREATE DEFINER=" + UMLAUT + b"@`%` TRIGGER t BEFORE INSERT ON u FOR EACH ROW SET @a = 1", "definer", MARIADB),
    (b"CREATE ALGORITHM=UNDEFINED DEFINER=a@h VIEW d." + UMLAUT + b" AS SELECT 1", "view's name", MYSQL),
    (b"CREATE DEFINER=`a(`@`%` PACKAGE p\n    COMMENT '" + UMLAUT + b"'\nAS a INT; END", "comment", MARIADB),
    (b"CREATE USER '" + UMLAUT + b"'@'h' IDENTIFIED WITH 'p' AS '$A$0'", "account statement", MYSQL),
    (b"ALTER USER '" + UMLAUT + b"'@'h' COMMENT '\xfc'", "account statement", MYSQL),
    (b"GRANT SELECT ON `d`.`" + UMLAUT + b"` TO 'a'@'h'", "account statement", MYSQL),
    (b"ALTER ALGORITHM=UNDEFINED DEFINER=`a`@`%` VIEW `d`.`v`(`" + UMLAUT + b"`) AS SELECT 1", "view's name", MYSQL),
]


@pytest.mark.parametrize(("sql", "what", "flavor"), NAMED)
def test_two_character_sets_in_one_statement_are_named(sql: bytes, what: str, flavor: Flavor) -> None:
    said = spelled_twice(sql, context(LATIN1), flavor, composed=False)
    assert said is not None
    assert what in said
    assert "SET NAMES utf8mb4" in said
    for utf8 in (UTF8MB4, None, 63):
        assert spelled_twice(sql, context(utf8), flavor, composed=False) is None


@pytest.mark.parametrize(
    ("sql", "flavor"),
    [
        (CREATE + b"PROCEDURE `\xfc`(a INT)\nSELECT '\xfc'", MARIADB),
        (CREATE + b"PROCEDURE `p`(`\xfc` INT)\n    COMMENT 'ascii'\nSELECT '\xfc'", MYSQL),
        (CREATE + b"TRIGGER `\xfc` BEFORE INSERT ON u FOR EACH ROW SET @a = '\xfc'", MYSQL),
        (CREATE + b"VIEW `v` AS SELECT '\xfc' AS `\xfc`", MYSQL),
        (CREATE + b"VIEW `\xfc` AS SELECT 1", MARIADB),
        (CREATE + b"EVENT e ON SCHEDULE EVERY 1 DAY COMMENT '\xfc' DO SELECT '\n    COMMENT ''\xfc''\n'", MYSQL),
        (b"CREATE TABLE `\xfc` (a INT COMMENT '\xfc')", MYSQL),
        (b"CREATE TABLE `\xfc` (\n  `\xfc` int COMMENT '\xfc'\n)", MYSQL),
        (b"CREATE TABLE " + UMLAUT + b" (a INT)", MYSQL),
        (b"CREATE TABLE t (\n  a INT COMMENT '" + UMLAUT + b"'\n)", MYSQL),
        (b"GRANT `r\xfc` TO `\xfc`@`h`", MYSQL),
        (b"REVOKE SELECT ON d.`\xfc` FROM `\xfc`@`h`", MYSQL),
        (b"GRANT SELECT ON d.`\xfc` TO `\xfc`@`h`", MARIADB),
        (b"INSERT INTO t VALUES ('\xfc')", MARIADB),
    ],
)
def test_text_in_the_client_s_character_set_alone_is_accepted(sql: bytes, flavor: Flavor) -> None:
    assert spelled_twice(sql, context(LATIN1), flavor, composed=False) is None


@pytest.mark.parametrize("flavor", [MARIADB, MYSQL])
def test_escapes_that_the_sql_mode_does_not_have_are_named(flavor: Flavor) -> None:
    routine = CREATE + b"PROCEDURE `p`()\n    COMMENT 'a \\\\'\nSELECT '\\'"
    said = spelled_twice(routine, context(UTF8MB4, PLAIN), flavor, composed=False)
    assert said is not None
    assert "escapes that its sql_mode does not have" in said
    assert spelled_twice(routine, context(UTF8MB4), flavor, composed=False) is None
    body = CREATE + b"PROCEDURE `p`()\nSELECT '\\'"
    assert spelled_twice(body, context(UTF8MB4, PLAIN), flavor, composed=False) is None


def test_all_of_a_table_that_a_query_filled_is_the_server_s_spelling() -> None:
    sql = b"CREATE TABLE `t` (\n  `" + UMLAUT + b"` int\n)"
    assert spelled_twice(sql, context(LATIN1), MYSQL, composed=True) is not None
    assert spelled_twice(sql, context(UTF8MB4), MYSQL, composed=True) is None
    escaped = b"CREATE TABLE `t` (\n  `a` int COMMENT '\\\\'\n)"
    assert spelled_twice(escaped, context(UTF8MB4, PLAIN), MARIADB, composed=True) is not None


@pytest.mark.parametrize("behind", [b"", b" ENGINE=InnoDB", b"\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 2 */"])
def test_the_clause_goes_and_what_stands_behind_it_stays(behind: bytes) -> None:
    table = b"CREATE TABLE `t` (\n  `id` int NOT NULL\n)"
    assert without_transaction_clause(table + b" START TRANSACTION" + behind) == table + behind


def test_a_clause_that_cannot_be_told_from_a_name_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="2 places"):
        without_transaction_clause(b"CREATE TABLE `\n) START TRANSACTION x` (\n  a int\n) START TRANSACTION")
    with pytest.raises(ValueError, match="0 places"):
        without_transaction_clause(b"CREATE TABLE t (a int)  START TRANSACTION")


NAMES = [b"`t`", b"`d`.`t`", b'"t"', b'"d"."t"', b"t", b"d.t", b"d.`t x`", b"`d``(`.t", UMLAUT]


@pytest.mark.parametrize("verb", [b"CREATE", b"CREATE OR REPLACE", b"CREATE TEMPORARY"])
@pytest.mark.parametrize("condition", [b"", b"IF NOT EXISTS "])
@pytest.mark.parametrize("name", NAMES)
def test_a_clause_behind_an_option_as_it_was_given_is_found_whatever_the_name_s_form_is(
    verb: bytes, condition: bytes, name: bytes
) -> None:
    for column in (b"`a`", b'"a"', b"a"):
        for options, flavor in (
            (b"DATA DIRECTORY='/x' AS SELECT Host FROM mysql.global_priv #/'", MARIADB),
            (b"SECONDARY_ENGINE=x ENGINE=MRG_MYISAM UNION=(other.t)", MYSQL),
        ):
            table = verb + b" TABLE " + condition + name + b" (\n  " + column + b" int\n) ENGINE=InnoDB "
            mode = 4 if b'"' in table else 0
            assert hidden_clause(table + options, context(UTF8MB4, mode), flavor) is not None, table
            last = options.partition(b" AS ")[0].partition(b" ENGINE")[0]
            assert hidden_clause(table + last, context(UTF8MB4, mode), flavor) is None, table


HEAD = b"CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL"
TAIL = b"\n) ENGINE=InnoDB DEFAULT CHARSET=latin1"
FOREIGN = b",\n  KEY `a` (`a`),\n  CONSTRAINT `%s` FOREIGN KEY (`a`) REFERENCES `p` (`a`) ON DELETE SET NULL"
HIDING = [
    HEAD + TAIL + b" `foo`=y AS SELECT s AS a FROM other.secret -- ",
    HEAD + TAIL + b" foo=y AS SELECT s AS a FROM other.secret -- ",
    HEAD + TAIL + b" `foo`='y' TABLE other.secret",
    HEAD + TAIL + b" `foo`=1 LIKE other.secret",
    HEAD + TAIL + b" `foo`=y ENGINE=MRG_MyISAM UNION=(other.t)",
    HEAD + b" `foo`=y,\n  CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `other`.`t` (`a`)" + TAIL,
    HEAD + b",\n  VECTOR KEY `v` (`v`) `DISTANCE`=cosine)ENGINE=MRG_MyISAM UNION=(other.t)" + TAIL,
    HEAD + b" `foo`=y DEFAULT nextval(`other`.`s`)" + TAIL,
    HEAD + FOREIGN % b"x` CHECK(1))AS SELECT s AS a FROM other.secret/*" + TAIL + b" COMMENT='*/-- '",
    HEAD + FOREIGN % b"x`)ENGINE=MRG_MyISAM UNION=(other.t)/*" + TAIL + b" COMMENT='*/-- '",
    HEAD + FOREIGN % b"x`,c int REFERENCES other.t (a),\n  CONSTRAINT `y" + TAIL,
]
SHOWN = [
    HEAD + b" `x`=1,\n  `b` int `y`='z'" + TAIL + b" COMMENT='FROM' `ENCRYPTED`=YES `PAGE_COMPRESSED`=1 `q`='a''b'",
    HEAD + TAIL + b" `ENCRYPTED`=YES WITH SYSTEM VERSIONING\n PARTITION BY LIST (`a`)\n(PARTITION `p` VALUES IN (1))",
    HEAD + b",\n  VECTOR KEY `v` (`v`) `M`=8 `DISTANCE`=cosine" + FOREIGN % b"x" + TAIL,
    HEAD + FOREIGN % b"x``y" + FOREIGN % b"z" + TAIL + b" ROW_FORMAT=DYNAMIC",
]


def test_a_text_that_the_server_wrote_names_no_table_behind_a_part_as_it_was_given() -> None:
    for sql in HIDING:
        assert hidden_clause(sql, context(UTF8MB4), MARIADB, composed=True) is not None, sql
    for sql in SHOWN:
        assert hidden_clause(sql, context(UTF8MB4), MARIADB, composed=True) is None, sql


def test_a_table_in_a_transaction_of_rows_is_the_server_s_text_whatever_the_name_s_form_is() -> None:
    for name in NAMES:
        assert is_composed_table(b"CREATE OR REPLACE TABLE " + name + b" (\n  a int\n)")
    assert not is_composed_table(b"CREATE TEMPORARY TABLE `t` (\n  a int\n)")


def test_a_grant_of_mysql_8_is_read_in_the_character_set_that_the_server_writes_it_in() -> None:
    composed = "GRANT SELECT ON {}.* TO 'u'@'localhost'"
    for name in ("`tenant_ä`", '"tenant_ä"', "tenant_ä", "`tenant_ä\"'`"):
        sql = composed.format(name).encode()
        assert in_its_charset(sql, context(LATIN1), MYSQL, (8, 0, 11)).charset_client == UTF8MB4
    as_it_was = context(LATIN1)
    for sql, flavor, version in (
        (composed.format("`tenant_ä`").encode(), MYSQL, (5, 7, 44)),
        (composed.format("`tenant_ä`").encode(), MARIADB, (10, 11, 6)),
        ("GRANT SELECT ON `tenant_ä`.* TO 'u'@'localhost'".encode("latin-1"), MYSQL, (8, 0, 11)),
        ("REVOKE SELECT ON `tenant_ä`.* FROM u@localhost".encode(), MYSQL, (8, 0, 11)),
        ("CREATE USER 'ä'@'localhost'".encode(), MYSQL, (8, 0, 11)),
    ):
        assert in_its_charset(sql, as_it_was, flavor, version) == as_it_was


WHOLE = [
    ("DROP TEMPORARY TABLE IF EXISTS `a`.`größe`,`t` /* generated by server */", {MARIADB}),
    ("DROP TEMPORARY SEQUENCE `größe` /* generated by server */", {MARIADB}),
    ("SET PASSWORD FOR 'jörg'@'%'='*7446F64EFCFB1294A6DE20CAE7E49C2377A9AA25'", {MARIADB}),
    ("SET DEFAULT ROLE 'rôle' FOR 'jörg'@'%'", {MARIADB}),
    ("SAVEPOINT `größe`", {MARIADB, MYSQL}),
    ('ROLLBACK TO "größe"', {MARIADB, MYSQL}),
    ("SELECT `a`.`größe`(1,_latin1'x')", {MARIADB, MYSQL}),
    # as their client typed them
    ("DROP TABLE `größe`", set()),
    ("TRUNCATE TABLE `a`.`größe`", set()),
    ("CREATE TEMPORARY TABLE `größe` (n INT)", set()),
    ("INSERT INTO t SELECT `a`.`größe`(1)", set()),
]


@pytest.mark.parametrize(("sql", "flavors"), WHOLE)
def test_what_a_server_writes_as_a_whole_is_read_in_utf8(sql: str, flavors: set[Flavor]) -> None:
    as_it_was = context(LATIN1)
    for flavor in Flavor:
        expected = UTF8MB4 if flavor in flavors else LATIN1
        assert in_its_charset(sql.encode(), as_it_was, flavor, (11, 4, 0)).charset_client == expected
        assert in_its_charset(sql.encode("latin-1"), as_it_was, flavor, (11, 4, 0)) == as_it_was


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("behind", ["", " /* generated by server for memory table after a restart */"])
@pytest.mark.parametrize("verb", ["TRUNCATE TABLE", "DELETE FROM"])
def test_a_table_that_the_server_may_have_emptied_is_named_where_its_name_has_two_readings(
    verb: str, behind: str, flavor: Flavor
) -> None:
    sql = f"{verb} `a`.`größe`{behind}"
    said = spelled_twice(sql.encode(), context(LATIN1), flavor, composed=False)
    assert said is not None
    assert "emptied behind a restart" in said
    for text, charset in (
        (sql.encode(), UTF8MB4),
        (sql.encode("latin-1"), LATIN1),
        (b"TRUNCATE TABLE `a`.`t`", LATIN1),
    ):
        assert spelled_twice(text, context(charset), flavor, composed=False) is None


def test_a_function_whose_name_and_argument_are_of_two_character_sets_is_named() -> None:
    for flavor in Flavor:
        said = spelled_twice("SELECT `a`.`ö`(_latin1'".encode() + b"\xfc')", context(LATIN1), flavor, composed=False)
        assert said is not None
        assert "function's name" in said
        assert spelled_twice(b"SELECT `a`.`o`(_latin1'\xfc')", context(LATIN1), flavor, composed=False) is None


WITHOUT_ESCAPES = [
    (b"SET PASSWORD FOR 'joe'@'%'='*F33AE6DD04EF4C7C1D3105568E7FB7C1EE16C937'", True),
    (b"SET PASSWORD FOR 'joe'@'%'='60671ccd6665c43e'", True),
    (b"SET PASSWORD FOR 'joe'@'%'='4LH+dBF+G5W2CKTyId8xR3SyDqZoQjUNUVNxx8aWbG4'", True),
    (b"SET PASSWORD FOR 'joe'@'%'='P0:lhXyNv1cIxpB8EnTxR7JON7S:1l3rWRW1/jw45yrvYXB8eh02wzk7lcJcz4CMcWw2b+8'", True),
    (b"SET PASSWORD FOR ''@'10.0.0.0/255.0.0.0'=''", True),
    (b"SET PASSWORD FOR 'joe'@'%'='invalid'", True),
    (b"SET PASSWORD FOR 'j`o\"e'@'%'='*THISISNOTAVALIDPASSWORDTHATCANBEUSEDHERE'", True),
    (b"SET DEFAULT ROLE 'NONE' FOR 'joe'@'%'", True),
    (b"SET DEFAULT ROLE 'o r' FOR 'joe'@'%'", True),
    (b"SET PASSWORD FOR 'joe'@'%'='',password for 'root'@'localhost'=''", False),
    (b"SET PASSWORD FOR 'joe'@'%'='' # '", False),
    (b"SET PASSWORD FOR 'root'@'localhost'='' #'@'%'='*00'", False),
    (b"SET PASSWORD FOR 'root'@'localhost'='x'   '", False),
    (b"SET PASSWORD FOR 'joe\\'@'%'='*00'", False),
    (b"SET PASSWORD FOR 'joe'@'%'='a b'", False),
    (b"set password for 'joe'@'%' = app.f()", False),
    (b"SET DEFAULT ROLE 'r' FOR 'root'@'localhost' #' FOR 'joe'@'%'", False),
]


@pytest.mark.parametrize(("sql", "is_rightful"), WITHOUT_ESCAPES)
def test_an_account_s_own_text_without_escapes_is_taken_where_it_needs_none(sql: bytes, is_rightful: bool) -> None:
    assert (unlike_composed(sql, MARIADB) is None) == is_rightful
    # MySQL logs SET DEFAULT ROLE as its client has written it
    assert (unlike_composed(sql, MYSQL) is None) == (is_rightful or b"ROLE" in sql)


def test_a_comment_in_a_grant_that_mysql_has_written_is_a_column_s_name() -> None:
    hiding = b"GRANT SELECT (a) ON other.secret TO joe#) ON `app`.`t` TO 'joe'@'%'"
    usual = context(UTF8MB4)
    assert comment_in_grant(hiding, usual, MYSQL, (8, 0, 3)) is not None
    assert comment_in_grant(hiding.replace(b"#", b"-- "), usual, MYSQL, (5, 7, 20)) is not None
    for sql, flavor, version in (
        (hiding, MARIADB, (10, 11, 6)),
        (hiding, MYSQL, (5, 6, 24)),
        (b"GRANT r1 /* c */ TO joe # d ON", MYSQL, (8, 0, 3)),
        (b"GRANT SELECT (`a#`) ON `app`.`t` TO 'joe /* '@'%'", MYSQL, (8, 0, 3)),
        (b"REVOKE SELECT ON app.t FROM joe # d", MYSQL, (8, 0, 3)),
    ):
        assert comment_in_grant(sql, usual, flavor, version) is None, sql
