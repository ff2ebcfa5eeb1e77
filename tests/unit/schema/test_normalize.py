from __future__ import annotations

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor
from binlane.schema.normalize import (
    charset_name,
    collation_name,
    comparable,
    expression_sql,
    mariadb_default,
    mysql_default,
    parse_type,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int(11)", "int"),
        ("bigint(20) unsigned", "bigint unsigned"),
        ("int(5) unsigned zerofill", "int(10) unsigned zerofill"),
        ("tinyint(1)", "tinyint(4)"),
        ("year(4)", "year"),
        ("geomcollection", "geometrycollection"),
        ("vector(3)", "vector(3)"),
    ],
)
def test_both_spellings_are_one_type(one: str, other: str) -> None:
    assert parse_type(one) == parse_type(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int", "int unsigned"),
        ("varchar(10)", "varchar(11)"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("decimal(10,2)", "decimal(11,2)"),
        ("float", "float(7,3)"),
        ("bit(8)", "bit(9)"),
        ("datetime", "datetime(6)"),
        ("datetime", "datetime /* mariadb-5.3 */"),
        ("timestamp", "timestamp /* 5.5 binary format */"),
        ("varchar(200)", "varchar(200) /*M!100301 COMPRESSED*/"),
        ("text", "text /*M!100301 COMPRESSED*/"),
        ("enum('a','b')", "enum('b','a')"),
        ("enum('a','b')", "enum('a,b')"),
        ("vector(3)", "vector(4)"),
    ],
)
def test_types_that_hold_other_data_stay_apart(one: str, other: str) -> None:
    assert parse_type(one) != parse_type(other)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("enum('x','y')", ("x", "y")),
        ("enum('it''s','x,y')", ("it's", "x,y")),
        ("enum('a\\\\b','n\\nl')", ("a\\b", "n\nl")),
        ("set('')", ("",)),
        ("enum(')','(')", (")", "(")),
        ("enum('unsigned','compressed')", ("unsigned", "compressed")),
    ],
)
def test_members_are_read_as_they_were_declared(text: str, members: tuple[str, ...]) -> None:
    assert parse_type(text).members == members
    assert not parse_type(text).unsigned
    assert not parse_type(text).compressed


def test_text_that_is_no_type_is_refused() -> None:
    with pytest.raises(PlanError, match="expected a type's name"):
        parse_type("(11)")


@pytest.mark.parametrize(
    ("mysql", "mariadb"),
    [
        ((None, False, False), None),
        ((None, False, False), "NULL"),
        (("NULL", False, False), "'NULL'"),
        (("7", False, False), "7"),
        (("0.50", False, False), "0.50"),
        (("a'b", False, False), "'a''b'"),
        (("", False, False), "''"),
        (("0x78", False, True), "'x'"),
        (("b'101'", False, False), "b'101'"),
        (("CURRENT_TIMESTAMP", True, False), "current_timestamp()"),
        (("CURRENT_TIMESTAMP(6)", True, False), "current_timestamp(6)"),
        # MySQL 5.7 marks no expressions
        (("CURRENT_TIMESTAMP", False, False), "current_timestamp()"),
    ],
)
def test_both_families_defaults_are_spelled_alike(mysql: tuple[str | None, bool, bool], mariadb: str | None) -> None:
    value, is_expression, is_binary = mysql

    assert mysql_default(value, is_expression=is_expression, is_binary=is_binary) == mariadb_default(mariadb)


def test_text_that_looks_like_an_expression_is_not_one() -> None:
    assert mysql_default("(1 + 1)", is_expression=True, is_binary=False) == "(1 + 1)"
    assert mysql_default("(1 + 1)", is_expression=False, is_binary=False) == "'(1 + 1)'"
    assert mariadb_default("'current_timestamp()'") == "'current_timestamp()'"


def test_a_binary_default_is_spelled_in_two_ways_by_mariadb() -> None:
    assert mariadb_default("x'7827'") == mariadb_default(r"'x\''") == "'x'''"
    assert mariadb_default("x''") == "''"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(`a` + 1)", "`a` + 1"),
        ("concat(`c`,_utf8mb4\\'x\\')", "concat(`c`,'x')"),
        ("UPPER(`a`)", "upper(`a`)"),
        (r"concat(_utf8mb4\'it\\\'s \',`c`)", r"concat('it\'s ',`c`)"),
    ],
)
def test_expressions_are_compared_without_their_printing(one: str, other: str) -> None:
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("mysql", "sql"),
    [
        (r"concat(_utf8mb4\'it\\\'s \',uuid())", r"concat(_utf8mb4'it\'s ',uuid())"),
        (r"concat(_utf8mb4\'a\\\\\',uuid())", r"concat(_utf8mb4'a\\',uuid())"),
        (r"concat(_utf8mb4\'a\\nb\',_utf8mb4\'d\\\\d\')", r"concat(_utf8mb4'a\nb',_utf8mb4'd\\d')"),
        (r"(`o``p` + `o\'q`)", "(`o``p` + `o'q`)"),
        # UTF-8, a byte a letter; and letters that are no bytes of it
        ("concat(`\u00c3\u00a4`,_utf8mb4\\'\u00e2\u0082\u00ac\\')", "concat(`ä`,_utf8mb4'€')"),
        ("`ä` + `€`", "`ä` + `€`"),
        # as MySQL 5.7 and MariaDB show it
        (r"replace(lcase(`name`),'\'','\\')", r"replace(lcase(`name`),'\'','\\')"),
    ],
)
def test_mysqls_catalogue_escapes_expressions_once_more(mysql: str, sql: str) -> None:
    assert expression_sql(mysql, Flavor.MYSQL) == mysql_default(mysql, is_expression=True, is_binary=False) == sql
    assert expression_sql(mysql, Flavor.MARIADB) == mysql


def test_text_inside_an_expression_counts_letter_by_letter() -> None:
    assert comparable("concat(`c`,'X y')") != comparable("concat(`c`,'x y')")
    assert comparable("concat(`c`,'X y')") != comparable("concat(`c`,'Xy')")
    assert comparable(r"concat('\'','X y')") != comparable(r"concat('\'','xy')")


def test_utf8_is_utf8mb3() -> None:
    assert charset_name("utf8") == charset_name("utf8mb3") == "utf8mb3"
    assert collation_name("utf8_bin") == "utf8mb3_bin"
    assert collation_name("utf8mb4_bin") == "utf8mb4_bin"
    assert charset_name(None) is collation_name(None) is None
