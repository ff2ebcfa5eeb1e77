"""manifest.json: what a window was read from, and the segments that hold it. The same window gives the same bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from binlane.binlog.wire import SegmentOffset
from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.model import Flavor, LogPosition, plural

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of whole transactions: magic, FORMAT_DESCRIPTION, then [start_offset, end_offset) of one source file."""

    name: str
    """Path below the window's folder."""
    bytes: int
    blake3: str
    flavor: Flavor
    server_version: str
    checksum: str
    """Of its events, as FORMAT_DESCRIPTION says: CRC32 or NONE."""
    first_seqno: int
    last_seqno: int
    transactions: int
    source_file: str
    start_offset: int
    end_offset: int
    """In the source's file, 64 bits wide. The segment's own events begin at ``bytes - (end_offset - start_offset)``."""
    first_time: float
    last_time: float
    """Commit times of its first and last transaction, seconds since the epoch."""
    first_gtid: str
    last_gtid: str
    """Empty where the source writes none."""

    @property
    def header_length(self) -> int:
        """Bytes of magic and FORMAT_DESCRIPTION, before the stretch itself."""
        return self.bytes - (self.end_offset - self.start_offset)

    def to_json(self) -> str:
        """For the target's state."""
        return json.dumps(MANIFEST.dump(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> Segment:
        """Raises PlanError that names ``where`` for anything that ``to_json`` does not write."""
        return MANIFEST.load(cls, MANIFEST.parsed(text, where), where)

    def source_position(self, at: SegmentOffset) -> LogPosition:
        """Where the segment's byte ``at`` stands on the source."""
        return LogPosition(self.source_file, self.start_offset + at - self.header_length)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A window as it was read. Without transactions ``last_seqno`` is ``first_seqno - 1`` and there is no segment."""

    channel: str
    window: str
    first_seqno: int
    last_seqno: int
    start: LogPosition
    end: LogPosition
    """Where the next window begins. Between the last segment's end and here are only events of no transaction."""
    gtid_set: str
    """Everything up to ``end``, in the source's own notation; empty where the source has no GTIDs."""
    end_time: float
    """Commit time of the last transaction of the channel so far; 0 if there was none."""
    identity: str
    """Which server or archive; does not change between the windows of a channel."""
    fingerprint: str
    """Of the log just before ``end``; the next window compares it before it takes anything (docs/invariants.md, 9)."""
    segments: tuple[Segment, ...]
    carried: tuple[Segment, ...] = ()
    """XA transactions that earlier windows have prepared and this one ends, each in a file of its own."""
    done: tuple[str, ...] = ()
    """XIDs whose changes are on the target by somebody's word."""
    restarts: tuple[int, ...] = ()
    """Seqnos that the source's server was started anew before, as far as temporary tables were lost by that."""

    @property
    def transactions(self) -> int:
        """How many transactions the window holds."""
        return self.last_seqno - self.first_seqno + 1

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, in hex."""
        return hashlib.sha256(self.to_json()).hexdigest()

    def to_json(self) -> bytes:
        """The canonical bytes."""
        value = {"version": VERSION, **MANIFEST.dump(self)}
        return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Manifest:
        """Raises PlanError that names ``where`` if ``data`` is not a whole, known and coherent manifest."""
        value = MANIFEST.parsed(data, where)
        if value.pop("version", None) != VERSION:
            raise PlanError(f"{where}: expected a manifest of version {VERSION}; it was written by another binlane")
        manifest = MANIFEST.load(cls, value, where)
        manifest._check(where)
        return manifest

    def _check(self, where: str) -> None:
        """Segments number the transactions without a gap and do not overlap in a source file."""
        expected = self.first_seqno
        before: Segment | None = None
        for segment in self.segments:
            numbers = (segment.first_seqno, segment.last_seqno)
            if numbers != (expected, expected + segment.transactions - 1) or segment.transactions < 1:
                raise PlanError(
                    f"{where}: {segment.name}: expected seqnos from {expected}, got {numbers[0]}..{numbers[1]} "
                    f"for {plural(segment.transactions, 'transaction')}"
                )
            in_one_file = before is not None and segment.source_file == before.source_file
            if before is not None and in_one_file and segment.start_offset != before.end_offset:
                raise PlanError(
                    f"{where}: {segment.name}: expected to begin at {before.source_file}:{before.end_offset}, "
                    f"got {segment.start_offset}"
                )
            expected, before = segment.last_seqno + 1, segment
        if expected != self.last_seqno + 1:
            raise PlanError(f"{where}: expected last_seqno {expected - 1} by its segments, got {self.last_seqno}")


MANIFEST: Final = Codec("run the extract step again")
"""manifest.json, and segments in the target's state."""
