"""Whether a restore's end has come is judged by the source as it was before its log was read: what it has written
since, nobody has read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
import pytest

from binlane.binlog.events import FormatDescription
from binlane.binlog.wire import BufferOffset, EventHeader, EventType, RawEvent
from binlane.errors import EndNotReachedError, PlanError, WindowOpenError
from binlane.model import Flavor, LogPosition
from binlane.orchestration.commands.copies import restore_plan
from binlane.restore import log_scan
from binlane.restore.end import End, EndPosition, EndTime
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions, _Reading
from binlane.source.identity import Start
from binlane.source.protocol import EVERY_SESSION, EventSource, LogState

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

    def newest_session(self) -> int:
        return 7

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


class Lying:
    """A server's log whose transactions say these times."""

    name = "db"
    session = 7

    def __init__(self, *times: float) -> None:
        places = [LogPosition(FILE, 157 + 100 * number) for number in range(len(times) + 1)]
        self.logged = [
            LoggedTransaction(places[number], places[number + 1], "", time, (), (), concerns=False)
            for number, time in enumerate(times)
        ]

    def state(self) -> LogState:
        return LogState("", Flavor.MARIADB, (FILE,), self.logged[-1].end, 1000.0, closes_by_clock=True)

    def newest_session(self) -> int:
        return self.session

    def read(
        self,
        _source: object,
        _start: object,
        _databases: object,
        passes: Callable[[RowTransactions], int],
        add_bytes: Callable[[int], None],
    ) -> Iterator[LoggedTransaction | RowTransactions]:
        at = 0
        while at < len(self.logged):
            add_bytes(100)
            run = self._run(at)
            count = passes(run)
            yield run.first(count) if count else self.logged[at]
            at += count or 1

    def _run(self, at: int) -> RowTransactions:
        logged = self.logged[at:]
        ends, times = np.array([each.end.offset for each in logged]), np.array([each.time for each in logged])
        none = np.zeros(len(logged), np.int64)
        return RowTransactions(
            FILE, ends - 100, ends, times, none.astype(np.uint64), none, none.astype(np.bool_), logged.__getitem__
        )


@pytest.mark.parametrize(
    ("times", "end", "places"),
    [
        ((100, 2**31, 200, 400), None, (":257", ":457")),
        ((100, 2**31, 200), None, (":257", ":457")),
        ((100, 350, 2**31, 360, 120, 500, 130), None, (":257", ":857")),
        # clocks and threads differ a little, and the log's end may be anywhere
        ((100, 300, 299, 241, 400), ":257", ()),
        ((100, 299, 2**31), ":357", ()),
    ],
)
def test_a_time_that_one_transaction_says_is_no_end_while_older_ones_follow(
    times: tuple[float, ...], end: str | None, places: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Lying(*times)
    monkeypatch.setattr(log_scan, "logged_transactions", source.read)
    with contextlib.nullcontext() if end else pytest.raises(PlanError) as raised:
        found = log_scan.scan(
            cast("EventSource", source), START, frozenset({"shop"}), EndTime("then", 300.0), finds_begin=False
        )
        assert str(found.end) == f"{FILE}{end}"
    if raised is not None:
        assert all(f"--until {FILE}{place}" in str(raised.value) for place in places)
        # no more than that was read
        assert "in the 64 MiB of log behind it none is older" in str(raised.value)


@pytest.mark.parametrize(
    ("session", "times", "reached"),
    [(7, (100, 200), ":357"), (EVERY_SESSION, (100, 200), None), (EVERY_SESSION, (100, 200, 300), ":357")],
    ids=["no-replica", "a-replica-that-lags", "a-replica-that-has-a-later-one"],
)
def test_the_clock_of_a_replica_does_not_prove_that_a_time_has_come(
    session: int, times: tuple[float, ...], reached: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has not applied yet comes with times of its own source."""
    source = Lying(*times)
    source.session = session
    monkeypatch.setattr(log_scan, "logged_transactions", source.read)
    with contextlib.nullcontext() if reached else pytest.raises(WindowOpenError, match=r"as the server is a replica"):
        found = log_scan.scan(
            cast("EventSource", source), START, frozenset({"shop"}), EndTime("then", 300.0), finds_begin=False
        )
        assert str(found.end) == f"{FILE}{reached}"


@pytest.mark.parametrize(("first", "delay"), [(None, 0.0), (90_000_000, 10.0), (0, 0.0)])
def test_a_transaction_says_how_late_a_replica_has_committed_it(first: int | None, delay: float) -> None:
    committed = 100_000_000
    times = committed.to_bytes(7, "little")
    if first is not None:
        times = (committed | 1 << 55).to_bytes(7, "little") + first.to_bytes(7, "little")
    body = bytes(17) + (5).to_bytes(8, "little") + b"\x02" + bytes(16) + times
    header = EventHeader(0, EventType.GTID, 1, len(body) + 19, 0, 0)
    event = RawEvent(BufferOffset(200), header, memoryview(body))
    found = _Reading.of(event, FormatDescription("8.4.6"), "log", frozenset(), FILE)
    assert (found.time, found.delay) == (100.0, delay)


@pytest.mark.parametrize(
    ("end", "delay", "said"),
    [
        (TIME, 12.5, "has committed up to 12.5 seconds behind the clock of its own source"),
        (TIME, -3.0, "has committed up to 3.0 seconds before"),
        (TIME, 0.0, ""),
        (PLACE, 12.5, ""),
    ],
)
def test_a_plan_says_whose_times_a_replica_s_log_has(end: End, delay: float, said: str) -> None:
    place = LogPosition(FILE, 4)
    found = restore_plan._of_replica(end, log_scan.LogScan(place, place, delay=delay))
    assert len(found) == bool(said)
    assert said in "".join(found)
