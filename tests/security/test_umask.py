"""Files beside the channel files, which decide what a command drops and where, can be changed by their owner alone.

Attacker: another account of the machine, where a service starts binlane with the umask 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.orchestration.commands.channel_files import make_folder, replace_text
from binlane.orchestration.commands.setup.new import new


def _extended(folder: Path) -> None:
    make_folder(folder / "channels" / "restores")
    replace_text(folder / "channels" / "restores" / "r1.toml", "")


WRITERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "new": lambda folder: new("orders", folder / "channels", "s", "t", "auto"),
    "restore, drill": _extended,
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
