"""All that is looked at before a channel's first write, by name: literal tables; and ``answers``, which runs them.

A check is a function of the situation that gives its findings and writes nothing, as those of ``precheck.checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from binlane.apply.refusals import target_errors
from binlane.errors import BinlaneError
from binlane.precheck.finding import Finding
from binlane.readiness.situation import Readiness
from binlane.schema.compare import Severity

Check = Callable[[Readiness], Iterable[Finding]]


def answer(name: str, check: Check, situation: Readiness) -> tuple[Finding, ...]:
    """The findings of one check. An error of a server, or of the work folder, is a finding."""
    try:
        with target_errors("target"):
            return tuple(replace(finding, check=name) for finding in check(situation))
    except (BinlaneError, OSError) as exc:
        return (Finding(Severity.FATAL, name, "an answer", str(exc), "mend the lines above first", check=name),)
