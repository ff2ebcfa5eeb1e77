"""Where lanes must meet: from transactions that one lane cannot apply alone to barriers, folded where they stand close.

Rules (docs/invariants.md, 3):

- a transaction over several databases of one lane needs no barrier;
- over several lanes it makes a barrier of just those lanes, applied by the lowest of them;
- a critical shard, ``#GLOBAL`` and ``#UNKNOWN`` make a barrier of all lanes, applied by the serialized lane or by the
  lane that the shard list names;
- barriers with at most ``fold_gap`` transactions between them, and about one block's bytes, become one stretch: that
  all lanes commit and wait costs more than to apply what lies between in the source's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.vector.arrays import Ints
from binlane.errors import PlanError
from binlane.model import Barrier


@dataclass(frozen=True, slots=True)
class Meeting:
    """One transaction that several lanes must meet for."""

    seqno: int
    lanes: frozenset[int]
    """The lanes it concerns, without the owner where that is the serialized lane."""
    owner: int
    cause: str


def fold(meetings: Iterable[Meeting], *, serialized: int, fold_gap: int) -> tuple[Barrier, ...]:
    """Join meetings, ascending by seqno, into barriers over disjoint ranges of seqnos.

    Meetings with at most ``fold_gap`` transactions between them share a barrier of all their lanes, owned by the
    ``serialized`` lane if it owns one of them, else by the lowest owner.
    """
    return tuple(_barrier(group, serialized) for group in _groups(meetings, fold_gap))


def _groups(meetings: Iterable[Meeting], fold_gap: int) -> Iterator[list[Meeting]]:
    group: list[Meeting] = []
    for meeting in meetings:
        if group and meeting.seqno <= group[-1].seqno:
            raise PlanError(f"meetings out of order: seqno {meeting.seqno} after {group[-1].seqno}")
        if group and meeting.seqno - group[-1].seqno - 1 > fold_gap:
            yield group
            group = []
        group.append(meeting)
    if group:
        yield group


def _barrier(group: list[Meeting], serialized: int) -> Barrier:
    owners = {meeting.owner for meeting in group}
    owner = serialized if serialized in owners else min(owners)
    lanes = frozenset[int]().union(*(meeting.lanes for meeting in group)) | {owner}
    return Barrier(
        first=group[0].seqno,
        last=group[-1].seqno,
        owner=owner,
        participants=tuple(sorted(lanes)),
        causes=dict(sorted(Counter(meeting.cause for meeting in group).items())),
    )


class BarrierMap:
    """The lane that applies a transaction: its own one, or the owner of a barrier that its own one takes part in."""

    def __init__(self, barriers: Sequence[Barrier], lanes: int) -> None:
        """``lanes``: how many, without the serialized one. Raises PlanError for barriers that overlap."""
        for before, after in pairwise(barriers):
            if after.first <= before.last:
                raise PlanError(f"barriers overlap: {before.first}..{before.last} and {after.first}..{after.last}")
        self._barriers = barriers
        self._edges = _edges(barriers)
        self._owner = np.array([*(barrier.owner for barrier in barriers), 0], np.int64)
        # one row more: behind the last barrier there is none that a lane could take part in
        self._takes_part = np.zeros((len(barriers) + 1, lanes + 1), np.bool_)
        for number, barrier in enumerate(barriers):
            self._takes_part[number, list(barrier.participants)] = True

    def lanes(self, seqnos: Ints, home: Ints) -> Ints:
        """The lane that applies each transaction; ``home``: each one's own lane."""
        if not self._barriers:
            return home
        number, is_inside = self._find(seqnos, home)
        return np.where(is_inside, self._owner[number], home)

    def at(self, seqno: int, home: int) -> Barrier | None:
        """The barrier that a transaction of the lane ``home`` belongs to, if any."""
        if not self._barriers:
            return None
        number, is_inside = self._find(np.array([seqno]), np.array([home]))
        return self._barriers[int(number[0])] if is_inside[0] else None

    def _find(self, seqnos: Ints, home: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The last barrier that begins at or before each seqno, and whether it concerns that transaction."""
        passed = np.searchsorted(self._edges, seqnos, "right")
        number = passed // 2
        return number, (passed % 2 == 1) & self._takes_part[number, home]


class LaneEdges:
    """Where a lane's blocks must end: at the edges of the barriers that the lane takes part in."""

    def __init__(self, barriers: Sequence[Barrier] = ()) -> None:
        """``barriers``: those of the lane."""
        self._edges = _edges(barriers)

    def stretches(self, seqnos: Ints) -> Ints:
        """A number for each seqno; two seqnos have the same one exactly if no edge lies between them."""
        return np.searchsorted(self._edges, seqnos, "right")

    def stretch(self, seqno: int) -> int:
        """As ``stretches``, of one."""
        return int(np.searchsorted(self._edges, seqno, "right"))


def _edges(barriers: Sequence[Barrier]) -> Ints:
    """The first seqno of each barrier, and the first one behind it."""
    return np.array([edge for barrier in barriers for edge in (barrier.first, barrier.last + 1)], np.int64)
