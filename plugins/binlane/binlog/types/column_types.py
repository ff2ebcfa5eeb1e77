"""Every type code of a TABLE_MAP, one row each: how long a value is, how it is read, named, compared and refused.

ENUM and SET are logged as STRING, with the real type in the metadata. Some types share a code, such as UUID and BINARY:
``sql_types`` has a row for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from binlane.binlog.types import readers, temporal
from binlane.binlog.types import type_codes as lengths
from binlane.binlog.types.readers import MakeReader
from binlane.binlog.types.type_codes import ColumnType, Length
from binlane.lazy_dataclass import dataclass

_C = ColumnType

AS_IT_IS: Final = "{}"
AS_BYTES: Final = "CAST({} AS BINARY)"
AS_DIGITS: Final = "HEX({})"
AS_NUMBER: Final = "CAST({} AS UNSIGNED)"
"""SQL forms of a column for exact comparison: collations treat different strings as equal, a SET of 64 members would be
compared as a signed number, and not every type can be cast to bytes."""


WithDigits = tuple[tuple[int, ...], Callable[[bytes, int], str]]
"""Number of bytes by the digits of the fraction, and the reader."""


class Entry(StrEnum):
    """Which list of a TABLE_MAP's optional metadata has an entry for columns of the type."""

    SIGN = "signs"
    COLLATION = "collations"
    MEMBERS = "members, and their collations"


class Spelling(StrEnum):
    """How a value is written if its Python type does not decide (``literals``)."""

    PLAIN = "as its Python type is"
    SINGLE = "by the fewest digits that give the same 32 bits"
    YEAR = "with four digits"
    BITS = "as b'...'"
    DOCUMENT = "as JSON"


@dataclass(frozen=True, slots=True)
class LoggedType:
    """The properties of a type code."""

    words: str | Callable[[int], str] | None
    """The words of ``sql_types`` for a column with this type code, by the metadata. None: never logged."""
    length: Length
    read: MakeReader | None
    """None: never in a row image."""
    metadata: int = 0
    """Bytes of metadata in a TABLE_MAP."""
    big_endian: bool = False
    """Byte order of the metadata."""
    entry: Entry | None = None
    bits: int = 0
    """Bits of an integer type."""
    spelled: Spelling = Spelling.PLAIN
    compared: str = AS_IT_IS
    with_digits: WithDigits | None = None
    """The layout of MariaDB 5.3, whose digits of the fraction are not logged."""
    one_family: str | None = None
    """Why the other family has no such type; None if it has."""
    by_statements: bool = False
    """The other family has no such type, but columns that hold its values: statements write them there."""


def logged_words(code: int, metadata: int) -> str:
    """A column of a TABLE_MAP in words."""
    known = LOGGED_TYPES.get(code)
    if known is None or known.words is None:
        return f"type {code}"
    return known.words if isinstance(known.words, str) else known.words(metadata)


def by_statements(code: int) -> bool:
    """Whether rows with such a column go to the other family as statements, and never in a BINLOG statement."""
    return code in LOGGED_TYPES and LOGGED_TYPES[code].by_statements


def codes_with(entry: Entry) -> frozenset[ColumnType]:
    """The types for whose columns a list of the optional metadata has entries."""
    return frozenset(ColumnType(code) for code, kind in LOGGED_TYPES.items() if kind.entry is entry)


def codes_spelled(spelled: Spelling) -> frozenset[int]:
    """The types whose values are written in that way."""
    return frozenset(code for code, kind in LOGGED_TYPES.items() if kind.spelled is spelled)


