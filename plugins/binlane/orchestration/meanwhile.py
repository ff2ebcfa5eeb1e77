"""Source and target asked at the same time: each is another machine, and of ten thousand tables each takes seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

_Answer = TypeVar("_Answer")


@contextlib.contextmanager
def meanwhile(ask: Callable[[], _Answer]) -> Iterator[Callable[[], _Answer]]:
    """Call ``ask`` in a thread while the block runs; what is yielded waits for its answer, or raises what it raised.

    The thread uses the step's kept connections, as the block does: they must be of different servers.
    """
    with ThreadPoolExecutor(1, "binlane-meanwhile") as pool:
        yield pool.submit(copy_context().run, ask).result
