"""The binary log's numbers and the framing of one event: header, body, checksum.

Sources: MySQL ``libs/mysql/binlog/event/binlog_event.h`` (``Log_event_type``, ``Log_event_header``), MariaDB
``sql/log_event.h``. All integers are little-endian.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple, NewType

from binlane.errors import BinlogError, ChecksumError, TruncatedEventError

Buffer = bytes | bytearray | memoryview

BufferOffset = NewType("BufferOffset", int)
"""A place in the bytes that are being read: a log file, a segment's file, or a segment with its compressed events
opened, where everything behind the first of them stands elsewhere than in the segment. Never stored."""
SegmentOffset = NewType("SegmentOffset", int)
"""A place in a segment's file as extraction wrote it. What is stored, and what another process reads by, is this."""

MAGIC: Final = b"\xfebin"
"""The first four bytes of a plain binary or relay log."""
LOG_BEGIN: Final = BufferOffset(len(MAGIC))
"""Where its first event begins."""
ENCRYPTED_MAGIC: Final = b"\xfdbin"
"""The first four bytes of a log that MySQL 8.0.14 or newer encrypted as a whole."""

HEADER: Final = struct.Struct("<IBIIIH")
"""timestamp u32, type u8, server_id u32, event_size u32, log_pos u32, flags u16: 19 bytes."""
CHECKSUM_LENGTH: Final = 4
FLAGS_AT: Final = 17
"""Where the header's flags stand, in bytes from the event's start."""


class EventType(IntEnum):
    """Event type codes. MySQL counts up from 1, MariaDB's own types begin at 160."""

    UNKNOWN = 0
    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXEC_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    PRE_GA_WRITE_ROWS = 20
    PRE_GA_UPDATE_ROWS = 21
    PRE_GA_DELETE_ROWS = 22
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS_V2 = 30
    UPDATE_ROWS_V2 = 31
    DELETE_ROWS_V2 = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    PERCONA_START_ENCRYPTION = 159
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED_V2 = 169
    UPDATE_ROWS_COMPRESSED_V2 = 170
    DELETE_ROWS_COMPRESSED_V2 = 171
    PARTIAL_ROW_DATA = 172


KNOWN_TYPES: Final = frozenset(int(member) for member in EventType)


def type_name(type_code: int) -> str:
    """The type's name for messages; ``type 200`` for one that has none."""
    return EventType(type_code).name if type_code in KNOWN_TYPES else f"type {type_code}"


class EventFlag(IntFlag):
    """Bits of the header's ``flags`` (``LOG_EVENT_*_F``)."""

    IN_USE = 0x0001
    """In FORMAT_DESCRIPTION only: the file was not closed. Counts as 0 in the checksum."""
    FORCED_ROTATE = 0x0002
    THREAD_SPECIFIC = 0x0004
    """The statement needs its thread's temporary tables."""
    SUPPRESS_USE = 0x0008
    """The statement does not depend on the default database."""
    UPDATE_TABLE_MAP_VERSION = 0x0010
    ARTIFICIAL = 0x0020
    """Made up by the sending server; not in its file."""
    RELAY_LOG = 0x0040
    IGNORABLE = 0x0080
    """A reader that does not know the type may skip it."""
    NO_FILTER = 0x0100
    MTS_ISOLATE = 0x0200
    SKIP_REPLICATION = 0x8000
    """MariaDB: written with ``@@skip_replication=1``."""


IN_USE: Final = int(EventFlag.IN_USE)
SUPPRESS_USE: Final = int(EventFlag.SUPPRESS_USE)
ARTIFICIAL: Final = int(EventFlag.ARTIFICIAL)
IGNORABLE: Final = int(EventFlag.IGNORABLE)


class ChecksumAlgorithm(IntEnum):
    """What stands behind every event's body. Logs older than checksums count as NONE."""

    NONE = 0
    CRC32 = 1
    UNDEFINED = 255
    """A replica's relay log, before it knows what its source does: no checksum."""

    @property
    def length(self) -> int:
        """Bytes behind each event."""
        return CHECKSUM_LENGTH if self is ChecksumAlgorithm.CRC32 else 0


