"""Windows that were stored with their digests: the plan job makes the same plan of them, byte for byte.

A window that is open while binlane is replaced is planned again, and has to get the plan that it had: the target holds
its digest. A change of a plan's bytes therefore never happens by the way.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.stored_windows import DIGESTS, WINDOWS, digests, stored

_CHANGED = """the plan of the stored window {name} is no longer the same.
If that was not meant: find the change by the windows that differ, and by whether "pieces" differs as well as "plan".
If it is meant, or pyarrow writes its files differently: `python -m lab.stored_windows digests` writes the new digests;
say in CHANGELOG.md, under "Changed", that a window which is open during the upgrade is refused by its digest.
If it is meant and the stored files themselves have an older form: `python -m lab.stored_windows make`."""


def test_there_are_windows_of_both_families_in_every_way_to_fold() -> None:
    assert {path.stem for path in stored()} == {f"{flavor.value}-{name}" for flavor in Flavor for name in WINDOWS}
    assert {settings.reduce for _, settings in WINDOWS.values()} == {"off", "block", "window"}


@pytest.mark.parametrize("window", stored(), ids=lambda path: path.stem)
def test_a_stored_window_has_the_plan_that_it_always_had(window: Path, tmp_path: Path) -> None:
    expected = json.loads(DIGESTS.read_text())[window.stem]
    assert digests(window, tmp_path) == expected, _CHANGED.format(name=window.stem)
