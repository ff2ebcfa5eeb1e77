"""What another target makes of the verifications of a channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from binlane.state.records.coverage import CoverageRow, forget_verified, read_covered
from binlane.state.tables import verifications, verified, verified_tables

AT = "2026-11-20 14:05:00"


@pytest.fixture
def target() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("ATTACH ':memory:' AS binlane")
        for table in (verified, verified_tables, verifications):
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            connection.exec_driver_sql(f'CREATE TABLE binlane."{table.name}" ({columns})')
        yield connection
    engine.dispose()


@pytest.mark.parametrize("crash", ["binlog.000007", ""])
def test_another_target_has_nothing_compared_and_the_source_has_crashed_all_the_same(
    target: Connection, crash: str
) -> None:
    target.exec_driver_sql(
        "INSERT INTO binlane.verified (channel, rows_after, rows_through, full_through, full_at, rules, crashed_file, "
        "crashed_at) VALUES ('c', 5, 9, 7, ?, ?, 'binlog.000007', ?), ('other', 5, 9, 7, ?, NULL, NULL, NULL)",
        (AT, "a" * 64, AT if crash else None, AT),
    )
    others = read_covered(target, "other")

    forget_verified(target, "c")

    assert read_covered(target, "c") == CoverageRow(crashed=crash)
    assert read_covered(target, "other") == others != CoverageRow()
