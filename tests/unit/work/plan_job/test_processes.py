"""A pool's processes end with the process that made them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PARENT = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from binlane.work.plan_job.processes import end_with_parent

def work(seconds):
    # in one piece also where output has no buffer: two of them write at once
    os.write(1, b"%d\\n" % os.getpid())
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


WORKERS = """
import os, sys, time
from binlane.errors import BinlaneError
from binlane.work.plan_job.job import LocalProcesses

def work(name):
    # in one piece also where output has no buffer: two of them write at once
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

def run():
    engine = LocalProcesses(2)
    try:
        list(engine.run("scan", work, [["a"], ["b"]]))
    except BinlaneError as exc:
        sys.exit(f"{type(exc).__name__}: {exc}")
    except KeyboardInterrupt:
        sys.exit(3)
    finally:
        engine.close()

"""
GUARDED = 'if __name__ == "__main__":\n    run()\n'


@contextlib.contextmanager
def _workers(folder: Path, end: str = GUARDED) -> Iterator[subprocess.Popen[str]]:
    """A plan job, in a session of its own."""
    script = folder / "workers.py"
    script.write_text(WORKERS + end)
    process = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")}, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _at_work(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(2)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_process_of_the_plan_job_is_told_in_one_line(tmp_path: Path, which: int) -> None:
    with _workers(tmp_path) as process:
        os.kill(sorted(_at_work(process))[which], signal.SIGKILL)
        _, said = process.communicate()
    assert said.startswith("ExecutorsLostError: a process of the plan job was killed from outside (kill -9, or out")
    assert len(said.splitlines()) == 1


CUT = """
import os, sys
from pathlib import Path
from binlane.errors import BinlaneError
from binlane.work.files import WorkFolder
from binlane.work.memory_map import mapped
from binlane.work.plan_job.job import LocalProcesses

def work(name):
    with mapped(WorkFolder(sys.argv[1]), name, 1) as data:
        os.truncate(Path(sys.argv[1]) / name, 0)
        return bytes(data)

if __name__ == "__main__":
    try:
        list(LocalProcesses(2).run("scan", work, [["a"], ["b"]]))
    except BinlaneError as exc:
        sys.exit(f"{type(exc).__name__}: {exc}")
"""


def test_a_segment_that_somebody_cuts_while_it_is_read_is_an_error_that_says_so(tmp_path: Path) -> None:
    """Attacker: who can write to a work folder of this machine."""
    for name in "ab":
        (tmp_path / name).write_bytes(bytes(1 << 20))
    script = tmp_path / "cut.py"
    script.write_text(CUT)
    command = [sys.executable, str(script), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(
        "ExecutorsLostError: a process of the plan job was ended by SIGBUS: a file that it had"
    )
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the command alone", "as a terminal does"])
def test_an_interrupted_plan_job_does_not_wait_for_its_batches(
    tmp_path: Path, send: Callable[[int, int], None]
) -> None:
    with _workers(tmp_path) as process:
        workers = _at_work(process)
        send(process.pid, signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 3
        assert "Traceback" not in said
        assert not any(map(_is_alive, workers))


def test_a_script_that_runs_again_in_its_processes_is_told_what_it_lacks(tmp_path: Path) -> None:
    with _workers(tmp_path, "run()\n") as process:
        _, said = process.communicate()
    assert 'if __name__ == "__main__"' in said.splitlines()[-1]
    assert "killed" not in said.splitlines()[-1]


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
from binlane.work.plan_job.job import begin_fork_server
begin_fork_server("tests.unit.work.plan_job.slow_import")
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
