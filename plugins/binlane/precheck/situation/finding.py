"""What a check says of one thing that it has looked at."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from binlane.errors import LONGEST_MESSAGE, SAME_AS_ABOVE, PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.precheck.account.privileges import Order
from binlane.safe_text import one_line
from binlane.schema.compare import Difference, Severity

log = logging.getLogger(__name__)


class Command(str):
    """A shell command that mends something, in contrast to a statement."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at and is not as it should be."""

    severity: Severity
    where: str
    expected: str
    found: str
    todo: str
    seqno: int | None = None
    """Of the statement or rows that ask for it, where these are one transaction's."""
    check: str = ""
    """The name of the check, in ``checks.CHECKS``."""
    mend: tuple[Order | str, ...] = ()
    """The statements or commands that mend it, to be copied; none where ``todo`` names several ways, or a setting."""

    def __str__(self) -> str:
        name = f" [{self.check}]" if self.check else ""
        # a name may have a line break, and pose as a finding or a log's line of its own
        return one_line(f"{self.where}: expected {self.expected}, found {self.found}; {self.todo}{name}")


TOGETHER: Final = 2
"""From so many on, findings that one step mends are one line, and lines of the other places."""
_PLACES: Final = 500
"""Places in one line."""
_HEADING: Final = 1_000
"""Characters of a precheck's error that are no findings, at most."""

_WRITTEN: Final = {
    False: "nothing was written",
    True: "the window has begun, what its lanes have applied stays, and a run goes on behind it",
}
"""What the target has of a window that a precheck refuses, by whether the window has begun."""


def findings_of(differences: Iterable[Difference]) -> tuple[Finding, ...]:
    """Differences between tables, in the form that ``raise_if_fatal`` reads."""
    return tuple(
        Finding(one.severity, f"{one.where}: {one.what}", one.expected, one.found, one.hint) for one in differences
    )


def raise_if_fatal(findings: Iterable[Finding], *, begun: bool = False) -> None:
    """Raise PrecheckError with every fatal finding, and with what the target has of the window.

    ``begun``: lanes may have applied a part of the window before.
    """
    fatal = [finding for finding in findings if finding.severity is Severity.FATAL]
    if fatal:
        heading = f"precheck failed: {plural(len(fatal), 'finding')}; {_WRITTEN[begun]}:"
        raise PrecheckError("\n".join((heading, *_fitting([*_lines(fatal)]))))


def _fitting(lines: Sequence[str]) -> list[str]:
    """The first lines, as many as an error has room for, and where the others are: in the log before it."""
    ends = itertools.accumulate(len(line) + 1 for line in lines)
    fits = max(1, sum(end <= LONGEST_MESSAGE - _HEADING for end in ends))
    for line in lines[fits:]:
        log.error("precheck: %s", line)
    left = len(lines) - fits
    return [*lines[:fits], *([f"and {plural(left, 'more line')}, in the log before this error"] if left else ())]


def _lines(findings: Iterable[Finding]) -> Iterator[str]:
    """A line for each finding; of those that one step mends the first, and lines that name where the others are."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in findings:
        alike.setdefault((each.expected, each.found, each.todo, each.check), []).append(each)
    for same in alike.values():
        if len(same) < TOGETHER:
            yield from map(str, same)
            continue
        first, *others = same
        yield str(first)
        for at in range(0, len(others), _PLACES):
            yield f"{SAME_AS_ABOVE}{'; '.join(one_line(each.where) for each in others[at : at + _PLACES])}"
