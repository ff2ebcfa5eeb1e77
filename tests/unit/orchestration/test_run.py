"""``binlane run``: what is said of the window of an earlier run."""

from pathlib import Path
from typing import Any

import pytest

from binlane.errors import PrecheckError
from binlane.orchestration.commands import run as command
from binlane.orchestration.commands.run import Call

CALL = Call("shop", Path("channels"), None, None, None, "local")
RESUMED = {"note": "window 1 applied", "resumed": True}


class Console:
    def __init__(self) -> None:
        self.printed: list[str] = []

    def print(self, text: str) -> None:
        self.printed.append(text)


def applied(monkeypatch: pytest.MonkeyPatch, console: Any, *answers: dict[str, Any] | Exception) -> Any:
    """``binlane run``, whose windows give these answers one after another."""
    left = [*answers]

    def window(*arguments: Any) -> dict[str, Any]:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        arguments[-1]["apply"] = 1.5
        return answer

    monkeypatch.setattr(command, "load", lambda *_: (None, None))
    monkeypatch.setattr(command, "announced_window", window)
    return command.run(CALL, console)


def test_a_window_that_was_finished_is_told_before_the_next_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    with pytest.raises(PrecheckError, match="refused"):
        applied(monkeypatch, console, RESUMED, PrecheckError("refused"))
    assert console.printed == ["window 1 applied\napply 1.5 s"]


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        ({"note": "window 2 applied", "resumed": False}, "window 2 applied\napply 1.5 s"),
        (
            {"work": None, "watermark": 7, "resumed": False},
            "channel shop: nothing to apply, the watermark is at seqno 7",
        ),
    ],
)
def test_each_window_is_told_once(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], summary: str) -> None:
    console = Console()
    assert applied(monkeypatch, console, RESUMED, answer) == summary
    assert console.printed == ["window 1 applied\napply 1.5 s"]


def test_a_window_that_is_open_still_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console()
    assert applied(monkeypatch, console, {**RESUMED, "is_open": True}) == "window 1 applied\napply 1.5 s"
    assert console.printed == []
