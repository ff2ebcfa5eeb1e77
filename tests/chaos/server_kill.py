"""kill -9 of a target at its n-th operation on files, by strace, while a lane applies a window to it."""

from __future__ import annotations

import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.runner import run_lane
from binlane.apply.session.retry_verdicts import Verdict, judge
from binlane.errors import BinlaneError
from lab.servers import PrivateServer
from tests.chaos.faults import plain_engine
from tests.chaos.scene import PATIENT
from tests.integration.apply.capture import Window
from tests.integration.apply.conftest import start_window

OPERATIONS: Final = (
    "openat,rename,renameat,renameat2,unlink,unlinkat,write,pwrite64,pwritev,fsync,fdatasync,ftruncate,mkdir,rmdir"
)


def run_and_kill(
    target: PrivateServer,
    window: Window,
    number: int,
    options: ApplyOptions = PATIENT,
    operations: str = OPERATIONS,
) -> bool:
    """Apply the window while the server dies at its operation ``number``, and then to its end; False if it had fewer.

    strace counts by thread and by kind of operation.
    """
    engine = plain_engine(target.url())
    start_window(engine, window.plan)
    inject = ["-e", f"trace={operations}", "-e", f"inject={operations}:signal=SIGKILL:when={number}"]
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(target.pid), *inject])
    _wait_until_traced(target.pid)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, engine, window, options)
        while not running.done() and tracer.poll() is None and not _is_dead(target.pid):
            time.sleep(0.02)
        killed = tracer.poll() is not None or _is_dead(target.pid)
        _end(tracer)
        if killed:
            target.kill()
            target.restart()
        running.result(timeout=120)
    run(engine, window, options)
    engine.dispose()
    return killed


def run(engine: Engine, window: Window, options: ApplyOptions = PATIENT) -> None:
    """Apply the window; an error that may be gone the next time is none."""
    try:
        for lane in window.plan.all_lanes:
            run_lane(engine, window.plan, lane, window.source, options)
    except (DBAPIError, BinlaneError) as exc:
        if judge(exc) is not Verdict.RETRY:
            raise


def _is_dead(pid: int) -> bool:
    """Whether the server has been killed, whoever has yet to hear of it."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


def _end(tracer: subprocess.Popen[bytes]) -> None:
    """It ends with its server; but sometimes it waits for ever for threads that have ended."""
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(timeout=3.0)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


def _wait_until_traced(pid: int) -> None:
    status = Path(f"/proc/{pid}/status")
    end = time.monotonic() + 10.0
    while "TracerPid:\t0\n" in status.read_text():
        assert time.monotonic() < end, "strace could not attach to the server"
        time.sleep(0.01)
