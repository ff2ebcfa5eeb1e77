"""When lanes meet beyond what their transactions ask for: a class a level, by the word of ``lanes.consistency``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from binlane.choices import Consistency


class ConsistencyLevel(Protocol):
    """Decides from commit times where all lanes of a window must stand at one seqno."""

    serial: bool
    """One lane applies everything, in the source's order."""
    has_epochs: bool
    """All lanes meet in front of the first transaction of each epoch."""

    def __init__(self, epoch_seconds: int) -> None:
        """``epoch_seconds`` of the channel."""

    def epoch_of(self, commit_time: float) -> int:
        """The epoch of a transaction that the source committed at this Unix time; asked only with ``has_epochs``.

        Called for each transaction of each segment, anywhere: equal times give equal epochs.
        """
        ...


class Eventual:
    """Lanes meet at barriers and at the window's end."""

    serial = has_epochs = False

    def __init__(self, epoch_seconds: int) -> None: ...

    def epoch_of(self, commit_time: float) -> int:
        """See ConsistencyLevel."""
        return 0


class AnyTime(Eventual):
    """At any time the target is as the source was at some seqno."""

    serial = True


class Epoch:
    """Lanes meet also every ``epoch_seconds`` of source time."""

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
"""By the word of ``lanes.consistency``."""
