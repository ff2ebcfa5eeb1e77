"""Consistency levels: where lanes wait for each other beyond the barriers of their transactions. One class a level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from binlane.choices import Consistency


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
