"""Whether a restore's end has come is judged by the source as it was before its log was read: what it has written
since, nobody has read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import cast

import pytest

from binlane.errors import EndNotReachedError, WindowOpenError
from binlane.model import Flavor, LogPosition
from binlane.restore import log_scan
from binlane.restore.end import End, EndPosition, EndTime
from binlane.restore.logged_transactions import LoggedTransaction
from binlane.source.identity import Start
from binlane.source.protocol import EventSource, LogState

FILE = "binlog.000001"
START = Start(0, LogPosition(FILE, 157), "", 50.0, "", "")
PLACE, TIME = EndPosition("there", LogPosition(FILE, 300)), EndTime("then", 150.0)


class Growing:
    """A server's log without a transaction, which grows while it is read."""

    name = "db"

    def __init__(self, offset: int, clock: float) -> None:
        self.offset, self.clock = offset, clock

    def state(self) -> LogState:
        return LogState("", Flavor.MYSQL, (FILE,), LogPosition(FILE, self.offset), self.clock, closes_by_clock=True)

    def read(self, *_: object) -> Iterator[LoggedTransaction]:
        self.offset, self.clock = 1000, 1000.0
        yield from ()


@pytest.mark.parametrize(
    ("end", "error"), [(PLACE, EndNotReachedError), (TIME, WindowOpenError)], ids=["a place", "a time"]
)
def test_an_end_that_comes_while_the_log_is_read_is_not_reached(
    end: End, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset, clock, is_reached in ((299, 149.0, False), (300, 151.0, True)):
        source = Growing(offset, clock)
        monkeypatch.setattr(log_scan, "logged_transactions", source.read)
        with contextlib.nullcontext() if is_reached else pytest.raises(error):
            found = log_scan.scan(cast("EventSource", source), START, frozenset({"shop"}), end, finds_begin=False)
            assert found.end == START.position
