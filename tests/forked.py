"""Processes to be killed, stopped and continued, forked from a server that has imported everything.

A program that is started anew spends seconds of a core on its imports alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, Final

CONTEXT: Final = get_context("forkserver")
_PRELOADED: Final = ["binlane.orchestration.commands.run", "tests.chaos.worker", "tests.integration.apply.worker"]


@contextlib.contextmanager
def process(target: Callable[..., object], *arguments: Any) -> Iterator[ForkServerProcess]:
    """A running process; killed at the end if it is still there."""
    # where the product has started the server first, a process imports what is missing by itself
    CONTEXT.set_forkserver_preload(_PRELOADED)
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
