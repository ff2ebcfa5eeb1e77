"""A verification pauses while a server is busy, and keeps to its rate of rows."""

from collections.abc import Sequence
from typing import Any

import pytest

from binlane.verify.rows.sides import Pair, Side
from binlane.verify.throttle import Throttle


class Server:
    """Answers how many threads run, one number after the other."""

    def __init__(self, *running: int) -> None:
        self.running = list(running)

    def side(self, *, is_source: bool) -> Side:
        return Side(self.execute, iter, lambda _sql: [], is_source)

    def execute(self, sql: str) -> Sequence[Sequence[Any]]:
        assert "Threads_running" in sql
        return [("Threads_running", str(self.running.pop(0)))]


@pytest.mark.parametrize(
    ("source", "target", "pauses"),
    [((3,), (3,), 0), ((9, 3), (3, 3), 1), ((3, 3, 3), (9, 4, 3), 2)],
    ids=["neither", "source", "target"],
)
def test_it_pauses_while_a_server_has_more_threads_running(
    source: tuple[int, ...], target: tuple[int, ...], pauses: int
) -> None:
    slept: list[float] = []
    servers = Server(*source), Server(*target)
    pair = Pair(servers[0].side(is_source=True), servers[1].side(is_source=False))
    throttle = Throttle(pair, threads_running=2, sleep=slept.append)
    throttle.begin()
    # the connection that asks counts itself, so three are two others
    assert (len(slept), throttle.paused) == (pauses, float(pauses))
    assert servers[0].running == servers[1].running == []


def test_it_sleeps_as_long_as_the_rate_of_rows_asks_for() -> None:
    slept: list[float] = []
    now = [10.0]
    pair = Pair(Server().side(is_source=True), Server().side(is_source=False))
    throttle = Throttle(pair, rows_per_second=100, sleep=slept.append, clock=lambda: now[0])
    throttle.begin()
    now[0] += 1.5
    throttle.end(500)
    throttle.end(100)
    assert slept == [3.5, 0.0]
