"""One door for the comparison of names: a server's ``lower_case_table_names`` decides, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import binlane

ROOT = Path(binlane.__file__).parent


@pytest.mark.parametrize("package", ["plan", "source", "apply", "schema"])
def test_names_are_folded_by_the_letter_case_of_a_server_alone(package: str) -> None:
    """``str.casefold`` takes tables for one that a server with 0 has twice, and ß for ss, which no server does."""
    folding = [file.name for file in (ROOT / package).rglob("*.py") if "casefold" in file.read_text("utf-8")]
    assert folding == []
