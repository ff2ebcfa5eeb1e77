"""What is known of a logged table's columns, and how each one's bytes become a value.

A TABLE_MAP alone says types and lengths. Names, signs, members and character sets come with it where the source logs
them (``binlog_row_metadata``); a schema may add what no log tells. What is not known is never guessed into another
value: members stay numbers, bytes stay bytes.
"""

from __future__ import annotations

import ipaddress
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

from binlane.binlog import collations
from binlane.binlog.table_map import CHARACTER_TYPES, ColumnType, LengthRule, TableMap
from binlane.binlog.types import temporal
from binlane.binlog.types.charsets import BINARY, decode_text, guessed_text
from binlane.binlog.types.decimals import decode_decimal
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text, parse_json
from binlane.model import Flavor

_C = ColumnType

Value = None | int | float | Decimal | str | bytes | JsonDiffs | JsonDocument
"""NULL, or a value: dates, times and JSON are text, spelled as the server spells them; text that its character set
cannot read, binary strings, geometries (SRID, then WKB) and vectors (floats) are bytes."""
Reader = Callable[[bytes], Value]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a logged table."""

    number: int
    """1 is the first."""
    name: str | None
    type_code: int
    """``ColumnType``, ENUM and SET told apart from STRING."""
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    """None where the log does not say, and for what is no number."""
    charset: str | None = None
    """``binary`` for bytes; None where the log does not say, and for what is no string."""
    members: tuple[bytes, ...] | None = None
    """Of ENUM and SET, in the column's character set."""
    data_type: str | None = None
    """What a schema calls it: tells INET4, INET6 and UUID from BINARY."""
    fsp: int = 0
    """Digits of the fraction of MariaDB 5.3's types, which only a schema knows."""

    @property
    def label(self) -> str:
        """Its name, or ``@`` and its number."""
        return f"@{self.number}" if self.name is None else self.name

    @property
    def is_text(self) -> bool:
        """Whether it holds characters, as far as is known."""
        return self.charset is not None and self.charset != BINARY

    def member_texts(self) -> list[str] | None:
        """The members of ENUM and SET as text; None where the log or their bytes do not tell."""
        texts = [decode_text(member, self.charset) for member in self.members or ()]
        return None if self.members is None or None in texts else [text for text in texts if text is not None]

    def length_rule(self, logged: LengthRule) -> LengthRule:
        """How long it is in an image: as logged, unless a schema knows of a fraction that the log does not tell."""
        lengths = _HIRES.get(self.type_code)
        return logged if lengths is None or self.fsp == 0 else (0, lengths[0][self.fsp])

    def reader(self, *, text: bool = True) -> Reader:
        """The function that reads its bytes; it raises ValueError or struct.error for bytes that no server writes.

        ``text=False`` leaves characters, members and JSON as they are: bytes, numbers and documents, for who writes
        them again.
        """
        fixed = _FIXED.get(self.data_type or "")
        if fixed is not None:
            return fixed
        if self.fsp and self.type_code in _HIRES:
            return partial(_HIRES[self.type_code][1], fsp=self.fsp)
        return _READERS[self.type_code](self, text)


def columns_of(table: TableMap, flavor: Flavor) -> tuple[Column, ...]:
    """The columns as the log alone tells of them."""
    optional, width = table.optional, table.width
    nothing = (None,) * width
    names = optional.column_names or nothing
    unsigned = optional.unsigned or nothing
    members = optional.members or nothing
    charsets = [_charset(number, flavor) for number in optional.collations or nothing]
    return tuple(
        Column(
            number=number + 1,
            name=names[number],
            type_code=code,
            metadata=table.metadata[number],
            nullable=bool(table.null_bitmap[number >> 3] >> (number & 7) & 1),
            unsigned=unsigned[number],
            charset=charsets[number],
            members=members[number],
        )
        for number, code in enumerate(table.real_types)
    )


def _charset(collation: int | None, flavor: Flavor) -> str | None:
    name = None if collation is None else collations.collation_name(collation, flavor)
    return None if name is None else collations.charset_name(name)


# A reader a type. The outer functions see the column once, the inner ones each value.
def _integer(column: Column, _text: bool) -> Reader:
    signed = not column.unsigned
    return lambda data: int.from_bytes(data, "little", signed=signed)


def _struct(layout: str) -> Callable[[Column, bool], Reader]:
    unpack = struct.Struct(layout).unpack

    def read(data: bytes) -> float:
        value: float = unpack(data)[0]
        if value - value != 0:
            raise ValueError(f"{value} is no number that a server stores")
        return value

    return lambda _column, _text: read


