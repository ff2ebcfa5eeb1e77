"""``python -m tests.conformance``: run every proof, then write the pages below docs/ if none of them failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.table import pages, rows

DOCS: Final = Path(__file__).parents[2] / "docs"


class Outcomes:
    """Counts, as a pytest plugin, how the proofs ended."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.not_passed: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's function counts as passed if one of its cases ran and none of them failed."""
        name = report.nodeid.partition("[")[0]
        if report.passed and report.when == "call":
            self.passed.add(name)
        elif report.failed:
            self.not_passed[name] = "failed"
        elif report.skipped:
            self.not_passed.setdefault(name, "skipped")


def main() -> int:
    """0 if every claim is proved and the pages are written; 1 with the claims that are not."""
    proofs = sorted({test for row in rows() for test in row.tests})
    outcomes = Outcomes()
    pytest.main([*proofs, "-q", "-p", "no:cacheprovider"], plugins=[outcomes])
    lacking = {
        name: outcomes.not_passed.get(name, "did not run")
        for name in proofs
        if name not in outcomes.passed or outcomes.not_passed.get(name) == "failed"
    }
    for name, how in lacking.items():
        sys.stderr.write(f"{name}: {how}\n")
    if lacking:
        sys.stderr.write(f"{len(lacking)} proofs are lacking: the pages stay as they are\n")
        return 1
    for name, text in pages().items():
        (DOCS / name).write_text(text, "utf-8")
    sys.stdout.write(f"{len(list(rows()))} rows, {len(proofs)} proofs: {', '.join(pages())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
