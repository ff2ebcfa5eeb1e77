"""The rules of ``[rename]``: which name a database gets, and that no two get one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from binlane.rename_rules import Rule, problem_of
from binlane.shards.renaming import Renaming

RULES: tuple[Rule, ...] = (("prod_eu", "europe"), ("prod_*", "dr_*"), ("*_old", "archive_*"), ("a", "b"), ("b", "a"))


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("prod_eu", "europe"),
        ("prod_1", "dr_1"),
        ("prod_", "dr_"),
        ("prod_1_old", "dr_1_old"),
        ("shop_old", "archive_shop"),
        ("a", "b"),
        ("b", "a"),
        ("Prod_1", "Prod_1"),
        ("c", "c"),
        ("mysql", "mysql"),
    ],
)
def test_the_first_rule_that_matches_gives_the_name_and_it_leads_back(name: str, new: str) -> None:
    renaming = Renaming(RULES)
    assert renaming.target(name) == new
    assert renaming.source(new) == name
    assert renaming.refusal(name) is None


def test_target_names_without_a_rename_have_no_source() -> None:
    renaming = Renaming(RULES)
    assert renaming.source("prod_1") is None
    assert renaming.source("dr_eu") is None, "the first rule takes prod_eu"


def test_a_target_that_folds_names_compares_rules_in_lower_case() -> None:
    assert Renaming((("Prod_*", "dr_*"),), folds_names=True).target("pROD_A1") == "dr_A1"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dr_7", 'the database dr_7 keeps its name, but "prod_*" = "dr_*" gives such names to other databases'),
        ("prod_" + 62 * "x", "which is not a valid name"),
    ],
)
def test_a_name_that_is_not_its_own_is_refused(name: str, why: str) -> None:
    assert why in (Renaming(RULES).refusal(name) or "")


def test_no_database_becomes_one_of_the_servers_own() -> None:
    assert "which is not a valid name" in (Renaming((("x*", "*"),)).refusal("xmysql") or "")
    assert "which is not a valid name" in (Renaming((("x*", "*"),)).refusal("xb\u0130nlane") or "")
    assert "which is not a valid name" in (Renaming((("x*", "*"),)).refusal("x") or "")
    assert Renaming((("*", "x*"),)).refusal("mysql") is None


PATTERN = st.from_regex(r"[ab]{0,2}\*?[ab]{0,2}", fullmatch=True).filter(bool)
NAMES = st.text("ab", min_size=1, max_size=4)


@given(st.dictionaries(PATTERN, PATTERN, max_size=3), st.lists(NAMES, unique=True, min_size=2, max_size=6))
def test_rules_that_stand_make_no_two_databases_one(rules: dict[str, str], names: list[str]) -> None:
    chosen = tuple(rules.items())
    assume(problem_of(chosen) is None)
    renaming = Renaming(chosen)
    taken = [name for name in names if renaming.refusal(name) is None]
    assert len({renaming.target(name) for name in taken}) == len(taken)
    for name in taken:
        assert renaming.source(renaming.target(name)) == name


def test_a_privilege_touches_a_rule_exactly_if_its_pattern_and_the_rule_s_match_one_name() -> None:
    names = ["".join(letters) for size in range(7) for letters in product("a_", repeat=size)]

    def matched(pattern: str, meanings: Mapping[str, str]) -> set[str]:
        expression = re.sub("|".join(map(re.escape, meanings)), lambda found: meanings[found[0]], pattern)
        return {name for name in names if re.fullmatch(expression, name)}

    def patterns(parts: Iterable[str], meanings: Mapping[str, str]) -> dict[str, set[str]]:
        made = ("".join(some) for size in range(1, 4) for some in product(parts, repeat=size))
        return {pattern: matched(pattern, meanings) for pattern in made}

    like = {r"\_": "_", "_": ".", "%": ".*"}
    privileges = patterns(("a", *like), like)
    for rule, renamed in patterns("a_*", {"*": ".*"}).items():
        for pattern, named in privileges.items():
            assert (Renaming(((rule, rule),)).touched(pattern) is not None) == bool(named & renamed), (pattern, rule)
