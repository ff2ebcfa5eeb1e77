"""Barriers: seqnos at which lanes wait for each other, because one lane alone cannot apply the transactions there.

``plan.window.barrier_rules`` decides which transactions need one. Barriers with at most ``fold_gap`` transactions
between them, and about one block's bytes, are joined here: for all lanes to commit and wait costs more than to apply
the transactions between them in the source's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.vector.arrays import Ints
from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import Barrier


@dataclass(frozen=True, slots=True)
class BarrierRequest:
    """One transaction that needs a barrier."""

    seqno: int
    lanes: frozenset[int]
    """The lanes that wait; without the owner if the owner is the serialized lane."""
    owner: int
    cause: str
    begins_epoch: bool = False
    """All lanes must stand at the seqno before."""


def joined(requests: Iterable[BarrierRequest], *, serialized: int, fold_gap: int) -> tuple[Barrier, ...]:
    """Join requests, ascending by seqno, into barriers over disjoint ranges of seqnos.

    Requests with at most ``fold_gap`` transactions between them share a barrier of all their lanes, but a request that
    begins an epoch is the first of its barrier. Its owner is the
    ``serialized`` lane if that owns one of the requests, else the lowest owner.
    """
    return tuple(group.barrier(serialized) for group in _groups(requests, fold_gap))


@dataclass(slots=True)
class _Group:
    """Requests that share a barrier: counted, not kept, for there may be one for every transaction."""

    first: int
    last: int = 0
    owners: set[int] = field(default_factory=set)
    lanes: set[int] = field(default_factory=set)
    causes: Counter[str] = field(default_factory=Counter)

    def add(self, request: BarrierRequest) -> None:
        self.last = request.seqno
        self.owners.add(request.owner)
        self.lanes |= request.lanes
        self.causes[request.cause] += 1

    def barrier(self, serialized: int) -> Barrier:
        owner = serialized if serialized in self.owners else min(self.owners)
        lanes = tuple(sorted(self.lanes | {owner}))
        return Barrier(self.first, self.last, owner, lanes, dict(sorted(self.causes.items())))


def _groups(requests: Iterable[BarrierRequest], fold_gap: int) -> Iterator[_Group]:
    group: _Group | None = None
    for request in requests:
        if group is not None and request.seqno <= group.last:
            raise PlanError(f"barrier requests out of order: seqno {request.seqno} after {group.last}")
        if group is None or request.begins_epoch or request.seqno - group.last - 1 > fold_gap:
            if group is not None:
                yield group
            group = _Group(request.seqno)
        group.add(request)
    if group is not None:
        yield group


class BarrierMap:
    """The lane that applies a transaction: its home lane, or the owner of a barrier of its home lane."""

    def __init__(self, barriers: Sequence[Barrier], lanes: int) -> None:
        """``lanes``: number of parallel lanes. Raises PlanError for barriers that overlap."""
        for before, after in pairwise(barriers):
            if after.first <= before.last:
                raise PlanError(f"barriers overlap: {before.first}..{before.last} and {after.first}..{after.last}")
        self._barriers = barriers
        self._edges = _edges(barriers)
        self._owner = np.array([*(barrier.owner for barrier in barriers), 0], np.int64)
        # the last row stays False: no lane takes part in a barrier behind the last one
        self._takes_part = np.zeros((len(barriers) + 1, lanes + 1), np.bool_)
        for number, barrier in enumerate(barriers):
            self._takes_part[number, list(barrier.participants)] = True

    def lanes(self, seqnos: Ints, home: Ints) -> Ints:
        """The lane that applies each transaction; ``home``: the home lane of each."""
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
        """The index of a barrier for each seqno, and whether the transaction belongs to that barrier."""
        passed = np.searchsorted(self._edges, seqnos, "right")
        number = passed // 2
        return number, (passed % 2 == 1) & self._takes_part[number, home]


class LaneEdges:
    """The seqnos at which a lane's blocks must end: the edges of the barriers that the lane takes part in."""

    def __init__(self, barriers: Sequence[Barrier] = ()) -> None:
        """``barriers``: the barriers that the lane takes part in."""
        self._edges = _edges(barriers)

    def stretches(self, seqnos: Ints) -> Ints:
        """A number for each seqno: two seqnos have the same number exactly if no edge lies between them."""
        return np.searchsorted(self._edges, seqnos, "right")

    def stretch(self, seqno: int) -> int:
        """``stretches`` of a single seqno."""
        return int(np.searchsorted(self._edges, seqno, "right"))


def _edges(barriers: Sequence[Barrier]) -> Ints:
    """The first seqno of each barrier, and the first seqno behind it."""
    return np.array([edge for barrier in barriers for edge in (barrier.first, barrier.last + 1)], np.int64)
