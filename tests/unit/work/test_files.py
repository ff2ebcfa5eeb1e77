"""The work folder: whole files, written once, local or on an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.work.files import WorkFolder


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> WorkFolder:
    if request.param == "local":
        return WorkFolder(str(tmp_path / "window"))
    return WorkFolder(f"memory://{tmp_path.name}/window")


def test_what_was_written_is_read(folder: WorkFolder) -> None:
    folder.write_once("a/b.json", b"{}")
    assert folder.exists("a/b.json")
    assert folder.read("a/b.json") == b"{}"
    with folder.open("a/b.json") as file:
        assert file.read() == b"{}"


def test_the_same_bytes_again_are_a_no_op_and_other_bytes_an_error(folder: WorkFolder) -> None:
    folder.write_once("plan.json", b"1")
    folder.write_once("plan.json", b"1")
    with pytest.raises(PlanError, match=r"plan\.json: exists with other content"):
        folder.write_once("plan.json", b"2")
    assert folder.read("plan.json") == b"1"


def test_a_missing_file_is_named(folder: WorkFolder) -> None:
    for read in (folder.read, folder.open):
        with pytest.raises(PlanError, match=r"manifest\.json: this file of the window is missing"):
            read("manifest.json")


def write_half(folder: WorkFolder) -> None:
    with folder.create("lane.parquet") as file:
        file.write(b"half")
        raise RuntimeError("worker died")


def test_a_file_whose_writer_failed_never_appears(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    with pytest.raises(RuntimeError):
        write_half(folder)
    assert list(tmp_path.iterdir()) == []


def test_removing_a_folder_takes_everything_and_may_be_repeated(folder: WorkFolder) -> None:
    folder.write_once("a/b", b"1")
    folder.remove()
    folder.remove()
    assert not folder.exists("a/b")
