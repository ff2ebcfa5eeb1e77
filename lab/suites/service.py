"""The connection between a running test and its verdict: a socket for tests, and one process that computes verdicts.

The process is replaced if it does not answer in time, so that a hanging window does not end the trial.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from binlane.model import Flavor
from lab.suites.cleaning import clean
from lab.suites.judging import Question, Verdict, judge
from lab.suites.servers import ServersBeside
from lab.suites.verdict import Outcome

_CONTEXT: Final = get_context("spawn")
_MEMORY: Final = Path("/dev/shm")
_SECONDS: Final = 300.0
"""Seconds for one verdict: a target, a replica, and the timeouts of both."""

Answered = Callable[[str, Verdict], None]
"""Called with a test and its verdict."""


class Judge:
    """The process that computes verdicts. Not thread-safe."""

    def __init__(self, flavor: Flavor, program: Path, template: Path) -> None:
        self._flavor, self._program, self._template = flavor, program, template
        self._closed = False
        self._begin()

    def verdict(self, test: str, port: int) -> Verdict | None:
        """The verdict of a test whose source is on that port; None if the trial is closed meanwhile."""
        place = self._folder / "project"
        self._pipe.send(Question(self._flavor, test, port, self._program, self._template, place))
        with contextlib.suppress(EOFError):
            if self._pipe.poll(_SECONDS):
                verdict: Verdict = self._pipe.recv()
                return verdict
        if self._closed:
            return None
        self._end()
        self._begin()
        return Verdict(Outcome.FAILED, reason=f"no end after {_SECONDS:.0f} s, or the process has died")

    def close(self) -> None:
        """End the process, and with it its servers."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> None:
        memory = _MEMORY if _MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix=f"binlane-suites-{self._flavor.value}-", dir=memory))
        self._pipe, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_answer, args=(other, self._folder), daemon=True)
        self._process.start()
        other.close()


def _answer(pipe: Connection, folder: Path) -> None:
    logging.disable(logging.ERROR)
    servers = ServersBeside(folder)
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(judge(pipe.recv(), servers))


@contextlib.contextmanager
def listening(path: Path, flavor: Flavor, judge: Judge, answered: Answered) -> Iterator[None]:
    """Answer the tests of one driver at the socket ``path`` while the block runs."""
    path.unlink(missing_ok=True)
    turn = threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(self.rfile.readline())
            with turn:
                said = _handle(asked, flavor, judge, answered)
            self.wfile.write(f"{said}\n".encode())

    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def _handle(asked: Mapping[str, Any], flavor: Flavor, judge: Judge, answered: Answered) -> str:
    ports: Mapping[str, int] = asked["ports"]
    if asked["step"] == "start":
        clean(flavor, sorted(set(_servers(ports).values())))
        return "clean"
    # a test with servers of its own configuration has numbers alone
    verdict = judge.verdict(asked["test"], ports.get("MASTER_MYPORT") or ports["SERVER_MYPORT_1"])
    if verdict is None:
        return "closed"
    answered(asked["test"], verdict)
    return str(verdict.outcome)


def _servers(ports: Mapping[str, int]) -> dict[str, int]:
    """The ports of the test's servers, without the ports of other protocols."""
    return {name: port for name, port in ports.items() if name.split("_MYPORT")[0] in ("MASTER", "SLAVE", "SERVER")}
