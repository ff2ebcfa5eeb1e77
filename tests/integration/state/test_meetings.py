"""Signals of lanes that commit together: what each connection says of its lane, and what the others see of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import pytest
from sqlalchemy import Engine

from binlane.state.leases import lease_name, take
from binlane.state.meetings import Seen, Signals
from lab.servers import PrivateServer
from tests.integration.state.conftest import cursor_of
from tests.integration.state.test_leases import connection_id
from tests.waiting import wait_until

LANES: Final = range(3)
CHANNEL: Final = "a channel's uuid"
NOBODY: Final = Seen(frozenset(), frozenset(), is_alone=False)
WAITS: Final = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'"


@contextlib.contextmanager
def signals_of(engine: Engine, lane: int, channel: str = CHANNEL) -> Iterator[Signals]:
    """The connection that holds a lane."""
    with cursor_of(engine) as cursor:
        assert take(cursor, lease_name(channel, lane))
        yield Signals(cursor, connection_id(cursor), channel, LANES)


@pytest.fixture
def lanes(engine: Engine) -> Iterator[list[Signals]]:
    """The connections of three lanes."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(signals_of(engine, lane)) for lane in LANES]


def looks(by: Signals, lane: int, seqno: int) -> tuple[set[int], set[int], bool]:
    """Who is ready, who works, and whether somebody is alone."""
    seen = by.look(lane, seqno)
    return set(seen.ready), set(seen.working), seen.is_alone


def test_a_lane_works_until_it_is_ready_and_for_its_next_share(lanes: list[Signals]) -> None:
    first, second, _ = lanes
    assert second.look(1, 7) == NOBODY
    first.arrive(0, 7)
    assert looks(second, 1, 7) == (set(), {0}, False)
    # who stands elsewhere sees nothing of this block
    assert second.look(1, 8) == NOBODY
    seen = first.report(0, 7, 9)
    assert (seen.ready, seen.working) == (frozenset(), frozenset())
    assert looks(second, 1, 7) == ({0}, set(), False)
    assert looks(second, 1, 9) == (set(), {0}, False)
    # it comes to its next share, and executes it: then nothing is left of the one before
    first.arrive(0, 9)
    assert looks(second, 1, 7) == ({0}, set(), False)
    first.report(0, 9, 11)
    assert second.look(1, 7) == NOBODY
    assert looks(second, 1, 9) == ({0}, set(), False)


def test_a_lane_that_arrives_elsewhere_has_left(lanes: list[Signals]) -> None:
    first, second, _ = lanes
    first.arrive(0, 7)
    first.report(0, 7, 9)
    # an order has taken it back, or another runner has moved it
    first.arrive(0, 20)
    assert second.look(1, 7) == second.look(1, 9) == NOBODY
    assert looks(second, 1, 20) == (set(), {0}, False)


def test_a_share_that_is_rolled_back_is_not_ready(lanes: list[Signals]) -> None:
    first, second, _ = lanes
    first.arrive(0, 7)
    first.report(0, 7, 9)
    first.withdraw(0, 7)
    assert looks(second, 1, 7) == (set(), {0}, False)
    assert second.look(1, 9) == NOBODY
    assert first.report(0, 7, 9) == NOBODY
    assert looks(second, 1, 7) == ({0}, set(), False)


def test_a_lane_that_gives_way_is_seen_everywhere_until_it_arrives(lanes: list[Signals]) -> None:
    first, second, _ = lanes
    first.arrive(0, 7)
    first.give_way(0)
    first.give_way(0)
    for seqno in (7, 9):
        assert second.look(1, seqno) == replace(NOBODY, gives_way=frozenset({0}))
    first.arrive(0, 7)
    assert looks(second, 1, 7) == (set(), {0}, False)
    assert not second.look(1, 7).gives_way
    first.report(0, 7, None)
    assert looks(second, 1, 7) == ({0}, set(), False)
    first.give_way(0)
    first.leave(0)
    assert second.look(1, 7) == NOBODY


def test_who_waits_for_a_lane_that_gives_way_wakes_and_sees_it(target: PrivateServer, lanes: list[Signals]) -> None:
    first, second, third = lanes
    for lane, signals in enumerate(lanes):
        signals.arrive(lane, 7)
    third.report(2, 7, None)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.report, 1, 7, None)
        wait_until(lambda: target.query(WAITS) == [(1,)], pause=0.01)
        first.give_way(0)
        assert waiting.result() == Seen(frozenset({2}), frozenset(), is_alone=False, gives_way=frozenset({0}))


