"""FORMAT_DESCRIPTION: the event that describes the format of all later events of a log.

Body: binlog version u16, server version 50 bytes, created u32, header length u8, a post-header length per event type,
and, on servers with checksums, one byte of checksum algorithm. The event's own CRC32 follows, whatever the algorithm.
Source: MySQL ``libs/mysql/binlog/event/control_events.cpp``, MariaDB ``sql/log_event.cc``.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from binlane.binlog.wire import CHECKSUM_LENGTH, HEADER, ChecksumAlgorithm, EventType, build_event
from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor

_FIXED: Final = struct.Struct("<H50sIB")
_VERSION_AT: Final = 2
_VERSION_END: Final = 52
_FIRST_WITH_CHECKSUM: Final = {Flavor.MYSQL: (5, 6, 1), Flavor.MARIADB: (5, 3, 0)}
_V4: Final = 4
_PERMUTED_TYPES: Final = re.compile(r"5\.1\.[1-5]-a_drop[56]|5\.2\.[0-2]-a_drop6")
"""Pre-releases with other meanings of the type codes 16 to 22 (MySQL mysql-test ``ver_5_1-wl2325_r``)."""

_POST_HEADER_LENGTHS: Final = bytes.fromhex(
    "00 0d 00 08 00 00 00 00 04 00 04 00 00 00 63 00 04 1a 08 00 00 00 08 08 08"
    "02 00 00 00 0a 0a 0a 2a 2a 00 12 34 00 0a 28 00 00"
)
"""As MySQL 8.4 writes them, types 1 to 42."""
_MARIADB_LENGTHS: Final = bytes.fromhex("00 04 13 04 00 0d 08 08 08 0a 0a 0a")
"""As MariaDB 10.11 writes them, types 160 to 171."""

_HEADS_OF_ROWS: Final = {
    EventType.TABLE_MAP: 8,
    **dict.fromkeys(range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1), 8),
    **dict.fromkeys(range(EventType.WRITE_ROWS_V2, EventType.DELETE_ROWS_V2 + 1), 10),
    EventType.PARTIAL_UPDATE_ROWS: 10,
}
"""The post-header lengths by which the events of a BINLOG payload are read here; every server but pre-releases of 5.1
writes them. A server that is told another length finds a TABLE_MAP's names at another place."""


def split_version(server_version: str) -> tuple[int, int, int]:
    """``10.11.6-MariaDB-log`` as (10, 11, 6); (0, 0, 0) for a text that is no version, as in the servers."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})", server_version)
    if match is None:
        return 0, 0, 0
    major, minor, patch = (int(part) for part in match.groups())
    return major, minor, patch


def flavor_of(server_version: str) -> Flavor:
    """The family of servers that writes this version into its logs."""
    mariadb = "mariadb" in server_version.lower() or "-maria-" in server_version
    return Flavor.MARIADB if mariadb else Flavor.MYSQL


def has_checksum_fields(server_version: str) -> bool:
    """Whether the version's FORMAT_DESCRIPTION ends with an algorithm byte and a CRC32."""
    return split_version(server_version) >= _FIRST_WITH_CHECKSUM[flavor_of(server_version)]


def own_checksum_length(body: memoryview) -> int:
    """Bytes of CRC32 at the end of a FORMAT_DESCRIPTION's body: 4 or 0."""
    return CHECKSUM_LENGTH if has_checksum_fields(_version(bytes(body[_VERSION_AT:_VERSION_END]))) else 0


_TYPES_WITHOUT_CHECKSUMS: Final = 30
"""The last servers without checksum fields, MySQL 5.5 and MariaDB 5.2, have 27 types; the first with them 35."""


