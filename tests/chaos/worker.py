"""A process that runs a window with a fault in it, forked from a server that has imported everything."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from typing import Any

from binlane.apply.options import ApplyOptions
from binlane.errors import BinlaneError
from tests.chaos.faults import Fault, Faults, killer
from tests.chaos.scene import Scene, run_all

_context = get_context("forkserver")
_context.set_forkserver_preload([__name__])


@contextlib.contextmanager
def process(target: Callable[..., None], *arguments: Any) -> Iterator[ForkServerProcess]:
    """A running process; killed at the end if it is still there."""
    running = _context.Process(target=target, args=arguments, daemon=True)
    running.start()
    try:
        yield running
    finally:
        if running.is_alive():
            running.kill()
        running.join()


def was_killed(target: Callable[..., None], *arguments: Any) -> bool:
    """Run it to its end; whether it ended by SIGKILL. Any end but that and success is an error."""
    with process(target, *arguments) as running:
        running.join(timeout=120)
        assert running.exitcode in (0, -signal.SIGKILL), f"the worker ended with {running.exitcode}"
        return running.exitcode != 0


def apply_window(url: str, scene: Scene, options: ApplyOptions, fault: Fault) -> None:
    """All lanes, one after another, and the watermark. An error of the product is not a failure of the worker."""
    with contextlib.suppress(BinlaneError):
        run_all(Faults(fault, kill=killer(url)).engine(url), scene, options)
