"""When a lane executes its share, commits it and steps back, by what the others show it.

The signals have tests of their own (``integration/state/test_meetings.py``);
``integration/window/readers/test_together.py`` runs whole lanes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pymysql
import pytest

from binlane.apply.lane import together
from binlane.apply.lane.blocks import lane_of
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.together import FIRST_PAUSE, Adoption, Together, Turn, _Waits
from binlane.apply.lane.ways.table import following
from binlane.apply.lane.ways.task import BlockTask
from binlane.apply.lane.ways.way import Way
from binlane.errors import BarrierTimeoutError, StopRequestedError
from binlane.plan.window_plan import Block
from binlane.state.meetings import Seen
from tests.unit.apply.lane.scene import (
    AT,
    FIRST,
    HERE,
    TIMEOUT,
    Clock,
    Others,
    block_of,
    place_of,
    run_state,
    seen,
    task_of,
    together_of,
)

ALL: Final = seen(working={1, 2})
ALONE: Final = seen(is_alone=True)
LONG: Final = 40
"""Looks for which a lane pauses so long that it looks for the others' holders."""
LATE: Final = {**HERE, 2: AT - 5}
COMMITTED: Final = {**HERE, 2: AT + 2}
POLITE: Final = seen({1}, gives_way={2})
"""A lane gives way to a busy target."""
PIECE: Final = block_of(planned=replace(FIRST, last_seqno=AT + 4))
Moments = list[tuple[dict[int, int], Seen]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(together, "time", found)
    return found


def meeting(clock: Clock, moments: Moments, gone: frozenset[int] = frozenset()) -> tuple[Together, Others]:
    others = Others(clock, moments, gone)
    return together_of(run_state(), others), others


@pytest.mark.parametrize(
    ("moments", "gone", "expected"),
    [
        pytest.param([(HERE, ALL)], set(), Turn.TOGETHER, id="all work"),
        pytest.param([(HERE, seen({1}, {2}))], set(), Turn.TOGETHER, id="one is ready"),
        pytest.param([(COMMITTED, ALL)], set(), Turn.BEHIND, id="one has committed"),
        pytest.param([(COMMITTED, seen(is_alone=True))], {1, 2}, Turn.BEHIND, id="one has committed alone"),
        pytest.param([({**HERE, 0: AT + 2}, ALL)], set(), Turn.AGAIN, id="another runner has moved the lane"),
        pytest.param([(HERE, seen(working={1}))], {2}, Turn.ALONE, id="nobody has a lane"),
        pytest.param([(HERE, seen(working={1})), (HERE, ALL)], set(), Turn.TOGETHER, id="one comes later"),
        # whatever is seen of a lane that has not come to the block yet
        pytest.param([(LATE, ALL), (HERE, ALL)], set(), Turn.TOGETHER, id="one is behind"),
        pytest.param([(LATE, seen())] * LONG + [(HERE, ALL)], {1, 2}, Turn.TOGETHER, id="one is behind, others gone"),
        pytest.param([(HERE, seen({1}, {2}, is_alone=True)), (COMMITTED, ALL)], {2}, Turn.BEHIND, id="one is alone"),
        pytest.param([(HERE, ALONE)] * LONG + [(COMMITTED, ALL)], {1, 2}, Turn.BEHIND, id="one is alone, others gone"),
        pytest.param([(HERE, POLITE)] * LONG + [(HERE, ALL)], set(), Turn.TOGETHER, id="one gives way"),
        pytest.param(
            [(HERE, seen(gives_way={2}))] * LONG + [(COMMITTED, ALL)], {1}, Turn.BEHIND, id="one gives way, one gone"
        ),
    ],
)  # fmt: skip
def test_a_share_s_turn(clock: Clock, moments: Moments, gone: set[int], expected: Turn) -> None:
    met, others = meeting(clock, list(moments), frozenset(gone))
    assert met.turn(place_of(met.state), block_of()) is expected
    assert len(others.moments) == 1, "nothing was decided before the last moment"
    assert ("wants to be alone" in others.done) is (expected is Turn.ALONE)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        pytest.param([(HERE, ALL)], Turn.ALONE, id="all work"),
        pytest.param([(LATE, ALL), (COMMITTED, ALL)], Turn.BEHIND, id="one is behind"),
        pytest.param([(HERE, seen(is_alone=True)), (COMMITTED, ALL)], Turn.BEHIND, id="one is alone"),
        pytest.param([(HERE, POLITE), (COMMITTED, ALL)], Turn.BEHIND, id="one gives way"),
    ],
)
def test_a_piece_of_a_block_is_applied_alone(clock: Clock, moments: Moments, expected: Turn) -> None:
    met, others = meeting(clock, list(moments))
    # the last whole block has brought all of them here
    met._all_here = True
    assert met.turn(place_of(met.state), PIECE) is expected
    assert ("wants to be alone" in others.done) is (expected is Turn.ALONE)


