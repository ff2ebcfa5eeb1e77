"""Whole columns of row images as SQL literals: the values of many rows at once, each as ``types.literals`` spells it.

The common types are read as arrays. Other types, and all values of a column that has an unusual one, are read one by
one by the readers of ``sql_types``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.decimals import decimal_groups
from binlane.binlog.types.literals import introducer, literal
from binlane.binlog.types.sql_types import SQL_TYPES, reader_of
from binlane.binlog.types.type_codes import ColumnType, LengthRule
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.kernels import rows as row_kernels
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor

_C: Final = ColumnType
_ABSENT: Final = -1
"""Start of a value that is NULL."""
_LONGEST_DECIMAL: Final = 18
"""Digits that fit into 64 bits."""
_DATETIME2_ZERO: Final = 0x8000000000


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one column, without NULL."""

    data: Bytes
    start: Ints
    end: Ints

    def fixed(self, size: int, skip: int = 0) -> Bytes:
        """(values, size): bytes ``skip`` to ``skip + size`` of each value."""
        return np.asarray(self.data[self.start[:, None] + np.arange(skip, skip + size)])

    def bytes(self) -> list[bytes]:
        """Each value's bytes."""
        view = self.data.data
        return [bytes(view[start:end]) for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True)]


Speller = Callable[[Values], list[str] | None]
"""The literals of a column's values; None if a value is unusual and all have to be read one by one."""


@dataclass(frozen=True, slots=True)
class ColumnLiterals:
    """The columns of a table, and how their values are spelled."""

    spellers: tuple[Speller, ...]
    rule: Bytes
    length: Ints

    @classmethod
    def of(cls, columns: Sequence[Column], rules: Sequence[LengthRule], server: Flavor) -> ColumnLiterals:
        """``rules``: the lengths of the columns' values; ``server``: the family that reads the literals."""
        flat = np.array(rules, np.int64).reshape(-1, 2)
        spellers = tuple(_with_fallback(column, server) for column in columns)
        return cls(spellers, flat[:, 0].astype(np.uint8), np.ascontiguousarray(flat[:, 1]))

    def places(self, data: Bytes, images: Ints, columns: int | None = None) -> tuple[Ints, Ints]:
        """(start, end) of each column's value in the full images that begin at ``images``, each of the shape (columns,
        images); start is -1 for NULL. ``columns``: only the first ones."""
        found = len(self.spellers) if columns is None else columns
        start, end = np.empty((found, images.size), np.int64), np.empty((found, images.size), np.int64)
        row_kernels.places(data, images, len(self.spellers), self.rule, self.length, start, end)
        return start, end

    def column(self, number: int, data: Bytes, start: Ints, end: Ints) -> list[str]:
        """The literals of one column's values; NULL where the start is -1.

        Raises ValueError or struct.error for bytes that no server writes, and for a JSON document without an SQL
        expression.
        """
        present = start != _ABSENT
        speller = self.spellers[number]
        if present.all():
            return speller(Values(data, start, end)) or []
        spelled = iter(speller(Values(data, start[present], end[present])) or [])
        return [next(spelled) if is_present else "NULL" for is_present in present.tolist()]


def values_of(data: Bytes, start: Ints, end: Ints) -> list[bytes | None]:
    """The bytes of one column's values; None for NULL."""
    view = data.data
    return [
        None if first == _ABSENT else bytes(view[first:last])
        for first, last in zip(start.tolist(), end.tolist(), strict=True)
    ]


def little_endian(data: Bytes, start: Ints, size: int, *, signed: bool) -> list[int]:
    """Little-endian integers of ``size`` bytes."""
    raw = np.zeros((start.size, 8), np.uint8)
    raw[:, :size] = data[start[:, None] + np.arange(size)]
    values, unused = raw.view("<i8" if signed else "<u8").ravel(), 64 - 8 * size
    found: list[int] = (values << unused >> unused).tolist()
    return found


def _with_fallback(column: Column, server: Flavor) -> Speller:
    fast, read = _speller(column, server), reader_of(column, text=False)

    def spell(values: Values) -> list[str]:
        found = None if fast is None else fast(values)
        return [literal(column, read(value), server) for value in values.bytes()] if found is None else found

    return spell


def _speller(column: Column, server: Flavor) -> Speller | None:
    kind, by_name = LOGGED_TYPES[column.type_code], SQL_TYPES.get(column.data_type or "")
    if (by_name is not None and by_name.read is not None) or (kind.with_digits is not None and column.fsp):
        return None
    if kind.bits:
        return _integers(kind.bits >> 3, signed=not column.unsigned) if column.unsigned is not None else None
    make = _SPELLERS.get(column.type_code)
    return None if make is None else make(column, server)


def _integers(size: int, *, signed: bool) -> Speller:
    return lambda values: list(map(str, little_endian(values.data, values.start, size, signed=signed)))


def _floats(kind: str) -> Callable[[Column, Flavor], Speller]:
    size = np.dtype(kind).itemsize

    def spell(values: Values) -> list[str] | None:
        numbers = values.fixed(size).view(kind).ravel().astype(np.float64)
        if not np.isfinite(numbers).all():
            return None
        return [text if "e" in text else f"{text}e0" for text in map(repr, numbers.tolist())]

    return lambda _column, _server: spell


def _characters(column: Column, server: Flavor) -> Speller:
    before = f"_{introducer(column.charset, server)} X'" if column.is_text else "X'"

    def spell(values: Values) -> list[str]:
        view = values.data.data
        ranges = zip(values.start.tolist(), values.end.tolist(), strict=True)
        return [f"{before}{view[start:end].hex()}'" for start, end in ranges]

    return spell


