"""What verifications have proved, and how far the round over all rows is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.health.coverage import FullRound, coverage_of
from binlane.model import LogPosition, TableKey
from binlane.state.channels import Channel, Watermark
from binlane.state.records.coverage import CoverageRow
from binlane.state.records.history import Snapshot
from binlane.state.records.journal import ChannelStatus
from binlane.state.records.verifications import BY_FOREIGN_KEYS, BY_STATEMENTS, WITHOUT_KEY, PastVerification, Unshown

MARK = Watermark(90, LogPosition("binlog.1", 4), "", 0.0, "")
STATUS = ChannelStatus(
    Channel("c", "u", "s", MARK, 1), None, (), (), (), (), suspects={"pending": 3, "drift": 1},
    covered=CoverageRow(60, 95, 40, "1970-01-01 00:00:05"), equal_rows=7, pending_since="1970-01-01 00:00:09",
)  # fmt: skip
ROUND = PastVerification(
    1, "full", "", 40, "running", "1970-01-01 00:00:00", None, 2, 5, 250, 0, 0, expected=1_000, seconds=50.0
)
SNAPSHOT = Snapshot(500.0, 0.0, None, None, STATUS, (), full_at=5.0)


def test_what_is_covered_is_told_with_the_oldest_open_question() -> None:
    found = coverage_of(SNAPSHOT)
    assert (found.through, found.rows_after, found.rows_through) == (40, 60, 95)
    assert (found.full_through, found.full_at, found.equal_rows) == (40, 5.0, 7)
    assert (found.pending, found.pending_since, found.round, found.unshown) == (3, 9.0, None, ())


def test_rows_that_are_pending_again_are_told_by_cause() -> None:
    rows = [Unshown(TableKey("a", f"t{n}"), BY_STATEMENTS, 5 - n, f"1970-01-01 00:00:0{n}") for n in range(5)]
    rows.append(Unshown(TableKey("b", "c"), BY_FOREIGN_KEYS, 1, "1970-01-01 00:00:09"))
    status = replace(STATUS, unshown=tuple(rows))
    by_statements, by_keys = coverage_of(replace(SNAPSHOT, status=status)).unshown
    assert by_statements.startswith(
        "15 rows pending since 1970-01-01 00:00:00 UTC in a.t0, a.t1, a.t2 and 2 other tables, which statements change"
    )
    assert by_keys.startswith("1 row pending since 1970-01-01 00:00:09 UTC in b.c, which foreign keys change")


def test_rows_of_tables_without_a_key_are_counted_apart() -> None:
    rows = [Unshown(TableKey("a", name), WITHOUT_KEY, 4, "1970-01-01 00:00:05") for name in ("visits", "hits")]
    rows.append(Unshown(TableKey("a", "counters"), BY_STATEMENTS, 2, "1970-01-01 00:00:02"))
    found = coverage_of(replace(SNAPSHOT, status=replace(STATUS, unshown=tuple(rows))))
    by_statements, without_key = found.unshown
    assert (found.pending_without_key, by_statements.partition(" ")[0]) == (8, "2")
    assert without_key.startswith("8 rows pending since 1970-01-01 00:00:05 UTC in a.visits, a.hits, without a primary")
    tables = "--table a.visits --table a.hits"
    assert f"`binlane verify {STATUS.channel.name} --full {tables}`" in without_key
    assert f"`binlane recopy {STATUS.channel.name} {tables}`" in without_key


@pytest.mark.parametrize(
    ("rows", "expected", "seconds", "left", "times"),
    [
        (250, 1_000, 50.0, (0.25, 150.0, 1_500.0), ", 2 min 30 s of reading left, done in 25 min at the pace since"),
        (1_200, 1_000, 50.0, (1.0, 0.0, 0.0), ", 0 s of reading left, done in 0 s at the pace since"),
        (0, 1_000, 0.0, (0.0, None, None), ""),
        (250, 0, 50.0, (None, None, None), ""),
    ],
)
def test_a_round_has_its_share_and_the_time_that_is_left(
    rows: int, expected: int, seconds: float, left: tuple[float | None, ...], times: str
) -> None:
    found = coverage_of(replace(SNAPSHOT, round=replace(ROUND, rows=rows, expected=expected, seconds=seconds))).round
    assert isinstance(found, FullRound)
    assert (found.share, found.reading_left, found.left) == left
    share = f" of about {expected:,} rows compared ({left[0]:.0%})" if left[0] is not None else " rows compared"
    assert found.told == f"{rows:,}{share}{times}{' its begin' if times else ''}"
