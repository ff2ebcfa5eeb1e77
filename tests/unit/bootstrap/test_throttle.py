"""The rates of a first copy, whichever of its jobs asks."""

from __future__ import annotations

import pytest

from binlane.bootstrap.throttle import Limits, Throttle

MIB = 1 << 20


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
    now = 0.0

    def sleep(time: float) -> None:
        nonlocal now
        now += time

    throttle = Throttle(limits, None, lambda reason: None, clock=lambda: now, sleep=sleep)
    for rows, size in asked:
        throttle.wait(rows, size)
    assert now == pytest.approx(seconds)


def test_time_without_a_statement_is_not_saved_up() -> None:
    now = 0.0
    slept: list[float] = []
    throttle = Throttle(Limits(rows_per_second=10), None, lambda reason: None, clock=lambda: now, sleep=slept.append)
    throttle.wait(10, 1)
    now = 100.0
    throttle.wait(10, 1)
    throttle.wait(10, 1)
    assert slept == [pytest.approx(1.0)]
