"""What MariaDB servers of two series answer otherwise is read by literals at their places."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.precheck.statements.other_versions import PARTS, with_literals
from binlane.sql.parse.lexer import Dialect

PATH, TIME, FORMAT, ADDRESS = (part.what for part in PARTS[Flavor.MARIADB])
TWICE, GEOMETRY, REGEXP, BITS, LATE, OFFSET = (part.what for part in PARTS[Flavor.MYSQL])
BINARY = PARTS[Flavor.MYSQL][3]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT JSON_SET(j, '$.a[-1]', 9)", {PATH}),
        ('SELECT JSON_VALUE(LOWER(j), "$.a[ last]")', {PATH}),
        ("SELECT * FROM JSON_TABLE(j, '$' COLUMNS (a INT PATH '$[0 to 1]')) x", {PATH}),
        ("SELECT JSON_SET(j, '$.a', 'x[last]'), '$.a[last]'", set()),
        ("SELECT FROM_UNIXTIME(2147483648)", {TIME}),
        ("SELECT FROM_UNIXTIME('2.2e9', '%Y')", {TIME}),
        ("SELECT `from_unixtime`(2147483648)", {TIME}),
        ("SELECT FROM_UNIXTIME(2000000000), 2147483648", set()),
        ("SELECT UNIX_TIMESTAMP(TIMESTAMP'2039-01-01 00:00:00')", {TIME}),
        ("SELECT UNIX_TIMESTAMP(20400101)", {TIME}),
        ("SELECT CONVERT_TZ('2040-01-01', '+00:00', '+01:00')", {TIME}),
        ("SELECT UNIX_TIMESTAMP(204)", set()),
        ("SELECT UNIX_TIMESTAMP('2037-01-01'), '2040-01-01', UNIX_TIMESTAMP()", set()),
        ("SELECT DATE_FORMAT(NOW(), CONCAT('%H', ' %Z'))", {FORMAT}),
        ("SELECT DATE_FORMAT('%z', '%H'), '%z'", set()),
        ("INSERT INTO t VALUES ('1.2.3.4')", {ADDRESS}),
        ("INSERT INTO t VALUES ('v1.2.3.4', 'FROM_UNIXTIME(2147483648)')", set()),
        ("SELECT CAST(a AS INET4)", {ADDRESS}),
        ("SELECT 'open", set()),
    ],
)
def test_a_part_is_known_by_the_literal_at_its_place(sql: str, found: set[str]) -> None:
    tokens = with_literals(sql, Dialect(Flavor.MARIADB))
    assert {part.what for part in PARTS[Flavor.MARIADB] if part.is_in(tokens)} == found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('INSERT INTO t (doc) VALUES (\'{"a": 1, "a": 2}\')', {TWICE}),
        ('INSERT INTO t (doc) VALUES (\'[{"b": {"a": 1, "a": 2}}]\'), (\'{}\')', {TWICE}),
        ("INSERT INTO t VALUES (1, '{}'), (2, '{\"a\": 1, \"a\": 2}'), (3, '{}')", {TWICE}),
        ('INSERT INTO t (doc) VALUES ("{\\"a\\": 1, \\"a\\": 2}")', {TWICE}),
        ('INSERT INTO t (doc) VALUES (\'{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}\')', set()),
        ("INSERT INTO t (g) VALUES (ST_GeomFromText('POINT(10 20)', 4326))", {GEOMETRY}),
        ("INSERT INTO t (g) VALUES (ST_GeomFromText('POINT(10 20)')), (ST_PointFromText('POINT(1 2)', 0))", set()),
        ("UPDATE t SET d = ST_Distance(a, b)", {GEOMETRY}),
        ("UPDATE t SET n = 1 WHERE s REGEXP '^.$'", {REGEXP}),
        ("UPDATE t SET n = 1 WHERE s NOT RLIKE '^.$'", {REGEXP}),
        ("UPDATE t SET b = b | X'0100', c = 'a REGEXP b'", {BITS}),
        ("UPDATE t SET n = FROM_UNIXTIME(2147483648)", {LATE}),
        ("INSERT INTO t VALUES (1, '2024-02-29 10:00:00+02:00'), (2, '2024-02-29 10:00:00+02:00')", {OFFSET}),
        ("INSERT INTO t VALUES ('2024-02-29 10:00:00', '+02:00', 'at 2024-02-29 10:00:00+02:00')", set()),
    ],
)
def test_a_part_of_mysql_is_known_by_its_text(sql: str, found: set[str]) -> None:
    tokens = with_literals(sql, Dialect(Flavor.MYSQL))
    assert {part.what for part in PARTS[Flavor.MYSQL] if part.is_in(tokens)} == found


def test_a_bit_operation_is_another_one_of_a_binary_column_alone() -> None:
    assert BINARY.beside is not None
    tokens = with_literals("UPDATE t SET b = t.b | X'01', n = ~(m), k = k + 1", Dialect(Flavor.MYSQL))
    assert {"b", "m"} <= set(BINARY.beside(tokens))
    assert "k" not in BINARY.beside(tokens)
