"""Identity of the log: a window begins only where the window before it ended, in the same log (docs/invariants.md, 9).

A fingerprint belongs to one position in one file: a hash of the file's FORMAT_DESCRIPTION, which differs for every
file, and a hash of the last transaction before the position. Reading from a little earlier is enough to compute both
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Final

from binlane.binlog.events import parse_body
from binlane.binlog.format_description import FormatDescription, own_checksum_length
from binlane.binlog.wire import (
    ARTIFICIAL,
    CHECKSUM_LENGTH,
    FLAGS_AT,
    HEADER,
    IN_USE,
    LOG_BEGIN,
    ChecksumAlgorithm,
    EventFlag,
    EventHeader,
    RawEvent,
    check_crc,
    type_name,
    where,
)
from binlane.errors import BinlogError, MissingLogError, SourceError, SourceIdentityError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition
from binlane.sessions.server_proof import is_another_source
from binlane.source.gtid_set import parse_gtid_set
from binlane.source.protocol import LOG_START, EventSource, LogChunk, LogState, missing_file

WHOLE_TRANSACTION: Final = 64 << 10
"""Bytes. A transaction up to this size is hashed whole; of a larger one only the last event."""
OF_UNLOGGED: Final = {Flavor.MYSQL: "gtid_purged", Flavor.MARIADB: "gtid_slave_pos"}
"""The variable that has transactions which are in no file of the log."""
_HEX: Final = 32
_LOG_POS_AT: Final = 13
_CREATED_AT: Final = HEADER.size + 52
_U32: Final = struct.Struct("<I")
_NOTHING: Final = "-"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of the log before a position. Each hash: 128 bits of SHA-256, in hex."""

    header: str
    """Hash of the file's FORMAT_DESCRIPTION in the form of ``canonical_header``."""
    offset: int
    """Offset of the first hashed event before the position; the position's own if this file has no transaction before
    it."""
    events: str
    """Hash of these events; "-" if there are none."""

    def __str__(self) -> str:
        return f"{self.header} {self.offset} {self.events}"

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Raises SourceIdentityError for a text that is not a fingerprint."""
        try:
            header, offset, events = text.split(" ")
            return cls(header, int(offset), events)
        except ValueError:
            raise SourceIdentityError(
                f"expected a log's fingerprint, got {text!r}: the stored state was changed"
            ) from None


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a window: the end of the window before it, or the position that ``begin`` has found."""

    seqno: int
    """Seqno of the last transaction before the window; 0 if there is none."""
    position: LogPosition
    gtid_set: str
    """The GTIDs of all transactions before ``position``."""
    time: float
    """Commit time of the transaction ``seqno``; 0 if there is none."""
    identity: str
    fingerprint: str


def digest(data: bytes | memoryview) -> str:
    """The hash of a fingerprint."""
    return hashlib.sha256(data).hexdigest()[:_HEX]


def canonical_header(event: bytes, name: str) -> bytes:
    """FORMAT_DESCRIPTION in one form for all readers, independent of where they begin and of whether the file is
    closed.

    For a dump from the middle of a file a server clears ``created`` (a replica would drop its temporary tables) and
    ``log_pos``; IN_USE is set until the file is closed. MySQL without checksums does not update this event's CRC32 for
    these changes. Raises ChecksumError.
    """
    tail = own_checksum_length(memoryview(event)[HEADER.size :])
    is_forged = _U32.unpack_from(event, _LOG_POS_AT)[0] == 0 and event[len(event) - tail - 1] == ChecksumAlgorithm.NONE
    if tail and not is_forged:
        check_crc(memoryview(event), name, LOG_START)
    head = bytearray(event[: len(event) - tail])
    head[FLAGS_AT] &= ~(IN_USE | ARTIFICIAL) & 0xFF
    _U32.pack_into(head, _LOG_POS_AT, LOG_START + len(event))
    _U32.pack_into(head, _CREATED_AT, 0)
    return bytes(head) + (_U32.pack(zlib.crc32(head)) if tail == CHECKSUM_LENGTH else b"")