def test_one_lane_at_a_time_is_alone_and_then_neither_works_nor_is_ready(lanes: list[Signals]) -> None:
    first, second, third = lanes
    first.arrive(0, 7)
    first.report(0, 7, 9)
    second.arrive(1, 7)
    assert first.begin_alone(0)
    assert not second.begin_alone(1)
    assert looks(third, 2, 7) == (set(), set(), True)
    assert first.look(0, 7).is_alone is False
    first.end_alone()
    assert third.look(2, 7) == NOBODY
    assert second.begin_alone(1)


@pytest.mark.parametrize("first_is_alone", [True, False])
def test_whoever_wanted_to_be_alone_is_seen_again_where_it_stood(lanes: list[Signals], first_is_alone: bool) -> None:
    """An order, or another lane, has kept it from applying the block."""
    first, second, third = lanes
    if not first_is_alone:
        assert third.begin_alone(2)
    first.arrive(0, 7)
    assert first.begin_alone(0) is first_is_alone
    if first_is_alone:
        first.end_alone()
    first.arrive(0, 7)
    assert looks(second, 1, 7) == (set(), {0}, not first_is_alone)


def test_what_is_said_of_a_lane_that_was_released_is_gone(lanes: list[Signals]) -> None:
    first, second, _ = lanes
    first.arrive(0, 7)
    first.report(0, 7, 9)
    first.leave(0)
    assert second.look(1, 7) == second.look(1, 9) == NOBODY
    # adopted once more, where it stood
    first.arrive(0, 9)
    assert looks(second, 1, 9) == (set(), {0}, False)


def test_only_the_connection_that_holds_a_lane_speaks_for_it(engine: Engine, lanes: list[Signals]) -> None:
    """Another one may hold the lock for a moment, as it does when it waits, or for good, as one that lost its lease."""
    _, second, third = lanes
    third.arrive(0, 7)
    assert second.look(1, 7) == NOBODY
    third.report(0, 7, 9)
    assert second.look(1, 7) == NOBODY
    with cursor_of(engine) as cursor:
        nobody_s = Signals(cursor, connection_id(cursor), CHANNEL, range(4))
        nobody_s.arrive(3, 7)
        wider = Signals(second.cursor, second.connection_id, CHANNEL, range(4))
        # no connection has the lane, and no signal is taken for that of none
        assert 3 not in wider.look(1, 7).working
        assert 3 not in wider.look(1, 8).ready | wider.look(1, 8).working


def test_signals_of_two_channels_do_not_meet(engine: Engine, lanes: list[Signals]) -> None:
    first, second, _ = lanes
    with signals_of(engine, 0, "another's") as other, signals_of(engine, 1, "another's") as beside:
        other.arrive(0, 7)
        first.arrive(0, 7)
        assert looks(second, 1, 7) == looks(beside, 1, 7) == (set(), {0}, False)
        other.report(0, 7, 9)
        assert looks(second, 1, 7) == (set(), {0}, False)
        assert other.begin_alone(0)
        assert first.begin_alone(0)


def test_who_waits_wakes_when_the_lane_is_ready_or_alone_and_finds_it_so(
    target: PrivateServer, lanes: list[Signals]
) -> None:
    first, second, third = lanes
    for lane, signals in enumerate(lanes):
        signals.arrive(lane, 7)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_until_ready, second, 0)
        wait_until(lambda: target.query(WAITS) == [(1,)], pause=0.01)
        third.report(2, 7, 9)
        first.report(0, 7, 9)
        assert waiting.result().ready == {0, 2}
        first.withdraw(0, 7)
        waiting = pool.submit(_until_alone, third)
        wait_until(lambda: target.query(WAITS) == [(1,)], pause=0.01)
        assert first.begin_alone(0)
        assert waiting.result().is_alone


def _until_ready(signals: Signals, lane: int) -> Seen:
    seen = signals.report(1, 7, 9)
    while lane not in seen.ready:
        # it has waited, so what it finds is not the state of before
        seen = signals.wait(1, 7, [lane])
    return seen


def _until_alone(signals: Signals) -> Seen:
    seen = signals.look(2, 7)
    while not seen.is_alone:
        seen = signals.wait(2, 7, [0])
    return seen
