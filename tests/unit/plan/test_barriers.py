"""Barriers: who meets, where, and which of them become one stretch."""

from __future__ import annotations

import pytest

from binlane.errors import PlanError
from binlane.model import Barrier
from binlane.plan.barriers import BarrierMap, Meeting, fold

SERIALIZED = 4
ALL = frozenset(range(SERIALIZED))


def cross(seqno: int, *lanes: int) -> Meeting:
    return Meeting(seqno, frozenset(lanes), min(lanes), "cross-lane")


def every(seqno: int, cause: str = "global") -> Meeting:
    return Meeting(seqno, ALL, SERIALIZED, cause)


CASES = [
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


@pytest.mark.parametrize(("meetings", "fold_gap", "expected"), CASES)
def test_meetings_fold_into_barriers(
    meetings: list[Meeting], fold_gap: int, expected: list[tuple[int, int, int, tuple[int, ...], dict[str, int]]]
) -> None:
    assert fold(meetings, serialized=SERIALIZED, fold_gap=fold_gap) == tuple(Barrier(*values) for values in expected)


def test_meetings_out_of_order_are_refused() -> None:
    with pytest.raises(PlanError, match="seqno 3 after 5"):
        fold([cross(5, 0, 1), cross(3, 0, 1)], serialized=SERIALIZED, fold_gap=0)


def test_a_barrier_covers_exactly_its_seqnos() -> None:
    barriers = fold([every(3), every(4), every(9)], serialized=SERIALIZED, fold_gap=0)
    where = BarrierMap(barriers)
    found = [where.at(seqno) for seqno in range(1, 12)]
    assert [barrier.first if barrier is not None else None for barrier in found] == [
        None,
        None,
        3,
        3,
        None,
        None,
        None,
        None,
        9,
        None,
        None,
    ]


def test_overlapping_barriers_are_refused() -> None:
    first = Barrier(1, 5, 4, (0, 4), {})
    with pytest.raises(PlanError, match="overlap"):
        BarrierMap((first, Barrier(5, 6, 4, (0, 4), {})))
