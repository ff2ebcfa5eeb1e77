"""Statements that another server answers differently are told from those that only look like it."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.statements import analyze
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


def test_the_plan_names_it_with_its_first_seqno() -> None:
    unsafe = "INSERT INTO t VALUES (1, UUID())"
    found = filtered([rows(1, "a"), statements(2, unsafe), statements(3, unsafe)], cuts=(2,))
    assert found.plan.unsafe == {"UUID()": 2}
