"""What MariaDB servers of two series answer otherwise is read by literals at their places."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.window_plan import TableCounts
from binlane.precheck.bodies.other_versions import PARTS, with_literals
from binlane.precheck.situation.situation import Needs
from binlane.schema.compare import Severity
from binlane.schema.model import Column, Generated, Table
from binlane.sql.parse.lexer import Dialect
from tests.unit.precheck.situations import PLAN, findings, schema, situation

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
        ("UPDATE t SET d = ST_X(a)", {GEOMETRY}),
        ("UPDATE t SET n = ST_NumPoints(g), b = st_srid(ST_PointN(g, 1))", set()),
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


KEY: Final = TableKey("shop", "t")
ROWS: Final = replace(PLAN, tables={KEY: TableCounts(RowCounts(1), written=RowCounts(1))})


@pytest.mark.parametrize(
    ("expression", "generated", "statements", "severity"),
    [
        ("st_y(`pt`)", Generated.VIRTUAL, False, Severity.INFO),
        ("st_y(`pt`)", Generated.VIRTUAL, True, Severity.FATAL),
        ("st_y(`pt`)", Generated.STORED, False, None),
        ("st_numpoints(`g`)", Generated.VIRTUAL, True, None),
        ("(`s` regexp '^.$')", Generated.VIRTUAL, False, Severity.FATAL),
    ],
)
def test_a_column_computed_of_a_geometry_stops_no_window_of_rows(
    expression: str, generated: Generated, statements: bool, severity: Severity | None
) -> None:
    """Of SRID 0, which MySQL 5.7 has as a rule, both servers compute alike."""
    columns = Column("pt", 1, "point"), Column("lat", 2, "double", generated=generated, expression=expression)
    of = situation(
        plan=ROWS,
        tables=schema(Table(KEY, "InnoDB", columns)),
        logged_by=frozenset({"5.7.44-log"}),
        needs=Needs(statements=statements),
    )
    vars(of).update(stored_triggers=((), ()), stored_programs=((), ()), transactions_with=lambda _: ())
    assert [each.severity for each in findings(of, "other-versions")] == ([] if severity is None else [severity])
