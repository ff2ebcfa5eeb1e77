"""Lanes as processes, kept from one window to the next."""

from concurrent.futures import Future
from multiprocessing import active_children

import pytest

from binlane.connections import Endpoint
from binlane.errors import DriftError, StopRequestedError
from binlane.orchestration.lane_processes import LaneProcesses, look_at_target, raise_cause

NOBODY = Endpoint("target", "127.0.0.1", 1, "nobody", "x")


def test_processes_begin_before_there_is_a_plan_once_and_end_with_the_command() -> None:
    before = set(active_children())
    with LaneProcesses() as lanes:
        lanes.begin("shop", NOBODY, 2, None)
        begun = set(active_children()) - before
        assert 1 <= len(begun) <= 2
        lanes.begin("shop", NOBODY, 2, None)
        assert set(active_children()) - before == begun
    assert set(active_children()) - before == set()


def test_lanes_without_work_get_no_process() -> None:
    before = set(active_children())
    with LaneProcesses() as lanes:
        lanes.begin("shop", NOBODY, 8, 1)
        assert len(set(active_children()) - before) == 1


def test_a_target_that_does_not_answer_is_the_lanes_own_to_tell_of() -> None:
    look_at_target("shop", NOBODY)


def test_the_lane_that_fails_is_told_of_and_not_one_that_stops_beside_it() -> None:
    errors = [None, StopRequestedError("lane 0 stopped, because lane 2 failed"), DriftError("lane 2: 1062")]
    lanes = list[Future[None]]()
    for error in errors:
        lane = Future[None]()
        if error is None:
            lane.set_result(None)
        else:
            lane.set_exception(error)
        lanes.append(lane)
    with pytest.raises(DriftError, match="lane 2: 1062"):
        raise_cause(lanes)
    with pytest.raises(StopRequestedError):
        raise_cause(lanes[:2])
    raise_cause(lanes[:1])
