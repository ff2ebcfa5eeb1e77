"""The results of all tests: one line of JSON for each verdict; of several lines of a test the last counts."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lab.suites.kinds import kind_of
from lab.suites.verdict import Outcome

Key: TypeAlias = tuple[str, str, str]
"""Family, format, test."""


@dataclass(frozen=True, slots=True)
class Result:
    """One test in one binlog format."""

    family: str
    version: str
    """The server's version."""
    format: str
    """row, mixed or statement."""
    test: str
    """``suite.test``."""
    outcome: Outcome
    kind: str = ""
    """The kind of the reason why the test is not equal."""
    unsafe: bool = False
    """Only with ``apply.allow_unsafe``."""
    kept: bool = True
    """Whether dropped objects were kept; False for tests that fail then."""
    build: str = ""
    """binlane's commit."""
    functions: bool = False
    """Only after loadable functions were made on the target by hand."""

    @property
    def key(self) -> Key:
        """Family, format and test; a later result with the same key replaces this one."""
        return self.family, self.format, self.test


class Results:
    """The file of results. An incomplete last line is ignored."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = {result.key: result for result in _read(file)}

    def add(self, result: Result) -> None:
        """Append a result at once, so that an interrupted run keeps its results."""
        self._known[result.key] = result
        self._file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(dataclasses.asdict(result), separators=(",", ":")) + "\n"
        with self._file.open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                # a killed run may have left an incomplete last line
                line = line if file.read() == b"\n" else f"\n{line}"
            file.write(line.encode())

    def all(self) -> list[Result]:
        """One result for each test and format, sorted."""
        return [self._known[key] for key in sorted(self._known)]

    def left(self, family: str, format_: str, tests: Collection[str], again: Collection[Outcome] = ()) -> list[str]:
        """The tests without a result, or with one of ``again``, in the order given."""
        known = (self._known.get((family, format_, test)) for test in tests)
        return [test for test, result in zip(tests, known, strict=True) if result is None or result.outcome in again]

    def name_kinds(self, reasons: Mapping[Key, str]) -> None:
        """Compute the kinds of results with known reasons again: the table of kinds may have changed."""
        for key, reason in reasons.items():
            if key in self._known:
                result = self._known[key]
                self._known[key] = dataclasses.replace(result, kind=kind_of(result.outcome, reason))

    def compact(self) -> None:
        """Keep only the last line of each test, sorted, so that diffs of the file are small."""
        lines = [json.dumps(dataclasses.asdict(each), separators=(",", ":")) + "\n" for each in self.all()]
        self._file.write_text("".join(lines))


def _read(file: Path) -> Iterator[Result]:
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue
        yield Result(**fields | {"outcome": Outcome(fields["outcome"])})
