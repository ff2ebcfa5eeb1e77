"""Short kinds for the reasons why tests are not equal, for a readable table of many tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lab.refusals import refusal_of
from lab.suites.verdict import Outcome

_SKIPS: Final[Mapping[str, str]] = {
    r"binlog.format|not (row|statement|mixed)|neither|need.*(row|statement|mixed)": "not in this binlog format",
    r"debug": "needs a server built for debugging",
    r"^disabled": "disabled by its suite",
    r"root": "does not run as root",
    r"big.test": "big: run by --big-test alone",
}
_KINDS: Final[Mapping[str, str]] = {
    r"^the test (itself fails|ends before)": "does not reach its end here",
    r"writes no binary log": "the source writes no log",
    r"does not start": "a server with the source's options does not start",
    r"^(LabError|OperationalError|InternalError|ProgrammingError|FileNotFoundError)": "the source cannot be read",
    r": 1785 ": "tables without transactions on MySQL with GTIDs",
    r"^IncidentError": "the log says that changes are missing (INCIDENT)",
    r"^(data of|table|view|database) ": "something was never logged, or is another on every replica",
}
"""Pattern of a reason -> its kind; the first match counts."""
_CODE: Final = re.compile(r": ([1-4]\d{3}) ")
"""A server's error number in binlane's messages; other numbers may be file offsets."""
_OBJECT: Final = re.compile(r"(?:^|; )(data of|table|view|database|procedure|function|trigger|event|account) ")


def kind_of(outcome: Outcome, reason: str) -> str:
    """The kind of a reason; without an entry in the table, the error's class and the server's error number."""
    if outcome is Outcome.EQUAL:
        return ""
    if outcome is Outcome.DIFFERS:
        return ", ".join(sorted(set(_OBJECT.findall(reason))))
    if outcome is not Outcome.SKIPPED and (refusal := refusal_of(reason)) is not None:
        return refusal.kind
    for pattern, kind in (_SKIPS if outcome is Outcome.SKIPPED else _KINDS).items():
        if re.search(pattern, reason, re.IGNORECASE | re.DOTALL) is not None:
            return kind
    error = re.match(r"(\w+(?:Error|Exception)): ", reason)
    if error is not None:
        code = _CODE.search(reason)
        return f"{error[1]} {code[1]}" if code else error[1]
    return "other"
