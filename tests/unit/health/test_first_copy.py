"""How far a first copy is, and whether anybody works on it."""

from __future__ import annotations

from binlane.health.first_copy import FirstCopy
from binlane.model import LogPosition, SchemaObject
from binlane.state.channels import Watermark
from binlane.state.records.bootstraps import DONE, PLANNED, TABLE, Bootstrap, ObjectProgress, Size

MIB = 1 << 20
MARK = Watermark(0, LogPosition("binlog.1", 4), "", 0.0, "")
MADE = {
    SchemaObject(TABLE, "shop", "a"): ObjectProgress(DONE, 10, None, 0, Size(10, 100 * MIB)),
    SchemaObject(TABLE, "shop", "b"): ObjectProgress(PLANNED, 50, None, 0, Size(100, 300 * MIB)),
}
COPY = Bootstrap(("shop",), "s", MARK, 2, MADE, "", attempt_seconds=10.0, attempt_bytes=50 * MIB)


def test_a_running_copy_has_its_rate_and_the_time_that_is_left() -> None:
    told = FirstCopy(COPY, connection=7).told
    assert told == "first copy, attempt 2, running: 1 of 2 tables, 250.0 MiB of 400.0 MiB, 20.0 MiB/s, 8 s left"


def test_an_interrupted_one_has_none() -> None:
    told = FirstCopy(COPY, connection=None).told
    assert told == "first copy, attempt 2, interrupted: 1 of 2 tables, 250.0 MiB of 400.0 MiB"
