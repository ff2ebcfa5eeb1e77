"""The source coordinates of a seqno inside an extracted window, as if the window had ended there.

The window's segments are read by the code that reads a source, so position, GTID set, time and fingerprint are the same
as after an extraction up to this seqno.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.gtids import Gtid, MariadbGtid
from binlane.binlog.payload import MAX_UNCOMPRESSED
from binlane.binlog.wire import HEADER, Buffer, EventHeader
from binlane.errors import PlanError
from binlane.model import LogPosition
from binlane.plan.manifest import Manifest, Segment
from binlane.source.end_position import AnyTransaction, UntilLogEnd
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segment_writer import Nowhere
from binlane.source.segments import Extraction
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import segment_bytes

_CHUNK: Final = 4 << 20
"""Minimum bytes of events read at once, in whole events."""


def place_of(folder: WorkFolder, manifest: Manifest, start: Start, seqno: int) -> Start:
    """The position after the transaction ``seqno`` of the window in ``folder``, which begins at ``start``.

    Raises PlanError if ``seqno`` is not in the window, or if segments are missing or changed.
    """
    if not manifest.first_seqno <= seqno <= manifest.last_seqno:
        raise PlanError(
            f"{folder.uri}: expected a seqno from {manifest.first_seqno} to {manifest.last_seqno}, got {seqno}"
        )
    first = manifest.segments[0]
    state = LogState(
        manifest.identity,
        first.flavor,
        tuple(dict.fromkeys(segment.source_file for segment in manifest.segments)),
        None,
        time.time(),
        closes_by_clock=False,
    )
    # a file without transactions of the window has no segment
    at = LogPosition(first.source_file, first.start_offset)
    begin = Start(start.seqno, at, start.gtid_set, start.time, start.identity, start.fingerprint)
    bound = _AfterSeqno(seqno - start.seqno)
    # the window's digests prove what its extraction has accepted
    run = Extraction(folder.uri, state, begin, UntilLogEnd(), Nowhere(), bound=bound, event_bytes=MAX_UNCOMPRESSED)
    with contextlib.closing(_chunks(folder, manifest)) as chunks:
        for chunk in chunks:
            if run.take(chunk):
                break
        run.finish()
    found = run.manifest(manifest.channel, manifest.window)
    if found.last_seqno != seqno:
        raise PlanError(f"{folder.uri}: expected the transaction {seqno}, the segments end at {found.last_seqno}")
    return Start(seqno, found.end, found.gtid_set, found.end_time, manifest.identity, found.fingerprint)


class _AfterSeqno(AnyTransaction):
    """A bound that ends after a number of transactions."""

    def __init__(self, transactions: int) -> None:
        self._left = transactions

    def stops_before(self, gtid: Gtid | MariadbGtid | None, commit_time: float) -> bool:
        """Count the transaction."""
        self._left -= 1
        return False

    def stops_after(self) -> bool:
        """After the last transaction."""
        return self._left <= 0

    def passes(self, commit_times: NDArray[np.float64]) -> int:
        """All but the last transaction."""
        passed = max(min(commit_times.size, self._left - 1), 0)
        self._left -= passed
        return passed


def _chunks(folder: WorkFolder, manifest: Manifest) -> Generator[LogChunk, None, None]:
    """The segments as a source gives them: for each file its FORMAT_DESCRIPTION, then its events."""
    file = ""
    for segment in manifest.segments:
        with segment_bytes(folder, segment) as data:
            left_out = 0
            if segment.source_file != file:
                # where a server decrypts its log, an event of each file's beginning is in no segment
                left_out = segment.start_offset - segment.header_length if file else 0
                file = segment.source_file
                yield LogChunk(file, LOG_START, bytes(data[LOG_START : segment.header_length]))
            for chunk in _events(data, segment):
                yield chunk._replace(left_out=left_out)
                left_out = 0


def _events(data: Buffer, segment: Segment) -> Generator[LogChunk, None, None]:
    """Pieces of a segment, cut between events."""
    begin = at = segment.header_length
    while at < len(data):
        # the digest was verified, so the sizes are those of the extraction
        at += EventHeader._make(HEADER.unpack_from(data, at)).event_size
        if at - begin >= _CHUNK or at >= len(data):
            yield LogChunk(
                segment.source_file,
                segment.start_offset + begin - segment.header_length,
                bytes(data[begin:at]),
            )
            begin = at
