"""Files that decide what a command drops and where, or what a JVM executes, can be changed by their owner alone.

Attacker: another account of the machine, where a service starts binlane with the umask 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import ConfigError
from binlane.orchestration.commands.channel_files import make_folder, replace_text
from binlane.orchestration.commands.setup.new import new
from binlane.orchestration.plan_job.jvm_options import OPTIONS, with_jvm_options, write_class_archive
from tests.spark.spark_machine import spark_machine


def _extended(folder: Path) -> None:
    make_folder(folder / "channels" / "restores")
    replace_text(folder / "channels" / "restores" / "r1.toml", "")


def _archived(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        spark_machine(folder.with_name(f"{folder.name}_machine"), patch)
        patch.setenv("XDG_CACHE_HOME", str(folder / "home" / ".cache"))
        write_class_archive()


WRITERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "new": lambda folder: new("orders", folder / "channels", "s", "t", "auto"),
    "restore, drill": _extended,
    "spark-archive": _archived,
}
_OF_OTHERS: Final = 0o022


@pytest.fixture
def _mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_mask")
@pytest.mark.parametrize("writer", WRITERS)
def test_nobody_else_can_change_what_a_command_has_written(writer: str, tmp_path: Path) -> None:
    WRITERS[writer](tmp_path)
    modes = {path: path.stat().st_mode for path in tmp_path.rglob("*")}
    assert any(path.is_file() for path in modes)
    assert [path for path, mode in modes.items() if mode & _OF_OTHERS] == []


@pytest.mark.parametrize("theirs", [0o770, 0o707, "a link", "another owner"])
def test_a_jvm_reads_no_archive_of_a_folder_that_others_may_write(
    theirs: int | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_machine(tmp_path, monkeypatch)
    archive = write_class_archive()
    assert str(archive) in with_jvm_options(os.environ)[OPTIONS]
    folder = archive.parent
    if isinstance(theirs, int):
        folder.chmod(theirs)
    elif theirs == "a link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        monkeypatch.setattr("os.geteuid", lambda: folder.stat().st_uid + 1)
    assert archive.exists()
    assert "SharedArchiveFile" not in with_jvm_options(os.environ)[OPTIONS]
    with pytest.raises(ConfigError, match="written by nobody else"):
        write_class_archive()
