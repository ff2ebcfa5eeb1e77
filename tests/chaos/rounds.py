"""How much chaos: a sample for ``make test``; everything, or as long as asked, for ``make chaos``. And the score.

``BINLANE_CHAOS`` is ``all`` for everything once, or a number of seconds, which the tests share; not set, every test
takes its sample. ``BINLANE_CHAOS_SEED`` repeats a run's dice; the summary names the seed.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

_ASKED: Final = os.environ.get("BINLANE_CHAOS", "")
EVERYTHING: Final = _ASKED == "all"
SECONDS: Final = float(_ASKED) if _ASKED.replace(".", "", 1).isdigit() else 0.0
SEED: Final = int(os.environ.get("BINLANE_CHAOS_SEED") or "0") or (
    random.SystemRandom().randrange(1, 1 << 31) if _ASKED else 1
)
survived: Final = Counter[str]()
"""Faults by kind, each followed by equal data."""

Point = TypeVar("Point")


def dice(name: str) -> random.Random:
    """Random numbers of one test's own, the same for the same seed."""
    return random.Random(f"{SEED}/{name}")


def some(points: Sequence[Point], name: str, *, sample: int, share: float) -> Iterator[Point]:
    """The points to try: ``sample`` of them, evenly spread; or all; or, shuffled, what fits into ``share`` of the
    time."""
    chance = dice(name)
    if SECONDS:
        end = time.monotonic() + share * SECONDS
        while True:
            for point in chance.sample(points, len(points)):
                yield point
                if time.monotonic() >= end:
                    return
    step = 1.0 if EVERYTHING else max(1.0, len(points) / sample)
    at = 0.0 if EVERYTHING else chance.uniform(0.0, step)
    while at < len(points):
        yield points[int(at)]
        at += step


def summary() -> list[str]:
    """Lines for the end of the run."""
    lines = [f"{number:>7,}  {kind}" for kind, number in sorted(survived.items())]
    return [*lines, f"{survived.total():>7,}  faults survived, each followed by equal data; seed {SEED}"]
