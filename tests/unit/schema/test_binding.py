"""Columns of a log that take from the target's table what the log does not tell."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import EventType
from binlane.model import Flavor, TableKey
from binlane.schema.binding import bind
from binlane.schema.model import Column, Table
from tests.unit.schema.test_logged import logged

HIRES: Final = ((838 * 3600 + 59 * 60 + 59 + 1) * 1000 + 1500).to_bytes(5, "big")
"""1.5 seconds above the lowest time and one second, in milliseconds."""


@pytest.mark.parametrize(
    ("target", "image", "value"),
    [
        (Column("at", 1, "time (old format)", fsp=3, nullable=True), HIRES, "00:00:01.5"),
        (Column("at", 1, "time (old format)", nullable=True), bytes.fromhex("010000"), "00:00:01"),
        (Column("at", 1, "time", fsp=3, nullable=True), bytes.fromhex("010000"), "00:00:01"),
    ],
)
def test_digits_of_a_fraction_that_the_log_does_not_tell_are_those_of_the_target(
    target: Column, image: bytes, value: str
) -> None:
    map_ = logged((ColumnType.TIME, 0))
    bound = bind(map_, Flavor.MARIADB, Table(TableKey("app", "t"), "InnoDB", (target,)))
    body = (7).to_bytes(6, "little") + b"\1\0\x01\x01" + b"\xfe" + image
    event = RowsEvent.parse(EventType.WRITE_ROWS_V1, memoryview(body))
    [change] = RowDecoder(map_, bound.columns).changes(event)
    assert change.after is not None
    assert str(change.after[0]).startswith(value)
