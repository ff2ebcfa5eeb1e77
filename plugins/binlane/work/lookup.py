"""Finds transactions of an extracted window in its segments, by seqno, GTID or time, with their bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import AbstractContextManager

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
    """The seqno before the first transaction committed at or after ``time`` (Unix seconds)."""
    manifest = read_manifest(folder)
    for segment in manifest.segments:
        with segment_bytes(folder, segment) as data:
            for seqno, transaction in _numbered(data, segment):
                if transaction.commit_time >= time:
                    return seqno - 1
    when = dt.datetime.fromtimestamp(time, dt.UTC).isoformat(timespec="seconds")
    raise PlanError(
        f"{folder.uri}: the open window ends before {when}: all its transactions were committed before that time"
    )


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
