"""What became of each history that was ever tried: a line of JSON a seed; of a seed's lines the last counts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
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
    """The file of results: families may add to it side by side."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, result: Result) -> None:
        """Write it at once, as one line: a run that is ended keeps what it has."""
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
        """The seed behind the last one tried."""
        return max(self.of(family), default=0) + 1

    def total(self, family: Flavor) -> str:
        """How many of a family were tried, and what became of them."""
        found = Counter(each.verdict for each in self.of(family).values())
        parts = [f"{found[verdict]:,} {verdict.value}" for verdict in Verdict]
        return f"{family.value}, all runs: {found.total():,} histories: {', '.join(parts)}"


def _result(line: str) -> Result:
    values = json.loads(line)
    return Result(Flavor(values["family"]), values["seed"], Verdict[values["verdict"].upper()], values["build"])
