"""Two tiers: together they are all tests, and what the first has of a product is each case once and each family."""

from __future__ import annotations

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

@pytest.mark.trial
def test_marked():
    pass
"""
PLUGINS = ("-p", "tests.tiers", "--collect-only", "-q")


@pytest.fixture
def collected(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    pytester.makepyfile(test_product=PRODUCT)
    names = {tier: pytester.runpytest_inprocess(*PLUGINS, "--tier", tier).outlines for tier in TIERS}
    names["all"] = pytester.runpytest_inprocess(*PLUGINS).outlines
    return {tier: [line for line in lines if "::" in line] for tier, lines in names.items()}


def test_the_tiers_share_out_all_tests(collected: dict[str, list[str]]) -> None:
    assert len(collected["all"]) == 8 * 4 + 2 + 2 + 3 + 3 + 3 + 1
    assert sorted(collected["test"] + collected["trials"]) == sorted(collected["all"])


def test_each_case_meets_one_of_the_products_and_each_of_these_as_many_cases(collected: dict[str, list[str]]) -> None:
    product = [name.partition("[")[2].rstrip("]") for name in collected["test"] if "test_product[" in name]
    assert sorted(name[0] for name in product) == sorted("01234567")
    for paired in ("binlog-mariadb", "binlog-mysql", "sql-mariadb", "sql-mysql"):
        assert sum(name.endswith(paired) for name in product) == 2, product


def test_what_is_no_product_is_a_test_and_what_is_marked_a_trial(collected: dict[str, list[str]]) -> None:
    assert sum("test_cases[" in name for name in collected["test"]) == 3
    assert [name for name in collected["trials"] if "test_marked" in name] != []
    assert sum("test_first[" in name or "test_second[" in name for name in collected["test"]) == 2
