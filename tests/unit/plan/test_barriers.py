"""Barriers: who meets, where, and which of them become one stretch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import PlanError
from binlane.model import Barrier
from binlane.plan.barriers import BarrierMap, BarrierRequest, LaneEdges, joined
from tests.unit.plan.segment import plain_map

SERIALIZED = 4
ALL = frozenset(range(SERIALIZED))


def cross(seqno: int, *lanes: int) -> BarrierRequest:
    return BarrierRequest(seqno, frozenset(lanes), min(lanes), "cross-lane")


def every(seqno: int, cause: str = "global") -> BarrierRequest:
    return BarrierRequest(seqno, ALL, SERIALIZED, cause)


def epoch(seqno: int) -> BarrierRequest:
    return BarrierRequest(seqno, ALL, SERIALIZED, "epoch", begins_epoch=True)


CASES = [
    pytest.param(
        [epoch(7), epoch(9), every(11), epoch(12)],
        5,
        [
            (7, 7, 4, (0, 1, 2, 3, 4), {"epoch": 1}),
            (9, 11, 4, (0, 1, 2, 3, 4), {"epoch": 1, "global": 1}),
            (12, 12, 4, (0, 1, 2, 3, 4), {"epoch": 1}),
        ],
        id="an-epoch-joins-no-earlier-barrier",
    ),
    pytest.param([], 0, [], id="nothing"),
    pytest.param([cross(7, 1, 3)], 0, [(7, 7, 1, (1, 3), {"cross-lane": 1})], id="cross-lane-goes-to-the-lowest"),
    pytest.param([every(7)], 0, [(7, 7, 4, (0, 1, 2, 3, 4), {"global": 1})], id="all-lanes-go-to-the-serialized"),
    pytest.param(
        [every(7), every(8, "critical")], 0, [(7, 8, 4, (0, 1, 2, 3, 4), {"critical": 1, "global": 1})], id="neighbours"
    ),
    pytest.param(
        [every(7), every(9)],
        0,
        [(7, 7, 4, (0, 1, 2, 3, 4), {"global": 1}), (9, 9, 4, (0, 1, 2, 3, 4), {"global": 1})],
        id="gap-kept",
    ),
    pytest.param([every(7), every(9)], 1, [(7, 9, 4, (0, 1, 2, 3, 4), {"global": 2})], id="gap-folded"),
    pytest.param([cross(3, 0, 1), cross(5, 2, 3)], 1, [(3, 5, 0, (0, 1, 2, 3), {"cross-lane": 2})], id="lanes-joined"),
    pytest.param(
        [cross(3, 2, 3), every(4)],
        0,
        [(3, 4, 4, (0, 1, 2, 3, 4), {"cross-lane": 1, "global": 1})],
        id="serialized-wins",
    ),
]


@pytest.mark.parametrize(("requests", "fold_gap", "expected"), CASES)
def test_barrier_requests_fold_into_barriers(
    requests: list[BarrierRequest], fold_gap: int, expected: list[tuple[int, int, int, tuple[int, ...], dict[str, int]]]
) -> None:
    assert joined(requests, serialized=SERIALIZED, fold_gap=fold_gap) == tuple(Barrier(*values) for values in expected)


def test_barrier_requests_out_of_order_are_refused() -> None:
    with pytest.raises(PlanError, match="seqno 3 after 5"):
        joined([cross(5, 0, 1), cross(3, 0, 1)], serialized=SERIALIZED, fold_gap=0)


@st.composite
def barriers(draw: st.DrawFn) -> tuple[Barrier, ...]:
    found, seqno = list[Barrier](), 0
    for gap, length in draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=5)):
        lanes = sorted(draw(st.sets(st.integers(0, SERIALIZED), min_size=1)))
        found.append(Barrier(seqno + gap, seqno + gap + length, draw(st.sampled_from(lanes)), tuple(lanes), {}))
        seqno = found[-1].last
    return tuple(found)


@given(barriers())
def test_a_barrier_takes_its_own_lanes_transactions_and_no_others(found: tuple[Barrier, ...]) -> None:
    """Against each barrier asked by itself; and a block of a lane ends at the edges of that lane's barriers alone."""
    seqnos = np.arange(1, (found[-1].last if found else 0) + 3)
    barrier_map = BarrierMap(found, SERIALIZED)
    for home in range(SERIALIZED + 1):
        expected = [plain_map.lane_of(seqno, home, found) for seqno in seqnos.tolist()]
        assert barrier_map.lanes(seqnos, np.full(seqnos.size, home)).tolist() == expected
        alone = [barrier_map.at(seqno, home) for seqno in seqnos.tolist()]
        assert [home if each is None else each.owner for each in alone] == expected
        assert all(each is None or (each.first <= at <= each.last) for each, at in zip(alone, seqnos, strict=True))
        mine = [each for each in found if home in each.participants]
        cursor = plain_map.Cursor(mine)
        assert LaneEdges(mine).stretches(seqnos).tolist() == [cursor.stretch(seqno) for seqno in seqnos.tolist()]


def test_overlapping_barriers_are_refused() -> None:
    first = Barrier(1, 5, 4, (0, 4), {})
    with pytest.raises(PlanError, match="overlap"):
        BarrierMap((first, Barrier(5, 6, 4, (0, 4), {})), SERIALIZED)