def _decimal(column: Column, _text: bool) -> Reader:
    return partial(decode_decimal, precision=column.metadata >> 8, scale=column.metadata & 0xFF)


def _fixed(read: Reader) -> Callable[[Column, bool], Reader]:
    return lambda _column, _text: read


def _fraction(read: temporal.WithFraction) -> Callable[[Column, bool], Reader]:
    return lambda column, _text: lambda data: read(data, column.metadata)


def _bit(_column: Column, _text: bool) -> Reader:
    return lambda data: int.from_bytes(data, "big")


def _characters(column: Column, text: bool) -> Reader:
    if column.charset == BINARY or not text:
        return bytes
    if column.charset is None:
        return lambda data: data if (found := guessed_text(data)) is None else found
    return lambda data: data if (found := decode_text(data, column.charset)) is None else found


def _string(column: Column, text: bool) -> Reader:
    """CHAR and BINARY: the log leaves trailing spaces and trailing zeros out; BINARY(5) has all its bytes back."""
    if column.charset != BINARY:
        return _characters(column, text)
    real, low = column.metadata >> 8, column.metadata & 0xFF
    length = (((real & 0x30) ^ 0x30) << 4) + low
    return lambda data: data.ljust(length, b"\0")


def _compressed(column: Column, text: bool) -> Reader:
    read = _characters(column, text)
    return lambda data: read(uncompressed(data))


def _enum(column: Column, text: bool) -> Reader:
    members = column.member_texts() if text else None

    def read(data: bytes) -> int | str:
        number = int.from_bytes(data, "little")
        if members is None or number > len(members):
            return number
        return members[number - 1] if number else ""

    return read


def _set(column: Column, text: bool) -> Reader:
    members = column.member_texts() if text else None

    def read(data: bytes) -> int | str:
        bits = int.from_bytes(data, "little")
        if members is None or bits >> len(members):
            return bits
        return ",".join(member for number, member in enumerate(members) if bits >> number & 1)

    return read


def _json(_column: Column, text: bool) -> Reader:
    return (lambda data: json_text(parse_json(data))) if text else (lambda data: JsonDocument(parse_json(data)))


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


def _inet6(data: bytes) -> str:
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


_FIXED: Final[Mapping[str, Reader]] = {
    "inet4": lambda data: str(ipaddress.IPv4Address(_padded(data, 4))),
    "inet6": _inet6,
    "uuid": lambda data: str(uuid.UUID(bytes=_padded(data, 16))),
}
_HIRES: Final[Mapping[int, tuple[tuple[int, ...], Callable[..., str]]]] = {
    _C.TIMESTAMP: (temporal.HIRES_TIMESTAMP_BYTES, temporal.hires_timestamp),
    _C.TIME: (temporal.HIRES_TIME_BYTES, temporal.hires_time),
    _C.DATETIME: (temporal.HIRES_DATETIME_BYTES, temporal.hires_datetime),
}
_READERS: Final[Mapping[int, Callable[[Column, bool], Reader]]] = {
    **dict.fromkeys((_C.TINY, _C.SHORT, _C.INT24, _C.LONG, _C.LONGLONG), _integer),
    **dict.fromkeys(CHARACTER_TYPES, _characters),
    _C.STRING: _string,
    _C.VARCHAR_COMPRESSED: _compressed,
    _C.BLOB_COMPRESSED: _compressed,
    _C.FLOAT: _struct("<f"),
    _C.DOUBLE: _struct("<d"),
    _C.NEWDECIMAL: _decimal,
    _C.NULL: _fixed(lambda _data: None),
    _C.BIT: _bit,
    _C.YEAR: _fixed(temporal.year),
    _C.DATE: _fixed(temporal.date),
    _C.NEWDATE: _fixed(temporal.date),
    _C.TIME: _fixed(temporal.old_time),
    _C.DATETIME: _fixed(temporal.old_datetime),
    _C.TIMESTAMP: _fixed(temporal.old_timestamp),
    _C.TIME2: _fraction(temporal.time2),
    _C.DATETIME2: _fraction(temporal.datetime2),
    _C.TIMESTAMP2: _fraction(temporal.timestamp2),
    _C.ENUM: _enum,
    _C.SET: _set,
    _C.JSON: _json,
    _C.GEOMETRY: _fixed(bytes),
    _C.VECTOR: _fixed(bytes),
}
