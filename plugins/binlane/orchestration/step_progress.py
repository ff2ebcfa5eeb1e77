"""Tells how far a step has come: extraction, and the load of a restore, on the target, for status and board; a lane in
its task's log."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from binlane.apply.lane.options import Progress as LaneProgress
from binlane.connections import Endpoint
from binlane.servers.engines import engine_of
from binlane.state.records.progress import RunStep, begin_step, end_step, read_step, save_step

SECONDS: Final = 2.0
"""Between two writes of the same step."""
Told = Callable[[int, int], None]
"""Called with the bytes of log so far, and in all; 0 if that is not known."""
Progress = Callable[[int, int, int], None]
"""As ``source.segments`` calls it."""
_LOG_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


@contextlib.contextmanager
def extraction(
    target: Endpoint, channel: str, window_id: str, told: Told | None, *, is_dry: bool
) -> Iterator[Progress]:
    """Around the extraction of a window, which is in no step afterwards. ``is_dry``: write nothing on the target."""
    engine, due = engine_of(target), time.monotonic() + SECONDS
    if not is_dry:
        begin_step(engine, channel, RunStep.EXTRACT, window_id)

    def progress(_: int, done: int, total: int) -> None:
        nonlocal due
        if told is not None:
            told(done, total)
        if not is_dry and time.monotonic() >= due:
            save_step(engine, channel, window_id, done, total)
            due = time.monotonic() + SECONDS

    try:
        yield progress
    finally:
        if not is_dry:
            end_step(engine, channel, window_id)


def told_load(target: Endpoint, restore: str, statements: Iterator[bytes]) -> Iterator[bytes]:
    """The statements of a restore's dump; their bytes are counted on the target, against the total that the restore
    began with (``RunStep.LOAD``)."""
    engine, due, done = engine_of(target), time.monotonic() + SECONDS, 0
    with engine.connect() as connection:
        row = read_step(connection, restore)
    total = 0 if row is None or row.step is not RunStep.LOAD else row.total
    begin_step(engine, restore, RunStep.LOAD, RunStep.LOAD, total=total)
    for each in statements:
        yield each
        done += len(each)
        if time.monotonic() >= due:
            save_step(engine, restore, RunStep.LOAD, done, total)
            due = time.monotonic() + SECONDS


class LaneLog:
    """A lane's progress for a task's log: a line every few seconds, not one a block."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _LOG_SECONDS

    def __call__(self, progress: LaneProgress) -> None:
        """Log progress, at most every few seconds."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOG_SECONDS
            log.info(
                "lane %d: at seqno %s; %s transactions, %s row changes so far",
                progress.lane, f"{progress.seqno:,}", f"{progress.transactions:,}", f"{progress.rows.total:,}",
            )  # fmt: skip
