"""What a log may hold, what becomes of it, and the tests that show it: docs/conformance.md is made of this table.

A row is a claim; ``tests`` are the functions that prove it, by file and name. ``test_conformance`` holds that each of
them exists, that no event type and no edge case is missing, and that the page says what is here;
``make conformance`` runs the proofs and writes the page only if all of them pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.conformance.content_cases import CONTENT_CASES
from tests.conformance.event_types import EVENT_TYPES
from tests.conformance.framing_cases import FRAMING_CASES
from tests.conformance.rows import Row, Verdict
from tests.conformance.statement_kinds import STATEMENT_KINDS
from tests.conformance.versions import VERSIONS


class Section(StrEnum):
    """A table of the page."""

    EVENT_TYPES = "Event types"
    STATEMENTS = "Statements"
    EDGE_CASES = "Edge cases"
    VERSIONS = "Versions"


@dataclass(frozen=True, slots=True)
class Part:
    """One table, and what stands above it."""

    about: str
    first_column: str
    rows: tuple[Row, ...]


PAGE: Final[dict[Section, Part]] = {
    Section.EVENT_TYPES: Part(
        "Every type code of both servers. An unknown code with the ignorable flag (0x80) is informational, without it "
        "refused (UnknownEventError).",
        "event",
        EVENT_TYPES,
    ),
    Section.STATEMENTS: Part(
        "Statements by kind, in statement and mixed format and as DDL.", "statement", STATEMENT_KINDS
    ),
    Section.EDGE_CASES: Part(
        "What the formats and the servers do that a reader would not expect.", "case", (*FRAMING_CASES, *CONTENT_CASES)
    ),
    Section.VERSIONS: Part("Servers whose logs were applied, and versions whose files were read.", "version", VERSIONS),
}


def rows() -> Iterator[Row]:
    """Every row of every table."""
    for part in PAGE.values():
        yield from part.rows


def render() -> str:
    """The page."""
    counts = {verdict: sum(row.verdict is verdict for row in rows()) for verdict in Verdict}
    lines = [
        "# Conformance",
        "",
        "What a log may hold, and what becomes of it. Made by `make conformance` from the tests that prove it, which",
        "stand in the last column; do not edit.",
        "",
        "- **supported**: the target ends as the source did.",
        "- **refused**: the window stops before its first write, with the error, the file and the offset: nothing is",
        "  skipped because it is not understood ([invariant 6](invariants.md)).",
        "- **informational**: it changes nothing, on the source neither.",
        "- **read**: files of that version were read to their end and counted; there was no such server to try.",
        "",
        f"{len(list(rows()))} rows: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + ".",
    ]
    for section, part in PAGE.items():
        lines += ["", f"## {section}", "", part.about, ""]
        lines += [f"| {part.first_column} | what becomes of it | | shown by |", "|---|---|---|---|"]
        lines += [_line(row) for row in part.rows]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    verdict = row.verdict if row.error is None else f"{row.verdict}: {row.error}"
    tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in row.tests)
    return f"| {row.what} | {row.becomes} | {verdict} | {tests} |"
