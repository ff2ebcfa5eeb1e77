"""The results of all histories tried: one line of JSON for each; of several lines of a seed the last counts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from binlane.model import Flavor
from lab.histories.trial import Verdict


@dataclass(frozen=True, slots=True)
class Result:
    """One history."""

    family: Flavor
    seed: int
    verdict: Verdict
    build: str
    """binlane's commit."""


class Results:
    """The file of results; both families may append to it at the same time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, result: Result) -> None:
        """Append a result as one line at once, so that an interrupted run keeps its results."""
        values = {"family": result.family.value, "seed": result.seed, "verdict": result.verdict.name.lower()}
        line = json.dumps(values | {"build": result.build}, separators=(",", ":")) + "\n"
        with self._file.open("a") as file:
            file.write(line)

    def of(self, family: Flavor) -> dict[int, Result]:
        """A family's results by seed."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        found = [_result(line) for line in lines]
        return {each.seed: each for each in found if each.family is family}

    def next_seed(self, family: Flavor) -> int:
        """The first seed that was not tried. Seeds that were tried alone are behind it."""
        tried = self.of(family)
        return next(seed for seed in count(1) if seed not in tried)

    def total(self, family: Flavor) -> str:
        """The numbers of a family's histories by verdict."""
        found = Counter(each.verdict for each in self.of(family).values())
        parts = [f"{found[verdict]:,} {verdict.value}" for verdict in Verdict]
        return f"{family.value}, all runs: {found.total():,} histories: {', '.join(parts)}"


def _result(line: str) -> Result:
    values = json.loads(line)
    return Result(Flavor(values["family"]), values["seed"], Verdict[values["verdict"].upper()], values["build"])
