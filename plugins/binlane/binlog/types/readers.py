"""Readers of a column's bytes in a row image, one function for each kind of type.

Each function takes a column and returns the reader of its values, which raises ValueError or struct.error for bytes
that no server writes. ``text``: characters, members and JSON become text; otherwise bytes, numbers and documents.
"""

from __future__ import annotations

import ipaddress
import struct
import uuid
import zlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Protocol

from binlane.binlog.types import temporal
from binlane.binlog.types.charsets import BINARY, decode_text, guessed_text
from binlane.binlog.types.decimals import decode_decimal
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text, parse_json
from binlane.binlog.types.type_codes import char_length

Value = None | int | float | Decimal | str | bytes | JsonDiffs | JsonDocument
"""NULL or a value. Dates, times and JSON are text as the server prints them; undecodable text, binary strings,
geometries (SRID, then WKB) and vectors (floats) are bytes."""
Reader = Callable[[bytes], Value]


class ReadColumn(Protocol):
    """The properties of a column that readers use (``columns.Column``)."""

    @property
    def metadata(self) -> int:
        """The column's metadata in the TABLE_MAP."""

    @property
    def unsigned(self) -> bool | None:
        """None if not logged."""

    @property
    def charset(self) -> str | None:
        """``binary`` for bytes; None if not logged."""

    def member_texts(self) -> list[str] | None:
        """The members of ENUM and SET as text."""


MakeReader = Callable[[ReadColumn, bool], Reader]


def integer(column: ReadColumn, _text: bool) -> Reader:
    """Little-endian; signed unless the column is known to be unsigned."""
    signed = not column.unsigned
    return lambda data: int.from_bytes(data, "little", signed=signed)


def floating(layout: str) -> MakeReader:
    """FLOAT and DOUBLE."""
    unpack = struct.Struct(layout).unpack

    def read(data: bytes) -> float:
        value: float = unpack(data)[0]
        if value - value != 0:
            raise ValueError(f"{value} is no number that a server stores")
        return value

    return lambda _column, _text: read


def decimal(column: ReadColumn, _text: bool) -> Reader:
    """The metadata is precision and scale."""
    return partial(decode_decimal, precision=column.metadata >> 8, scale=column.metadata & 0xFF)


def alone(read: Reader) -> MakeReader:
    """A reader that needs no property of the column."""
    return lambda _column, _text: read


def with_fraction(read: temporal.WithFraction) -> MakeReader:
    """The metadata counts the fraction's digits."""
    return lambda column, _text: lambda data: read(data, column.metadata)


def bit(_column: ReadColumn, _text: bool) -> Reader:
    """BIT: big-endian."""
    return lambda data: int.from_bytes(data, "big")


def characters(column: ReadColumn, text: bool) -> Reader:
    """Text if the character set is known, or if the bytes are printable UTF-8."""
    if column.charset == BINARY or not text:
        return bytes
    if column.charset is None:
        return lambda data: data if (found := guessed_text(data)) is None else found
    return lambda data: data if (found := decode_text(data, column.charset)) is None else found


def gets_zeros_back(charset: str | None) -> bool:
    """Whether a column of fixed length is read with more bytes than the log has of it: as BINARY, whose trailing zeros
    the log leaves out. Without a character set in the log nobody knows."""
    return charset == BINARY


def padded_characters(column: ReadColumn, text: bool) -> Reader:
    """CHAR and BINARY: the log has no trailing spaces and zeros; BINARY gets its zeros back."""
    if not gets_zeros_back(column.charset):
        return characters(column, text)
    length = char_length(column.metadata)
    return lambda data: data.ljust(length, b"\0")


def compressed(column: ReadColumn, text: bool) -> Reader:
    """MariaDB's COMPRESSED columns."""
    read = characters(column, text)
    return lambda data: read(uncompressed(data))


def enum(column: ReadColumn, text: bool) -> Reader:
    """The member's text, or its number if the text is not known."""
    members = column.member_texts() if text else None

    def read(data: bytes) -> int | str:
        number = int.from_bytes(data, "little")
        if members is None or number > len(members):
            return number
        return members[number - 1] if number else ""

    return read


def set_of_members(column: ReadColumn, text: bool) -> Reader:
    """The members' texts, or their bits if a text is not known."""
    members = column.member_texts() if text else None

    def read(data: bytes) -> int | str:
        bits = int.from_bytes(data, "little")
        if members is None or bits >> len(members):
            return bits
        return ",".join(member for number, member in enumerate(members) if bits >> number & 1)

    return read


def json(_column: ReadColumn, text: bool) -> Reader:
    """MySQL's binary JSON."""
    return (lambda data: json_text(parse_json(data))) if text else (lambda data: JsonDocument(parse_json(data)))


def inet4(data: bytes) -> str:
    """As MariaDB prints it."""
    return str(ipaddress.IPv4Address(_padded(data, 4)))


def uuid_text(data: bytes) -> str:
    """As MariaDB prints it."""
    return str(uuid.UUID(bytes=_padded(data, 16)))


def uncompressed(data: bytes) -> bytes:
    """The value of a MariaDB COMPRESSED column (``sql/field_comp.cc``): a byte of method and flags, the length, zlib.

    Raises ValueError.
    """
    if not data:
        return b""
    method, raw, size = data[0] >> 4, data[0] & 8, data[0] & 7
    if method == 0:
        return data[1:]
    if method != 8 or not 1 <= size <= 4:
        raise ValueError(f"compressed value: method byte {data[0]:#04x}")
    length = int.from_bytes(data[1 : 1 + size], "big")
    stream = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS)
    try:
        plain = stream.decompress(data[1 + size :], length + 1)
    except zlib.error as exc:
        raise ValueError(f"compressed value: {exc}") from exc
    if len(plain) != length:
        raise ValueError(f"compressed value: {len(plain)} bytes where {length} were declared")
    return plain


def _padded(data: bytes, length: int) -> bytes:
    """The log leaves trailing zeros out."""
    if len(data) > length:
        raise ValueError(f"{len(data)} bytes where at most {length} fit")
    return data.ljust(length, b"\0")


def inet6(data: bytes) -> str:
    """As MariaDB prints it (``sql/sql_type_inet.cc``): the longest run of zeros is ``::``, even if it is one group."""
    address = _padded(data, 16)
    number = int.from_bytes(address, "big")
    if number >> 32 == 0xFFFF or (number >> 32 == 0 and number >> 16):
        return f"::{'ffff:' if number >> 32 else ''}{ipaddress.IPv4Address(address[12:])}"
    groups = [f"{int.from_bytes(address[at : at + 2], 'big'):x}" for at in range(0, 16, 2)]
    length, start = max(((_zeros(groups[at:]), at) for at in range(8)), key=lambda run: run[0])
    if length == 0:
        return ":".join(groups)
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + length :])}"


def _zeros(groups: list[str]) -> int:
    return next((at for at, group in enumerate(groups) if group != "0"), len(groups))
