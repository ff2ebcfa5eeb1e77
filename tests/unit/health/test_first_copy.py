"""How far a first copy is, and whether anybody works on it."""

from __future__ import annotations

from binlane.health.first_copy import FirstCopy
from binlane.model import LogPosition
from binlane.state.channels import Watermark
from binlane.state.records.bootstraps import CopySums

MIB = 1 << 20
MARK = Watermark(0, LogPosition("binlog.1", 4), "", 0.0, "")
COPY = CopySums(
    MARK, attempts=2, tables=2, finished=1, rows=60, bytes=250 * MIB, all_bytes=400 * MIB, open_tables=(),
    attempt_seconds=10.0, attempt_bytes=50 * MIB,
)  # fmt: skip


def test_a_running_copy_has_its_rate_and_the_time_that_is_left() -> None:
    told = FirstCopy(COPY, connection=7).told
    assert told == "first copy, attempt 2, running: 1 of 2 tables, 250.0 MiB of 400.0 MiB, 20.0 MiB/s, 8 s left"


def test_an_interrupted_one_has_none() -> None:
    told = FirstCopy(COPY, connection=None).told
    assert told == "first copy, attempt 2, interrupted: 1 of 2 tables, 250.0 MiB of 400.0 MiB"
