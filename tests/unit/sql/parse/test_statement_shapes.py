"""Tungsten's TestSqlOperationMatcher: each statement type with and without a database, in every style of quoting."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.analyze import StatementKind, analyze

SHAPES: dict[str, tuple[StatementKind, tuple[str, ...]]] = {
    "create table": (
        StatementKind.DDL,
        (
            "CREATE TABLE {} (id int)",
            "create  table if not exists {} (id int)",
        ),
    ),
    "temporary table": (
        StatementKind.DDL,
        (
            "CREATE TEMPORARY TABLE {} (id int)",
            "DROP /* x */ TEMPORARY TABLE {}",
        ),
    ),
    "drop table": (
        StatementKind.DDL,
        (
            "DROP TABLE {}",
            "drop table if  exists\t{} /* done */",
            "DROP TABLE {} CASCADE",
        ),
    ),
    "alter table": (
        StatementKind.DDL,
        (
            "ALTER TABLE {} ADD a INT",
            "alter online table {} add a int",
            "ALTER IGNORE TABLE {} ENGINE=InnoDB",
        ),
    ),
    "rename table": (
        StatementKind.DDL,
        (
            "RENAME TABLE {0} TO {0}",
            "rename /* t */ table {0} to\n{0}",
        ),
    ),
    "insert": (
        StatementKind.DML,
        (
            "INSERT INTO {} VALUES (1)",
            "insert  low_priority into {}(a) values(1)",
            "INSERT HIGH_PRIORITY IGNORE {} SET a=1",
            "insert delayed {} select 1",
        ),
    ),
    "index": (
        StatementKind.DDL,
        (
            "CREATE INDEX i ON {} (a)",
            "create unique index i using btree on {} (a)",
            "CREATE FULLTEXT INDEX `on` ON {} (a)",
            "DROP INDEX i ON {}",
        ),
    ),
    "replace": (
        StatementKind.DML,
        (
            "REPLACE INTO {} VALUES (1)",
            "replace low_priority {} set a=1",
            "REPLACE DELAYED INTO {} (a) VALUES (1)",
        ),
    ),
    "update": (
        StatementKind.DML,
        (
            "UPDATE {} SET a=1",
            "update low_priority ignore {} set a=(b) where c",
            "UPDATE /* x.y */ {} SET a='SET'",
        ),
    ),
    "delete": (
        StatementKind.DML,
        (
            "DELETE FROM {}",
            "delete low_priority quick ignore from {} where a=1",
            "DELETE FROM {} WHERE a='from x.y'",
        ),
    ),
    "truncate": (
        StatementKind.DDL,
        (
            "TRUNCATE {}",
            "truncate table {}",
        ),
    ),
    "load data": (
        StatementKind.LOAD_DATA,
        (
            "LOAD DATA INFILE '/x' INTO TABLE {}",
            "load data concurrent local infile '/x' ignore into table {} fields escaped by ''",
        ),
    ),
    "view": (
        StatementKind.DDL,
        (
            "CREATE VIEW {} AS SELECT 1",
            "create or replace algorithm=merge definer=x@y sql security invoker view {} as select 1",
            "DROP VIEW if exists {}",
        ),
    ),
    "long comment": (
        StatementKind.DML,
        (
            "/*" + 2000 * "x" + "*/ INSERT INTO {} VALUES (1)",
            "-- " + 2000 * "y" + "\nDELETE FROM {}",
        ),
    ),
    "select": (
        StatementKind.DML,
        (
            "SELECT * FROM {}",
            "select /*!40001 SQL_NO_CACHE */ 1 from {}",
        ),
    ),
}
NAMES = ("foo", "foo-dash", "foo.dot", "Foo")
IN_DATABASE: dict[str, tuple[StatementKind, tuple[str, ...]]] = {
    "procedure": (
        StatementKind.DDL,
        (
            "CREATE PROCEDURE {}() SELECT 1",
            "create definer=`a`@`%` procedure {} (out x int) begin set x=1; end",
            "DROP PROCEDURE IF EXISTS {}",
        ),
    ),
    "function": (
        StatementKind.DDL,
        (
            "CREATE FUNCTION {}() RETURNS INT RETURN 1",
            "ALTER FUNCTION {} COMMENT 'x'",
        ),
    ),
    "event": (
        StatementKind.DDL,
        (
            "CREATE EVENT {} ON SCHEDULE EVERY 1 DAY DO SELECT 1",
            "DROP EVENT {}",
        ),
    ),
}


def quotings(name: str) -> list[tuple[str, bool]]:
    """The name in each quoting that it can be written in, with whether that needs ANSI_QUOTES."""
    plain = [(name, False)] if name.isalnum() else []
    return [*plain, (f"`{name}`", False), (f'"{name}"', True)]


CASES = [
    pytest.param(kind, sql, database, ansi, id=f"{shape}-{database}-{sql[:40]}")
    for shape, (kind, templates) in {**SHAPES, **IN_DATABASE}.items()
    for template in templates
    for name in NAMES
    for table, ansi in quotings(name)
    for database, sql in [
        ("session", template.format(table)),
        (
            name,
            template.format(
                f"{table}.{table}",
            ),
        ),
    ]
]


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("kind", "sql", "database", "ansi"), CASES)
def test_the_database_is_found_in_every_shape(
    kind: StatementKind, sql: str, database: str, ansi: bool, flavor: Flavor
) -> None:
    facts = analyze(sql, database="session", sql_mode_ansi_quotes=ansi, flavor=flavor)
    assert (facts.kind, facts.reason) == (kind, None)
    assert facts.databases == {database}
    assert {table.database for table in facts.tables} <= {database}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "verb", ["CREATE DATABASE", "create schema if not exists", "DROP DATABASE", "drop schema if exists"]
)
def test_a_database_is_its_own(verb: str, name: str) -> None:
    assert analyze(f"{verb} `{name}`", database="session", flavor=Flavor.MYSQL).databases == {name}
