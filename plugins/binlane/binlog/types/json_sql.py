"""A MySQL JSON document as an SQL expression that gives the same document with the same types.

JSON text has no dates, decimals, bytes and bits, and does not distinguish signed from unsigned integers. ``JSON_ARRAY``
keeps the type of an SQL value. Some types exist only as column types: ``JSON_TABLE`` (MySQL 8.0.4) makes values of
them. Tried on MySQL 9.7; types by SQL value: ``sql/item_json_func.cc``, ``sql_scalar_to_json``.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Final

from binlane.binlog.types.decimals import spell_decimal, spell_double
from binlane.binlog.types.json_binary import Json, JsonObject, Opaque, Unsigned, json_text
from binlane.binlog.types.type_codes import ColumnType

_C = ColumnType
_TEMPORAL: Final = {_C.DATE: "DATE", _C.TIME: "TIME(6)", _C.DATETIME: "DATETIME(6)"}
_BLOBS: Final = {
    _C.TINY_BLOB: "TINYBLOB",
    _C.BLOB: "BLOB",
    _C.MEDIUM_BLOB: "MEDIUMBLOB",
    _C.LONG_BLOB: "LONGBLOB",
}
_TIMESTAMPS: Final = ("1970-01-01 00:00:01", "2038-01-19 03:14:07.999999")
"""The first and the last TIMESTAMP in a session with time_zone +00:00."""
_ZERO_TIMESTAMP: Final = "0000-00-00 00:00:00.000000"
_PARSED_UNSIGNED: Final = 1 << 32
"""The server parses integers of JSON text as signed below this number, as unsigned from it on."""
_PARSED_DIGITS: Final = 15
"""The digits up to which every server reads a number of JSON text as the double that is next to it; some read another
one from 16 and 17 digits (bugs.mysql.com 116160)."""
_PARSED_POWERS: Final = range(-22, 23)
"""Powers of ten for which the same holds: a double has them exactly."""
_INTEGERS: Final = range(-(1 << 63), 1 << 64)
"""What the server parses as an integer."""
_LONGEST_BINARY: Final = 65_535
"""Bytes up to which CAST .. AS BINARY gives a VARBINARY; a BINARY column holds at most 255."""


def document_of(text: str) -> Json:
    """The document that MySQL has printed so, whose values are all of types that JSON's text can express, or DECIMALs.

    A number that is not spelled as the server spells a double or an integer is a DECIMAL. Raises ValueError for a text
    that is no JSON.
    """
    document: Json = json.loads(
        text, parse_int=_integer, parse_float=_number, object_pairs_hook=lambda members: JsonObject(tuple(members))
    )
    return document


def _integer(token: str) -> Json:
    number = int(token)
    if number not in _INTEGERS:
        return Decimal(token)
    return Unsigned(number) if number >= _PARSED_UNSIGNED else number


def _number(token: str) -> Json:
    double = float(token)
    return double if json_text(double) == token else Decimal(token)


def expression(document: Json) -> str:
    """An expression of type JSON. Raises ValueError for a value without an SQL expression."""
    made = _made(document)
    if made is not None:
        return made if made.startswith("(") else f"JSON_EXTRACT(JSON_ARRAY({made}), '$[0]')"
    if isinstance(document, list) and is_more_than_text(document):
        return f"JSON_ARRAY({', '.join(map(_argument, document))})"
    if isinstance(document, JsonObject) and is_more_than_text(document):
        members = (f"_utf8mb4 X'{key.encode().hex()}', {_argument(value)}" for key, value in document.members)
        return f"JSON_OBJECT({', '.join(members)})"
    return f"CAST(_utf8mb4 X'{json_text(document).encode().hex()}' AS JSON)"


def needs_json_table(document: Json) -> bool:
    """Whether the document's expression needs JSON_TABLE (MySQL 8.0.4). Raises ValueError as ``expression`` does."""
    match document:
        case list():
            return any(map(needs_json_table, document))
        case JsonObject():
            return any(needs_json_table(value) for _, value in document.members)
    return (_made(document) or "").startswith("(")


def _argument(document: Json) -> str:
    """The value as an argument of JSON_ARRAY."""
    return _made(document) or expression(document)


def is_more_than_text(document: Json) -> bool:
    """Whether the document has a value that JSON text cannot express. Raises ValueError as ``expression`` does."""
    match document:
        case list():
            return any(map(is_more_than_text, document))
        case JsonObject():
            return any(is_more_than_text(value) for _, value in document.members)
    return _made(document) is not None


def _made(value: Json) -> str | None:
    """An SQL value whose type JSON_ARRAY keeps, or a subquery of type JSON; None if JSON text is enough."""
    match value:
        case Opaque():
            return _opaque(value)
        case bool():
            return None
        case Unsigned():
            return f"CAST({int(value)} AS UNSIGNED)" if value < _PARSED_UNSIGNED else None
        case int():
            return f"CAST({value} AS SIGNED)" if value >= _PARSED_UNSIGNED else None
        case float():
            return _double(value)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -int(exponent)
            return f"CAST('{spell_decimal(value)}' AS DECIMAL({max(len(digits), scale)},{scale}))"
    return None


def _double(value: float) -> str | None:
    """The literal of a double that not every server reads from JSON text."""
    text = spell_double(value)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    power = int(exponent or 0) - len(fraction)
    if len((whole + fraction).lstrip("0")) <= _PARSED_DIGITS and power in _PARSED_POWERS:
        return None
    return text if exponent else f"{text}e0"


def _opaque(value: Opaque) -> str:
    code, digits = value.type_code, value.data.hex()
    if code == _C.NEWDECIMAL:
        return f"CAST('{spell_decimal(value.decimal())}' AS DECIMAL({value.data[0]},{value.data[1]}))"
    if code in _TEMPORAL:
        return f"CAST('{value.temporal()}' AS {_TEMPORAL[_C(code)]})"
    if code == _C.TIMESTAMP:
        text = value.temporal()
        if text == _ZERO_TIMESTAMP or _TIMESTAMPS[0] <= text <= _TIMESTAMPS[1]:
            return _of_column("TIMESTAMP(6)", f"'{text}'")
        raise ValueError(f"a JSON document holds a TIMESTAMP that is none between {' and '.join(_TIMESTAMPS)}")
    if code == _C.VARCHAR and len(value.data) <= _LONGEST_BINARY:
        return f"CAST(X'{digits}' AS BINARY)"
    if code in _BLOBS:
        return _of_column(_BLOBS[_C(code)], f"X'{digits}'")
    if code == _C.STRING and len(value.data) <= 255:
        return _of_column(f"BINARY({len(value.data)})", f"X'{digits}'")
    if code == _C.BIT and 0 < len(value.data) <= 8:
        return _of_column(f"BIT({8 * len(value.data)})", str(int.from_bytes(value.data, "big")))
    raise ValueError(f"a JSON document holds a value of type {code}, which no SQL expression makes again")


def _of_column(kind: str, value: str) -> str:
    """A value of a type that only columns have; the subquery returns JSON, because its column would lose the type."""
    column = f"JSON_TABLE(JSON_ARRAY({value}),'$[*]' COLUMNS(v {kind} PATH '$' ERROR ON ERROR))"
    return f"(SELECT JSON_EXTRACT(JSON_ARRAY(v),'$[0]') FROM {column}t)"
