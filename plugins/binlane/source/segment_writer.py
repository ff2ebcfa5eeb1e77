"""Writes segments: valid binlog files, each named when it is complete."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import IO, Any, Final, Protocol

from blake3 import blake3

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import MAGIC
from binlane.lazy_dataclass import dataclass
from binlane.plan.manifest import Segment
from binlane.work.files import WorkFolder

_FOLDER: Final = "segments"
_BEHIND: Final = 8 << 20
"""Maximum bytes that are read and not written yet; a single larger piece is held alone."""

SegmentTold = Callable[[Segment], None]
Progress = Callable[[int, int, int], None]
"""Called with the transactions and bytes of log so far, and the bytes up to the stop or the log's end, 0 if unknown."""


@dataclass(slots=True)
class Stretch:
    """The content of a segment so far: [start, end) of one file of the source."""

    file: str
    log_format: FormatDescription
    header: bytes
    start: int
    end: int
    first_seqno: int
    last_seqno: int
    first_time: float = 0.0
    last_time: float = 0.0
    first_gtid: str = ""
    last_gtid: str = ""

    @property
    def transactions(self) -> int:
        """Number of whole transactions."""
        return self.last_seqno - self.first_seqno + 1


class Sink(Protocol):
    """Where whole transactions go, in the log's order."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that are complete."""

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        """Write whole transactions and the bookkeeping events before them; ``header``: FORMAT_DESCRIPTION."""

    def close(self, stretch: Stretch) -> None:
        """Close the segment that holds ``stretch``, the part of the log written since the last call."""

    def abort(self, exc: BaseException) -> None:
        """Extraction has failed: discard the open segment."""


class Nowhere:
    """A sink that discards all data, used to find a place in a log."""

    segments: tuple[Segment, ...] = ()

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        """See Sink."""

    def close(self, stretch: Stretch) -> None:
        """See Sink."""

    def abort(self, exc: BaseException) -> None:
        """See Sink."""


class SegmentWriter:
    """Segments ``segments/000001.binlog`` and so on, in a window's folder."""

    def __init__(self, folder: WorkFolder) -> None:
        self._segments: list[Segment] = []
        self._folder = folder
        self._open: IO[bytes] | None = None
        self._whole = contextlib.ExitStack()
        self._hash = blake3()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """See Sink."""
        return tuple(self._segments)

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        """Append; the first write of a segment begins it with magic and ``header``."""
        if self._open is None:
            self._open = self._whole.enter_context(self._folder.create(self._name()))
            self._hash = blake3()
            self._append(MAGIC + header)
        self._append(data)

    def close(self, stretch: Stretch) -> None:
        """Finish the segment, which holds ``stretch``."""
        self._whole.close()
        self._open = None
        self._segments.append(
            Segment(
                name=self._name(),
                bytes=len(MAGIC) + len(stretch.header) + stretch.end - stretch.start,
                blake3=self._hash.hexdigest(),
                flavor=stretch.log_format.flavor,
                server_version=stretch.log_format.server_version,
                checksum=stretch.log_format.checksum.name,
                first_seqno=stretch.first_seqno,
                last_seqno=stretch.last_seqno,
                transactions=stretch.transactions,
                source_file=stretch.file,
                start_offset=stretch.start,
                end_offset=stretch.end,
                first_time=stretch.first_time,
                last_time=stretch.last_time,
                first_gtid=stretch.first_gtid,
                last_gtid=stretch.last_gtid,
            )
        )

    def abort(self, exc: BaseException) -> None:
        """Remove the file of the open segment."""
        self._open = None
        self._whole.__exit__(type(exc), exc, exc.__traceback__)

    def _append(self, data: bytes | memoryview) -> None:
        assert self._open is not None
        self._hash.update(data)
        self._open.write(data)

    def _name(self) -> str:
        return f"{_FOLDER}/{len(self._segments) + 1:06d}.binlog"


class WrittenBehind:
    """A sink that passes everything on to another one, in a thread of its own; a context manager, which ends it.

    The log is read on while the disk and the hash take their time. The data must not change later. What fails there is
    raised by a later call, at the latest by ``segments``; nothing behind it is passed on then.
    """

    def __init__(self, sink: Sink, told: SegmentTold | None = None) -> None:
        """``told``: called with each segment when its file is complete, in the caller's thread."""
        self._sink, self._told = sink, told
        self._said = 0
        """Segments with which ``told`` was called."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="binlane-write")
        self._begun = deque[tuple[Future[None], int]]()
        self._held = 0
        """Bytes of the calls in ``_begun``."""
        self._has_failed = False

    def __enter__(self) -> WrittenBehind:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """See Sink; waits for all that was passed on."""
        self._wait(-1)
        return self._sink.segments

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        """See Sink."""
        self._pass(len(data), self._sink.write, data, header)

    def close(self, stretch: Stretch) -> None:
        """See Sink."""
        self._pass(0, self._sink.close, stretch)

    def abort(self, exc: BaseException) -> None:
        """See Sink; what is not written yet is dropped."""
        self._has_failed = True
        try:
            # not by joining the thread: Python 3.11 takes it for ended if a signal interrupts that
            wait([each for each, _ in self._begun])
        finally:
            self._sink.abort(exc)

    def _pass(self, size: int, call: Callable[..., None], *arguments: Any) -> None:
        self._wait(max(_BEHIND - size, 0))
        self._begun.append((self._pool.submit(self._do, call, *arguments), size))
        self._held += size

    def _do(self, call: Callable[..., None], *arguments: Any) -> None:
        """In the thread: the call, unless one before it has failed; behind a hole nothing may be written."""
        if self._has_failed:
            return
        try:
            call(*arguments)
        except BaseException:
            self._has_failed = True
            raise

    def _wait(self, most: int) -> None:
        """Wait until no more than ``most`` bytes are held; -1: until everything is done. Raises what failed."""
        while self._begun and (self._begun[0][0].done() or most < 0 or self._held > most):
            done, size = self._begun.popleft()
            self._held -= size
            done.result()
        if self._told is not None:
            for segment in self._sink.segments[self._said :]:
                self._said += 1
                self._told(segment)
