"""The tables of the state and the steps to them change together, or a test fails."""

from __future__ import annotations

from sqlalchemy.dialects import mysql

from binlane.state.migrations.check import shape_of
from binlane.state.migrations.steps import STEPS
from binlane.state.tables import VERSION, metadata


def test_every_version_has_a_step_to_it() -> None:
    """That tables which change are another version, test_formats.py says."""
    assert len(STEPS) == len({step.name for step in STEPS}) == VERSION


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
