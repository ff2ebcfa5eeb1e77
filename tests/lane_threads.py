"""The lanes of a command as threads of the tests' process.

A lane's process is forked and begins with nothing: no connection, no compiled statement. That is most of the CPU of a
small window by the command line, and with four lanes twice the rest of the window. Lanes by themselves are the same in
both; their processes have tests of their own (``test_lane_processes``, ``test_ended_from_outside``, tests/chaos).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from binlane.orchestration.lane_processes import LaneProcesses


def _started(lanes: Any, workers: int) -> Executor:
    if lanes._pool is None or lanes._workers < workers:
        lanes._end()
        lanes._pool, lanes._workers = ThreadPoolExecutor(workers, "lane"), workers
    pool: Executor = lanes._pool
    return pool


def _begin(*_: object) -> None:
    """A thread has no first connection to make ahead."""


@contextlib.contextmanager
def lane_threads() -> Iterator[None]:
    """Within the context commands of this process apply lanes by threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaneProcesses, "_started", _started)
        patch.setattr(LaneProcesses, "begin", _begin)
        yield