def _integer(words: str, bits: int) -> LoggedType:
    return LoggedType(words, lengths.exactly(bits // 8), readers.integer, entry=Entry.SIGN, bits=bits)


def _float(words: str, size: int, layout: str, spelled: Spelling = Spelling.PLAIN) -> LoggedType:
    return LoggedType(
        words, lengths.declared(size), readers.floating(layout), metadata=1, entry=Entry.SIGN, spelled=spelled
    )


def _old(words: str, size: int, read: readers.Reader, with_digits: WithDigits) -> LoggedType:
    return LoggedType(words, lengths.exactly(size), readers.alone(read), with_digits=with_digits)


def _temporal(words: str, base: int, read: temporal.WithFraction) -> LoggedType:
    return LoggedType(
        lambda digits: f"{words}({digits})", lengths.with_fraction(base), readers.with_fraction(read), metadata=1
    )


def _characters(words: str | Callable[[int], str] | None) -> LoggedType:
    return LoggedType(words, lengths.prefixed, readers.characters, 1, entry=Entry.COLLATION, compared=AS_BYTES)


def _members(read: MakeReader) -> LoggedType:
    return LoggedType(None, lengths.string, read, 2, big_endian=True, entry=Entry.MEMBERS, compared=AS_NUMBER)


def _compressed(words: str, length: Length, metadata: int) -> LoggedType:
    return LoggedType(
        words, length, readers.compressed, metadata, entry=Entry.COLLATION, compared=AS_BYTES, by_statements=True
    )


def _string_words(metadata: int) -> str:
    real = metadata >> 8
    if real in (_C.ENUM, _C.SET):
        return f"{_C(real).name.lower()} of {metadata & 0xFF} bytes"
    return f"char of {lengths.char_length(metadata)} bytes"


_L = LoggedType
LOGGED_TYPES: Final[Mapping[int, LoggedType]] = {
    _C.DECIMAL: _L(None, lengths.unknown(_C.DECIMAL), None, entry=Entry.SIGN),
    _C.TINY: _integer("tinyint", 8),
    _C.SHORT: _integer("smallint", 16),
    _C.LONG: _integer("int", 32),
    _C.FLOAT: _float("float", 4, "<f", Spelling.SINGLE),
    _C.DOUBLE: _float("double", 8, "<d"),
    _C.NULL: _L(None, lengths.exactly(0), readers.alone(lambda _data: None)),
    _C.TIMESTAMP: _old("timestamp (old format)", 4, temporal.old_timestamp, temporal.HIRES_TIMESTAMP),
    _C.LONGLONG: _integer("bigint", 64),
    _C.INT24: _integer("mediumint", 24),
    _C.DATE: _L("date", lengths.exactly(3), readers.alone(temporal.date)),
    _C.TIME: _old("time (old format)", 3, temporal.old_time, temporal.HIRES_TIME),
    _C.DATETIME: _old("datetime (old format)", 8, temporal.old_datetime, temporal.HIRES_DATETIME),
    _C.YEAR: _L("year", lengths.exactly(1), readers.alone(temporal.year), entry=Entry.SIGN, spelled=Spelling.YEAR),
    _C.NEWDATE: _L("date", lengths.exactly(3), readers.alone(temporal.date)),
    _C.VARCHAR: _L(
        lambda most: f"varchar of {most} bytes", lengths.varying, readers.characters, 2,
        entry=Entry.COLLATION, compared=AS_BYTES,
    ),
    _C.BIT: _L(
        lambda meta: f"bit({(meta & 0xFF) + 8 * (meta >> 8)})", lengths.bits, readers.bit, 2, spelled=Spelling.BITS
    ),
    _C.TIMESTAMP2: _temporal("timestamp", 4, temporal.timestamp2),
    _C.DATETIME2: _temporal("datetime", 5, temporal.datetime2),
    _C.TIME2: _temporal("time", 3, temporal.time2),
    _C.BLOB_COMPRESSED: _compressed("compressed blob", lengths.prefixed, 1),
    _C.VARCHAR_COMPRESSED: _compressed("compressed varchar", lengths.varying, 2),
    _C.VECTOR: _L(
        "vector", lengths.prefixed, readers.alone(bytes), 1,
        compared=AS_DIGITS, one_family="VECTOR, which MariaDB keeps in another way",
    ),
    _C.JSON: _L("json stored in binary", lengths.prefixed, readers.json, 1, spelled=Spelling.DOCUMENT),
    _C.NEWDECIMAL: _L(
        lambda meta: f"decimal({meta >> 8},{meta & 0xFF})", lengths.decimal, readers.decimal, 2,
        big_endian=True, entry=Entry.SIGN,
    ),
    _C.ENUM: _members(readers.enum),
    _C.SET: _members(readers.set_of_members),
    _C.TINY_BLOB: _characters(None),
    _C.MEDIUM_BLOB: _characters(None),
    _C.LONG_BLOB: _characters(None),
    _C.BLOB: _characters(lambda size: f"blob with {size} bytes of length"),
    _C.VAR_STRING: _L(
        None, lengths.unknown(_C.VAR_STRING), readers.characters, 2,
        big_endian=True, entry=Entry.COLLATION, compared=AS_BYTES,
    ),
    _C.STRING: _L(
        _string_words, lengths.string, readers.padded_characters, 2,
        big_endian=True, entry=Entry.COLLATION, compared=AS_BYTES,
    ),
    _C.GEOMETRY: _L("geometry", lengths.prefixed, readers.alone(bytes), 1, compared=AS_DIGITS),
}  # fmt: skip
"""The logged types by ``ColumnType``."""