def _padded_characters(column: Column, server: Flavor) -> Speller | None:
    """CHAR; BINARY gets its zeros back from the reader."""
    return _characters(column, server) if column.is_text else None


def _decimal(column: Column, _server: Flavor) -> Speller | None:
    precision, scale = column.metadata >> 8, column.metadata & 0xFF
    if precision > _LONGEST_DECIMAL:
        return None
    groups = decimal_groups(precision, scale)
    size, unit = sum(width for width, _ in groups), 10**scale

    def spell(values: Values) -> list[str] | None:
        raw = values.fixed(size)
        negative = raw[:, 0] & 0x80 == 0
        raw = raw ^ np.where(negative, np.uint8(0xFF), np.uint8(0))[:, None]
        raw[:, 0] ^= 0x80
        number, at = np.zeros(negative.size, np.int64), 0
        for width, digits in groups:
            group = _big_endian(raw[:, at : at + width])
            if (group >= 10**digits).any():
                return None
            number, at = number * 10**digits + group, at + width
        if scale == 0:
            return list(map(str, np.where(negative, -number, number).tolist()))
        signs = np.where(negative & (number != 0), "-", "").tolist()
        parts = zip(signs, *_lists(number // unit, number % unit), strict=True)
        return [f"{sign}{whole}.{part:0{scale}d}" for sign, whole, part in parts]

    return spell


def _date(_column: Column, _server: Flavor) -> Speller:
    def spell(values: Values) -> list[str] | None:
        raw = values.fixed(3).astype(np.int64)
        packed = raw[:, 0] | raw[:, 1] << 8 | raw[:, 2] << 16
        parts = packed >> 9, packed >> 5 & 15, packed & 31
        if not _is_date(*parts):
            return None
        return [f"'{year:04d}-{month:02d}-{day:02d}'" for year, month, day in zip(*_lists(*parts), strict=True)]

    return spell


def _datetime(column: Column, _server: Flavor) -> Speller:
    digits = column.metadata

    def spell(values: Values) -> list[str] | None:
        packed = _big_endian(values.fixed(5)) - _DATETIME2_ZERO
        fraction = _fraction(values, 5, digits)
        months, clock = packed >> 22, (packed >> 12 & 31, packed >> 6 & 63, packed & 63)
        day = months // 13, months % 13, packed >> 17 & 31
        usual = bool((packed >= 0).all()) and _is_date(*day) and bool((clock[1] < 60).all() and (clock[2] < 60).all())
        if not usual or fraction is None:
            return None
        times = [
            f"'{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}"
            for year, month, day, hour, minute, second in zip(*_lists(*day, *clock), strict=True)
        ]
        return _with_fraction(times, fraction, digits)

    return spell


def _timestamp(column: Column, _server: Flavor) -> Speller:
    digits = column.metadata

    def spell(values: Values) -> list[str] | None:
        seconds, fraction = _big_endian(values.fixed(4)), _fraction(values, 4, digits)
        if fraction is None or ((seconds == 0) & (fraction == 0)).any():
            return None  # zero, which is no time
        times = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
        return _with_fraction([f"'{time.replace('T', ' ')}" for time in times], fraction, digits)

    return spell


def _year(_column: Column, _server: Flavor) -> Speller:
    return lambda values: [str(1900 + one if one else 0) for one in values.fixed(1).ravel().tolist()]


def _number(column: Column, _server: Flavor) -> Speller:
    """The number of an ENUM's member, the bits of a SET."""
    size = column.metadata & 0xFF
    return lambda values: list(map(str, little_endian(values.data, values.start, size, signed=False)))


_SPELLERS: Final[Mapping[int, Callable[[Column, Flavor], Speller | None]]] = {
    _C.FLOAT: _floats("<f4"),
    _C.DOUBLE: _floats("<f8"),
    _C.DATE: _date,
    _C.NEWDATE: _date,
    _C.DATETIME2: _datetime,
    _C.TIMESTAMP2: _timestamp,
    _C.YEAR: _year,
    _C.NEWDECIMAL: _decimal,
    _C.ENUM: _number,
    _C.SET: _number,
    _C.STRING: _padded_characters,
    _C.VARCHAR: _characters,
    _C.BLOB: _characters,
}
"""Types whose columns are read as arrays, besides the integers."""


def _big_endian(raw: Bytes) -> Ints:
    number = np.zeros(raw.shape[0], np.int64)
    for byte in range(raw.shape[1]):
        number = number << 8 | raw[:, byte]
    return number


def _fraction(values: Values, skip: int, digits: int) -> Ints | None:
    """The digits of a second's fraction, two in each byte; None if a byte has more."""
    size = (digits + 1) // 2
    number = _big_endian(values.fixed(size, skip))
    if (number >= 100**size).any():
        return None
    return number // 10 if digits & 1 else number


def _with_fraction(times: list[str], fraction: Ints, digits: int) -> list[str]:
    if digits == 0:
        return [f"{time}'" for time in times]
    return [f"{time}.{part:0{digits}d}'" for time, part in zip(times, fraction.tolist(), strict=True)]


def _is_date(year: Ints, month: Ints, day: Ints) -> bool:
    return bool((year <= 9999).all() and (month <= 12).all() and (day <= 31).all())


def _lists(*parts: Ints) -> list[list[int]]:
    return [part.tolist() for part in parts]
