"""Two tiers: ``make test``, what a change may break, and ``make trials``, what takes longer. CI runs both.

A test is a trial if it is marked so (``pytestmark = pytest.mark.trial``), if it is below tests/trials, or if the tests
leave it out of a product: families, ways to fold and ways to write are paired with a test's cases there, not
multiplied. Each case runs once, and each family, way to fold and writer with its share of the cases; the trials run
the rest of the product. Without ``--tier`` all of it runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest

from binlane.model import Flavor

TIERS: Final = ("test", "trials")
_TRIALS: Final = Path(__file__).parent / "trials"
_UNIT: Final = Path(__file__).parent / "unit"
_FAMILIES: Final = {flavor.value for flavor in Flavor}
_CHOICES: Final = ("reduce", "writer")
"""Names of parameters that are paired with the cases, as families are; the names of their fixtures end so, too."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that chooses a tier."""
    parser.addoption("--tier", choices=TIERS, default=None, help="none: the tests of both")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "trial: takes longer than each change should wait for: `make trials` runs it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen tier."""
    tier: str | None = config.getoption("--tier")
    if tier is None:
        return
    trials = {item for item in items if item.get_closest_marker("trial") is not None or _TRIALS in item.path.parents}
    # a test that needs no server is cheap
    trials |= left_out([item for item in items if item not in trials and _UNIT not in item.path.parents])
    chosen, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (chosen if (item in trials) is (tier == "trials") else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The tests of products that are not among those paired."""
    cases: dict[str, dict[Hashable, list[pytest.Item]]] = {}
    for item in items:
        function = item.nodeid.partition("[")[0]
        cases.setdefault(function, {}).setdefault(_case(item), []).append(item)
    return {
        item
        for function, products in cases.items()
        for number, product in enumerate(products.values())
        for place, item in enumerate(product)
        # by the function's name: functions of one case meet each family in turn, and no test added moves another
        if place != (crc32(function.encode()) + number) % len(product)
    }


def _case(item: pytest.Item) -> Hashable:
    """What is left of a test's parameters without those that are paired."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    # a product has its cases' values in common, and values need not be comparable
    return tuple((name, id(value)) for name, value in callspec.params.items() if not _is_paired(name, value))


def _is_paired(name: str, value: object) -> bool:
    # a family is a string, too
    return name.endswith(_CHOICES) or (isinstance(value, str) and value in _FAMILIES)
