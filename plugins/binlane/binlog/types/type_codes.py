"""Type codes of a TABLE_MAP, and the length of their values in a row image.

Sources: MySQL ``include/field_types.h``, ``libs/mysql/binlog/event/binary_log_funcs.cpp`` (calc_field_size), MariaDB
``sql/rpl_utility.cc``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from binlane.errors import BinlogError

UNSUPPORTED_RULE: Final = 255
"""The length rule of a column whose length is not logged."""
_MAX_DECIMAL_PRECISION: Final = 65
_DIGITS_TO_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)

LengthRule = tuple[int, int]
"""(0, n): n bytes. (1..4, 0): that many little-endian length bytes, then the value. (UNSUPPORTED_RULE, column type)."""
Length = Callable[[int, str], LengthRule]
"""The rule by a column's metadata. The text begins every message; raises BinlogError for metadata that no server
writes."""


class ColumnType(IntEnum):
    """``enum_field_types`` as TABLE_MAP holds them; 140 and 141 are MariaDB's, 242 and 245 MySQL's."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    TINY_BLOB = 249
    MEDIUM_BLOB = 250
    LONG_BLOB = 251
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


def exactly(length: int) -> Length:
    """Always ``length`` bytes."""
    return lambda _meta, _where: (0, length)


def declared(length: int) -> Length:
    """``length`` bytes, which the metadata repeats."""
    return lambda meta, where: (0, _checked(meta == length, meta, where, f"{length} bytes"))


def with_fraction(base: int) -> Length:
    """``base`` bytes, and one for each two digits of the fraction; the metadata is the number of digits."""
    return lambda meta, where: (0, base + (_checked(meta <= 6, meta, where, "0 to 6 fractional digits") + 1) // 2)


def unknown(code: int) -> Length:
    """MySQL 4's DECIMAL logs no length; VAR_STRING logs one that the servers do not read."""
    return lambda _meta, _where: (UNSUPPORTED_RULE, int(code))


def prefixed(meta: int, where: str) -> LengthRule:
    """Length bytes before the value; the metadata is their number."""
    return _checked(meta in (1, 2, 3, 4), meta, where, "1 to 4 length bytes"), 0


def varying(meta: int, _where: str) -> LengthRule:
    """VARCHAR: the metadata is the maximum of bytes; up to 255 there is one length byte, else two."""
    return (2 if meta > 255 else 1), 0


def bits(meta: int, where: str) -> LengthRule:
    """BIT: whole bytes, then the bits of one more."""
    rest, whole = meta & 0xFF, meta >> 8
    _checked(rest <= 7 and 0 < 8 * whole + rest <= 64, meta, where, "1 to 64 bits")
    return 0, whole + (rest > 0)


def decimal(meta: int, where: str) -> LengthRule:
    """DECIMAL: precision and scale, each in groups of nine digits."""
    precision, scale = meta >> 8, meta & 0xFF
    holds = 0 < precision <= _MAX_DECIMAL_PRECISION and scale <= precision
    _checked(holds, meta, where, f"precision 1 to {_MAX_DECIMAL_PRECISION} and scale up to it")
    return 0, sum(4 * (digits // 9) + _DIGITS_TO_BYTES[digits % 9] for digits in (precision - scale, scale))


def string(meta: int, where: str) -> LengthRule:
    """CHAR, ENUM and SET. The first byte is the real type."""
    real, low = meta >> 8, meta & 0xFF
    if real in (ColumnType.ENUM, ColumnType.SET):
        _checked(1 <= low <= 8, meta, where, "1 to 8 bytes")
        return 0, low
    _checked(real | 0x30 == ColumnType.STRING, meta, where, "the real type CHAR, ENUM or SET")
    return (2 if char_length(meta) > 255 else 1), 0


def char_length(meta: int) -> int:
    """The maximum bytes of a CHAR: bits 8 and 9 of a length above 255 are stored, inverted, in the real type."""
    return meta & 0xFF | ((meta >> 8 & 0x30) ^ 0x30) << 4


def _checked(holds: bool, meta: int, where: str, expected: str) -> int:
    if not holds:
        raise BinlogError(f"{where}expected {expected}, metadata is {meta:#06x}; the event is damaged")
    return meta
