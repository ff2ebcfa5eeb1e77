"""manifest.json: a window's range of the source's log, and its segments. Equal windows give equal bytes."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from binlane.binlog.wire import SegmentOffset
from binlane.errors import PlanError
from binlane.formats import FORMATS
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import Epoch, Flavor, LogPosition, TableKey, plural

_FORMAT: Final = FORMATS["manifest.json"]
_SEGMENT: Final = re.compile(r"segments/[0-9]{6,9}\.binlog")
_CARRIED: Final = re.compile(r"carried/[0-9]{12,19}\.binlog")
_LONGEST: Final = 80
"""Characters of a wrong name in an error."""


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
    """Checksum algorithm of its events, from FORMAT_DESCRIPTION: CRC32 or NONE."""
    first_seqno: int
    last_seqno: int
    transactions: int
    source_file: str
    start_offset: int
    end_offset: int
    """Offsets in the source's file, 64 bits wide. The segment's own events begin at ``header_length``."""
    first_time: float
    last_time: float
    """Commit times of the first and the last transaction, Unix seconds."""
    first_gtid: str
    last_gtid: str
    """Empty if the source has no GTIDs."""

    @property
    def header_length(self) -> int:
        """Bytes of magic and FORMAT_DESCRIPTION, in front of the events."""
        return self.bytes - (self.end_offset - self.start_offset)

    def to_json(self) -> str:
        """JSON text, as the target's table of prepared XA transactions holds it."""
        return json.dumps(MANIFEST.dump(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> Segment:
        """Raises PlanError, naming ``where``, for anything that ``to_json`` does not write."""
        return MANIFEST.load(cls, MANIFEST.parsed(text, where), where)

    def source_position(self, at: SegmentOffset) -> LogPosition:
        """Source file and offset of the segment's byte ``at``."""
        return LogPosition(self.source_file, self.start_offset + at - self.header_length)


@dataclass(frozen=True, slots=True)
class TemporaryDrop:
    """A connection's DROP of a temporary table that was open where the window ends."""

    server_id: int
    connection: int
    key: TableKey
    """As it was logged."""

    @property
    def session(self) -> tuple[int, int]:
        """The connection, as ``temporary_tables.Session``."""
        return self.server_id, self.connection


@dataclass(frozen=True, slots=True)
class Manifest:
    """A window as extracted. An empty window has ``last_seqno = first_seqno - 1`` and no segment."""

    channel: str
    window: str
    first_seqno: int
    last_seqno: int
    start: LogPosition
    end: LogPosition
    """The next window's start. No transaction stands between the end of the last segment and here."""
    gtid_set: str
    """All GTIDs up to ``end``, in the source's notation; empty if the source has no GTIDs."""
    end_time: float
    """Commit time of the channel's last transaction so far, Unix seconds; 0 before the first."""
    identity: str
    """Identity of the source server or archive; the same in all windows of a channel."""
    fingerprint: str
    """Fingerprint of the log just before ``end``; the next window compares it first (docs/invariants.md, 9)."""
    segments: tuple[Segment, ...]
    carried: tuple[Segment, ...] = ()
    """XA transactions that earlier windows prepared and this one ends, each in a file of its own."""
    done: tuple[str, ...] = ()
    """XIDs of XA transactions whose changes are on the target already, as an operator has declared."""
    restarts: tuple[int, ...] = ()
    """First seqnos after a restart of the source's server, for restarts that dropped temporary tables."""
    epochs: tuple[Epoch, ...] = ()
    """The ends of epochs inside the window, ascending; none unless the channel has epochs."""
    older_sessions: int = 0
    """The highest id of a source's connection that may be older than the channel."""
    restarted: int | None = None
    """The first seqno behind the first restart of the source's server in the window: no later connection is older than
    the channel. None without a restart."""
    later_drops: tuple[TemporaryDrop, ...] = ()
    """What the log had of DROPs behind the window's end when it was read, of tables that connections older than the
    channel may use in the window."""
    absent: tuple[TableKey, ...] = ()
    """Tables that such connections use in the window, and that the source does not have as permanent ones: neither when
    it was asked, nor by the log behind the window. In the source's names; none of an archive."""
    lost_sessions: tuple[str, ...] = ()
    """Connections with open temporary tables that the window's end takes for ended, because the source says so, as
    ``SessionEnd`` writes them; without those of which only an operator does."""
    waits_for_drops: bool = False
    """Whether such a connection may use a table whose DROP may still come: as long as the window has no plan, it is
    read again."""

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
        value = {"version": _FORMAT.version, **MANIFEST.dump(self)}
        return json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Manifest:
        """Raises PlanError, naming ``where``, if ``data`` is not a complete and consistent manifest of this version."""
        value = MANIFEST.parsed(data, where)
        if not _FORMAT.reads(version := value.pop("version", None)):
            raise PlanError(
                f"{where}: expected manifest version {_FORMAT.versions}, found {version}; run the extract step again"
            )
        manifest = MANIFEST.load(cls, value, where)
        manifest._check(where)
        return manifest

    def _check(self, where: str) -> None:
        """Raises PlanError if segments leave a gap in the seqnos or in a source file, or overlap there, and for names
        that are not those of a window's files: whoever makes a manifest names no other file of a reader's machine."""
        for pattern, like, segments in (
            (_SEGMENT, "segments/NNNNNN.binlog", self.segments),
            (_CARRIED, "carried/NNNNNNNNNNNN.binlog", self.carried),
        ):
            if (other := next((each.name for each in segments if not pattern.fullmatch(each.name)), None)) is not None:
                raise PlanError(f"{where}: expected {like}, found {other[:_LONGEST]!r}; run the extract step again")
        expected = self.first_seqno
        before: Segment | None = None
        for segment in self.segments:
            numbers = (segment.first_seqno, segment.last_seqno)
            if numbers != (expected, expected + segment.transactions - 1) or segment.transactions < 1:
                raise PlanError(
                    f"{where}: {segment.name}: expected seqnos from {expected}, got {numbers[0]}..{numbers[1]} "
                    f"for {plural(segment.transactions, 'transaction')}; run the extract step again"
                )
            in_one_file = before is not None and segment.source_file == before.source_file
            if before is not None and in_one_file and segment.start_offset != before.end_offset:
                raise PlanError(
                    f"{where}: {segment.name}: expected to begin at {before.source_file}:{before.end_offset}, "
                    f"got {segment.start_offset}; run the extract step again"
                )
            expected, before = segment.last_seqno + 1, segment
        if expected != self.last_seqno + 1:
            raise PlanError(
                f"{where}: expected last_seqno {expected - 1} by its segments, got {self.last_seqno}; "
                "run the extract step again"
            )


MANIFEST: Final = Codec("run the extract step again")
"""Codec of manifest.json, and of the segments that the target's state keeps."""