def described(event: bytes, name: str) -> FormatDescription:
    """FORMAT_DESCRIPTION's content. Raises BinlogError, also for that of a relay log.

    A replica begins its relay logs where it likes, numbers them apart from its source's files, and may receive a
    transaction twice: nothing in them proves that they are complete.
    """
    body = memoryview(event)[HEADER.size :]
    if HEADER.unpack_from(event)[-1] & EventFlag.RELAY_LOG:
        raise UnsupportedEventError(
            f"{where(name, LOG_BEGIN)}FORMAT_DESCRIPTION: a relay log, which nothing proves to be complete; archive "
            "the binary logs of the source itself, or of the replica (log_replica_updates)"
        )
    raw = RawEvent(
        LOG_BEGIN, EventHeader._make(HEADER.unpack_from(event)), body[: len(body) - own_checksum_length(body)]
    )
    parsed = parse_body(raw, FormatDescription(""), name)
    assert isinstance(parsed, FormatDescription)
    if other := parsed.other_heads:
        code, length = next(iter(other.items()))
        raise UnsupportedEventError(
            f"{where(name, LOG_BEGIN)}FORMAT_DESCRIPTION: {type_name(code)} with a head of {length} bytes, which only "
            "pre-releases of MySQL 5.1 write: if the log is of a newer server, somebody has changed the file; fetch it "
            "again from the server"
        )
    return parsed


def check_family(log_format: FormatDescription, flavor: Flavor, name: str) -> None:
    """Raises SourceIdentityError for a file of the other family, which a server may have kept from before a migration.

    The families number transactions, types and checksums differently: later events of such a file would be misread.
    """
    if log_format.flavor is not flavor:
        raise SourceIdentityError(
            f"{name}: FORMAT_DESCRIPTION: expected a file of the source's own family, {flavor.value}, found one "
            f"of {log_format.flavor.value} {log_format.server_version}: begin the channel after this file "
            "(`binlane init CHANNEL --start FILE:OFFSET`), or read it as an archive of its own"
        )


def no_events(header: bytes, position: LogPosition) -> Fingerprint:
    """The fingerprint of a place with no transaction before it in its file; ``header`` is canonical."""
    return Fingerprint(digest(header), position.offset, _NOTHING)


def verified(source: EventSource, state: LogState, start: Start) -> Generator[LogChunk, None, None]:
    """The chunks from ``start`` on, after a check that the log is the one that ``start`` was taken from.

    Raises SourceIdentityError if it is not, MissingLogError if its file has been purged.
    """
    check_source(source.name, state, start)
    yield from continued(source, start)


def check_source(name: str, state: LogState, start: Start) -> None:
    """Whether a source in this state can have the place ``start`` and all that follows it. Raises SourceIdentityError,
    MissingLogError."""
    if is_another_source(start.identity, state.identity):
        of_oldest = " (the family of an archive is its oldest file's: a folder each for the files of both)"
        raise SourceIdentityError(
            f"{name}: expected the channel's source, {start.identity}, found {state.identity}"
            f"{'' if state.closes_by_clock else of_oldest}: point source.connection or source.archive of the channel "
            "at its own source; a new source needs a new channel"
        )
    if start.position.file not in state.files:
        raise missing_file(name, start.position.file, list(state.files))
    check_unlogged(name, state, start.gtid_set)


def continued(source: EventSource, start: Start) -> Generator[LogChunk, None, None]:
    """The chunks from ``start`` on, after a check of its fingerprint. Raises SourceIdentityError if it is another
    log."""
    known = Fingerprint.parse(start.fingerprint)
    at = start.position
    can_look_back = known.events != _NOTHING and source.can_begin_at(known.offset)
    chunks = source.read_log(LogPosition(at.file, known.offset) if can_look_back else at, start.gtid_set)
    with contextlib.closing(chunks):
        header = next(chunks)
        found = digest(canonical_header(header.data, f"{source.name}/{header.file}"))
        of_server = f" of server_id {HEADER.unpack_from(header.data)[2]}"
        _compare(source.name, at, "FORMAT_DESCRIPTION", known.header, found, of_server)
        yield header
        yield from _behind(source.name, chunks, at, known) if can_look_back else chunks


