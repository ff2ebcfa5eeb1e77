"""A step in an interpreter of its own, so that its peak of memory is its own and nobody's before it."""

from __future__ import annotations

import queue
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

_POLL: Final = 1.0


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a step answered, what it took without the interpreter's start, and what it needed."""

    answer: Any
    seconds: float
    peak_rss_mib: int
    """Of the process or of its largest child; pages of a mapped file count while they are in memory."""


def peak_rss_kib() -> int:
    """The most that this process, or any child that has ended, ever had in memory."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def in_fresh_process(step: Callable[..., Any], *arguments: Any) -> Fresh:
    """Run ``step``, a function of a module, in a new interpreter. Ends the benchmark if that process fails."""
    context = get_context("spawn")
    results: Queue[Fresh] = context.Queue()
    process = context.Process(target=_child, args=(step, arguments, results))
    process.start()
    while True:
        try:
            found = results.get(timeout=_POLL)
        except queue.Empty:
            if process.exitcode is not None:
                raise typer.Exit(1) from None
            continue
        process.join()
        return found


def _child(step: Callable[..., Any], arguments: tuple[Any, ...], results: Queue[Fresh]) -> None:
    began = time.monotonic()
    answer = step(*arguments)
    results.put(Fresh(answer, round(time.monotonic() - began, 3), peak_rss_kib() >> 10))
