"""Values as text: for a person to read, and as SQL literals.

Both are exact: a FLOAT or DOUBLE reads back as the same number, bytes that are no text are hexadecimal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from binlane.binlog.columns import Column, Value
from binlane.binlog.decimals import spell_decimal, spell_double
from binlane.binlog.json_binary import DiffKind, Json, JsonDiff, JsonDiffs, JsonDocument, JsonObject, Opaque, json_text
from binlane.binlog.table_map import ColumnType
from binlane.model import Flavor

_C = ColumnType
_INTEGER_BITS: Final[Mapping[int, int]] = {_C.TINY: 8, _C.SHORT: 16, _C.INT24: 24, _C.LONG: 32, _C.LONGLONG: 64}
_ESCAPES: Final = str.maketrans({"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})
_NAMES_BEFORE_MB3: Final[Mapping[str, str]] = {"utf8mb3": "utf8"}
"""MariaDB before 10.6 knows no other name."""


def quoted(text: str) -> str:
    """A string literal, for a session without NO_BACKSLASH_ESCAPES."""
    return f"'{text.translate(_ESCAPES)}'"


def identifier(name: str) -> str:
    """A name in backticks."""
    return f"`{name.replace('`', '``')}`"


def spell(column: Column, value: Value) -> str:
    """For reading. A negative number whose sign the log does not tell is followed by what it is if unsigned."""
    if isinstance(value, float):
        return spell_float(value) if column.type_code == _C.FLOAT else spell_double(value)
    if column.type_code == _C.YEAR and value == 0:
        return "0000"
    other = _if_unsigned(column, value)
    return _plain(column, value) + ("" if other is None else f" ({other})")


def literal(column: Column, value: Value, server: Flavor = Flavor.MYSQL) -> str:
    """An SQL expression that gives the value on a server of that family, in a session with ``time_zone = '+00:00'``."""
    if isinstance(value, float):
        return f"{spell_double(value)}e0" if "e" not in spell_double(value) else spell_double(value)
    if isinstance(value, bytes) and column.is_text:
        return f"_{_introducer(column.charset, server)} X'{value.hex()}'"
    if isinstance(value, JsonDocument):
        return (
            _document(value.root) if server is Flavor.MYSQL else f"_utf8mb4 X'{json_text(value.root).encode().hex()}'"
        )
    if column.type_code == _C.JSON and isinstance(value, str):
        return f"CAST({quoted(value)} AS JSON)"
    other = _if_unsigned(column, value)
    return _plain(column, value) + ("" if other is None else f" /* {other} if unsigned */")


def spell_float(value: float) -> str:
    """A FLOAT by the fewest digits that give the same 32 bits."""
    bits = struct.pack("<f", value)
    for digits in range(1, 9):
        shorter = float(f"{value:.{digits}g}")
        try:
            if struct.pack("<f", shorter) == bits:
                return spell_double(shorter)
        except OverflowError:  # rounded up beyond the largest FLOAT
            continue
    return spell_double(float(f"{value:.9g}"))


def _plain(column: Column, value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case Decimal():
            return spell_decimal(value)
        case str():
            return quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case JsonDocument():
            return quoted(json_text(value.root))
        case JsonDiffs():
            return _applied(identifier(column.label) if column.name is not None else column.label, value)
    if column.type_code == _C.BIT:
        return f"b'{value:b}'"
    return str(value)


def _document(document: Json) -> str:
    """An expression that gives the document with its SQL values: JSON text has no dates, decimals and bytes."""
    if isinstance(document, Opaque):
        return f"JSON_EXTRACT(JSON_ARRAY({_opaque(document)}), '$[0]')"
    if isinstance(document, list) and _has_opaque(document):
        return f"JSON_ARRAY({', '.join(map(_document, document))})"
    if isinstance(document, JsonObject) and _has_opaque(document):
        members = (f"_utf8mb4 X'{key.encode().hex()}', {_document(value)}" for key, value in document.members)
        return f"JSON_OBJECT({', '.join(members)})"
    return f"CAST(_utf8mb4 X'{json_text(document).encode().hex()}' AS JSON)"


def _has_opaque(document: Json) -> bool:
    match document:
        case list():
            return any(map(_has_opaque, document))
        case JsonObject():
            return any(_has_opaque(value) for _, value in document.members)
    return isinstance(document, Opaque)


def _opaque(value: Opaque) -> str:
    """Raises ValueError for a value of a type that no expression gives."""
    if value.type_code == _C.NEWDECIMAL:
        return f"CAST('{spell_decimal(value.decimal())}' AS DECIMAL({value.data[0]},{value.data[1]}))"
    if value.is_temporal:
        return f"CAST('{value.temporal()}' AS {_TEMPORAL_CASTS[value.type_code]})"
    if value.type_code == _C.VARCHAR:
        return f"CAST(X'{value.data.hex()}' AS BINARY)"
    raise ValueError(f"a JSON document holds a value of type {value.type_code}, which no SQL expression makes again")


_TEMPORAL_CASTS: Final[Mapping[int, str]] = {
    _C.DATE: "DATE",
    _C.TIME: "TIME(6)",
    _C.DATETIME: "DATETIME(6)",
    _C.TIMESTAMP: "DATETIME(6)",
}


def _if_unsigned(column: Column, value: Value) -> int | None:
    bits = _INTEGER_BITS.get(column.type_code)
    if bits is None or column.unsigned is not None or not isinstance(value, int) or value >= 0:
        return None
    return value + (1 << bits)


def _introducer(charset: str | None, server: Flavor) -> str:
    name = charset or "binary"
    return _NAMES_BEFORE_MB3.get(name, name) if server is Flavor.MARIADB else name


def _applied(document: str, diffs: JsonDiffs) -> str:
    for diff in diffs.diffs:
        value = "" if diff.value is None else f", CAST({quoted(diff.value)} AS JSON)"
        document = f"{_FUNCTIONS[diff.kind](diff)}({document}, {quoted(diff.path)}{value})"
    return document


_FUNCTIONS: Final[Mapping[DiffKind, Callable[[JsonDiff], str]]] = {
    DiffKind.REPLACE: lambda _diff: "JSON_REPLACE",
    DiffKind.INSERT: lambda diff: "JSON_ARRAY_INSERT" if diff.path.endswith("]") else "JSON_INSERT",
    DiffKind.REMOVE: lambda _diff: "JSON_REMOVE",
}
