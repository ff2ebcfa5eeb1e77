"""Finds transactions of an extracted window in its segments, by seqno, GTID or time, with their bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.wire import Buffer, SegmentOffset
from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.plan.manifest import Manifest, Segment
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import segment_bytes

TIMES_DIFFER: Final = 60.0
"""Seconds by which a transaction may be older than one in front of it, without a doubt where in the log a time has
come. A log says what sessions say: SET TIMESTAMP logs any time, and a long statement logs its beginning."""


@dataclass(frozen=True, slots=True)
class FoundTransaction:
    """One transaction of a window."""

    seqno: int
    gtid: str
    source: LogPosition
    commit_time: float
    log: bytes
    """A binlog file of this transaction alone: magic, FORMAT_DESCRIPTION and its events."""


def read_manifest(folder: WorkFolder) -> Manifest:
    """The window's manifest. Raises PlanError if it is missing or damaged."""
    return Manifest.from_json(folder.read(files.MANIFEST), f"{folder.uri}/{files.MANIFEST}")


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment in its window's folder."""

    folder: WorkFolder
    segment: Segment

    @property
    def source_file(self) -> str:
        """The source's log file that it is a part of."""
        return self.segment.source_file

    def opened(self) -> AbstractContextManager[Buffer]:
        """``segment_bytes``."""
        return segment_bytes(self.folder, self.segment)


def stored_segments(folder: WorkFolder) -> list[StoredSegment]:
    """What a window applies, in the log's order; before it, the parts of earlier windows with XA transactions that were
    prepared there and end in this one. Raises PlanError if the manifest is gone."""
    manifest = read_manifest(folder)
    return [StoredSegment(folder, segment) for segment in (*manifest.carried, *manifest.segments)]


def find_seqnos(folder: WorkFolder, first: int, last: int) -> Iterator[FoundTransaction]:
    """The transactions ``first`` to ``last``. Raises PlanError if the window does not hold all of them."""
    manifest = read_manifest(folder)
    if not manifest.first_seqno <= first <= last <= manifest.last_seqno:
        raise PlanError(
            f"{folder.uri}: expected seqnos of the open window, {manifest.first_seqno} to {manifest.last_seqno}, "
            f"got {first} to {last}; `binlane inspect` on the window's segments lists them"
        )
    for segment in manifest.segments:
        if segment.first_seqno <= last and first <= segment.last_seqno:
            with segment_bytes(folder, segment) as data:
                for seqno, transaction in _numbered(data, segment):
                    if first <= seqno <= last:
                        yield _found(seqno, transaction, segment, bytes(data[: segment.header_length]), data)


def find_gtid(folder: WorkFolder, gtid: str) -> int:
    """The seqno of the transaction with this GTID. Raises PlanError if the window has none."""
    manifest = read_manifest(folder)
    for segment in manifest.segments:
        with segment_bytes(folder, segment) as data:
            for seqno, transaction in _numbered(data, segment):
                if transaction.gtid.lower() == gtid.strip().lower():
                    return seqno
    raise PlanError(
        f"{folder.uri}: no transaction of the open window (seqnos {manifest.first_seqno} to {manifest.last_seqno}, up "
        f"to the GTID set {manifest.gtid_set}) has the GTID {gtid}"
    )


def last_before(folder: WorkFolder, time: float) -> int:
    """The seqno before the first transaction committed at or after ``time`` (Unix seconds). Raises PlanError if the
    window has none, or older ones behind it: then the time does not divide the window."""
    manifest = read_manifest(folder)
    first: tuple[int, float] | None = None
    for segment in manifest.segments:
        with segment_bytes(folder, segment) as data:
            for seqno, transaction in _numbered(data, segment):
                found = transaction.commit_time
                if first is None and found >= time:
                    first = seqno, found
                if first is not None and found < time - TIMES_DIFFER:
                    raise PlanError(
                        f"{folder.uri}: expected no transaction of before {moment(time)} behind the first one of that "
                        f"time or later, seqno {first[0]:,} of {moment(first[1])}, found seqno {seqno:,} of "
                        f"{moment(found)}: a session has set its own time (SET TIMESTAMP), or a statement took long; "
                        f"give the seqno to stop at, such as {first[0] - 1}"
                    )
    if first is not None:
        return first[0] - 1
    raise PlanError(
        f"{folder.uri}: the open window ends before {moment(time)}: all its transactions were committed before that "
        "time"
    )


def moment(time: float) -> str:
    """A time of the log, for messages."""
    return dt.datetime.fromtimestamp(time, dt.UTC).isoformat(timespec="seconds")


def _numbered(data: Buffer, segment: Segment) -> Iterator[tuple[int, Transaction]]:
    reader = LogReader(data, segment.source_file, verify=False)
    return enumerate(transactions(reader), segment.first_seqno)


def _found(seqno: int, transaction: Transaction, segment: Segment, header: bytes, data: Buffer) -> FoundTransaction:
    return FoundTransaction(
        seqno=seqno,
        gtid=transaction.gtid,
        source=segment.source_position(SegmentOffset(transaction.start)),
        commit_time=transaction.commit_time,
        log=header + bytes(data[transaction.start : transaction.end]),
    )
