"""The work folder: whole files, written once, local or on an object store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import PlanError
from binlane.work.files import WorkFolder, digest_of, digests_in, private_file


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> WorkFolder:
    if request.param == "local":
        return WorkFolder(str(tmp_path / "window"))
    return WorkFolder(f"memory://{tmp_path.name}/window")


def test_a_file_is_read_as_it_was_written(folder: WorkFolder) -> None:
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


@pytest.mark.parametrize("mask", [0o022, 0o000, 0o077])
def test_files_are_readable_by_their_owner_alone_under_any_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        folder = WorkFolder(str(tmp_path / "work" / "shop")).child("w1")
        folder.write_once("segments/000001.binlog", b"rows")
        folder.child("plan").write_once("plan.json", b"{}")
        kept = tmp_path / "kept.binlog"
        kept.write_bytes(b"an older one")
        with private_file(kept) as file:
            file.write(b"rows")
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert {path: mode for path, mode in modes.items() if mode not in (0o700, 0o600)} == {}
    assert modes["work/shop/w1/segments"] == modes["work"] == 0o700
    assert modes["work/shop/w1/segments/000001.binlog"] == modes["kept.binlog"] == 0o600
    assert kept.read_bytes() == b"rows"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_what_others_may_read_is_readable_under_any_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        WorkFolder(str(tmp_path / "a" / "b"), depth=1, others_read=True).replace("c", b"names")
    finally:
        os.umask(before)
    modes = [(tmp_path / place).stat().st_mode & 0o777 for place in ("a", "a/b", "a/b/c")]
    assert modes == [0o700, 0o755, 0o644]


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="the system cannot open a folder without reading it")
def test_folders_above_a_window_need_not_be_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every folder, so the system's answer to another account is given here."""
    window, opens = WorkFolder.of_window(str(tmp_path / "work" / "shop" / "w1")), os.open
    window.write_once("a", b"1")

    def refusing(path: str | Path, flags: int, *args: Any, **options: Any) -> int:
        if Path(path).name in ("work", "shop") and not flags & os.O_PATH:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opens(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refusing)
    window.write_once("b/c", b"2")
    window.remove_file("a")
    assert (window.exists("a"), window.read("b/c")) == (False, b"2")
    window.remove()
    assert not window.exists("b/c")


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    WorkFolder(str(shared)).write_once("w1/manifest.json", b"{}")
    assert shared.stat().st_mode & 0o777 == 0o770


@pytest.mark.parametrize("name", ["../x", "/etc/hostname", "segments/../../x", "..", "a\0b", "x/.."])
@pytest.mark.parametrize(
    "use",
    [
        WorkFolder.read, WorkFolder.size, WorkFolder.exists, WorkFolder.open, WorkFolder.digest, WorkFolder.remove_file,
        WorkFolder.child, lambda folder, name: folder.write_once(name, b"x"),
        lambda folder, name: folder.fetch(name, Path()),
    ],
)  # fmt: skip
def test_no_name_leads_out_of_a_folder(tmp_path: Path, use: Callable[[WorkFolder, str], object], name: str) -> None:
    """Names are read from files in which others may write."""
    (tmp_path / "x").write_text("secret")
    for folder in (WorkFolder(str(tmp_path / "work")), WorkFolder("memory://work")):
        with pytest.raises(PlanError, match=r"work: expected the name of a file in this folder, found '"):
            use(folder, name)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_an_error_tells_nothing_of_the_file_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("1234")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "channel.json").symlink_to(tmp_path / "secret")
    folder = WorkFolder(str(tmp_path / "work"), {"channel.json": "a" * 64})
    with pytest.raises(PlanError, match=rf"expected SHA-256 {'a' * 64}, .* found another: ") as refused:
        folder.read("channel.json")
    assert digest_of(b"1234") not in str(refused.value)


def test_digests_of_an_answer_have_their_form() -> None:
    known = {"manifest.json": "a" * 64, "0123456789abcdef/lane-0.bin": "0" * 64}
    assert digests_in(known, "x") == known
    wrong: list[object] = [None, [], {"x": None}, {"x": "a" * 63}, {"a/x": "a" * 64}, {"..": "a" * 64}]
    for answer in wrong:
        with pytest.raises(PlanError, match=r"^x: expected the SHA-256 of files of the window"):
            digests_in(answer, "x")
