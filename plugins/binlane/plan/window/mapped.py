"""The maps of a window's segments as one: each is folded in and let go, for a long window has too many to hold."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import astuple, field
from typing import overload

from binlane.lazy_dataclass import dataclass
from binlane.plan.database_activity import WindowActivity
from binlane.plan.row_accounting import Tally
from binlane.plan.segment.map import MapSummary
from binlane.plan.window_plan import LaneFile


class LaneFiles(Sequence[LaneFile]):
    """One lane's files in the order of apply, each kept as a line of JSON: a third of its object's memory."""

    def __init__(self, files: Iterable[LaneFile] = ()) -> None:
        self._lines = bytearray()
        self._ends = array("q", [0])
        for file in files:
            self.append(file)

    def append(self, file: LaneFile) -> None:
        """Add the next one."""
        self._lines += json.dumps(astuple(file)).encode()
        self._ends.append(len(self._lines))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, at: int) -> LaneFile: ...
    @overload
    def __getitem__(self, at: slice) -> LaneFiles: ...
    def __getitem__(self, at: int | slice) -> LaneFile | LaneFiles:
        """One file, or a list of its own of several."""
        place = range(len(self))[at]
        if isinstance(place, range):
            return LaneFiles(self[each] for each in place)
        return LaneFile(*json.loads(self._lines[self._ends[place] : self._ends[place + 1]]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(LaneFile.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"LaneFiles({[*self]})"


@dataclass(slots=True)
class MappedWindow:
    """The summaries of a window's segments, folded one after another."""

    tally: Tally = field(default_factory=Tally)
    activity: WindowActivity = field(default_factory=WindowActivity)
    files: dict[int, LaneFiles] = field(default_factory=dict)
    """Each lane's files, in the order of the segments."""

    @classmethod
    def of(cls, summaries: Iterable[MapSummary]) -> MappedWindow:
        """The summaries of the segments in order."""
        found = cls()
        for summary in summaries:
            found.tally.merge(summary.tally)
            for name, activity in summary.activity.databases.items():
                found.activity.add(name, activity)
            for lane, file in summary.files.items():
                found.files.setdefault(lane, LaneFiles()).append(file)
        return found
