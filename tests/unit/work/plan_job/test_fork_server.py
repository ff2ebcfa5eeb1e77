"""The process from which workers are forked: an interpreter of its own, or a fork of the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = """
import os, signal, socket, sys, threading, time, types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from binlane.work.plan_job.fork_server import fork_server_here
from binlane.work.plan_job.processes import end_with_parent

def known(_):
    assert "json.tool" in sys.modules
    return "made_by_the_command" in sys.modules, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

def rest(seconds):
    print(os.getpid(), flush=True)
    time.sleep(seconds)

if __name__ == "__main__":
    sys.modules["made_by_the_command"] = types.ModuleType("made_by_the_command")
    print("before", end="")
    signal.signal(signal.SIGTERM, lambda *_: None)
    if "thread" in sys.argv:
        threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
    if "socket" in sys.argv:
        held = socket.socketpair()
    fork_server_here("json.tool", shared=["this"] if "shared" in sys.argv else [])
    if "shared" in sys.argv:
        print(" shared" if "this" in sys.modules and "json.tool" not in sys.modules else " not shared", end="")
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver"), initializer=end_with_parent) as pool:
        if "rest" in sys.argv:
            print("")
            list(pool.map(rest, [600.0] * 2))
        print(list(pool.map(known, range(2))))
"""


ANY_WORKER = """
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

def imported(modules):
    before = {*sys.modules}
    for module in modules:
        import_module(module)
    return sorted(each for each in {*sys.modules} - before if each.startswith("binlane."))

# workers run this file, too, and are not to import more by it
if __name__ == "__main__":
    from binlane.orchestration.lane_processes import LaneProcesses, apply_lane
    from binlane.restore.indexing import make_index
    from binlane.work.plan_job import early_scans, job

    if sys.argv[1] == "lanes":
        LaneProcesses()._started(1)
    elif sys.argv[1] == "scans":
        early_scans.EarlyScans(1)._submit(None, None)
    else:
        list(job.LocalProcesses(2).run("scan", len, [["a"], ["bc"]]))
    modules = [task.__module__ for task in (apply_lane, early_scans.early_scan, job.scan_task, make_index)]
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        # a lane imports the last one when it begins
        print(pool.submit(imported, [*modules, "binlane.apply.lane.runner"]).result())
"""


@pytest.mark.parametrize("first", ["lanes", "scans", "jobs"])
def test_whoever_starts_the_server_workers_of_every_kind_import_nothing_more(tmp_path: Path, first: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(ANY_WORKER)
    command = [sys.executable, str(script), first]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return [sys.executable, str(script)]


def environment() -> dict[str, str]:
    """With buffers, whatever the environment of the tests says."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "plugins"), "PYTHONUNBUFFERED": ""}


def test_workers_have_what_the_command_has_imported_and_not_its_handlers(command: list[str]) -> None:
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "before[(True, True), (True, True)]\n", "")


def test_modules_that_both_need_are_imported_by_the_command_and_others_by_the_server_alone(command: list[str]) -> None:
    done = subprocess.run([*command, "shared"], env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" shared[(True, True), (True, True)]\n")


@pytest.mark.parametrize("held", ["thread", "socket"])
def test_a_command_with_a_thread_or_a_connection_is_not_forked(command: list[str], held: str) -> None:
    done = subprocess.run([*command, held], env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "before[(False, True), (False, True)]\n", "")


def test_server_and_workers_end_when_the_command_is_killed(command: list[str]) -> None:
    with subprocess.Popen(
        [*command, "rest"], env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "before\n"
        for _ in range(2):
            parent.stdout.readline()
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + 60
        while members(parent.pid):
            assert time.monotonic() < end, f"{members(parent.pid)} outlive their parent"
            time.sleep(0.05)


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(folder.name))
    return found
