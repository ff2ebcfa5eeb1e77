"""docs/invariants.md: the tests that it names are there, and every invariant has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "invariants.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`((?:unit|integration|chaos|spark|dags)/[\w/]+\.py)(?:::(\w+))?`", TEXT)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=["::".join(each) for each in NAMED])
def test_a_test_that_the_page_names_exists(file: str, test: str) -> None:
    found = (ROOT / "tests" / file).read_text("utf-8")
    assert f"\ndef {test or 'test_'}" in found


def test_the_modules_that_hold_an_invariant_are_there() -> None:
    table = TEXT.partition("## The tests that hold them")[0]
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", table)
    assert len(named) > 20
    assert [each for each in named if not (ROOT / "plugins" / "binlane" / each).exists()] == []


def test_every_invariant_has_a_test() -> None:
    promised, held = TEXT.split("## The tests that hold them")
    numbers = [re.findall(r"^\| (\d+) \|", part, re.MULTILINE) for part in (promised, held)]
    assert numbers[0] == numbers[1] != []


def test_every_finding_of_the_review_has_a_test() -> None:
    table = TEXT.split("## Ways to lose data")[1]
    rows = re.findall(r"^\| (\d+): .+ \| (`\w+/.+`) \|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 28))
