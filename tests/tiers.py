"""Tiers: ``make test``, what a change may break, ``make trials``, what takes longer, and ``make sweeps``, all the rest.

A test is a trial if it is marked so (``pytestmark = pytest.mark.trial``), if it is below tests/trials, or if the tests
leave it out of a product: servers (a family, a series, a pair of them), ways to fold and ways to write are paired with
a test's cases there, not multiplied. Each case runs once, and each server, way to fold and writer with its share of the
cases. Of a test that is marked ``paired`` so few cases run that each value of each of its parameters is there once: for
parameters that do not depend on each other where each case costs a window. The trials pair servers likewise, and run a
third of what the tests leave out; which pairs and which third is decided by ``--turn``: the number of commits by
default, so that later trials run others, and 0 in CI, so that what it says can be had here before. The sweeps run all
that the tests do not.
Of generated examples the tests try an eighth, and the trials all. Without ``--tier`` everything runs.

With ``--minutes`` a run begins no test behind them, and says how many it has left out: a busy machine takes three times
as long for one. Its files come in an order that the turn decides.

``make quick`` is a part of the tests, for the time between two commits: units, and some windows of MariaDB.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest
from hypothesis import settings

from binlane.model import Flavor

TIERS: Final = ("test", "trials", "sweeps")
_QUICK: Final = "quick"
_TRIALS: Final = Path(__file__).parent / "trials"
_UNIT: Final = Path(__file__).parent / "unit"
_INTEGRATION: Final = Path(__file__).parent / "integration"
_FAMILIES: Final = {flavor.value for flavor in Flavor}
_SERIES: Final = re.compile(r"\d+\.\d+")
"""Of MariaDB, as ``11.8``."""
_CHOICES: Final = ("reduce", "writer")
"""Names of parameters that are paired with the cases, as families are; the names of their fixtures end so, too."""
_FEWER: Final = {_QUICK: 16, "test": 8}
"""By what the number of generated examples is divided; no other tier divides them."""
_LEAST: Final = 10
_TURNS: Final = 3
"""Landings in which the trials run all that the tests leave out of products."""
_QUICK_FILES: Final = {
    *("apply/test_lane.py", "apply/test_statements.py", "apply/test_writers.py", "verify/test_verify.py"),
    *("window/servers/test_mixed.py", "window/rows/test_overwrite.py", "window/ddl/test_renames.py"),
}
"""Below tests/integration: a little of each part, on one family."""
_LONG_UNITS: Final = {"binlog/test_every_byte.py"}
"""Below tests/unit: what a tenth of the time of all units goes to."""

_END: Final = "BINLANE_TESTS_END"
"""When the minutes of a run are over, in seconds since the epoch."""

_divisor = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that chooses a tier."""
    parser.addoption("--tier", choices=(*TIERS, _QUICK), default=None, help="none: all tests")
    parser.addoption("--minutes", type=float, default=None, help="begin no test behind so many")
    parser.addoption("--turn", type=int, default=0, help="which part of the products the trials run")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and set how many examples are generated where a test says nothing."""
    global _divisor
    _divisor = _FEWER.get(config.getoption("--tier"), 1)
    if (minutes := config.getoption("--minutes")) is not None:
        # the workers begin later, and get it with the environment
        os.environ.setdefault(_END, str(time.time() + 60 * minutes))
    # how long a case takes says nothing about whether it is right
    settings.register_profile("tier", deadline=None, max_examples=examples(100))
    settings.load_profile("tier")
    config.addinivalue_line("markers", "trial: takes longer than each change should wait for: for `make trials`")
    config.addinivalue_line("markers", "paired: `make test` runs each value of each parameter, not each with each")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen tier."""
    tier: str | None = config.getoption("--tier")
    if tier is None:
        return
    slow = _slow(items)
    paired = [item for item in items if item not in slow and item.get_closest_marker("paired") is not None]
    # a test that needs no server is cheap
    costly = [item for item in items if item not in slow and not _is_below(item.path, _UNIT)]
    rest = left_out([item for item in costly if item.get_closest_marker("paired") is None]) | repeated(paired)
    turn: int = config.getoption("--turn")
    # of each case of a trial one pair, and of the rest a third
    skipped = left_out([item for item in items if item in slow], turn)
    skipped |= {item for item in rest if (crc32(item.nodeid.encode()) + turn) % _TURNS != 0}
    trials = slow | rest
    belongs: dict[str, Callable[[pytest.Item], bool]] = {
        _QUICK: lambda item: item not in trials and _is_quick(item),
        "test": lambda item: item not in trials,
        "trials": lambda item: (item in trials and item not in skipped) or _generates(item),
        "sweeps": lambda item: item in trials,
    }
    wanted = list(filter(belongs[tier], items))
    if config.getoption("--minutes") is not None:
        wanted.sort(key=lambda item: crc32(f"{turn} {item.path.relative_to(config.rootpath)}".encode()))
    chosen = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = wanted


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what would begin behind the end of the run."""
    if item.config.getoption("--minutes") is not None and time.time() > float(os.environ[_END]):
        pytest.skip("the minutes of this run are over: `make trials` runs it")


def examples(count: int) -> int:
    """How many examples a test generates that generates so many in the trials, or when it runs by itself."""
    return max(min(count, _LEAST), count // _divisor)


def _slow(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    return {item for item in items if item.get_closest_marker("trial") is not None or _is_below(item.path, _TRIALS)}


@functools.cache
def _is_below(path: Path, folder: Path) -> bool:
    # each of 17,000 tests is asked for, in each worker
    return folder in path.parents


def left_out(items: Sequence[pytest.Item], turn: int = 0) -> set[pytest.Item]:
    """The tests of products that are not among those paired; another turn pairs each case with another one."""
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
        if place != (crc32(function.encode()) + number + turn) % len(product)
    }


def repeated(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The tests of marked functions whose parameters have only values that others of the function have, too."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {item for name, cases in functions.items() for item in {*cases} - {*_covering(name, cases)}}


def _covering(function: str, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """So many of a function's tests that each value of each parameter is there, found one by one; of tests that add as
    many values, one whose values are there least: of two families each has its share."""
    # functions of the same parameters begin with another family each
    first = crc32(function.encode()) % len(items)
    left = [*items[first:], *items[:first]]
    missing, uses = {value for item in items for value in _values(item)}, Counter[tuple[str, int]]()
    chosen: list[pytest.Item] = []

    def worth(item: pytest.Item) -> tuple[int, int]:
        return len(missing & _values(item)), -sum(uses[value] for value in _values(item))

    while missing:
        best = max(left, key=worth)
        chosen.append(best)
        missing -= _values(best)
        uses.update(_values(best))
    # without parameters there is one test
    return chosen or left


def _values(item: pytest.Item) -> frozenset[tuple[str, int]]:
    # of a product the values are the same objects, and they need not be comparable
    callspec = getattr(item, "callspec", None)
    return frozenset() if callspec is None else frozenset((name, id(value)) for name, value in callspec.params.items())


def _generates(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and getattr(item.function, "is_hypothesis_test", False)


def _is_quick(item: pytest.Item) -> bool:
    if _is_below(item.path, _UNIT):
        return item.path.relative_to(_UNIT).as_posix() not in _LONG_UNITS
    if not _is_below(item.path, _INTEGRATION) or item.path.relative_to(_INTEGRATION).as_posix() not in _QUICK_FILES:
        return False
    callspec = getattr(item, "callspec", None)
    names = [*getattr(item, "fixturenames", ()), *(() if callspec is None else map(str, callspec.params.values()))]
    return not any("mysql" in name for name in names)


def _case(item: pytest.Item) -> Hashable:
    """What is left of a test's parameters without those that are paired."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    # a product has its cases' values in common, and values need not be comparable
    return tuple((name, id(value)) for name, value in callspec.params.items() if not _is_paired(name, value))


def _is_paired(name: str, value: object) -> bool:
    return name.endswith(_CHOICES) or _is_server(value) or (isinstance(value, tuple) and all(map(_is_server, value)))


def _is_server(value: object) -> bool:
    # a family is a string, too
    return isinstance(value, str) and (value in _FAMILIES or _SERIES.fullmatch(value) is not None)
