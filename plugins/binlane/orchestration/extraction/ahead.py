"""Reads the log from the watermark to its end in a process of its own, while the command still imports all that a
window needs besides: with two cores a small window is a fifth faster.

The process takes for granted what the step ``extract`` asks first: that the channel may run, that no window is open,
that the watermark is the one it has read. The step asks as ever, and takes the segments only if that is so; otherwise,
or if the process is gone, it reads the log itself. Nothing but the window's own folder is written here.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, cast

from binlane.errors import BinlaneError
from binlane.garbage import kept_imports
from binlane.machine_code import one_blas_thread
from binlane.work.filter.fork_server import may_fork

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from binlane.orchestration.extraction.reading import Reading, SegmentTold
    from binlane.plan.manifest import Manifest, Segment
    from binlane.source.segments import Progress
    from binlane.state.channels import Channel

_PROGRESS_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """What the process reads, and what it knew when it began."""

    state: Channel
    reading: Reading
    clock: float
    """The target's, before the source was asked for its log's end."""


class ReadAhead:
    """One reading; a context manager that ends its process, and removes segments that nobody has taken."""

    def __init__(self, pipe: Connection | None = None, end: Callable[[], None] | None = None) -> None:
        self._pipe, self._end = pipe, end
        self._begun: Begun | None = None
        self._is_taken = False

    @classmethod
    def of(cls, channel: str, folder: Path) -> ReadAhead:
        """Begin to read for a channel of ``folder``, in a process that is forked from this one: nothing is read ahead
        where that is not safe, or no core is idle."""
        if not may_fork() or (os.cpu_count() or 1) < 2:
            return cls()
        context = get_context("fork")
        pipe, theirs = context.Pipe(duplex=False)
        # a daemon: multiprocessing ends it with this process
        process = context.Process(target=_read, args=(channel, folder, theirs), name="binlane-reader", daemon=True)
        try:
            process.start()
        except OSError as exc:
            log.debug("the log is not read ahead: %s", exc)
            return cls()
        finally:
            theirs.close()

        def end() -> None:
            process.kill()
            process.join()

        return cls(pipe, end)

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.discard()

    def begun(self, channel: ChannelConfig, endpoints: Endpoints, state: Channel) -> Begun | None:
        """What is being read, if it is what a window of ``state`` needs."""
        if self._begun is None and self._pipe is not None:
            # an error of before is the step's own to meet: it may be gone by then, as an older schema is
            found = self._next()
            self._begun = found if isinstance(found, Begun) else None
        begun = self._begun
        if begun is None or self._is_taken or begun.state != state:
            self.discard()
            return None
        # the channel's file may have been changed since
        if (begun.reading.channel, begun.reading.endpoints) != (channel, endpoints):
            self.discard()
            return None
        return begun

    def manifest(self, told: SegmentTold | None, progress: Progress) -> Manifest | None:
        """Wait for the log's end; None if the process is gone. The segments belong to the caller from now on.

        Raises the errors of ``Reading.log``.
        """
        assert self._begun is not None
        self._is_taken = True
        while True:
            match self._next():
                case ("segment", segment) if told is not None:
                    told(self._begun.reading.folder, cast("Segment", segment))
                case ("progress", int(transactions), int(done), int(whole)):
                    progress(transactions, done, whole)
                case ("manifest", manifest):
                    self.discard()
                    return cast("Manifest", manifest)
                case BinlaneError() as error:
                    raise error
                case None:
                    self.discard()
                    return None

    def discard(self) -> None:
        """End the process, if it is still there, and remove what it has written, unless that is taken."""
        if self._pipe is None or self._end is None:
            return
        self._end()
        # it names its folder before it writes there
        if self._begun is None and isinstance(found := self._next(), Begun):
            self._begun = found
        self._pipe.close()
        self._pipe = self._end = None
        if self._begun is not None and not self._is_taken:
            self._begun.reading.folder.remove()

    def _next(self) -> object:
        """The next message; None when the process has ended, and there is none."""
        assert self._pipe is not None
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            return None


def _read(channel: str, folder: Path, pipe: Connection) -> None:
    """The process's life. It says nothing on the terminal: whoever waits for it reads the log itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _send_log(channel, folder, pipe)
    except BinlaneError as exc:
        pipe.send(exc)
    except Exception as exc:
        log.debug("the log is not read ahead: %s", exc)


def _send_log(channel_name: str, folder: Path, pipe: Connection) -> None:
    with kept_imports(), one_blas_thread():
        from binlane.apply.target_state import target_state
        from binlane.config import find_channel, load_channel
        from binlane.connections import environment_resolver, resolve_endpoints
        from binlane.orchestration.extraction.reading import Reading
        from binlane.servers.engines import engine_of, kept_connections
        from binlane.source.end_position import UntilLogEnd
        from binlane.state.channels import read_channel
        from binlane.state.records.history import clock_of
        from binlane.work.files import room_needed
        from binlane.work.filter.processes import end_with_parent

    end_with_parent()

    def told(_: object, segment: Segment) -> None:
        pipe.send(("segment", segment))

    due = 0.0

    def progress(*counts: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            pipe.send(("progress", *counts))
            due = time.monotonic() + _PROGRESS_SECONDS

    channel = load_channel(find_channel(channel_name, folder))
    endpoints = resolve_endpoints(channel, environment_resolver())
    with kept_connections(), target_state(endpoints.target), room_needed(channel.work.uri):
        with engine_of(endpoints.target).connect() as connection:
            clock, state = clock_of(connection), read_channel(connection, channel.name)
        reading = Reading.of_next(channel, endpoints, state)
        pipe.send(Begun(state, reading, clock))
        pipe.send(("manifest", replace(reading, told=told).log(UntilLogEnd(), progress)))
