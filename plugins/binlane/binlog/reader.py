"""Reads a log from its magic to its end, event by event, without parsing bodies.

Refused by name, because changes would be lost or invented otherwise (docs/invariants.md, 6): encrypted files, formats
before v4, files that are no binary logs, a wrong CRC32, INCIDENT, and unknown event types that are not ignorable.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from mmap import mmap
from typing import Final

from binlane.binlog.events import FormatDescription, Incident, parse_body
from binlane.binlog.format_description import own_checksum_length
from binlane.binlog.payload import MAX_UNCOMPRESSED
from binlane.binlog.wire import (
    CHECKSUM_LENGTH,
    ENCRYPTED_MAGIC,
    HEADER,
    IGNORABLE,
    IN_USE,
    KNOWN_TYPES,
    LOG_BEGIN,
    MAGIC,
    Buffer,
    BufferOffset,
    EventHeader,
    EventType,
    RawEvent,
    check_crc,
    read_header,
    type_name,
    where,
)
from binlane.errors import (
    BinlogError,
    EncryptedLogError,
    IncidentError,
    TruncatedEventError,
    UnknownEventError,
    UnsupportedEventError,
)

__all__ = [
    "ENCRYPTION",
    "INNODB_LOG",
    "LogReader",
    "RawEvent",
    "check_first_type",
    "check_magic",
    "check_type",
    "encrypted",
]

INNODB_LOG: Final = "an InnoDB-based binary log (.ibb): let mariadb-binlog of that server write it as a plain one"
_OTHER_FILES: Final = {
    b"\xfe\xfe\x0d\x01": INNODB_LOG,
    b"\x1f\x8b": "compressed by gzip: decompress it first",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: decompress it first",
}
"""First bytes of files that are often mistaken for binary logs."""

ENCRYPTION: Final = frozenset({EventType.START_ENCRYPTION, EventType.PERCONA_START_ENCRYPTION})
_NEVER_WRITTEN: Final = frozenset({EventType.UNKNOWN, EventType.SLAVE})
_REFUSED: Final = frozenset({EventType.START_V3, EventType.INCIDENT, *ENCRYPTION, *_NEVER_WRITTEN})
_PLAIN: Final = tuple(
    code in KNOWN_TYPES and code not in _REFUSED and code != EventType.FORMAT_DESCRIPTION for code in range(256)
)
"""By type code: events that need no check."""


class LogReader:
    """The events of one binary log in memory or in a memory map.

    ``name`` begins every message. ``format`` is the latest FORMAT_DESCRIPTION read, ``position`` the offset of the next
    event; after an error, everything before ``position`` was read.
    """

    def __init__(
        self, data: Buffer | mmap, name: str, *, verify: bool = True, event_bytes: int = MAX_UNCOMPRESSED
    ) -> None:
        """Reads the magic and the first FORMAT_DESCRIPTION. ``verify``: compute every event's CRC32.

        ``event_bytes``: the limit for a decompressed TRANSACTION_PAYLOAD, for logs from untrusted sources.

        Raises BinlogError, or one of its subclasses, for a log that cannot be read.
        """
        self.name = name
        self.verify = verify
        self.event_bytes = event_bytes
        self._data = memoryview(data)
        self.position: int = LOG_BEGIN
        check_magic(bytes(self._data[: len(MAGIC)]), name)
        first = self._first_event()
        self.format = self._read_format(first)
        self.in_use = bool(first.flags & IN_USE)
        """Whether the file was not closed: the server is writing it, or has crashed."""

    def events(self, start: BufferOffset = LOG_BEGIN) -> Iterator[RawEvent]:
        """All events, the first FORMAT_DESCRIPTION included. Bodies are slices of the buffer.

        ``start``: the offset of a later event to begin at, in the same format as the first.

        Raises TruncatedEventError if the file ends inside an event, after all events before it were yielded.
        """
        data, name, verify = self._data, self.name, self.verify
        unpack, crc32, format_type = HEADER.unpack_from, zlib.crc32, int(EventType.FORMAT_DESCRIPTION)
        # tuple.__new__ instead of EventHeader(...) and RawEvent(...), whose calls take a third of the loop's time
        make = tuple.__new__
        length, tail = HEADER.size, self.format.checksum.length
        end, at = len(data), int(start)
        while at < end:
            self.position = at
            if end - at < HEADER.size:
                read_header(data, at, name)
            header = make(EventHeader, unpack(data, at))
            after = at + header.event_size
            if header.event_size < length + tail or after > end:
                self._refuse_size(header, at, length + tail)
            code = header.type_code
            if code == format_type:
                self.format = self._read_format(header)
                tail = self.format.checksum.length
                body = data[at + HEADER.size : after]
                yield RawEvent(BufferOffset(at), header, body[: len(body) - own_checksum_length(body)])
                at = after
                continue
            stop = after - tail
            if verify and tail and crc32(data[at:stop]) != int.from_bytes(data[stop:after], "little"):
                check_crc(data[at:after], name, at)
            event = make(RawEvent, (at, header, data[at + length : stop]))
            if not _PLAIN[code]:
                check_type(event, self.format, name)
            yield event
            at = after
        self.position = end

    def _first_event(self) -> EventHeader:
        at = self.position
        header = read_header(self._data, at, self.name)
        check_first_type(header.type_code, self.name)
        return header

    def _read_format(self, header: EventHeader) -> FormatDescription:
        at, name = self.position, self.name
        whole = self._data[at : at + header.event_size]
        body = whole[HEADER.size :]
        tail = own_checksum_length(body)
        described = parse_body(RawEvent(BufferOffset(at), header, body[: len(body) - tail]), _UNUSED_FORMAT, name)
        assert isinstance(described, FormatDescription)
        if self.verify and tail == CHECKSUM_LENGTH:
            check_crc(whole, name, at)
        return described

    def _refuse_size(self, header: EventHeader, at: int, smallest: int) -> None:
        if header.event_size == 0 and not any(self._data[at : at + HEADER.size]):
            raise TruncatedEventError(
                f"{where(self.name, at)}only zeros from here on: the server crashed before it wrote this part"
            )
        read_header(self._data, at, self.name, smallest)


_UNUSED_FORMAT: Final = FormatDescription("")


def check_type(event: RawEvent, log_format: FormatDescription, name: str) -> None:
    """Raises an error for an event type that stops a window, although ``parse_body`` accepts it."""
    code = event.header.type_code
    at = where(name, event.offset)
    if code in ENCRYPTION:
        raise encrypted(at)
    if code == EventType.INCIDENT:
        incident = parse_body(event, log_format, name)
        assert isinstance(incident, Incident)
        raise IncidentError(
            f"{at}INCIDENT {incident.number} ({incident.message!r}): the source lost changes that were never logged; "
            "copy the target anew from the source and start from there"
        )
    if code == EventType.START_V3:
        raise UnsupportedEventError(f"{at}START_V3: events of a server older than 5.0")
    if code in _NEVER_WRITTEN or (code not in KNOWN_TYPES and not event.header.flags & IGNORABLE):
        raise UnknownEventError(f"{at}cannot skip event type {code}; a newer binlane may know it")


def encrypted(at: str) -> EncryptedLogError:
    """The error for a file whose events are encrypted; ``at`` begins the message."""
    return EncryptedLogError(
        f"{at}all events from here on are encrypted: read the log from the running server, which decrypts it"
    )


def check_magic(start: bytes, name: str) -> None:
    """Raises an error unless ``start``, a file's first four bytes, is the magic of a binary log."""
    if start == MAGIC:
        return
    if start == ENCRYPTED_MAGIC:
        raise EncryptedLogError(
            f"{where(name, 0)}the file is encrypted by the server's keyring: read the log from the running server, "
            "which decrypts it"
        )
    if MAGIC.startswith(start):
        raise TruncatedEventError(f"{where(name, 0)}expected {MAGIC.hex()}, the file has {len(start)} bytes")
    for prefix, what in _OTHER_FILES.items():
        if start.startswith(prefix):
            raise UnsupportedEventError(f"{where(name, 0)}{what}")
    raise BinlogError(f"{where(name, 0)}expected {MAGIC.hex()}, found {start.hex()}: this is no binary log")


def check_first_type(type_code: int, name: str) -> None:
    """Raises an error unless ``type_code``, that of a log's first event, is FORMAT_DESCRIPTION."""
    at = where(name, len(MAGIC))
    if type_code == EventType.START_V3:
        raise UnsupportedEventError(
            f"{at}a log of MySQL 3.23 to 4.1 (format v1 or v3), expected v4: "
            "replicate it through a server of version 5.0 or newer"
        )
    if type_code != EventType.FORMAT_DESCRIPTION:
        raise BinlogError(
            f"{at}expected FORMAT_DESCRIPTION first, found {type_name(type_code)}; the beginning of the file is missing"
        )
