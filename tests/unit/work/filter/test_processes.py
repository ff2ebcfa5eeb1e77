"""A pool's processes end with the process that made them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[4]
PARENT = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from binlane.work.filter.processes import end_with_parent

def work(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver"), initializer=end_with_parent) as pool:
        list(pool.map(work, [float(sys.argv[1])] * 2))
"""


def test_processes_of_a_pool_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    command = [sys.executable, str(script), "600"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(_is_alive, workers))
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + 60
        while any(map(_is_alive, workers)):
            assert time.monotonic() < end, f"{workers} outlive their parent"
            time.sleep(0.05)


def test_a_pool_whose_parent_lives_ends_without_an_error(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run([sys.executable, str(script), "0.1"], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_fork_server_that_imports_says_nothing_of_ctrl_c() -> None:
    """A terminal sends SIGINT to all processes of a command, which says itself what became of it."""
    began = """
import sys, time
from binlane.work.filter.job import begin_fork_server
begin_fork_server("tests.unit.work.filter.slow_import")
print("begun", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(3)
"""
    with subprocess.Popen(
        [sys.executable, "-c", began],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "begun\n"
        # printed by the import, so the server is in it
        assert process.stdout.readline() == "imported slowly\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == 3
        assert process.stderr.read() == ""
