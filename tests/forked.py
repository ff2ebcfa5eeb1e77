"""Processes to be killed, stopped and continued, forked from a server that has imported everything.

A program that is started anew spends seconds of a core on its imports alone, and so does a process whose server lacks
them: the session's server has what tests' processes run, too, whoever starts it (``conftest.whole_fork_server``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, Final

from binlane.work.plan_job.fork_server import begin_fork_server

CONTEXT: Final = get_context("forkserver")
PRELOADED: Final = (
    "binlane.orchestration.commands.run",
    "tests.chaos.worker",
    "tests.integration.apply.worker",
    "tests.integration.window.conftest",
)


@contextlib.contextmanager
def process(target: Callable[..., object], *arguments: Any) -> Iterator[ForkServerProcess]:
    """A running process; killed at the end if it is still there."""
    begin_fork_server()
    running = CONTEXT.Process(target=target, args=arguments, daemon=True)
    running.start()
    try:
        yield running
    finally:
        if running.is_alive():
            running.kill()
        running.join()


@contextlib.contextmanager
def telling(target: Callable[..., object], *arguments: Any) -> Iterator[tuple[ForkServerProcess, Connection]]:
    """A process whose last argument is the writing end of a pipe, and the reading end: EOFError is its end."""
    reader, writer = CONTEXT.Pipe(duplex=False)
    with reader, process(target, *arguments, writer) as running:
        writer.close()
        yield running, reader
