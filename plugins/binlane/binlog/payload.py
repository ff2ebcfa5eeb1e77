"""Compressed events: MySQL's TRANSACTION_PAYLOAD and the bodies of MariaDB's ``*_COMPRESSED`` types.

Sources: MySQL ``libs/mysql/binlog/event/codecs/binary.h`` (type, length and value fields, all length-encoded), MariaDB
``sql/log_event.cc`` (``binlog_buf_uncompress``).
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

from binlane.binlog.fields import Fields
from binlane.binlog.wire import HEADER, BufferOffset, EventHeader, EventType, RawEvent, type_name, where
from binlane.errors import BinlogError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.binlog.format_description import FormatDescription

MAX_UNCOMPRESSED: Final = 1 << 32
"""The limit for the declared size of one transaction: a larger size is a damaged field or an attack. 4 GiB."""
MAX_EVENT: Final = 1 << 30
"""The limit for one event: the servers' own limit for max_allowed_packet."""

_END_MARK: Final = 0
_PAYLOAD_SIZE: Final = 1
_COMPRESSION: Final = 2
_UNCOMPRESSED_SIZE: Final = 3


class Compression(IntEnum):
    """Compression types of a TRANSACTION_PAYLOAD."""

    ZSTD = 0
    NONE = 255


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """All events of one MySQL transaction except its GTID event."""

    compression: Compression
    uncompressed_size: int
    payload: memoryview

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> TransactionPayload:
        """Unknown fields are skipped by their length. Raises ValueError for a body that contradicts itself."""
        fields = Fields(body)
        values: dict[int, int] = {}
        while (kind := fields.packed()) != _END_MARK:
            value = Fields(fields.take(fields.packed()))
            if kind in (_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE):
                values[kind] = value.packed()
        if (size := values.get(_PAYLOAD_SIZE)) != fields.left:
            raise ValueError(f"payload size {size}, {fields.left} bytes are left")
        compression = Compression(values.get(_COMPRESSION, Compression.NONE))
        declared = values.get(_UNCOMPRESSED_SIZE, fields.left)
        return cls(compression, declared, fields.rest())

    def __len__(self) -> int:
        return len(self.payload)


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


def unpack(event: RawEvent, name: str = "bytes", limit: int = MAX_UNCOMPRESSED) -> Iterator[RawEvent]:
    """The events inside a TRANSACTION_PAYLOAD, with the payload's offset. They have no checksum, and ``log_pos`` 0.

    The payload is decompressed event by event, never as a whole. Raises BinlogError if it does not decompress to
    exactly the declared size, or declares more than ``limit``.
    """
    at = where(name, event.offset) + "TRANSACTION_PAYLOAD: "
    try:
        payload = TransactionPayload.parse(event.body)
    except ValueError as exc:
        raise BinlogError(at + str(exc)) from exc
    if payload.uncompressed_size > limit:
        raise UnsupportedEventError(
            f"{at}declares {payload.uncompressed_size} bytes, the limit is {limit}; is the file damaged?"
        )
    source: _Readable
    if payload.compression is Compression.NONE:
        source = io.BytesIO(payload.payload)
    else:
        source = zstandard.ZstdDecompressor().stream_reader(payload.payload)
    try:
        yield from _inner_events(source, payload.uncompressed_size, event.offset, at)
    except zstandard.ZstdError as exc:
        raise BinlogError(f"{at}{exc}; the file is damaged here") from exc


def _inner_events(source: _Readable, declared: int, offset: BufferOffset, at: str) -> Iterator[RawEvent]:
    done = 0
    while done < declared:
        head = _read(source, HEADER.size, at)
        header = EventHeader._make(HEADER.unpack(head))
        if not HEADER.size <= header.event_size <= min(MAX_EVENT, declared - done):
            raise BinlogError(
                f"{at}inner byte {done}: {type_name(header.type_code)}: event_size {header.event_size}, "
                f"{declared - done} bytes of the declared {declared} are left"
            )
        if header.type_code == EventType.TRANSACTION_PAYLOAD:
            raise BinlogError(f"{at}inside another one")
        body = _read(source, header.event_size - HEADER.size, at)
        yield RawEvent(offset, header, memoryview(body))
        done += header.event_size
    if source.read(1) != b"":
        raise BinlogError(f"{at}holds more than the declared {declared} bytes")


def _read(source: _Readable, size: int, at: str) -> bytes:
    parts: list[bytes] = []
    left = size
    # a decompressor may return less than was asked for
    while left > 0 and (part := source.read(left)) != b"":
        parts.append(part)
        left -= len(part)
    if left > 0:
        raise BinlogError(f"{at}inflates to less than its declared size")
    return b"".join(parts)


def inflate(data: memoryview, limit: int = MAX_EVENT) -> bytes:
    """Decompress the compressed part of a MariaDB event's body.

    One byte 0x80 | algorithm << 4 | length of the size, the size big-endian, then a zlib stream. Raises ValueError if
    it does not decompress to exactly the declared size, or declares more than ``limit`` bytes.
    """
    fields = Fields(data)
    head = fields.uint(1)
    if head & 0xF0 != 0x80:
        raise ValueError(f"compressed part begins with {head:#04x}, expected 0x81 to 0x84 (zlib)")
    declared = int.from_bytes(fields.take(head & 0x07), "big")
    if declared > limit:
        raise ValueError(f"declares {declared} inflated bytes, the limit is {limit}")
    stream = zlib.decompressobj()
    try:
        # one byte more than declared, to detect a longer stream
        inflated = stream.decompress(fields.rest(), declared + 1)
    except zlib.error as exc:
        raise ValueError(str(exc)) from exc
    if len(inflated) != declared or not stream.eof:
        raise ValueError(f"inflates to {len(inflated)} bytes or more, {declared} are declared")
    return inflated
