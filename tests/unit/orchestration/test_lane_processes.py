"""Lanes as processes, kept from one window to the next."""

from multiprocessing import active_children

from binlane.orchestration.lane_processes import LaneProcesses


def test_processes_begin_before_there_is_a_plan_once_and_end_with_the_command() -> None:
    before = set(active_children())
    with LaneProcesses() as lanes:
        lanes.begin(2)
        begun = set(active_children()) - before
        assert 1 <= len(begun) <= 2
        lanes.begin(2)
        assert set(active_children()) - before == begun
    assert set(active_children()) - before == set()
