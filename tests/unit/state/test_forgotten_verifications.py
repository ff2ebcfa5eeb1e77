"""What another target, or another source, makes of the verifications of a channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from binlane.state.records.coverage import (
    CoverageRow,
    first_uncovered,
    forget_verified,
    hand_over_coverage,
    read_covered,
)
from binlane.state.tables import verifications, verified, verified_tables, windows

AT = "2026-11-20 14:05:00"


@pytest.fixture
def target() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("ATTACH ':memory:' AS binlane")
        for table in (verified, verified_tables, verifications, windows):
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


@pytest.mark.parametrize(("through", "since"), [(9, None), (7, AT)])
def test_a_successor_has_nothing_compared_and_waits_for_as_long_as_the_former_channel(
    target: Connection, through: int, since: str | None
) -> None:
    target.exec_driver_sql(
        "INSERT INTO binlane.verified (channel, rows_after, rows_through, crashed_file, crashed_at) VALUES "
        "('c', 0, ?, 'binlog.000007', ?)",
        (through, AT),
    )
    for number, last in enumerate((7, 9), start=1):
        target.exec_driver_sql(
            "INSERT INTO binlane.windows (channel, window_id, number, state, first_seqno, last_seqno, finished_at) "
            "VALUES ('c', ?, ?, 'finished', ?, ?, ?)",
            (f"w{number}", number, last - 1, last, f"{AT}.000000"),
        )

    hand_over_coverage(target, "c", "d", 9)

    assert read_covered(target, "d") == CoverageRow(crashed="binlog.000007")
    found = first_uncovered(target, "d", 0)
    assert (None if found is None else found[: len(AT)]) == since
    assert first_uncovered(target, "d", 9) is None
