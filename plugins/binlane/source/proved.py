"""The one door to a source's log for all that read it without extracting a window.

A reader that passes by a file's missing end, or by a file of another log, takes what it has not seen for what is not
there: drift for pending, a dropped table for one that is still there. So each reader gets the log with the proofs that
a window has: its place is in the log that it was taken from, and every file behind it is the next one of that log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from functools import partial

from binlane.model import LogPosition
from binlane.plan.manifest import Manifest
from binlane.source.end_position import UntilLogEnd, UntilPosition
from binlane.source.identity import Start, check_source, continued, verified
from binlane.source.protocol import EventSource, LogChunk, first_bytes
from binlane.source.segment_writer import Nowhere
from binlane.source.segments import Extraction
from binlane.source.temporary import TemporaryTracker


def proved(
    source: EventSource, start: Start, temporary: TemporaryTracker | None = None
) -> Generator[LogChunk, None, None]:
    """The chunks from ``start`` to the log's present end, as ``EventSource.read_log`` gives them.

    ``temporary`` sees every transaction. A start without a fingerprint is one whose log was proved a moment ago: the
    end of a window that has just been read. Raises SourceIdentityError for another log, MissingLogError for a part that
    is missing, BinlogError for a damaged one.
    """
    state = source.state()
    check_source(source.name, state, start)
    run = Extraction(
        source.name, state, start, UntilLogEnd(), Nowhere(), temporary=temporary, event_bytes=source.event_bytes,
        first_bytes=partial(first_bytes, source),
    )  # fmt: skip
    known = bool(start.fingerprint)
    chunks = continued(source, start) if known else source.read_log(start.position, start.gtid_set)
    with contextlib.closing(chunks):
        for chunk in chunks:
            is_at_end = run.take(chunk)
            yield chunk
            if is_at_end:
                break
    run.finish()


def read_through(source: EventSource, start: Start, end: LogPosition) -> Manifest:
    """What a window from ``start`` to ``end`` would be, without its files, channel and name. Raises as ``proved``, and
    SourceIdentityError if ``end`` is not between two transactions."""
    state = source.state()
    run = Extraction(
        source.name, state, start, UntilPosition(end), Nowhere(), event_bytes=source.event_bytes,
        first_bytes=partial(first_bytes, source),
    )  # fmt: skip
    with contextlib.closing(verified(source, state, start)) as chunks:
        for chunk in chunks:
            if run.take(chunk):
                break
    run.finish()
    return run.manifest("", "")


def prove_log(source: EventSource, start: Start) -> None:
    """Raises SourceIdentityError if the log is another one than that from which ``start`` was taken, MissingLogError if
    it has lost the place."""
    check_source(source.name, source.state(), start)
    with contextlib.closing(continued(source, start)) as chunks:
        next(chunks)
        # what comes next lies behind the events that are compared
        next(chunks, None)
