"""Windows back to back: which error of an attempt ends the loop, and which one it ends with."""

import threading
from typing import Any

import pytest

from binlane.errors import BinlaneError, ConfigError, SourceUnavailableError, StopRequestedError
from binlane.orchestration.commands import windows_in_turn as loops
from binlane.orchestration.commands.windows_in_turn import FollowRequest, FollowResult, Pace, windows_in_turn
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.request import WindowRequest

AWAY, STOPPED, WRONG = SourceUnavailableError("away"), StopRequestedError("stopped"), ConfigError("wrong")


def unused(*_: object) -> Any:
    raise AssertionError("no window is taken")


FOLLOWING = FollowRequest(unused, WindowRequest, "local", print, unused, unused, "resume")


def loop_over(attempts: list[BinlaneError | None], monkeypatch: pytest.MonkeyPatch) -> FollowResult:
    """The loop, ended behind the last of these attempts. None: one that goes well."""
    ended, left = threading.Event(), [*attempts]

    def attempt(_: object) -> None:
        error = left.pop(0)
        if not left:
            ended.set()
        if error is not None:
            raise error

    monkeypatch.setattr(loops._Loop, "_window", attempt)
    return windows_in_turn(FOLLOWING, Pace(0.0), ended)


@pytest.mark.parametrize("attempts", [[AWAY], [None, AWAY], [STOPPED, AWAY], [WRONG, None]])
def test_the_loop_ends_with_the_error_of_its_last_attempt(
    attempts: list[BinlaneError | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BinlaneError, match=r"^(away|wrong)$"):
        loop_over(attempts, monkeypatch)


@pytest.mark.parametrize("last", [None, STOPPED])
def test_an_error_that_is_over_is_none(last: BinlaneError | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loop_over([AWAY, last], monkeypatch) == FollowResult(is_stopped=last is STOPPED)


def test_pauses_are_a_minute_however_long_the_source_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(_: object) -> None:
        raise AWAY

    monkeypatch.setattr(loops._Loop, "_window", attempt)
    with LaneProcesses() as lanes:
        loop = loops._Loop(FOLLOWING, Pace(1.0), lanes)
        pauses = [loop.step() for _ in range(5_000)]
    assert (pauses[:3], pauses[-1]) == ([2.0, 4.0, 8.0], 60.0)
