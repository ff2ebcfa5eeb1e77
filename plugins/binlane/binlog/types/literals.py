"""Values as text: for a person to read, and as SQL literals.

Both are exact: a FLOAT or DOUBLE reads back as the same number, undecodable bytes are hexadecimal.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from binlane.binlog.types.column_types import LOGGED_TYPES, Spelling, codes_spelled
from binlane.binlog.types.columns import Column
from binlane.binlog.types.decimals import spell_decimal, spell_double
from binlane.binlog.types.json_binary import DiffKind, Json, JsonDiff, JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.json_sql import expression
from binlane.binlog.types.readers import Value
from binlane.model import Flavor

_SINGLES: Final = codes_spelled(Spelling.SINGLE)
_YEARS: Final = codes_spelled(Spelling.YEAR)
_BITS: Final = codes_spelled(Spelling.BITS)
_DOCUMENTS: Final = codes_spelled(Spelling.DOCUMENT)
_INTEGER_BITS: Final = {code: kind.bits for code, kind in LOGGED_TYPES.items() if kind.bits}
_REPEATED: Final = 1_000
"""Longest text of a document that a condition repeats."""
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
    """The value for display. If the log does not tell the sign, a negative number is followed by its unsigned value."""
    if isinstance(value, float):
        return spell_float(value) if column.type_code in _SINGLES else spell_double(value)
    if column.type_code in _YEARS and value == 0:
        return "0000"
    other = _if_unsigned(column, value)
    return _plain(column, value) + ("" if other is None else f" ({other})")


def literal(column: Column, value: Value, server: Flavor = Flavor.MYSQL) -> str:
    """An SQL expression that gives the value on a server of that family, in a session with ``time_zone = '+00:00'``.

    Raises ValueError for a JSON document without an SQL expression.
    """
    if isinstance(value, float):
        return f"{spell_double(value)}e0" if "e" not in spell_double(value) else spell_double(value)
    if isinstance(value, bytes) and column.is_text:
        return f"_{introducer(column.charset, server)} X'{value.hex()}'"
    if isinstance(value, JsonDocument):
        return (
            expression(value.root) if server is Flavor.MYSQL else f"_utf8mb4 X'{json_text(value.root).encode().hex()}'"
        )
    if column.type_code in _DOCUMENTS and isinstance(value, str):
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
            return changed_document(identifier(column.label) if column.name is not None else column.label, value)
    if column.type_code in _BITS:
        return f"b'{value:b}'"
    return str(value)


def _if_unsigned(column: Column, value: Value) -> int | None:
    bits = _INTEGER_BITS.get(column.type_code)
    if bits is None or column.unsigned is not None or not isinstance(value, int) or value >= 0:
        return None
    return value + (1 << bits)


def introducer(charset: str | None, server: Flavor) -> str:
    """A character set's introducer before a string literal, by that family's name."""
    name = charset or "binary"
    return _NAMES_BEFORE_MB3.get(name, name) if server is Flavor.MARIADB else name


def changed_document(document: str, diffs: JsonDiffs, spell_json: Callable[[Json], str] = expression) -> str:
    """An expression of a document with diffs applied to it. Raises what ``spell_json`` raises."""
    for diff in diffs.diffs:
        document = (
            f"{_FUNCTIONS[diff.kind](diff)}({document}, {quoted(diff.path)}{_changed_to(diff.value, spell_json)})"
        )
    return document


def _changed_to(value: str | JsonDocument | None, spell_json: Callable[[Json], str]) -> str:
    match value:
        case str():
            return f", CAST({quoted(value)} AS JSON)"
        case JsonDocument():
            return f", {spell_json(value.root)}"
    return ""


_FUNCTIONS: Final[Mapping[DiffKind, Callable[[JsonDiff], str]]] = {
    DiffKind.REPLACE: lambda _diff: "JSON_REPLACE",
    DiffKind.INSERT: lambda diff: "JSON_ARRAY_INSERT" if diff.path.endswith("]") else "JSON_INSERT",
    DiffKind.REMOVE: lambda _diff: "JSON_REMOVE",
}


class Document(NamedTuple):
    """A new value of one of MySQL's JSON columns."""

    column: str
    """Quoted."""
    value: str
    """As SQL."""
    nullable: bool


def other_documents(documents: Iterable[Document]) -> tuple[tuple[str, ...], str]:
    """SET lists and the condition of an UPDATE that gives MySQL's JSON columns another value where the document that
    they have equals the new one and is not the same, as 1.0 and 1: MySQL would take an UPDATE to the new one for none.

    By the first list the other value is NULL if the column takes it, which keys over many values and CHECKs let pass,
    but for those that ask for a value. By the second it is a document of the same type.
    """
    tests = {each: _equals_another(each) for each in documents}
    if len(tests) == 1:
        # a document may be as long as a statement: it stands once
        [(document, where)] = tests.items()
        return tuple(f"{document.column} = {other(document)}" for other in (_of_any_type, _of_its_type)), where
    lists = tuple(
        ", ".join(f"{each.column} = IF({test}, {other(each)}, {each.column})" for each, test in tests.items())
        for other in (_of_any_type, _of_its_type)
    )
    return lists, f"({' OR '.join(tests.values())})"


def _equals_another(document: Document) -> str:
    """A condition: the column's document equals the new one, and is not the same."""
    column, value = document.column, f"CAST({document.value} AS JSON)"
    is_long = len(value) > _REPEATED
    new = "binlane_new.binlane_document" if is_long else value
    texts = (f"CAST(CAST({each} AS CHAR) AS BINARY)" for each in (column, new))
    test = f"{column} = {new} AND {' <> '.join(texts)}"
    return f"(SELECT {test} FROM (SELECT {value} AS binlane_document) AS binlane_new)" if is_long else f"({test})"


def _of_any_type(document: Document) -> str:
    return "NULL" if document.nullable else "JSON_QUOTE('-')"


def _of_its_type(document: Document) -> str:
    """Documents without a number equal no other ones: what is neither an object nor an array is a number."""
    column = document.column
    return (
        f"""CASE JSON_TYPE({column}) WHEN 'OBJECT' THEN JSON_SET({column}, '$."-"', """
        f"""JSON_ARRAY(JSON_EXTRACT({column}, '$."-"'))) WHEN 'ARRAY' THEN JSON_ARRAY_APPEND({column}, '$', 1) """
        f"""ELSE CAST(IF({column} = CAST('0' AS JSON), '1', '0') AS JSON) END"""
    )
