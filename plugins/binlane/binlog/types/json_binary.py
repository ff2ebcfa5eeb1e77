"""MySQL's binary JSON -> a document -> its text, spelled as the server spells it; and the diffs of partial updates.

Sources: MySQL ``sql-common/json_binary.h`` (the format), ``json_dom.cc`` (Json_wrapper::to_string, double_quote),
``sql/json_diff.cc`` (Json_diff_vector::read_binary). MariaDB's JSON is plain text.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from decimal import Decimal
from enum import IntEnum
from typing import Final

from binlane.binlog.types import temporal
from binlane.binlog.types.decimals import decode_decimal, spell_decimal, spell_double
from binlane.binlog.types.type_codes import ColumnType
from binlane.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Members in the order of the document: by length of the key, then by its bytes."""

    members: tuple[tuple[str, Json], ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An SQL value that JSON has no type for: a date, a DECIMAL, bytes."""

    type_code: int
    data: bytes

    @property
    def is_temporal(self) -> bool:
        """Whether it is a DATE, TIME, DATETIME or TIMESTAMP."""
        return self.type_code in _TEMPORAL

    def decimal(self) -> Decimal:
        """A DECIMAL's value."""
        if len(self.data) < 2:
            raise ValueError("JSON: a DECIMAL without precision and scale")
        return decode_decimal(self.data[2:], self.data[0], self.data[1])

    def temporal(self) -> str:
        """A date or time as text."""
        if len(self.data) != 8:
            raise ValueError(f"JSON: a date of {len(self.data)} bytes")
        return _TEMPORAL[self.type_code](int.from_bytes(self.data, "little", signed=True))


class Unsigned(int):
    """An integer stored as unsigned, which its text does not show."""


Json = JsonObject | list["Json"] | Opaque | Decimal | str | int | float | bool | None
"""A document. The log has a DECIMAL as an opaque value; what is read from a text has it as a number."""


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A document as a value, for writing it again: its text would lose the types of opaque values."""

    root: Json


class DiffKind(IntEnum):
    """The operation of a diff at its path."""

    REPLACE = 0
    INSERT = 1
    REMOVE = 2


@dataclass(frozen=True, slots=True)
class JsonDiff:
    """One change of a document."""

    kind: DiffKind
    path: str
    value: str | JsonDocument | None
    """The new value, as JSON text or as a document; None for REMOVE."""


@dataclass(frozen=True, slots=True)
class JsonDiffs:
    """The diffs in a partial update's after-image, in place of a document."""

    diffs: tuple[JsonDiff, ...]


_C = ColumnType
_TEMPORAL: Final[Mapping[int, Callable[[int], str]]] = {
    _C.DATE: lambda packed: temporal.json_datetime(packed, date_only=True),
    _C.DATETIME: lambda packed: temporal.json_datetime(packed, date_only=False),
    _C.TIMESTAMP: lambda packed: temporal.json_datetime(packed, date_only=False),
    _C.TIME: temporal.json_time,
}
_LITERALS: Final[Mapping[int, bool | None]] = {0: None, 1: True, 2: False}
_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL, _INT16, _UINT16 = range(7)
_STRING, _OPAQUE = 12, 15
_NUMBERS: Final = {
    _INT16: struct.Struct("<h"),
    _UINT16: struct.Struct("<H"),
    7: struct.Struct("<i"),
    8: struct.Struct("<I"),
    9: struct.Struct("<q"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<d"),
}
_UNSIGNED: Final = frozenset({_UINT16, 8, 10})
_INLINED: Final = {2: frozenset({_LITERAL, _INT16, _UINT16}), 4: frozenset({_LITERAL, _INT16, _UINT16, 7, 8})}
"""Types whose value stands where others have their offset, by the width of an offset."""
MAX_DEPTH: Final = 100
"""``JSON_DOCUMENT_MAX_DEPTH``: no server makes a deeper document."""
_ESCAPES: Final = {
    **{code: f"\\u{code:04x}" for code in range(32)},
    **{ord(character): f"\\{letter}" for character, letter in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)},
}


def parse_json(data: bytes) -> Json:
    """The document in ``data``. Raises ValueError for bytes that no server writes."""
    if not data:
        return None  # left by an ALTER or a skipped column; the server reads it as null, too
    return _Reader(data, len(data)).value(data[0], 1, 0)


def json_text(document: Json) -> str:
    """The document as the server prints it."""
    match document:
        case None:
            return "null"
        case bool():
            return "true" if document else "false"
        case int():
            return str(document)
        case float():
            text = spell_double(document)
            return text if set(text) - set("-0123456789") else f"{text}.0"
        case Decimal():
            return spell_decimal(document)
        case str():
            return _quoted(document)
        case Opaque():
            return _opaque_text(document)
        case list():
            return f"[{', '.join(map(json_text, document))}]"
        case JsonObject():
            return f"{{{', '.join(f'{_quoted(key)}: {json_text(value)}' for key, value in document.members)}}}"


def parse_diffs(data: bytes, *, text: bool = True) -> JsonDiffs:
    """The diffs of one JSON column, their values as text or as documents. Raises ValueError."""
    at, found = 0, []
    while at < len(data):
        kind = DiffKind(data[at])
        path, at = _string(data, at + 1)
        value: str | JsonDocument | None = None
        if kind is not DiffKind.REMOVE:
            binary, at = _string(data, at)
            document = parse_json(binary)
            value = json_text(document) if text else JsonDocument(document)
        found.append(JsonDiff(kind, path.decode(), value))
    return JsonDiffs(tuple(found))


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _opaque_text(value: Opaque) -> str:
    if value.type_code == _C.NEWDECIMAL:
        return spell_decimal(value.decimal())
    if value.is_temporal:
        return _quoted(value.temporal())
    # the server breaks base64 into lines of 76 characters inside the JSON string
    encoded = base64.encodebytes(value.data).decode().removesuffix("\n")
    return _quoted(f"base64:type{value.type_code}:{encoded}")


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes behind a length-encoded length."""
    first = data[at] if at < len(data) else 255
    if first in (251, 255):
        raise ValueError(f"JSON diff: no length at byte {at} of {len(data)}")
    size = {252: 2, 253: 3, 254: 8}.get(first, 0)
    length = int.from_bytes(data[at + 1 : at + 1 + size], "little") if size else first
    at += 1 + size
    if at + length > len(data):
        raise ValueError(f"JSON diff: {length} bytes at byte {at} of {len(data)}")
    return data[at : at + length], at + length


@dataclass(slots=True)
class _Reader:
    """Reads one document. Each byte may belong to one value only, so a damaged document cannot use more memory."""

    data: bytes
    budget: int
    """Bytes not read yet."""
    _numbers: Mapping[int, struct.Struct] = field(default_factory=lambda: _NUMBERS)

    def value(self, type_code: int, at: int, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise ValueError(f"JSON: deeper than {MAX_DEPTH}")
        if type_code in (_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY):
            return self._container(type_code, at, depth)
        if type_code == _LITERAL:
            literal = self._take(at, 1)[0]
            if literal not in _LITERALS:
                raise ValueError(f"JSON: literal {literal}")
            return _LITERALS[literal]
        if type_code in self._numbers:
            number: float = self._numbers[type_code].unpack(self._take(at, self._numbers[type_code].size))[0]
            return Unsigned(number) if type_code in _UNSIGNED else number
        if type_code == _STRING:
            return self._variable(at).decode()
        if type_code == _OPAQUE:
            return Opaque(self._take(at, 1)[0], self._variable(at + 1))
        raise ValueError(f"JSON: value type {type_code} at byte {at}")

    def _take(self, at: int, length: int) -> bytes:
        self.budget -= length
        if at + length > len(self.data) or self.budget < 0:
            raise ValueError(f"JSON: {length} bytes at byte {at} of {len(self.data)}")
        return self.data[at : at + length]

    def _variable(self, at: int) -> bytes:
        """Bytes behind their length, seven bits a byte, lowest first."""
        length = 0
        for number in range(5):
            byte = self._take(at + number, 1)[0]
            length |= (byte & 0x7F) << 7 * number
            if not byte & 0x80:
                return self._take(at + number + 1, length)
        raise ValueError(f"JSON: a length without end at byte {at}")

    def _container(self, type_code: int, start: int, depth: int) -> Json:
        width = 4 if type_code in (_LARGE_OBJECT, _LARGE_ARRAY) else 2
        keyed = type_code in (_SMALL_OBJECT, _LARGE_OBJECT)
        count = self._integer(start, width)
        size = self._integer(start + width, width)
        if start + size > len(self.data):
            raise ValueError(f"JSON: a container of {size} bytes at byte {start} of {len(self.data)}")
        at = start + 2 * width
        entries = self._take(at, count * ((width + 2 if keyed else 0) + 1 + width))
        keys = []
        if keyed:
            for number in range(count):
                entry = entries[number * (width + 2) : (number + 1) * (width + 2)]
                offset, length = int.from_bytes(entry[:width], "little"), int.from_bytes(entry[width:], "little")
                keys.append(self._take(start + offset, length).decode())
        values_at = at + count * (width + 2 if keyed else 0)
        values = [self._entry(start, values_at + number * (1 + width), width, depth) for number in range(count)]
        return JsonObject(tuple(zip(keys, values, strict=True))) if keyed else values

    def _entry(self, start: int, at: int, width: int, depth: int) -> Json:
        type_code = self.data[at]
        if type_code in _INLINED[width]:
            self.budget += width  # already taken with the entries
            return self.value(type_code, at + 1, depth + 1)
        return self.value(type_code, start + int.from_bytes(self.data[at + 1 : at + 1 + width], "little"), depth + 1)

    def _integer(self, at: int, width: int) -> int:
        return int.from_bytes(self._take(at, width), "little")
