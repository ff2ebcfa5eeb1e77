"""A lane gives way to a busy target in front of each of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from binlane.apply.block import BlockPlace
from binlane.apply.lane import blocks
from binlane.apply.lane.blocks import LaneBlocks
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.together import Adoption
from binlane.apply.lane.ways.task import BlockTask
from binlane.errors import StopRequestedError
from binlane.plan.window_plan import Block
from binlane.state.orders.orders import NOW
from tests.unit.apply.lane.scene import AT, FIRST, HERE, Clock, Others, attempt_of, block_of, run_state, seen

WAIT: Final = ["is busy", "waits", "waits", "waits"]


class Lane:
    """Lane 0 with two blocks, on a target that is busy in front of each: what happens, one after the other."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        stop_at: int | None = None,
        *,
        asks: bool = True,
        others_at: dict[int, int] | None = None,
    ) -> None:
        """``others_at``: where the other lanes stand, with which it commits together."""
        self.done, self.stop_at, self.is_asked = list[str](), stop_at, False
        self.others = Others(Clock(), [(others_at or HERE, seen(working={1, 2}))])
        options = ApplyOptions(gives_way=self.gives_way if asks else None, commits_together=others_at is not None)
        attempt, state = attempt_of(self.others), run_state(options)
        played: Any = self
        state.source = played
        self.lane = LaneBlocks(state, attempt, lambda lanes, goal: Adoption.NONE)
        attempt.session = played
        if others_at is not None:
            self.others.done, signals = self.done, cast("Any", self.others)
            self.lane.together.signals = signals
        monkeypatch.setattr(LaneBlocks, "apply", self._apply)
        monkeypatch.setattr(blocks, "move_only", self._move)

    def is_at_work(self) -> None:
        """As the lane's session: what it is told."""

    def up_to(self, limit: int, *, is_last: bool = False) -> list[str]:
        assert self.lane.up_to(0, limit, (0,), is_last=is_last)
        return self.done

    def gives_way(self, meanwhile: Callable[[], None]) -> bool:
        """Busy when it is asked for the first time about a block."""
        self.is_asked = not self.is_asked
        if not self.is_asked:
            return False
        self.done.append("is busy")
        self.others.stop_at = self.stop_at
        for _ in WAIT[1:]:
            meanwhile()
            self.done.append("waits")
        return True

    def set_limits(self, limits: object) -> None:
        """Of no interest here."""

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        yield block_of(FIRST)
        yield block_of(replace(FIRST, first_seqno=AT + 3, last_seqno=AT + 4))

    def _apply(self, task: BlockTask) -> None:
        seqno = task.block.header.last_seqno
        self.done.append(f"applies {seqno}")
        self.lane.moved(task.place, seqno, seqno)

    def _move(self, session: object, place: BlockPlace, goal: int) -> bool:
        self.done.append(f"moves to {goal}")
        return True


def test_a_lane_waits_in_front_of_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [*WAIT, "applies 12", *WAIT, "applies 14", "moves to 20"]
    assert Lane(monkeypatch).up_to(20) == expected


def test_a_lane_for_which_all_others_and_readers_wait_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Lane(monkeypatch).up_to(14, is_last=True) == ["applies 12", "applies 14"]


def test_a_channel_that_does_not_ask_for_it_gives_way_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Lane(monkeypatch, asks=False).up_to(14) == ["applies 12", "applies 14"]


def test_a_stop_that_comes_in_a_wait_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane(monkeypatch, NOW)
    with pytest.raises(StopRequestedError, match="stopped on request at seqno 10"):
        lane.up_to(20)
    assert lane.done == ["is busy"]


def test_a_lane_goes_no_further_than_a_stop_that_has_come_in_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Lane(monkeypatch, AT + 2).up_to(20) == [*WAIT, "applies 12"]


def test_a_lane_that_commits_with_others_says_that_it_waits_and_behind_it_that_it_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = ["is busy"] + ["lane 0 gives way", "waits"] * len(WAIT[1:])
    on_its_way = [f"arrives at {AT}"] * 2
    assert Lane(monkeypatch, others_at=HERE).up_to(12) == [*waits, *on_its_way, "looks", "applies 12"]


def test_a_lane_whose_block_others_have_committed_gives_way_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has its share readers see a part of the block."""
    done = Lane(monkeypatch, others_at={**HERE, 2: AT + 2}).up_to(12)
    assert done[-1] == "applies 12"
    assert "is busy" not in done
