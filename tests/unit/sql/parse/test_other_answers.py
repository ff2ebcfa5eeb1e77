"""Parts of a statement that the two families answer otherwise."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.other_answers import may_have_other_answer, other_answer, other_literal

MYSQL = Dialect(Flavor.MYSQL)


def named(sql: str, dialect: Dialect = MYSQL) -> str | None:
    tokens, places = list[Token](), list[tuple[int, int]]()
    lex(sql, dialect, tokens, places)
    return other_answer(tokens) or other_literal(sql, dialect, tokens, places)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("UPDATE t SET a = b/3", "/"),
        ("INSERT INTO t VALUES (json_object('a', 1))", "JSON_OBJECT()"),
        ("INSERT INTO t VALUES (`json_object`('a', 1))", "JSON_OBJECT()"),
        ("DELETE FROM t WHERE a RLIKE 'x'", "RLIKE"),
        ("UPDATE t SET a = CAST(b AS BINARY(3))", "CAST AS BINARY"),
        ("UPDATE t SET a = GREATEST(b, '12')", "GREATEST()"),
        ("UPDATE t SET a = UNIX_TIMESTAMP(b)", "UNIX_TIMESTAMP()"),
        ("UPDATE t SET a = EXTRACT(DAY_HOUR FROM b)", "EXTRACT()"),
        ("INSERT INTO t VALUES (ST_GeomFromText('POINT(1 2)', 4326))", "ST_GEOMFROMTEXT()"),
        ("INSERT INTO t VALUES (MBRTouches(a, b))", "MBRTOUCHES()"),
        ("INSERT INTO t VALUES (ST_GeomFromText('MULTIPOINT((1 2), (3 4))'))", "MULTIPOINT with parentheses"),
        ("INSERT INTO t VALUES ('2024-02-29 10:00:00+02:00')", "a time with an offset"),
        ("INSERT INTO t VALUES (1, '2024-02-29T10:00:00.5-03:30')", "a time with an offset"),
        ('INSERT INTO t VALUES (1, "2024-02-29 10:00:00+02:00")', "a time with an offset"),
        ("UPDATE t SET a = RPAD(b, 9, '')", "LPAD() or RPAD() with nothing"),
        ("UPDATE t SET a = FROM_UNIXTIME(b)", "FROM_UNIXTIME()"),
        ("UPDATE t SET a = FROM_UNIXTIME(-1)", "FROM_UNIXTIME()"),
        ("UPDATE t SET a = FROM_UNIXTIME(2147483648)", "FROM_UNIXTIME() behind 2036"),
        ("UPDATE t SET a = from_unixtime( 99999999999)", "FROM_UNIXTIME() behind 2036"),
        ('UPDATE t SET a = LPAD(HEX(b), 9, "" )', "LPAD() or RPAD() with nothing"),
        ("UPDATE t SET a = X'41' + 0", "X'..' as a number"),
        ("UPDATE t SET a = b | x'41'", "X'..' as a number"),
    ],
)
def test_what_they_answer_otherwise_is_named(sql: str, what: str) -> None:
    assert named(sql) == f"{what} between the families"
    assert may_have_other_answer(sql.encode())


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t SELECT 'FROM_UNIXTIME(2147483648)', 'RPAD(a, 9, \"\")', ' X''41'' + 0 ', X'41'",
        "INSERT INTO t (json_object, log2) VALUES ('a/b', 'REGEXP')",
        "INSERT INTO `json_set` VALUES (1)",
        "UPDATE t SET a = b DIV 3, c = BINARY d, e = CAST(f AS BINARY)",
        "DELETE FROM `regexp` WHERE a LIKE 'x'",
        "UPDATE t SET a = UNIX_TIMESTAMP(,), b = FROM_UNIXTIME(), c = GREATEST(,), d = EXTRACT(",
        "UPDATE t SET a = GREATEST(b - 1, 0), c = UNIX_TIMESTAMP(), d = UNIX_TIMESTAMP(NOW(3))",
        "INSERT INTO t VALUES ('a-x', 'b|x'), (RPAD(a, 3, 'x'), CONCAT(b, ''))",
        "UPDATE t SET a = EXTRACT(DAY FROM b), c = LEAST(d, e)",
        "UPDATE t SET a = FROM_UNIXTIME(2099999999), b = FROM_UNIXTIME(1700000000.5, '%Y'), c = FROM_UNIXTIME(0)",
        "INSERT INTO t VALUES (ST_GeomFromText('POINT(1 2)'), ST_PointFromText('POINT(1 2)', 0), ST_X(a), X'41')",
        """INSERT INTO t VALUES ('{"at": "2024-02-29T10:00:00+02:00"}', LPAD(a, 8, '0'), '+02:00', 1 + 0x41)""",
    ],
)
def test_names_and_texts_are_no_such_parts(sql: str) -> None:
    assert named(sql) is None


@pytest.mark.parametrize(
    "front",
    [
        "UPDATE t SET c = 1 /* don't */ WHERE",
        "UPDATE t SET c = 1 -- don't\n WHERE",
        "UPDATE t SET c = 1 # don't\n WHERE",
        "UPDATE t SET c = 1 /*! , e = 'a' */ WHERE",
        "UPDATE t SET c = 2 */* don't */ 3 WHERE",
        "UPDATE t SET c = `it's` WHERE",
        """UPDATE t SET c = "it's", e = 'a\\'s' WHERE""",
        "INSERT INTO t /* don't */ SELECT 1, 2 FROM u WHERE",
    ],
)
@pytest.mark.parametrize("value", ["d = '2020-01-01 10:00:00+02:00'", "d = N'2020-01-01 10:00:00+02:00'"])
def test_a_quote_in_a_comment_or_a_name_begins_no_literal(front: str, value: str) -> None:
    assert named(f"{front} {value}") == "a time with an offset between the families"
    assert named(f"{front} d = 'at 2020-01-01 10:00:00+02:00'") is None


def test_literals_end_as_in_the_session() -> None:
    time = "'2020-01-01 10:00:00+02:00'"
    plain, ansi = Dialect(Flavor.MYSQL, no_backslash_escapes=True), Dialect(Flavor.MYSQL, ansi_quotes=True)
    assert named(f"INSERT INTO t VALUES ('c:\\', {time})", plain) == "a time with an offset between the families"
    assert named(f"INSERT INTO t VALUES (1, 'a'), ('c:\\', {time})", plain) is not None
    assert named(f"""UPDATE t SET "it's" = {time}""", ansi) is not None
    assert named(f'UPDATE t SET "{time[1:-1]}" = 1', ansi) is None
