"""Folders of finished windows that the target's rows name and the work folder does not have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from binlane.model import FolderRecord
from binlane.state.records.coverage import windows_to_verify
from binlane.state.window_folders import WindowFolders
from binlane.work import files


def name_of(number: int) -> str:
    return f"{number:012}-0000000{number}"


def folders_with(base: Path, *numbers: int) -> WindowFolders:
    """The folders of these windows."""
    folders = WindowFolders(str(base), "c")
    for number in numbers:
        folders.named(name_of(number)).write_once(files.MANIFEST, b"{}")
    return folders


def test_only_a_folder_that_is_there_is_of_use(tmp_path: Path) -> None:
    folders = folders_with(tmp_path, 1)
    own = {number: FolderRecord(folders.named(name_of(number)).uri) for number in (1, 2)}
    found = folders.found(name_of(1), own[1])
    assert found is not None
    assert found.uri == own[1].uri
    assert folders.found(name_of(2), own[2]) is None, "the record alone makes no folder"
    assert folders.found(name_of(1), FolderRecord("/elsewhere")) is not None
    assert folders.found(name_of(1), FolderRecord("")) is None
    assert folders.found("../2", FolderRecord("/elsewhere")) is None


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param((1, 2, 3, 4), (2, 3, 4), id="back to what was compared"),
        pytest.param((1, 2, 4), (4,), id="without a gap"),
        pytest.param((1, 2, 3), (4,), id="not the last one's"),
        pytest.param((), (4,), id="none"),
    ],
)
def test_windows_are_compared_as_far_as_their_folders_are_there(
    there: tuple[int, ...], expected: tuple[int, ...], tmp_path: Path
) -> None:
    """Their rows are of an older moment than the work folder behind a restore of the target."""
    folders = folders_with(tmp_path, *there)
    rows = [
        SimpleNamespace(
            window_id=name_of(number), first_seqno=number, last_seqno=number, work=folders.named(name_of(number)).uri,
            files=None,
        )
        for number in (4, 3, 2, 1)
    ]  # fmt: skip
    covered = SimpleNamespace(
        rows_after=0, rows_through=1, full_through=None, full_at=None, rules=None, crashed_at=None
    )

    class Answers:
        def __init__(self) -> None:
            self.left: list[Any] = [SimpleNamespace(one_or_none=lambda: covered), rows]

        def execute(self, _query: object) -> Any:
            return self.left.pop(0)

    found = windows_to_verify(
        cast("Connection", Answers()), "c", "", lambda *window: folders.found(*window) is not None
    )
    assert tuple(each.first_seqno for each in found) == expected
    assert [each.work.is_removed for each in found] == [each.first_seqno not in there for each in found]
