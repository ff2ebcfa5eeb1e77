"""The folder in memory of a session's servers: gone with its session, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.server_folders import has_memory, memory_folder

PROJECT = Path(__file__).parents[2]
SESSION = """
import sys, time
from pathlib import Path
from tests.server_folders import memory_folder
with memory_folder(Path(sys.argv[1])) as folder:
    (folder / "data").mkdir()
    print(folder, flush=True)
    time.sleep(600)
"""


def test_a_folder_goes_with_its_session_and_that_of_a_killed_one_with_the_next_session(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", SESSION, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )  # fmt: skip
    assert running.stdout is not None
    other = Path(running.stdout.readline().strip())
    try:
        with memory_folder(tmp_path) as ours:
            (ours / "data").mkdir()
            assert other.exists()
        assert list(tmp_path.iterdir()) == [other]
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()
    with memory_folder(tmp_path) as ours:
        assert list(tmp_path.iterdir()) == [ours]
    assert list(tmp_path.iterdir()) == []


def test_data_are_on_a_disk_where_memory_is_short(tmp_path: Path) -> None:
    assert has_memory(tmp_path, left=0)
    assert not has_memory(tmp_path, left=1 << 60)
    assert not has_memory(tmp_path / "none", left=0)
