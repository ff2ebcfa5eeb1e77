"""Events that set one variable for the statement after them: INTVAR, RAND, USER_VAR.

Source: MySQL ``libs/mysql/binlog/event/statement_events.h``; MariaDB ``sql/log_event.cc`` (``Log_event_data_type``).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from binlane.binlog.fields import Fields
from binlane.binlog.types.collations import charset_name, collation_name
from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext

if TYPE_CHECKING:
    from binlane.binlog.format_description import FormatDescription


class IntvarKind(IntEnum):
    """The variable that an INTVAR sets."""

    LAST_INSERT_ID = 1
    INSERT_ID = 2


@dataclass(frozen=True, slots=True)
class Intvar:
    """LAST_INSERT_ID() or the next AUTO_INCREMENT value of the statement that follows."""

    kind: IntvarKind
    value: int

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Intvar:
        """Raises struct.error or ValueError."""
        kind, value = struct.unpack("<BQ", body)
        return cls(IntvarKind(kind), value)


@dataclass(frozen=True, slots=True)
class Rand:
    """The seeds of RAND() in the statement that follows."""

    seed1: int
    seed2: int

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Rand:
        """Raises struct.error."""
        return cls(*struct.unpack("<QQ", body))


class ValueType(IntEnum):
    """The type of a user variable's value (``Item_result``)."""

    STRING = 0
    REAL = 1
    INT = 2
    ROW = 3
    DECIMAL = 4


@dataclass(frozen=True, slots=True)
class UserVar:
    """A user variable, as the statement that follows reads it."""

    name: str
    value: bytes | None
    """None for NULL. INT and REAL: 8 bytes; DECIMAL: precision, scale and digits in the server's packed form."""
    type: ValueType = ValueType.STRING
    collation: int = 0
    unsigned: bool = False
    type_name: str = ""
    """MariaDB: the name of a type that ``type`` does not have, such as a geometry."""

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> UserVar:
        """MySQL 5.1 logs no flags behind the value, and MariaDB none for strings."""
        fields = Fields(body)
        name = fields.text(fields.uint(4))
        if fields.uint(1) != 0:
            return cls(name, None)
        kind, collation = ValueType(fields.uint(1)), fields.uint(4)
        value = bytes(fields.take(fields.uint(4)))
        unsigned, type_name = False, ""
        while fields.left > 0:
            chunk = fields.uint(1)
            if chunk == _TYPE_NAME:
                type_name = fields.short_text()
            elif chunk in (_SIGNED, _UNSIGNED):
                unsigned = chunk == _UNSIGNED
            else:
                break
        return cls(name, value, kind, collation, unsigned, type_name)

    def sql_value(self, target: Flavor = Flavor.MYSQL) -> str:
        """An SQL expression that has the same type and the same bytes on ``target``.

        Raises UnsupportedEventError for a value that SQL cannot express without loss, ValueError for a damaged value.
        """
        if self.value is None:
            return "NULL"
        if self.type_name != "" and (make := _GEOMETRIES.get(self.type_name)) is not None:
            return _geometry(self.value, make, target)
        if self.type_name != "":
            raise UnsupportedEventError(f"user variable {self.name!r}: its type {self.type_name!r} cannot be written")
        if self.type is ValueType.STRING:
            return _string(self.value, self.collation, self.name, target)
        if self.type is ValueType.INT:
            return _integer(int.from_bytes(_eight(self.value), "little", signed=not self.unsigned), self.unsigned)
        if self.type is ValueType.REAL:
            return _double(struct.unpack("<d", _eight(self.value))[0])
        if self.type is ValueType.DECIMAL:
            return _decimal(self.value)
        raise UnsupportedEventError(f"user variable {self.name!r}: a row cannot be written as a value")


