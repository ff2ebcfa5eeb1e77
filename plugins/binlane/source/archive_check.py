"""All that is wrong with an archive: each file read to its end, by the proofs that a window asks for.

A window stops at the first fault. Here the files behind it are read on: a file that cannot be read says nothing about
the next one, and a file that does not follow the one before it begins a log of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import field

from binlane.binlog.wire import HEADER
from binlane.errors import BinlogError, SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.source.archive import ArchiveSource, check_gap
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, LogChunk, LogState, first_bytes_of
from binlane.source.segment_writer import Nowhere
from binlane.source.segments import Extraction


@dataclass(slots=True)
class ArchivedFile:
    """What an archive has of one file."""

    name: str
    bytes: int = 0
    """Of whole events, decompressed."""
    transactions: int = 0
    begun: float = 0.0
    """When the server began the file, in seconds since the epoch; 0 if nothing of it can be read."""
    last: float = 0.0
    """Commit time of the last transaction up to the file's end; 0 if there is none."""
    gtid_set: str = ""
    """Of all transactions up to the file's end, as far as files follow each other."""
    is_believed: bool = False
    """Whether nothing binds it to the file before it but its number, its server id and its time: it is of a server
    without GTIDs, and a start of the server has begun it."""
    faults: list[str] = field(default_factory=list)
    """What a window would refuse, with the way on."""


def check_archive(source: ArchiveSource) -> Iterator[ArchivedFile]:
    """Each file of an archive, in the log's order. Raises SourceError for a folder that is no archive of one log."""
    names = source.file_names()
    run: Extraction | None = None
    before: str | None = None
    for name in names:
        file, is_last = ArchivedFile(name), name == names[-1]
        if before is not None:
            try:
                check_gap(source.name, before, name)
            except SourceError as exc:
                file.faults.append(str(exc))
                run = None
        run = _read(source, file, run, is_last=is_last)
        if is_last and run is not None:
            try:
                run.finish()
            except (SourceError, BinlogError) as exc:
                file.faults.append(str(exc))
        yield file
        before = name


def _read(source: ArchiveSource, file: ArchivedFile, before: Extraction | None, *, is_last: bool) -> Extraction | None:
    """Read a file behind those that an extraction has read, or alone if it does not follow them; None if nothing can
    follow it."""
    refused = ""
    if before is not None:
        try:
            return _read_on(source, file, before, is_last=is_last)
        except (SourceError, BinlogError) as exc:
            refused = str(exc)
    try:
        found = _read_on(source, file, None, is_last=is_last)
    except (SourceError, BinlogError) as exc:
        # a damaged file is refused both times
        file.faults += dict.fromkeys(filter(None, (refused, str(exc))))
        return None
    if refused:
        file.faults.append(refused)
    return found


def _read_on(source: ArchiveSource, file: ArchivedFile, before: Extraction | None, *, is_last: bool) -> Extraction:
    """Read a whole file. Raises as ``Extraction.take``, and for a file that cannot be read."""
    run, read = before, 0 if before is None else before.seqno
    try:
        for chunk in source.read_file(file.name, is_last=is_last):
            if chunk.offset == LOG_START:
                file.begun = float(HEADER.unpack_from(chunk.data)[0])
                run = _extraction(source, chunk) if run is None else run
            assert run is not None
            run.take(chunk)
            file.bytes = chunk.offset + len(chunk.data)
    finally:
        if run is not None and file.begun:
            file.transactions, file.last, file.gtid_set = run.seqno - read, run.time, str(run.gtids)
            file.is_believed = run.is_believed
    assert run is not None
    return run


def _extraction(source: ArchiveSource, header: LogChunk) -> Extraction:
    """One that begins with a file."""
    flavor = described(header.data, f"{source.name}/{header.file}").flavor
    state = LogState(
        source.name, flavor, source.file_names(), None, time.time(), closes_by_clock=False,
        trusted_files=source.trusted_files,
    )  # fmt: skip
    start = Start(0, LogPosition(header.file, LOG_START), "", 0.0, source.name, "")
    return Extraction(
        source.name, state, start, UntilLogEnd(), Nowhere(), event_bytes=source.event_bytes,
        first_bytes=lambda file: first_bytes_of(source.read_file(file, is_last=True), file),
    )  # fmt: skip