class EventHeader(NamedTuple):
    """The first 19 bytes of every event of a v4 log.

    A NamedTuple where values are dataclasses elsewhere: one is made per event, and it is three times as quick to make.
    """

    timestamp: int
    """Seconds since the epoch at which the statement began on the source."""
    type_code: int
    server_id: int
    event_size: int
    """Bytes of the whole event: header, body and checksum."""
    log_pos: int
    """End of the event in the source's file, modulo 2**32; 0 where unknown. Never used for ordering."""
    flags: int


class RawEvent(NamedTuple):
    """An event that was framed and not looked into. Slices share the log's buffer."""

    offset: BufferOffset
    """Where the event begins in what is read, 64 bits wide."""
    header: EventHeader
    body: memoryview
    """Between header and checksum."""


def where(name: str, offset: int) -> str:
    """The beginning of every message about a log's bytes."""
    return f"{name}:{offset}: "


def read_header(data: memoryview, at: int, name: str, header_length: int = HEADER.size) -> EventHeader:
    """The header of the event at ``at``; the whole event is known to be inside ``data``.

    Raises TruncatedEventError if ``data`` ends first, BinlogError for a size smaller than a header, at which a reader
    would otherwise stand still or go back.
    """
    left = len(data) - at
    if left < HEADER.size:
        raise TruncatedEventError(f"{where(name, at)}expected a header of {HEADER.size} bytes, {left} are left")
    header = EventHeader._make(HEADER.unpack_from(data, at))
    if header.event_size < header_length:
        raise BinlogError(
            f"{where(name, at)}{type_name(header.type_code)}: event_size {header.event_size} is smaller than a header "
            f"({header_length} bytes); the file is damaged here"
        )
    if header.event_size > left:
        raise TruncatedEventError(
            f"{where(name, at)}{type_name(header.type_code)}: event_size is {header.event_size}, {left} bytes are left"
        )
    return header


def computed_crc(event: memoryview) -> int:
    """CRC32 of a whole event, its last four bytes not counted. In FORMAT_DESCRIPTION the IN_USE flag counts as 0."""
    if event[4] != EventType.FORMAT_DESCRIPTION or not event[FLAGS_AT] & IN_USE:
        return zlib.crc32(event[:-CHECKSUM_LENGTH])
    head = bytearray(event[: FLAGS_AT + 1])
    head[FLAGS_AT] &= ~IN_USE & 0xFF
    return zlib.crc32(event[FLAGS_AT + 1 : -CHECKSUM_LENGTH], zlib.crc32(head))


def stored_crc(event: memoryview) -> int:
    """The CRC32 behind a whole event."""
    return int.from_bytes(event[-CHECKSUM_LENGTH:], "little")


def check_crc(event: memoryview, name: str, at: int) -> None:
    """Raises ChecksumError if the whole event ``event``, which stands at ``at``, does not match its own CRC32."""
    computed, stored = computed_crc(event), stored_crc(event)
    if computed != stored:
        raise ChecksumError(
            f"{where(name, at)}{type_name(event[4])}: stored CRC32 is {stored:08x}, computed {computed:08x}; "
            "the file was damaged or changed after the server wrote it: fetch it again"
        )


def build_event(
    type_code: int,
    body: Buffer,
    *,
    timestamp: int = 0,
    server_id: int,
    log_pos: int = 0,
    flags: int = 0,
) -> bytes:
    """A whole event without checksum: a reader takes it under a FORMAT_DESCRIPTION with checksum algorithm 0."""
    return HEADER.pack(timestamp, type_code, server_id, HEADER.size + len(body), log_pos, flags) + body


def without_checksum(event: RawEvent) -> bytes:
    """The event as bytes with a 19-byte header, without checksum, its size to match.

    ``log_pos`` becomes 0, "not known": the event stands in no file any more.
    """
    header = event.header
    return build_event(
        header.type_code, event.body, timestamp=header.timestamp, server_id=header.server_id, flags=header.flags
    )
