"""What came of a test: the words of the results, and how they follow from what was seen."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


class Outcome(enum.StrEnum):
    """What became of a test."""

    EQUAL = "equal"
    REFUSED = "refused"
    """Before the window's first write, and the server's own replica reaches the log's end."""
    FAILED = "failed"
    """In the middle of a window, and the server's own replica reaches the log's end."""
    DIFFERS = "differs"
    """At the end, and the server's own replica is equal, or differs in something else."""
    NATIVE = "native too"
    """The server's own replica stops as well, or differs in the same."""
    INCOMPARABLE = "not comparable"
    """Nothing can be said of binlane: no log, no server like the source, a test that did not reach its end."""
    SKIPPED = "skipped"
    """The driver does not run it here, or not in this format."""


@dataclass(frozen=True, slots=True)
class Run:
    """How far binlane or the replica came, and what differs then."""

    stopped: str = ""
    """What stopped it; empty at the log's end."""
    refused: bool = False
    """It stopped before a first write."""
    different: Mapping[str, str] = field(default_factory=dict)
    """What differs: its name to what the source holds and what the other server holds."""

    @property
    def equal(self) -> bool:
        """At the end, with everything as on the source."""
        return not self.stopped and not self.different


def judged(binlane: Run, native: Run | None) -> Outcome:
    """The outcome; ``native`` is asked only where binlane is not equal."""
    if binlane.equal:
        return Outcome.EQUAL
    assert native is not None
    if native.stopped or (not binlane.stopped and set(binlane.different) <= set(native.different)):
        return Outcome.NATIVE
    if binlane.refused:
        return Outcome.REFUSED
    return Outcome.FAILED if binlane.stopped else Outcome.DIFFERS


_WORST_FIRST: Final = (
    *(Outcome.FAILED, Outcome.DIFFERS, Outcome.REFUSED, Outcome.NATIVE, Outcome.EQUAL),
    *(Outcome.INCOMPARABLE, Outcome.SKIPPED),
)


def worse(one: Outcome, other: Outcome) -> bool:
    """Of a test that the driver runs several times in one format, with other options, the worst outcome is kept."""
    return _WORST_FIRST.index(one) < _WORST_FIRST.index(other)
