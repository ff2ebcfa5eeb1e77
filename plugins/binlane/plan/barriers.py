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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

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
    """Which lane's file a transaction belongs to, for transactions asked about in ascending order."""

    def __init__(self, barriers: tuple[Barrier, ...]) -> None:
        for before, after in pairwise(barriers):
            if after.first <= before.last:
                raise PlanError(f"barriers overlap: {before.first}..{before.last} and {after.first}..{after.last}")
        self._barriers = barriers
        self._next = 0

    def at(self, seqno: int) -> Barrier | None:
        """The barrier that covers ``seqno``, if any. Seqnos must not go back between calls."""
        while self._next < len(self._barriers) and self._barriers[self._next].last < seqno:
            self._next += 1
        if self._next < len(self._barriers) and self._barriers[self._next].first <= seqno:
            return self._barriers[self._next]
        return None
