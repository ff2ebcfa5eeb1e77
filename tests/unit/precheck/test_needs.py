"""What the precheck asks the target's account for: by every database that the window writes, by rows or statements."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.model import RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import TableCounts
from binlane.precheck import window
from tests.unit.precheck.test_packet_size import PLAN

KEY = TableKey("shop", "t")
CHANNEL: Any = SimpleNamespace(apply=SimpleNamespace(on_conflict="stop"))
INPUTS: Any = SimpleNamespace(settings=SimpleNamespace(payload_bytes=1))
ROWS = TableCounts(RowCounts(1), RowCounts(), 0, RowCounts(1))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"written": frozenset({KEY})}, id="statements"),
        pytest.param({"loaded": frozenset({KEY})}, id="loads"),
        pytest.param({"altered": Alterations({KEY: (5,)})}, id="ddl"),
        pytest.param({"tables": {KEY: ROWS}}, id="rows"),
    ],
)
def test_privileges_are_needed_on_every_database_that_is_written(change: dict[str, Any]) -> None:
    assert window._needs(CHANNEL, replace(PLAN, **change), INPUTS, "binlog").databases == {"shop"}
    assert window._needs(CHANNEL, PLAN, INPUTS, "binlog").databases == set()
