"""A window's inputs are parsed once for readers that ask page by page."""

from __future__ import annotations

import zipfile
from pathlib import Path

from binlane.work.files import CHANNEL, WorkFolder
from binlane.work.plan_inputs import read_inputs
from lab.stored_windows import stored


def test_inputs_are_parsed_once_until_they_are_replaced(tmp_path: Path) -> None:
    with zipfile.ZipFile(stored()[0]) as window:
        window.extractall(tmp_path)
    folder = next(tmp_path.rglob("manifest.json")).parent
    first = read_inputs(WorkFolder(str(folder)))
    assert read_inputs(WorkFolder(str(folder))) is first
    with (folder / CHANNEL).open("a") as file:
        file.write("\n")
    second = read_inputs(WorkFolder(str(folder)))
    assert (second is first, second.key == first.key) == (False, False)
    assert second.schema == first.schema
