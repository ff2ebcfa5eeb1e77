"""The rates of a first copy, whichever of its jobs asks; a failed job ends the waits of the others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from binlane.bootstrap.sessions import Session
from binlane.bootstrap.throttle import CopyFailedError, Limits, Throttle

MIB = 1 << 20


class Waits(threading.Event):
    """Waits on a clock of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        self.waits.append(timeout)
        return self.is_set()

    def throttle(self, limits: Limits) -> Throttle:
        return Throttle(limits, None, lambda reason: None, self, clock=lambda: self.now)


class Busy:
    """A source with more threads running than any limit."""

    def texts(self, sql: str) -> Sequence[tuple[str, str]]:
        assert "Threads_running" in sql
        return [("Threads_running", "9")]


@pytest.mark.parametrize(
    ("limits", "asked", "seconds"),
    [
        (Limits(), [(10_000, 9 * MIB)] * 3, 0.0),
        (Limits(rows_per_second=100), [(50, MIB)] * 5, 2.0),
        (Limits(mib_per_second=2), [(50, 4 * MIB)] * 3, 4.0),
        (Limits(rows_per_second=100, mib_per_second=2), [(50, 4 * MIB), (600, MIB), (1, 1)], 8.0),
    ],
)
def test_a_statement_waits_for_those_before_it(limits: Limits, asked: list[tuple[int, int]], seconds: float) -> None:
    waits = Waits()
    throttle = waits.throttle(limits)
    for rows, size in asked:
        throttle.wait(rows, size)
    assert waits.now == pytest.approx(seconds)


def test_time_without_a_statement_is_not_saved_up() -> None:
    waits = Waits()
    throttle = waits.throttle(Limits(rows_per_second=10))
    throttle.wait(10, 1)
    waits.now = 100.0
    throttle.wait(10, 1)
    throttle.wait(10, 1)
    assert waits.waits == [pytest.approx(1.0)]


def test_a_failed_job_ends_the_wait_for_a_rate() -> None:
    failed = threading.Event()
    throttle = Throttle(Limits(rows_per_second=1), None, lambda reason: None, failed)
    throttle.wait(3_600, 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(throttle.wait, 1, 1)
        failed.set()
        with pytest.raises(CopyFailedError):
            waiting.result(timeout=60)


def test_a_failed_job_ends_the_wait_for_a_busy_source_of_all_others() -> None:
    failed, told = threading.Event(), threading.Event()
    source: Any = Busy()
    session: Session = source
    throttle = Throttle(Limits(threads_running=1), session, lambda reason: told.set(), failed)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(throttle.wait, 1, 1) for _ in range(2)]
        assert told.wait(60)
        failed.set()
        for each in waiting:
            with pytest.raises(CopyFailedError):
                each.result(timeout=60)
