"""When lanes meet beyond what their transactions ask for: a class a level, by the word of ``lanes.consistency``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from binlane.choices import Consistency


class ConsistencyLevel(Protocol):
    """Decides from commit times where all lanes of a window must stand at one seqno."""

    serial: bool
    """One lane applies everything, in the source's order."""

    def __init__(self, epoch_seconds: int) -> None:
        """``epoch_seconds`` of the channel."""

    def epoch_of(self, commit_time: float) -> int | None:
        """The epoch of a transaction that the source committed at this Unix time; None: there are no epochs.

        All lanes meet in front of the first transaction of each epoch. Called for each transaction of each segment,
        anywhere: equal times give equal epochs.
        """
        ...


class Eventual:
    """Lanes meet at barriers and at the window's end."""

    serial = False

    def __init__(self, epoch_seconds: int) -> None: ...

    def epoch_of(self, commit_time: float) -> int | None:
        """None: no epochs."""
        return None


class AnyTime(Eventual):
    """At any time the target is as the source was at some seqno."""

    serial = True


class Epoch:
    """Lanes meet also every ``epoch_seconds`` of source time."""

    serial = False

    def __init__(self, epoch_seconds: int) -> None:
        self._seconds = epoch_seconds

    def epoch_of(self, commit_time: float) -> int | None:
        """Whole epochs since 1970."""
        return int(commit_time // self._seconds)


LEVELS: Final[Mapping[str, type[ConsistencyLevel]]] = {
    Consistency.EVENTUAL: Eventual,
    Consistency.ANY_TIME: AnyTime,
    Consistency.EPOCH: Epoch,
}
"""By the word of ``lanes.consistency``."""
