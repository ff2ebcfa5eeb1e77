"""Restores around files that an archive's index rules out, in archives of each kind, killed where they pass over."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from binlane.model import Flavor
from binlane.orchestration.commands.copies import restore_windows
from binlane.restore import ruled_out
from binlane.state.windows import note_empty
from tests.integration.restore.scene import DATABASE, Scene, archive_of, contents, scene_of
from tests.integration.window.conftest import PLUGINS, ChannelOf, run_on
from tests.trials.test_restores import await_stage

_PACKED: Final[dict[str, Callable[[bytes], bytes]]] = {".gz": gzip.compress, ".zst": zstandard.compress}
_NAMES: Final = ("plain", "gz", "zst", "uri")


def _archive(scene: Scene, kind: str) -> str:
    """A copy of the log, as a folder of that kind; its place."""
    folder = archive_of(scene.source, scene.channel.project / kind, scene.start.partition(":")[0])
    if (pack := _PACKED.get(f".{kind}")) is not None:
        for file in [*folder.iterdir()]:
            file.with_name(f"{file.name}.{kind}").write_bytes(pack(file.read_bytes()))
            file.unlink()
    return f"file://{folder}/" if kind == "uri" else str(folder)


def _command(archive: str) -> tuple[str, ...]:
    return (
        "restore", "--from", "log", "--log", archive, "--database", DATABASE, "--as", "back",
        "--before", f"DROP DATABASE {DATABASE}", "--onto", "target_server",
    )  # fmt: skip


@pytest.mark.parametrize("kind", _NAMES)
@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_restore_that_ends_where_it_passes_over_files_goes_on(
    flavor: Flavor,
    kind: str,
    channel_of: ChannelOf,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), (), files=True)
    archive, target = _archive(scene, kind), scene.channel.target
    assert scene.channel.cli("archive", "index", archive) == 0, capsys.readouterr().err
    monkeypatch.setattr(ruled_out, "LEAST", 0)
    for name, is_noted in {"before": False, "behind": True}.items():
        calls = 0

        def interrupted(*given: Any, is_noted: bool = is_noted, **options: Any) -> None:
            nonlocal calls
            calls += 1
            if is_noted:
                note_empty(*given, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(restore_windows, "note_empty", interrupted)
            assert scene.channel.cli(*_command(archive), name, "--yes") != 0
        assert calls == 1
        assert scene.databases() == {"back_unfinished"}
        capsys.readouterr()
        assert scene.channel.cli("restore", "--continue", name) == 0, capsys.readouterr().err
        # behind the note nothing is left to pass over
        assert ("2 files passed over" in capsys.readouterr().out) != is_noted
        assert contents(target, "back") == scene.expected
        assert scene.channel.cli("restore", "--drop", name) == 0
        run_on(target, "DROP DATABASE back")


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_restore_whose_index_goes_or_comes_while_it_is_killed_goes_on(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), (), files=True)
    archive, target = _archive(scene, "plain"), scene.channel.target
    index = Path(archive) / "binlane_index"
    for name, is_there in {"loses": True, "gains": False}.items():
        assert scene.channel.cli("archive", "index", archive) == 0
        text = "from binlane.restore import ruled_out; ruled_out.LEAST = 0; from binlane.cli import program; program()"
        environment = {"BINLANE_CHANNELS": str(scene.channel.channels), "PYTHONPATH": str(PLUGINS)}
        if not is_there:
            index.rename(index.with_name("away"))
        with subprocess.Popen(
            [sys.executable, "-c", text, *_command(archive), name, "--yes"],
            env={**os.environ, **scene.channel.environment, **environment},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        ) as running:  # fmt: skip
            await_stage(target, name, "rolling")
            os.killpg(running.pid, signal.SIGKILL)
        if is_there:
            index.rename(index.with_name("away"))
        else:
            index.with_name("away").rename(index)
        capsys.readouterr()
        assert scene.channel.cli("restore", "--continue", name) == 0, capsys.readouterr().err
        assert contents(target, "back") == scene.expected
        assert scene.databases() == {"back"}
        assert scene.channel.cli("restore", "--drop", name) == 0
        run_on(target, "DROP DATABASE back")
        if is_there:
            index.with_name("away").rename(index)
