"""A file beside the channel files is whole, or is not there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from binlane.orchestration.commands.channel_files import replace_text, write_new
from binlane.work.files import WorkFolder
from binlane.work.real_folders import sync


@pytest.mark.parametrize("call", ["fsync", "fdopen"])
def test_a_disk_without_room_leaves_no_part_of_a_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.toml"
    write_new(old, "before")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, Mock(side_effect=OSError(errno.ENOSPC, "no space")))
        with pytest.raises(OSError, match="no space"):
            write_new(tmp_path / "new.toml", "text")
        with pytest.raises(OSError, match="no space"):
            replace_text(old, "after")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"old.toml": "before"}


def test_a_file_and_its_name_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a row of the target names it."""
    synced, real = list[str](), os.fsync

    def fsync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    for write in (write_new, replace_text):
        synced.clear()
        write(tmp_path / "r1.toml", "text")
        assert synced == [f"r1.{os.getpid()}.new", tmp_path.name]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_is_there_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EOPNOTSUPP, "no links")))
    write_new(tmp_path / "r1.toml", "first")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "r1.toml", "second")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"r1.toml": "first"}


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EBADF, errno.ENOTSUP])
def test_a_file_system_that_syncs_no_folders_takes_files(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, "no folders")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_new(tmp_path / "r1.toml", "text")
    replace_text(tmp_path / "r1.toml", "another")
    WorkFolder(str(tmp_path)).write_once("w1/plan.json", b"{}")
    assert {each.name for each in tmp_path.iterdir()} == {"r1.toml", "w1"}


def test_a_disk_that_fails_is_no_file_system_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "open").open("w") as file:
        monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(errno.EIO, "lost")))
        with pytest.raises(OSError, match="lost"):
            sync(file.fileno())
