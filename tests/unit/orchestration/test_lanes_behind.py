"""``binlane run``: when lanes that have ended in front of the window's end go on, and when the run ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from binlane.errors import PositionError
from binlane.orchestration import steps
from binlane.orchestration.commands import run as command

PLACES = [(0, 10, "w", "d"), (1, 20, "w", "d")]
"""The lanes with work, the last seqno of whose window is 20: lane, seqno, window, plan."""
ANY = cast(Any, SimpleNamespace(name="shop", target=None, lanes=SimpleNamespace(count=2)))


@pytest.mark.parametrize(
    ("places", "stop_at", "expected"),
    [
        pytest.param(PLACES, None, {0: 10}, id="the stop was cancelled"),
        pytest.param(PLACES, 15, {0: 10}, id="a later stop"),
        pytest.param(PLACES, 10, {}, id="at the stop"),
        pytest.param([*PLACES[1:], (2, 3, "w", "d")], None, {}, id="a lane without work"),
        pytest.param([*PLACES[1:], (0, 10, "other", "d")], None, {}, id="another window's"),
        pytest.param([*PLACES[1:], (0, 10, "w", "other")], None, {}, id="another plan's"),
    ],
)
def test_only_a_position_of_the_window_is_behind(
    places: list[tuple[int, int, str, str]],
    stop_at: int | None,
    expected: dict[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = SimpleNamespace(window_id="w", last_seqno=20)
    window = SimpleNamespace(bounds=bounds, is_finished=False, plan_digest="d", stop_at=stop_at, lanes_with_work=(0, 1))
    names = ("lane", "seqno", "window_id", "digest")
    rows = [SimpleNamespace(**dict(zip(names, place, strict=True))) for place in places]
    monkeypatch.setattr(steps, "_recorded", lambda *_: (None, window))
    monkeypatch.setattr(steps, "engine_of", lambda _: SimpleNamespace(connect=contextlib.nullcontext))
    monkeypatch.setattr(steps, "lane_positions", lambda *_: rows)
    assert steps.lanes_behind(ANY, ANY, "plan") == expected


class Lanes:
    """Processes of lanes that do nothing."""

    applied = 0

    def begin(self, *_: object) -> None:
        """Nothing."""

    def apply(self, *_: object) -> None:
        self.applied += 1


@contextlib.contextmanager
def no_scans(*_: object) -> Iterator[SimpleNamespace]:
    yield SimpleNamespace(told=None)


@contextlib.contextmanager
def no_bars(**_: object) -> Iterator[None]:
    yield None


class Console:
    is_terminal = False
    bars = staticmethod(no_bars)

    def line(self, *_: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    ("behind", "attempts"),
    [
        pytest.param([{}], 1, id="none"),
        pytest.param([{0: 10}, {0: 10}], 2, id="no lane has moved"),
        pytest.param([{0: 10}, {0: 12}, {}], 3, id="moved, and a later error"),
    ],
)
def test_a_run_whose_lanes_do_not_move_ends_with_the_error(
    behind: list[Mapping[int, int]], attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def advance(*_: object) -> dict[str, object]:
        raise PositionError("positions of lanes [0, 2], expected [0]")

    left, lanes = iter(behind), Lanes()
    window = {"work": "work", "plan": "plan", "window": "w", "resumed": False}
    monkeypatch.setattr(steps, "extract", lambda *_: window)
    monkeypatch.setattr(steps, "adopt_plan", lambda *_, **__: {"plan": "plan", "lanes": [{"lane": 0}]})
    monkeypatch.setattr(steps, "advance", advance)
    monkeypatch.setattr(steps, "lanes_behind", lambda *_: next(left))
    monkeypatch.setattr(command, "begin_processes", lambda _: None)
    monkeypatch.setattr(command, "early_scans", no_scans)
    request = SimpleNamespace(lanes=None)
    with pytest.raises(PositionError, match="positions of lanes"):
        command.apply_window(ANY, ANY, cast(Any, request), "local", cast(Any, Console()), {}, cast(Any, lanes))
    assert lanes.applied == attempts