def _version(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The format of later events, and the server that wrote them."""

    server_version: str
    post_header_lengths: bytes = _POST_HEADER_LENGTHS
    """One byte per type, type 1 first."""
    checksum: ChecksumAlgorithm = ChecksumAlgorithm.NONE
    created: int = 0
    """When the server started, seconds since the epoch; 0 if it was running already when the file was begun."""

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription) -> FormatDescription:
        """``body``: with the algorithm byte, without the CRC32. ``_format`` is unused."""
        binlog_version, version_field, created, header_length = _FIXED.unpack_from(body)
        server_version = _version(version_field)
        if binlog_version != _V4:
            raise UnsupportedEventError(
                f"binlog version {binlog_version}, expected {_V4}: read the file with the server that wrote it"
            )
        if _PERMUTED_TYPES.match(server_version) is not None:
            raise UnsupportedEventError(f"{server_version} is a pre-release with event types of its own")
        if header_length != HEADER.size:
            raise ValueError(
                f"header length {header_length}, expected {HEADER.size} as all servers write it: the file is damaged "
                "here, or somebody has changed it; fetch it again from the server"
            )
        lengths = bytes(body[_FIXED.size :])
        checksum = ChecksumAlgorithm.NONE
        if has_checksum_fields(server_version):
            if not lengths:
                raise ValueError("the body ends before the checksum algorithm")
            checksum = ChecksumAlgorithm(lengths[-1])
            lengths = lengths[:-1]
        elif len(lengths) > _TYPES_WITHOUT_CHECKSUMS:
            # a damaged version must not switch off checksum verification
            raise ValueError(
                f"{server_version!r} is a version without checksums, but {len(lengths)} lengths or more are those of a "
                "newer one: the version is damaged"
            )
        return cls(server_version, lengths, checksum, created)

    @property
    def version(self) -> tuple[int, int, int]:
        """The server version as numbers."""
        return split_version(self.server_version)

    @property
    def flavor(self) -> Flavor:
        """The family of the server that wrote the log."""
        return flavor_of(self.server_version)

    def post_header_length(self, event_type: int) -> int:
        """Bytes of the fixed part at the beginning of that type's body."""
        for lengths, first in (
            (self.post_header_lengths, 1),
            (_POST_HEADER_LENGTHS, 1),
            (_MARIADB_LENGTHS, EventType.ANNOTATE_ROWS),
        ):
            if first <= event_type < first + len(lengths):
                return lengths[event_type - first]
        return 0

    @property
    def other_heads(self) -> Mapping[int, int]:
        """The post-header lengths of TABLE_MAP and rows events that are not those by which they are read here, by
        type."""
        lengths = self.post_header_lengths
        told = {code: lengths[code - 1] for code in _HEADS_OF_ROWS if code <= len(lengths)}
        # 0: a type that the server does not have
        return {code: length for code, length in told.items() if length not in (0, _HEADS_OF_ROWS[code])}

    def announcing_payloads(self) -> bytes:
        """``without_checksum`` with what a server reads by, as it was read here: the version as numbers and family,
        and the post-header lengths of a payload's events."""
        lengths = bytearray(self.post_header_lengths)
        for code, length in _HEADS_OF_ROWS.items():
            if code <= len(lengths):
                lengths[code - 1] = length
        family = "-MariaDB" if self.flavor is Flavor.MARIADB else ""
        version = ".".join(map(str, self.version)) + family
        return replace(self, server_version=version, post_header_lengths=bytes(lengths)).without_checksum()

    def without_checksum(self, server_id: int = 0) -> bytes:
        """A whole FORMAT_DESCRIPTION event that announces events with 19-byte headers and no checksum.

        For a BINLOG statement: the server then accepts TABLE_MAP and ROWS events without CRC32. ``created`` is 0,
        because at any other value a server drops its temporary tables.
        """
        version = self.server_version.encode("utf-8")[: _VERSION_END - _VERSION_AT]
        body = _FIXED.pack(_V4, version, 0, HEADER.size) + self.post_header_lengths
        if not has_checksum_fields(self.server_version):
            return build_event(EventType.FORMAT_DESCRIPTION, body, server_id=server_id)
        body += bytes((ChecksumAlgorithm.NONE,))
        # event_size, which the CRC32 covers, includes the CRC32
        event = build_event(EventType.FORMAT_DESCRIPTION, body + bytes(CHECKSUM_LENGTH), server_id=server_id)
        covered = event[:-CHECKSUM_LENGTH]
        return covered + zlib.crc32(covered).to_bytes(CHECKSUM_LENGTH, "little")


BARE_FORMAT: Final = FormatDescription("8.4.0")
"""Events without checksum and with 19-byte headers: those inside a transaction payload, and those that binlane
builds."""
