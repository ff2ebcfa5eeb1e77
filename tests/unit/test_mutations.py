"""``make mutations``: its list fits the code and docs/invariants.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from lab.mutations import MUTATIONS, Mutation
from tests.parsing import parsed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "invariants.md").read_text("utf-8")
HELD = PAGE.split("## The tests that hold them")[1].split("\n## ")[0]
ROWS = {int(number): row for number, row in re.findall(r"^\| (\d+) \| (.+) \|$", HELD, re.MULTILINE)}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_a_mutation_changes_one_place_of_a_module_that_still_parses(mutation: Mutation) -> None:
    text = (ROOT / "plugins" / "binlane" / mutation.file).read_text("utf-8")
    changed = mutation.applied(text)
    assert ast.dump(parsed(changed)) != ast.dump(parsed(text))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[each.name for each in MUTATIONS])
def test_the_page_names_its_tests_for_the_invariant(mutation: Mutation) -> None:
    files = {test.split("::")[0] for test in mutation.tests}
    assert {file for file in files if f"`{file}" not in ROWS[mutation.invariant]} == set()


def test_every_invariant_has_a_mutation() -> None:
    assert {each.invariant for each in MUTATIONS} == set(ROWS)


def test_a_mutation_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 'guard' once, found it 2 times"):
        Mutation(1, "twice", "file.py", "guard", "", ()).applied("guard guard")
