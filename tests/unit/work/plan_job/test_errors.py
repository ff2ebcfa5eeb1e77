"""What a plan job's own process says of its end, and what its submitter makes of it."""

from __future__ import annotations

import pytest

from binlane.errors import BinlaneError, PlanError, UnsupportedEventError, WorkError
from binlane.work.plan_job.errors import as_line, error_of

CHATTER = "26/11/22 09:41:37 INFO MemoryStore: MemoryStore cleared\n" * 200


@pytest.mark.parametrize("error", [UnsupportedEventError("binlog.7:4: LOAD XML\nhint: ä"), WorkError("no room")])
def test_an_error_comes_out_as_it_went_in_whatever_is_logged_around_it(error: BinlaneError) -> None:
    found = error_of("spark-submit x", 1, CHATTER + as_line(error) + "\n" + CHATTER)
    assert (type(found), str(found)) == (type(error), str(error))


def test_a_job_that_names_no_error_is_told_by_what_it_wrote_besides_progress() -> None:
    found = error_of("spark-submit x", 0, "java.lang.OutOfMemoryError: heap\n" + CHATTER)
    assert type(found) is PlanError
    assert "spark-submit x: exit code 0" in str(found)
    assert str(found).endswith("java.lang.OutOfMemoryError: heap")