@pytest.mark.parametrize(
    ("block", "moment", "gone"),
    [pytest.param(PIECE, ALL, set(), id="a piece"), pytest.param(block_of(), seen(), {1, 2}, id="lanes are gone")],
)
def test_who_is_not_the_first_to_be_alone_is_seen_again(
    clock: Clock, block: Block, moment: Seen, gone: set[int]
) -> None:
    """``begin_alone`` drops the lane's signal, whatever it answers."""
    met, others = meeting(clock, [(HERE, moment)] * LONG + [(COMMITTED, ALL)], frozenset(gone))
    others.may_be_alone = [False] * 100
    assert met.turn(place_of(met.state), block) is Turn.BEHIND
    last = len(others.done) - 1 - others.done[::-1].index("wants to be alone")
    assert f"arrives at {AT}" in others.done[last:]


def test_a_block_that_has_to_be_split_is_looked_at_again(clock: Clock) -> None:
    met, _ = meeting(clock, [(HERE, ALL)])
    met.state.ways[FIRST] = Way.PIECES
    assert met.turn(place_of(met.state), block_of()) is Turn.AGAIN


def test_a_lane_that_is_behind_and_has_no_holder_is_adopted(clock: Clock) -> None:
    adopted = list[tuple[list[int], int]]()

    def adopt(lanes: list[int], goal: int) -> Adoption:
        adopted.append((lanes, goal))
        others.moments = [(HERE, ALL)]
        return Adoption.MOVED

    others = Others(clock, [(LATE, seen(working={1}))], frozenset({2}))
    met = together_of(run_state(), others, adopt=adopt)
    assert met.turn(place_of(met.state), block_of()) is Turn.TOGETHER
    assert adopted == [([2], AT)]
    assert "listens" in others.done


@pytest.mark.parametrize("times", [1, 2], ids=["at once", "by what the heartbeat reads in the wait"])
def test_an_order_to_stop_ends_the_wait(clock: Clock, times: int) -> None:
    asked, adopted = list[int](), list[list[int]]()

    def adopt(lanes: list[int], _: int) -> Adoption:
        adopted.append(lanes)
        return Adoption.NONE

    def check_stop(lane: int) -> None:
        asked.append(lane)
        if len(asked) >= times and (times == 1 or "listens" in others.done):
            raise StopRequestedError("stop")

    others = Others(clock, [(LATE, seen())], frozenset({1, 2}))
    met = together_of(run_state(), others, check_stop, adopt)
    with pytest.raises(StopRequestedError):
        met.turn(place_of(met.state), block_of())
    assert others.done.count("listens") == times - 1
    assert adopted == [], "and no lane is moved any more"


