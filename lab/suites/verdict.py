"""The outcomes of tests, and how they follow from the runs of binlane and of the replica."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


class Outcome(enum.StrEnum):
    """The outcome of a test."""

    EQUAL = "equal"
    REFUSED = "refused"
    """binlane stopped before the window's first write; the server's own replica is equal."""
    FAILED = "failed"
    """binlane stopped in the middle of a window; the server's own replica is equal."""
    DIFFERS = "differs"
    """An object differs at the log's end; the server's own replica is equal, or differs in other objects."""
    NATIVE = "native too"
    """The server's own replica also stops, or differs in the same objects, or differs where binlane stops."""
    INCOMPARABLE = "not comparable"
    """No statement about binlane is possible: no log, no server with the source's options, or the test failed
    itself."""
    SKIPPED = "skipped"
    """The driver does not run it here, or not in this format."""


@dataclass(frozen=True, slots=True)
class Run:
    """The run of binlane or of the replica: its end and the differences."""

    stopped: str = ""
    """The error that stopped the run; empty if it reached the log's end."""
    refused: bool = False
    """Whether the run stopped before its first write."""
    different: Mapping[str, str] = field(default_factory=dict)
    """The differences: both servers' content by name."""
    ended: bool = False
    """Whether the target's server has ended by itself."""

    @property
    def equal(self) -> bool:
        """Whether the log's end was reached and all content is equal."""
        return not self.stopped and not self.different


def judged(binlane: Run, native: Run | None) -> Outcome:
    """The outcome; ``native``: the replica's run, made only if binlane's is not equal."""
    if binlane.equal:
        return Outcome.EQUAL
    if binlane.ended:
        return Outcome.FAILED
    assert native is not None
    # where binlane stops, it has no differences
    if native.stopped or (native.different and set(binlane.different) <= set(native.different)):
        return Outcome.NATIVE
    if binlane.refused:
        return Outcome.REFUSED
    return Outcome.FAILED if binlane.stopped else Outcome.DIFFERS


_WORST_FIRST: Final = (
    *(Outcome.FAILED, Outcome.DIFFERS, Outcome.REFUSED, Outcome.NATIVE, Outcome.EQUAL),
    *(Outcome.INCOMPARABLE, Outcome.SKIPPED),
)


def worse(one: Outcome, other: Outcome) -> bool:
    """Whether ``one`` is worse than ``other``: of several runs of a test in one format the worst outcome is kept."""
    return _WORST_FIRST.index(one) < _WORST_FIRST.index(other)
