"""A window's barriers as arrays: what ``BarrierMap`` and ``LaneCursor`` say, for many seqnos at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from binlane.plan.routing import Routing

Ints = NDArray[np.int64]


class BarrierArrays:
    """The window's barriers, asked about many seqnos at once."""

    def __init__(self, routing: Routing) -> None:
        barriers = routing.barriers
        self._first = np.array([barrier.first for barrier in barriers], np.int64)
        self._last = np.array([barrier.last for barrier in barriers], np.int64)
        self._owner = np.array([barrier.owner for barrier in barriers], np.int64)
        self._takes_part = np.zeros((len(barriers), routing.lanes + 1), np.bool_)
        for number, barrier in enumerate(barriers):
            self._takes_part[number, list(barrier.participants)] = True

    def lanes(self, seqnos: Ints, home: Ints) -> Ints:
        """The lane that applies each transaction, whose own lane is ``home``."""
        if self._first.size == 0:
            return home
        number = np.searchsorted(self._first, seqnos, "right") - 1
        known = np.maximum(number, 0)
        held = (number >= 0) & (seqnos <= self._last[known]) & self._takes_part[known, home]
        return np.where(held, self._owner[known], home)

    def stretches(self, lane: int, seqnos: Ints) -> Ints:
        """As ``LaneCursor.stretch``."""
        mine = np.flatnonzero(self._takes_part[:, lane])
        first, last = self._first[mine], self._last[mine]
        passed = np.searchsorted(last, seqnos)
        inside = passed < mine.size
        inside[inside] = first[passed[inside]] <= seqnos[inside]
        return 2 * passed + inside
