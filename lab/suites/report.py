"""docs/suites.md, written from the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from lab.suites.results import Result
from lab.suites.verdict import Outcome

_HEAD: Final = """\
# The servers' own test suites

MariaDB's and MySQL's developers test replication with their own suites, `rpl` and `binlog`. `make suites` runs these
with binlane: each test's own client writes to a private source with the test's own options, binlane applies the log to
a fresh target, and both servers are compared completely, including the objects that the test drops, which are kept
aside. If they differ, the server's own replica gets the same log. The command generates this page from its results
(`lab/suites/results.jsonl`). Do not edit.

- **equal**: databases, tables, rows, views, routines, triggers, events and accounts equal those of the source.
- **native too**: the server's own replica also stops, or differs from the source in the same objects, or differs from
  it where binlane stops.
- **refused**: binlane stopped before its first write, for a reason that [conformance.md](conformance.md) lists; the
  server's own replica is equal.
- **failed**: binlane stopped in the middle of a window; the server's own replica is equal.
- **differs**: binlane reached the log's end, but an object differs from the source that is equal on the server's own
  replica.
- **not comparable**: the test says nothing about binlane, for the reason given below.
- **skipped**: the suite's driver does not run the test here, or not in this format. Tests whose files
  require a debug build or another format are not run and not counted (more than half of all tests).

Non-transactional tables are allowed (`apply.allow_nontransactional`), because MariaDB's driver creates them by
default. `apply.allow_unsafe` is set for the tests that are refused without it; the last column counts them.
"""
_ORDER: Final = (
    *(Outcome.EQUAL, Outcome.NATIVE, Outcome.REFUSED, Outcome.FAILED, Outcome.DIFFERS),
    *(Outcome.INCOMPARABLE, Outcome.SKIPPED),
)
_NAMED: Final = 12


def document(results: Sequence[Result]) -> str:
    """The text of docs/suites.md."""
    parts = [_HEAD, "## Counts\n", _counts(results)]
    for outcome, title in (
        (Outcome.FAILED, "Failed in the middle of a window"),
        (Outcome.DIFFERS, "Differs"),
        (Outcome.REFUSED, "Refused before the first write"),
        (Outcome.NATIVE, "Native too"),
        (Outcome.INCOMPARABLE, "Not comparable"),
        (Outcome.SKIPPED, "Skipped by the driver"),
    ):
        parts += [f"\n## {title}\n", _kinds([each for each in results if each.outcome is outcome])]
    return "\n".join(parts)


def _counts(results: Sequence[Result]) -> str:
    groups = sorted({(each.family, each.version, each.format, _suite(each)) for each in results})
    head = "| server | format | suite | " + " | ".join(_ORDER) + " | with allow_unsafe |"
    lines = [head, "|---" * (head.count("|") - 1) + "|"]
    for family, version, binlog_format, suite in groups:
        of = [each for each in results if (each.family, each.format, _suite(each)) == (family, binlog_format, suite)]
        lines.append(f"| {family} {version} | {binlog_format} | {suite} | {_numbers(of)} |")
    lines.append(f"| all | | | {_numbers(results)} |")
    bare = sum(not each.kept and each.outcome is not Outcome.SKIPPED for each in results)
    said = [f"Of these, {bare:,} fail if dropped objects are kept, and were run unchanged."]
    if made := sum(each.functions for each in results):
        said.append(f"For {made:,}, loadable functions were made on the target by hand, as binlane's refusal asks.")
    return "\n".join([*lines, "", *said, ""])


def _numbers(results: Sequence[Result]) -> str:
    counts = Counter(each.outcome for each in results)
    unsafe = sum(each.unsafe for each in results)
    return " | ".join(f"{number:,}" for number in (*(counts[outcome] for outcome in _ORDER), unsafe))


def _kinds(results: Sequence[Result]) -> str:
    if not results:
        return "None.\n"
    lines = ["| reason | tests | which |", "|---|---|---|"]
    kinds = Counter(each.kind for each in results)
    for kind, count in sorted(kinds.items(), key=lambda each: (-each[1], each[0])):
        lines.append(f"| {kind or 'other'} | {count:,} | {_which(each for each in results if each.kind == kind)} |")
    return "\n".join(lines) + "\n"


def _which(results: Iterable[Result]) -> str:
    names = sorted({f"{each.family} {each.format} {each.test}" for each in results})
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return "<br>".join(names[:_NAMED]) + more


def _suite(result: Result) -> str:
    return result.test.partition(".")[0]