def test_a_share_is_waited_for_as_long_as_lanes_move(clock: Clock) -> None:
    """The time counts from the last move of any of them."""
    moving: Moments = [({**HERE, 2: AT - 9 + n // 20}, ALL) for n in range(180)]
    met, _ = meeting(clock, [*moving, (LATE, ALL)])
    with pytest.raises(BarrierTimeoutError, match=r"shares of 11\.\.12 together with: lane 2;"):
        met.turn(place_of(met.state), block_of())
    assert clock.now > TIMEOUT + 10


def test_a_lane_that_does_not_come_is_named(clock: Clock) -> None:
    met, _ = meeting(clock, [(HERE, seen({1}))])
    with pytest.raises(BarrierTimeoutError, match=r"together with: lane 2;"):
        met.turn(place_of(met.state), block_of())


def agree(met: Together) -> bool:
    agrees = met.agreeing(place_of(met.state), block_of()).agree
    assert agrees is not None
    return agrees(AT + 2)


def share_of(met: Together) -> BlockTask:
    """The lane's share, which is to commit with the others."""
    return replace(
        task_of(lane_of(met.state, met.attempt), met.agreeing(place_of(met.state), block_of())), way=Way.TRANSACTION
    )


READY: Final = seen({1, 2})
SLOW: Final = seen({1}, {2})
IDLE: Final = seen({1})


@pytest.mark.parametrize(
    ("moments", "again"),
    [
        pytest.param([(HERE, READY)], False, id="all are ready"),
        pytest.param([(HERE, SLOW), (HERE, READY)], False, id="one is slower"),
        pytest.param([(HERE, SLOW)] * 20 + [(HERE, READY)], False, id="one is much slower, and works"),
        pytest.param([(HERE, IDLE), (HERE, IDLE), (HERE, READY)], False, id="one has stood still for a moment"),
        pytest.param([(COMMITTED, SLOW)], True, id="one has committed"),
        pytest.param([(COMMITTED, seen(is_alone=True))], True, id="one has committed, and another is alone"),
    ],
)
def test_a_share_commits(clock: Clock, moments: Moments, again: bool) -> None:
    met, others = meeting(clock, list(moments))
    met._all_here = True
    assert agree(met)
    assert others.done[0] == f"is ready for {AT + 2}"
    assert "withdraws" not in others.done
    # all were ready for this block, so nobody has to be looked at before the next; not if it was decided without them
    others.done.clear()
    others.moments = [(dict.fromkeys(HERE, AT + 2), ALL)]
    following = replace(FIRST, first_seqno=AT + 3, last_seqno=AT + 4)
    assert met.turn(place_of(met.state, expected=AT + 2), block_of(following)) is Turn.TOGETHER
    assert ("looks" in others.done) is again


@pytest.mark.parametrize(
    ("moments", "at_once"),
    [
        pytest.param([(HERE, seen({1}, {2}, is_alone=True))], True, id="one is alone"),
        pytest.param([(HERE, IDLE)], False, id="one does not work"),
        pytest.param([(HERE, POLITE)], True, id="one gives way"),
        # it says that it works since it is ready for the block before, which it has not committed
        pytest.param([(LATE, SLOW)], False, id="one stands still behind an agreement"),
    ],
)
def test_a_share_that_nobody_waits_for_steps_back(clock: Clock, moments: Moments, at_once: bool) -> None:
    met, others = meeting(clock, list(moments))
    met._all_here = True
    assert not agree(met)
    assert others.done[-1] == "withdraws"
    assert (clock.now == 0.0) is at_once
    assert clock.now < TIMEOUT
    # looked at again, and together: nothing is wrong with it
    others.done.clear()
    others.moments = [(HERE, ALL)]
    assert met.turn(place_of(met.state), block_of()) is Turn.TOGETHER
    assert "looks" in others.done


@pytest.mark.parametrize("moment", [seen(is_alone=True), IDLE], ids=["one is alone", "one does not work"])
def test_a_share_that_another_lane_has_counted_on_commits(clock: Clock, moment: Seen) -> None:
    """Whoever has seen the lane ready may have committed before it said that it is not: only what is read after that
    decides."""
    met, others = meeting(clock, [(HERE, moment)])
    others.withdrawn = COMMITTED
    assert agree(met)
    assert others.done[-1] == "withdraws"


def test_a_lane_that_gives_way_is_waited_for_as_long_as_it_takes(clock: Clock) -> None:
    met, _ = meeting(clock, [(HERE, POLITE)] * 1000 + [(HERE, ALL)])
    assert met.turn(place_of(met.state), block_of()) is Turn.TOGETHER
    assert clock.now > 2 * TIMEOUT


def test_where_a_lane_may_give_way_each_says_behind_its_question_that_it_is_on_its_way(clock: Clock) -> None:
    """Nobody has begun a share then of a block in front of which another lane waits."""
    others = Others(clock, [(HERE, READY)])
    asks = ApplyOptions(commits_together=True, gives_way=lambda meanwhile: False)
    met = together_of(run_state(asks), others)
    assert agree(met)
    assert others.done == ["is ready for None"], "its next share is not said to be on its way"
    others.done.clear()
    others.moments = [(dict.fromkeys(HERE, AT + 2), seen(working={1}))] * 3 + [(dict.fromkeys(HERE, AT + 2), ALL)]
    following = replace(FIRST, first_seqno=AT + 3, last_seqno=AT + 4)
    assert met.turn(place_of(met.state, expected=AT + 2), block_of(following)) is Turn.TOGETHER
    assert others.done.count("looks") == 4


def test_an_executed_share_obeys_an_order_to_stop(clock: Clock) -> None:
    def check_stop(lane: int) -> None:
        raise StopRequestedError("stop")

    met = together_of(run_state(), Others(clock, [(HERE, SLOW)]), check_stop)
    with pytest.raises(StopRequestedError):
        agree(met)


def test_an_executed_share_looks_after_lanes_that_stand_still_and_does_not_wait_for_ever(clock: Clock) -> None:
    met, others = meeting(clock, [(HERE, SLOW)])
    with pytest.raises(BarrierTimeoutError, match=r"shares of 11\.\.12 together with: lane 2;"):
        agree(met)
    assert "looks after 2" in others.done
    assert "looks after 1" not in others.done


def test_an_executed_share_is_kept_as_long_as_lanes_move(clock: Clock) -> None:
    moving: Moments = [({0: AT, 1: AT, 2: AT, 3: n}, SLOW) for n in range(100)]
    met, _ = meeting(clock, moving)
    with pytest.raises(BarrierTimeoutError):
        agree(met)
    assert clock.now > TIMEOUT + 30


@pytest.mark.parametrize("code", [1205, 1213, 3058])
def test_after_a_lock_wait_the_block_is_applied_alone_and_the_next_one_together(clock: Clock, code: int) -> None:
    met, others = meeting(clock, [(HERE, ALL)])
    met._all_here = True
    then = following(share_of(met), pymysql.err.OperationalError(code, "a lock"))
    assert then is not None
    met.state.ways[FIRST] = then
    assert met.turn(place_of(met.state), block_of()) is Turn.ALONE
    met.end_alone()
    assert others.done[-1] == "is alone no more"
    others.moments = [(dict.fromkeys(HERE, AT + 2), ALL)]
    after = replace(FIRST, first_seqno=AT + 3, last_seqno=AT + 4)
    others.done.clear()
    assert met.turn(place_of(met.state, expected=AT + 2), block_of(after)) is Turn.TOGETHER
    assert "looks" in others.done, "the others are looked for again"


def test_any_other_error_is_the_share_s_own(clock: Clock) -> None:
    met, _ = meeting(clock, [(HERE, ALL)])
    assert following(share_of(met), pymysql.err.IntegrityError(1062, "a duplicate")) is None
    assert following(share_of(met), StopRequestedError("stop")) is None
    assert met.turn(place_of(met.state), block_of()) is Turn.TOGETHER


def test_a_lane_that_only_a_new_connection_can_move_ends_the_attempt(clock: Clock) -> None:
    others = Others(clock, [(LATE, seen(working={1}))], frozenset({2}))
    met = together_of(run_state(), others, adopt=lambda lanes, goal: Adoption.RECONNECT)
    assert met.turn(place_of(met.state), block_of()) is Turn.RECONNECT


def test_behind_a_block_applied_alone_the_others_are_looked_after_at_once(clock: Clock) -> None:
    """Who was missing then is missing still, most likely."""
    met, others = meeting(clock, [(HERE, seen())], frozenset({1, 2}))
    met.end_alone()
    assert met.turn(place_of(met.state), block_of()) is Turn.ALONE
    assert clock.now == 0.0
    assert "looks after 1" in others.done


def test_only_a_share_that_waits_for_others_gives_up_locks_soon(clock: Clock) -> None:
    met, others = meeting(clock, [(HERE, ALL)])
    usual = met.state.options.limits
    met.turn(place_of(met.state), block_of())
    assert others.limits == replace(usual, lock_wait_timeout=1, innodb_lock_wait_timeout=1)
    others.moments = [(COMMITTED, ALL)]
    met._all_here = False
    met.turn(place_of(met.state), block_of())
    assert others.limits == usual
    met.turn(place_of(met.state), PIECE)
    assert others.limits == usual


def test_the_shares_of_parallel_lanes_outside_of_barriers_are_concerned(clock: Clock) -> None:
    others = Others(clock, [(HERE, ALL)])
    met = together_of(run_state(), others)
    assert met.concerns(place_of(met.state))
    assert not met.concerns(place_of(met.state, lane=3, lanes=(3,))), "the serialized lane"
    assert not met.concerns(place_of(met.state, lanes=(0, 1, 2, 3))), "a barrier"
    apart = together_of(run_state(ApplyOptions()), others)
    assert not apart.concerns(place_of(apart.state))
    met.signals.lanes = range(1)
    assert not met.concerns(place_of(met.state)), "one lane has nobody to meet"


def test_pauses_grow_to_a_twentieth_of_the_wait_and_no_further_than_an_interval(clock: Clock) -> None:
    waits, pauses, closer = _Waits(interval=1.0), list[tuple[float, float]](), 0
    while clock.now < 60:
        before = clock.now
        closer += waits.looks_closer()
        pauses.append((before, clock.now - before))
    assert pauses[0][1] == pytest.approx(FIRST_PAUSE)
    assert all(pause < min(1.0, max(0.1, 0.05 * waited)) + 1e-6 for waited, pause in pauses)
    # a lane that has died is waited for with a look a second, no longer with ten
    assert pauses[-1][1] == pytest.approx(1.0)
    assert 55 <= closer <= 60
