"""Consistency levels: where lanes wait for each other beyond the barriers of their transactions. One class a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from binlane.choices import Consistency
from binlane.extension import chosen


class ConsistencyLevel(Protocol):
    """Decides from commit times where all lanes of a window must stand at one seqno."""

    serial: bool
    """One lane applies everything, in the source's order."""
    has_epochs: bool
    """All lanes wait for each other in front of the first transaction of each epoch."""

    def __init__(self, epoch_seconds: int) -> None:
        """``epoch_seconds`` of the channel."""

    def epoch_of(self, commit_time: float) -> int:
        """The epoch of a transaction that the source committed at this Unix time; asked only with ``has_epochs``.

        Called in any process, for each transaction of each segment: equal times must give equal epochs.
        """
        ...


class Eventual:
    """Lanes wait for each other at barriers and at the window's end only."""

    serial = has_epochs = False

    def __init__(self, epoch_seconds: int) -> None: ...

    def epoch_of(self, commit_time: float) -> int:
        """See ConsistencyLevel."""
        return 0


class AnyTime(Eventual):
    """The target equals the source at some seqno at any time: one lane applies everything."""

    serial = True


class Epoch:
    """Lanes also wait for each other every ``epoch_seconds`` of source time."""

    serial, has_epochs = False, True

    def __init__(self, epoch_seconds: int) -> None:
        self._seconds = epoch_seconds

    def epoch_of(self, commit_time: float) -> int:
        """Whole epochs since 1970."""
        return int(commit_time // self._seconds)


LEVELS: Final[Mapping[str, type[ConsistencyLevel]]] = {
    Consistency.EVENTUAL: Eventual,
    Consistency.ANY_TIME: AnyTime,
    Consistency.EPOCH: Epoch,
}
"""The levels, by the word of ``lanes.consistency``."""


def level_of(consistency: str, epoch_seconds: int) -> ConsistencyLevel:
    """The level of ``lanes.consistency``. Raises ConfigError if the site's own class cannot be imported."""
    return chosen(LEVELS, consistency, "lanes.consistency")(epoch_seconds)


class EpochStarts:
    """Finds the transactions with which epochs begin, in the log's order; shown every transaction once."""

    def __init__(self, level: ConsistencyLevel, transactions: int | None) -> None:
        """``transactions``: an epoch also ends at each seqno that is a multiple of this number; None: it does not."""
        self._level = level
        self._transactions = transactions
        self._seen: set[int] = set()
        self._last = 0

    def first_in(self, seqno: int, commit_times: Sequence[float]) -> int:
        """The index of the first of these transactions that begins an epoch, their number if none does.

        ``seqno``: of the first one. ``commit_times``: as logged, so that a log has the same epochs whenever it is read.
        """
        found = len(commit_times)
        if not self._level.has_epochs:
            return found
        if self._transactions is not None:
            behind = seqno + (seqno == self._last) - 1
            found = min(found, -(-behind // self._transactions) * self._transactions + 1 - seqno)
        epochs = map(self._level.epoch_of, commit_times[:found])
        return next((index for index, epoch in enumerate(epochs) if epoch not in self._seen), found)

    def begin(self, seqno: int, commit_time: float) -> None:
        """Note that the transaction begins an epoch."""
        self._seen.add(self._level.epoch_of(commit_time))
        self._last = seqno
