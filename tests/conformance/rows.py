"""One claim about a log, and its proof."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What becomes of a thing in the log."""

    SUPPORTED = "supported"
    REFUSED = "refused"
    INFORMATIONAL = "informational"
    READ = "read"
    """Files were read to their end; there was no server to apply them from."""


@dataclass(frozen=True, slots=True)
class Row:
    """``what`` stands in the log, ``becomes`` says what is done, ``tests`` (``path::function``) show it."""

    what: str
    becomes: str
    verdict: Verdict
    tests: tuple[str, ...]
    error: str | None = None
    """The class of the error, for what is refused."""


def supported(what: str, becomes: str, *tests: str) -> Row:
    """A row that ends on the target."""
    return Row(what, becomes, Verdict.SUPPORTED, tests)


def refused(what: str, becomes: str, error: str, *tests: str) -> Row:
    """A row that stops the window before its first write."""
    return Row(what, becomes, Verdict.REFUSED, tests, error)


def informational(what: str, becomes: str, *tests: str) -> Row:
    """A row that changes nothing."""
    return Row(what, becomes, Verdict.INFORMATIONAL, tests)