def check_unlogged(name: str, state: LogState, gtids: str) -> None:
    """Raises MissingLogError if the source has transactions that are neither in its log nor in ``gtids``."""
    check_taken(name, state.flavor, state.unlogged, gtids)


def check_taken(name: str, flavor: Flavor, unlogged: str, gtids: str) -> None:
    """Raises MissingLogError if transactions that the source has by another way than its log are not in ``gtids``."""
    lost = lost_gtids(flavor, unlogged, gtids)
    if not lost:
        return
    variable = OF_UNLOGGED[flavor]
    raise MissingLogError(
        f"{name}: the source has the transactions {lost}, no file of its log has them ({variable}), and the "
        "channel has not read them: they were purged before they were read, or a dump was loaded that set "
        f"{variable}; load what the dump holds into the target, too, if it is not there, and name these transactions "
        "in source.unlogged_gtids of the channel, or load a newer backup into the target"
    )


def lost_gtids(flavor: Flavor, unlogged: str, gtids: str) -> str:
    """Those of ``unlogged`` that are not in ``gtids``; empty if all are."""
    return str(parse_gtid_set(flavor, unlogged).ahead_of(parse_gtid_set(flavor, gtids))) if unlogged else ""


def _behind(name: str, chunks: Iterator[LogChunk], at: LogPosition, known: Fingerprint) -> Iterator[LogChunk]:
    """Read and compare the events before ``at``; yield the events after it."""
    hashed, left = hashlib.sha256(), at.offset - known.offset
    while left and (chunk := _next(name, chunks, at)) is not None and chunk.file == at.file:
        hashed.update(chunk.data[:left])
        if len(chunk.data) > left:
            _compare(name, at, "the events before it", known.events, hashed.hexdigest()[:_HEX])
            yield LogChunk(chunk.file, at.offset, chunk.data[left:])
        left = max(0, left - len(chunk.data))
    _compare(name, at, "the events before it", known.events, hashed.hexdigest()[:_HEX])
    yield from chunks


def _next(name: str, chunks: Iterator[LogChunk], at: LogPosition) -> LogChunk | None:
    """The next chunk before ``at``. A read error means another log, because these events were readable before."""
    try:
        return next(chunks, None)
    except (BinlogError, SourceError) as exc:
        if exc.retryable or isinstance(exc, SourceIdentityError):
            raise
        raise SourceIdentityError(
            f"{name}: {at}: the events before it changed since the watermark was stored, and cannot be read "
            f"({exc}): the log was reset, restored or replaced; nothing was read from it"
        ) from exc


def _compare(name: str, at: LogPosition, what: str, expected: str, found: str, of_server: str = "") -> None:
    if expected != found:
        raise SourceIdentityError(
            f"{name}: {at}: {what} changed since the watermark was stored (fingerprint {expected}, found "
            f"{found}{of_server}): the log was reset, restored or replaced, or it is another server's; nothing was "
            "read from it. Point source.connection or source.archive of the channel at its own source; if that has no "
            "such log any more, load a current backup of the source into the target and begin a new channel"
        )


def require_same_format(event: RawEvent, log_format: FormatDescription, name: str) -> None:
    """Refuse a second, different FORMAT_DESCRIPTION: a file is read by its first one, as servers write their logs.

    A relay log has two: the replica's own, perhaps without checksums, then that of its source.
    """
    other = parse_body(event, log_format, name)
    assert isinstance(other, FormatDescription)
    if replace(other, created=log_format.created) != log_format:
        raise UnsupportedEventError(
            f"{where(name, event.offset)}FORMAT_DESCRIPTION: events of {other.server_version} with checksums "
            f"{other.checksum.name} from here on; expected {log_format.server_version} with "
            f"{log_format.checksum.name} as at the beginning: this is a relay log; archive the binary logs "
            "of the source itself, or of the replica (log_replica_updates)"
        )
