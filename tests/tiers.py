"""Tiers: ``make test``, what a change may break, ``make trials``, what takes longer, and ``make sweeps``, all the rest.

A test is a trial if it is marked so (``pytestmark = pytest.mark.trial``), if it is below tests/trials, or if the tests
leave it out of a product: servers (a family, a series, a pair of them), ways to fold and ways to write are paired with
a test's cases there, not multiplied. Each case runs once, and each server, way to fold and writer with its share of the
cases. The trials pair likewise, and run a third of what the tests leave out; which pairs and which third is decided by
``--turn``: the number of commits by default, so that later trials run others, and 0 in CI, so that what it says can be
had here before. The sweeps run all that the tests do not.
Of generated examples the tests try an eighth, and the trials all. Without ``--tier`` everything runs.

With ``--minutes`` a run begins no test behind them, and says how many it has left out: a busy machine takes three times
as long for one. Its files come in an order that the turn decides.

``make quick`` is a part of the tests, for the time between two commits: units, and some windows of MariaDB.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Hashable, Sequence
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the chosen tier."""
    tier: str | None = config.getoption("--tier")
    if tier is None:
        return
    slow, rest = _slow(items), set[pytest.Item]()
    # a test that needs no server is cheap
    rest |= left_out([item for item in items if item not in slow and _UNIT not in item.path.parents])
    turn: int = config.getoption("--turn")
    # of each case of a trial one pair, and of the rest a third
    skipped = left_out([item for item in items if item in slow], turn)
    skipped |= {item for item in rest if (crc32(item.nodeid.encode()) + turn) % _TURNS != 0}
    trials = slow | rest
    wanted = {
        _QUICK: [item for item in items if item not in trials and _is_quick(item)],
        "test": [item for item in items if item not in trials],
        "trials": [item for item in items if (item in trials and item not in skipped) or _generates(item)],
        "sweeps": [item for item in items if item in trials],
    }[tier]
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
    return {item for item in items if item.get_closest_marker("trial") is not None or _TRIALS in item.path.parents}


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


def _generates(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and getattr(item.function, "is_hypothesis_test", False)


def _is_quick(item: pytest.Item) -> bool:
    if _UNIT in item.path.parents:
        return item.path.relative_to(_UNIT).as_posix() not in _LONG_UNITS
    if _INTEGRATION not in item.path.parents or item.path.relative_to(_INTEGRATION).as_posix() not in _QUICK_FILES:
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