_GEOMETRIES: Final = {
    "geometry": "ST_GeomFromWKB",
    "point": "ST_PointFromWKB",
    "linestring": "ST_LineFromWKB",
    "polygon": "ST_PolyFromWKB",
    "multipoint": "ST_MPointFromWKB",
    "multilinestring": "ST_MLineFromWKB",
    "multipolygon": "ST_MPolyFromWKB",
    "geometrycollection": "ST_GeomCollFromWKB",
}
"""MariaDB's further types of user variables, each with its constructor function."""
_COLLATE: Final = " COLLATE "
_SRID_BYTES: Final = 4
_POINT: Final = 1
_LINESTRING: Final = 2
_POLYGON: Final = 3
_CONSTRUCTORS: Final = {
    _LINESTRING: "LINESTRING",
    _POLYGON: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
"""By the type's number in WKB."""
_SHAPES: Final = "|".join(("POINT", *_CONSTRUCTORS.values()))
_NUMBER: Final = r"-?[0-9]++(?:\.[0-9]++)?(?:e[-+]?[0-9]++)?"
_WRITTEN: Final = re.compile(
    rf"NULL|_[0-9a-z]+ X'[0-9a-f]*'(?:{_COLLATE}[0-9a-z_]+)?|{_NUMBER}"
    r"|CAST\(-?[0-9]+ AS (?:SIGNED|UNSIGNED|DECIMAL\([0-9]+,0\))\)"
    rf"|(?:{'|'.join(_GEOMETRIES.values())})\(X'[0-9a-f]*', [0-9]+\)"
    rf"|(?:{_SHAPES})\((?:(?:{_SHAPES})\(|{_NUMBER}|, |\))*"
)
"""The texts that ``UserVar.sql_value`` makes."""
_MOST_NESTED: Final = 100
_SIGNED: Final = 0
_UNSIGNED: Final = 1
_TYPE_NAME: Final = 2
_MIN_BIGINT: Final = -(1 << 63)
_MAX_PRECISION: Final = 65
_DIGITS_PER_GROUP: Final = 9
_GROUP_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes that hold 0 to 9 decimal digits."""


def with_variables(
    context: SessionContext, variables: Iterable[Intvar | Rand | UserVar], target: Flavor
) -> SessionContext:
    """The context with the values of the variable events before a statement."""
    for event in variables:
        if isinstance(event, Rand):
            context = replace(context, rand_seeds=(event.seed1, event.seed2))
        elif isinstance(event, UserVar):
            pair = (event.name, event.sql_value(target))
            context = replace(context, user_variables=(*context.user_variables, pair))
        elif event.kind is IntvarKind.INSERT_ID:
            context = replace(context, insert_id=event.value)
        else:
            context = replace(context, last_insert_id=event.value)
    return context


def _eight(value: bytes) -> bytes:
    if len(value) != 8:
        raise ValueError(f"a number of {len(value)} bytes, expected 8")
    return value


def _string(value: bytes, collation_id: int, name: str, target: Flavor) -> str:
    collation = collation_name(collation_id, target)
    if collation is None:
        raise UnsupportedEventError(f"user variable {name!r}: collation {collation_id} has no name that is known here")
    # X'...' is hexadecimal under every sql_mode and in every character set
    literal = f"_{charset_name(collation)} X'{value.hex()}'"
    # the character set binary has one collation, whose name is a keyword on MariaDB
    return literal if collation == "binary" else f"{literal}{_COLLATE}{collation}"


def is_written(value: str) -> bool:
    """Whether ``UserVar.sql_value`` may have made the text, which no other SQL can be then."""
    return _WRITTEN.fullmatch(value) is not None


def value_collation(value: str) -> str | None:
    """The collation in the SQL text of a user variable's value; None if the text names none."""
    literal, _, collation = value.partition(_COLLATE)
    return collation if collation and literal.endswith("'") else None


def with_collation(value: str, collation: str) -> str:
    """The same value with another collation in place of its own."""
    return f"{value.partition(_COLLATE)[0]}{_COLLATE}{collation}"


def _geometry(value: bytes, make: str, target: Flavor) -> str:
    """A geometry: SRID and WKB, little-endian, on both families. MySQL's user variables have no geometry type."""
    if len(value) <= _SRID_BYTES:
        raise ValueError(f"a geometry of {len(value)} bytes")
    if target is Flavor.MYSQL:
        return f"_binary X'{value.hex()}'"
    srid, wkb = int.from_bytes(value[:_SRID_BYTES], "little"), value[_SRID_BYTES:]
    try:
        # the functions that read WKB make every type a GEOMETRY, which is what a table made of the variable would get
        if srid == 0 and make != "ST_GeomFromWKB":
            return _constructed(Fields(memoryview(wkb)), whole=True)
    except ValueError:
        pass
    return f"{make}(X'{wkb.hex()}', {srid})"


def _constructed(fields: Fields, *, whole: bool = False, depth: int = 0) -> str:
    """The next geometry of a WKB text, by the functions of its own type. Raises ValueError for one that
    these cannot make, such as an empty collection; ``whole``: and for bytes behind it."""
    if depth > _MOST_NESTED:
        raise ValueError(f"collections in collections, {depth} deep")
    if fields.uint(1) != 1:
        raise ValueError("not little-endian")
    kind = fields.uint(4)
    if kind == _POINT:
        made = _point(fields)
    elif kind == _LINESTRING:
        made = _joined(_LINESTRING, [_point(fields) for _ in range(fields.uint(4))])
    elif kind == _POLYGON:
        rings = ([_point(fields) for _ in range(fields.uint(4))] for _ in range(fields.uint(4)))
        made = _joined(_POLYGON, [_joined(_LINESTRING, ring) for ring in rings])
    else:
        made = _joined(kind, [_constructed(fields, depth=depth + 1) for _ in range(fields.uint(4))])
    if whole and fields.left:
        raise ValueError("bytes behind the geometry")
    return made


def _point(fields: Fields) -> str:
    pair = struct.unpack("<2d", fields.take(16))
    if any(number == 0 and math.copysign(1, number) < 0 for number in pair):
        raise ValueError("a literal would lose the sign of -0")
    return f"POINT({', '.join(map(_double, pair))})"


def _joined(kind: int, parts: Sequence[str]) -> str:
    if kind not in _CONSTRUCTORS or not parts:
        raise ValueError(f"no constructor for type {kind} of {len(parts)} parts")
    return f"{_CONSTRUCTORS[kind]}({', '.join(parts)})"


def _integer(number: int, unsigned: bool) -> str:
    if unsigned:
        return f"CAST({number} AS UNSIGNED)"
    # as a literal, its absolute value would not fit a signed integer
    return f"CAST({number} AS SIGNED)" if number == _MIN_BIGINT else str(number)


def _double(number: float) -> str:
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a number that a server can hold")
    text = repr(number)
    # without an exponent the literal would be a DECIMAL
    return text if "e" in text else f"{text}e0"


def _decimal(value: bytes) -> str:
    if len(value) < 2:
        raise ValueError("a DECIMAL without precision and scale")
    precision, scale = value[0], value[1]
    if not scale <= precision or precision == 0:
        raise ValueError(f"DECIMAL({precision},{scale})")
    whole, whole_rest = divmod(precision - scale, _DIGITS_PER_GROUP)
    part, part_rest = divmod(scale, _DIGITS_PER_GROUP)
    lengths = [*([whole_rest] if whole_rest else []), *[_DIGITS_PER_GROUP] * (whole + part)]
    lengths += [part_rest] if part_rest else []
    if len(value) != 2 + sum(_GROUP_BYTES[digits] for digits in lengths):
        raise ValueError(f"DECIMAL({precision},{scale}) in {len(value) - 2} bytes")
    packed = bytearray(value[2:])
    negative = not packed[0] & 0x80
    packed[0] ^= 0x80
    if negative:
        packed = bytearray(byte ^ 0xFF for byte in packed)
    digits = ""
    at = 0
    for length in lengths:
        size = _GROUP_BYTES[length]
        digits += f"{int.from_bytes(packed[at : at + size], 'big'):0{length}d}"
        at += size
    sign = "-" if negative else ""
    integer = digits[: precision - scale].lstrip("0") or "0"
    if scale > 0:
        return f"{sign}{integer}.{digits[precision - scale :]}"
    return f"CAST({sign}{integer} AS DECIMAL({min(precision, _MAX_PRECISION)},0))"
