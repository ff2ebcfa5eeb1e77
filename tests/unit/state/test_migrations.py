"""The tables of the state and the steps to them change together, or a test fails."""

from __future__ import annotations

import hashlib

from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from binlane.state.migrations.check import shape_of
from binlane.state.migrations.steps import STEPS
from binlane.state.tables import VERSION, metadata

DIGESTS = {
    18: "20af2c81d73e0b9720db8c4c671513f4be753b99a765a5e8fdd8e13f86315ea2",
    19: "51785d1fcbfa0439201593ae91d44d890509e6f32e9f5da63df4c3a5845e2b04",
}
"""Of the tables' CREATE statements, by version. Whoever changes a table adds a step, a version and its digest."""


def test_tables_that_change_are_another_version_with_a_step_to_it() -> None:
    made = list[ExecutableDDLElement]()
    for table in sorted(metadata.tables.values(), key=lambda each: each.name):
        made += [CreateTable(table), *(CreateIndex(index) for index in table.indexes)]
    statements = "\n".join(str(each.compile(dialect=mysql.dialect())) for each in made)
    assert hashlib.sha256(statements.encode()).hexdigest() == DIGESTS[VERSION]
    assert len(STEPS) == len({step.name for step in STEPS}) == VERSION == max(DIGESTS)


def test_the_steps_make_every_table() -> None:
    names = {name for step in STEPS for action in step.actions for name in action.names}
    assert {table.name for table in metadata.tables.values()} - names == {"migrations"}


def test_a_column_is_compared_as_information_schema_shows_it() -> None:
    shapes = {str(shape_of(column, mysql.dialect())) for table in metadata.tables.values() for column in table.columns}
    assert "varchar(64) utf8mb4_bin NOT NULL key PRI" in shapes
    assert "bigint unsigned NOT NULL" in shapes
    assert "mediumtext utf8mb4_bin NULL" in shapes
    assert "datetime(6) NULL" in shapes
    assert "mediumblob NOT NULL" in shapes
    assert "int NOT NULL key PRI" in shapes
