"""What the precheck asks the target's account for: by every database that the window writes, by rows or statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlane.model import RowCounts, TableKey
from binlane.plan.window_plan import TableCounts
from binlane.precheck.situation.situation import needs_of
from tests.unit.precheck.situations import CHANNEL, PLAN

KEY = TableKey("shop", "t")
ROWS = TableCounts(RowCounts(1), RowCounts(), 0, RowCounts(1))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"written": frozenset({KEY})}, id="statements"),
        pytest.param({"loaded": frozenset({KEY})}, id="loads"),
        pytest.param({"defined_in": frozenset({"shop"})}, id="ddl"),
        pytest.param({"tables": {KEY: ROWS}}, id="rows"),
    ],
)
def test_privileges_are_needed_on_every_database_that_is_written(change: dict[str, Any]) -> None:
    assert needs_of(CHANNEL, replace(PLAN, **change), 1, "binlog").databases == {"shop"}
    assert needs_of(CHANNEL, PLAN, 1, "binlog").databases == set()
