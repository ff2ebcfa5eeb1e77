"""What this process is doing, in words for somebody who waits for it.

Work that can take seconds is done inside ``doing``. Nothing is written here: the command line shows the newest entry
while it has nothing else to show (``orchestration.terminal``).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

_begun: Final[list[Activity]] = []
_rests: Final = [0, 0.0]
"""How many go on, and when the last one has ended."""


class Activity:
    """Work that goes on: a text, and how many of how many things are done."""

    __slots__ = ("done", "text", "total")

    def __init__(self, text: str, total: int = 0) -> None:
        self.text, self.done, self.total = text, 0, total

    def __str__(self) -> str:
        return f"{self.text}: {self.done:,} of {self.total:,}" if self.total else self.text


@contextlib.contextmanager
def doing(text: str, total: int = 0) -> Iterator[Activity]:
    """Around work; ``text``: as it reads behind the command's name; ``total``: of what ``done`` counts, if known."""
    activity = Activity(text, total)
    _begun.append(activity)
    try:
        yield activity
    finally:
        _begun.remove(activity)


@contextlib.contextmanager
def resting() -> Iterator[None]:
    """Around a wait that is nobody's: for new transactions, for a command that has outputs of its own."""
    _rests[0] += 1
    try:
        yield
    finally:
        _rests[0] -= 1
        _rests[1] = time.monotonic()


def rested_until() -> float:
    """Until when there was nothing to be said, by the monotonic clock."""
    return time.monotonic() if _rests[0] else _rests[1]


def newest() -> Activity | None:
    """The activity that began last, of any thread; None: none goes on."""
    return _begun[-1] if _begun else None
