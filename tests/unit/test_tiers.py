"""Tiers: tests and sweeps are all tests; of a product, tests and trials have each case once, and each family."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.tiers import TIERS

pytest_plugins = ("pytester",)

PRODUCT = """
import pytest

@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("number", range(8))
def test_product(family, writer, number):
    pass

@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_first(family):
    pass

@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_second(family):
    pass

@pytest.mark.parametrize("way", [("mariadb", "mysql"), ("10.11", "11.8"), ("mysql", "mysql")])
def test_pairs(way):
    pass

@pytest.mark.parametrize(("version", "case"), [("mysql", "a"), ("11.8", "a"), ("11.8", "b")])
def test_series(version, case):
    pass

@pytest.mark.parametrize("number", range(3))
def test_cases(number):
    pass

@pytest.mark.paired
@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("end", [*range(5), None])
@pytest.mark.parametrize("known", [True, False])
def test_values(family, end, known):
    pass

@pytest.mark.paired
def test_no_values():
    pass

@pytest.mark.trial
def test_marked():
    pass

@pytest.mark.trial
@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("number", range(4))
def test_slow(family, number):
    pass
"""
FAMILIES = ("mariadb", "mysql")
PLUGINS = ("-p", "tests.tiers", "--collect-only", "-q")


_collected: dict[str, list[str]] = {}
"""By tier and turn, collected for the first test that asks."""


@pytest.fixture
def collected(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    if _collected:
        return _collected
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    pytester.makepyfile(test_product=PRODUCT)
    names = {tier: pytester.runpytest_inprocess(*PLUGINS, "--tier", tier).outlines for tier in TIERS}
    for turn in ("1", "2"):
        names[turn] = pytester.runpytest_inprocess(*PLUGINS, "--tier", "trials", "--turn", turn).outlines
    names["all"] = pytester.runpytest_inprocess(*PLUGINS).outlines
    _collected.update({tier: [line for line in lines if "::" in line] for tier, lines in names.items()})
    return _collected


def test_the_tiers_share_out_all_tests(collected: dict[str, list[str]]) -> None:
    assert len(collected["all"]) == 8 * 4 + 2 + 2 + 3 + 3 + 3 + 24 + 1 + 1 + 4 * 2
    assert sorted(collected["test"] + collected["sweeps"]) == sorted(collected["all"])


def test_three_turns_of_the_trials_are_what_the_tests_leave_out(collected: dict[str, list[str]]) -> None:
    turns = [{*collected[turn]} for turn in ("trials", "1", "2")]
    assert set.union(*turns) == {*collected["sweeps"]}
    assert all(len(turn) < len(collected["sweeps"]) * 2 / 3 for turn in turns)
    for turn in turns:
        slow = sorted(name.partition("[")[2] for name in turn if "test_slow[" in name)
        assert [name[0] for name in slow] == ["0", "1", "2", "3"]
        assert sum("mysql" in name for name in slow) == 2


def test_each_case_meets_one_of_the_products_and_each_of_these_as_many_cases(collected: dict[str, list[str]]) -> None:
    product = [name.partition("[")[2].rstrip("]") for name in collected["test"] if "test_product[" in name]
    assert sorted(name[0] for name in product) == sorted("01234567")
    for paired in ("binlog-mariadb", "binlog-mysql", "sql-mariadb", "sql-mysql"):
        assert sum(name.endswith(paired) for name in product) == 2, product


def test_of_a_paired_test_each_value_runs_and_not_each_with_each(collected: dict[str, list[str]]) -> None:
    cases = [name.partition("[")[2].rstrip("]").split("-") for name in collected["test"] if "test_values[" in name]
    assert len(cases) == 6
    shares = Counter(value for case in cases for value in case)
    assert {name: shares.pop(name) for name in ("True", "False", *FAMILIES)} == dict.fromkeys(
        ("True", "False", *FAMILIES), 3
    )
    assert shares == dict.fromkeys(("0", "1", "2", "3", "4", "None"), 1)
    assert [name for name in collected["test"] if "test_no_values" in name] != []


def test_what_is_no_product_is_a_test_and_what_is_marked_a_trial(collected: dict[str, list[str]]) -> None:
    assert sum("test_cases[" in name for name in collected["test"]) == 3
    assert [name for name in collected["trials"] if "test_marked" in name] != []
    assert sum("test_first[" in name or "test_second[" in name for name in collected["test"]) == 2


def test_what_would_begin_behind_the_minutes_of_a_run_is_left_out_by_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'plugins'}")
    monkeypatch.delenv("BINLANE_TESTS_END", raising=False)
    pytester.makepyfile(test_product=PRODUCT)
    run = ("-p", "tests.tiers", "--tier", "trials")
    whole = pytester.runpytest_subprocess(*run, "--minutes", "5").parseoutcomes()
    assert whole.keys() == {"passed", "deselected"}
    over = pytester.runpytest_subprocess(*run, "--minutes", "-1", "-rs")
    assert over.parseoutcomes() == {"skipped": whole["passed"], "deselected": whole["deselected"]}
    over.stdout.fnmatch_lines(["*the minutes of this run are over*"])
