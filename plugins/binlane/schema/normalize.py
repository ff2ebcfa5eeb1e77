"""Both servers' spellings of one thing, brought together: types, defaults, expressions, collations.

``information_schema`` of MySQL 5.7, 8 and 9 and of MariaDB 10.3 to 11 says ``int(11)`` or ``int``, ``utf8`` or
``utf8mb3``, ``current_timestamp()`` or ``CURRENT_TIMESTAMP``, ``'a''b'`` or ``a'b``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from binlane.binlog.types.sql_types import Arguments, sql_type
from binlane.errors import PlanError

_TYPE: Final = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:\((?P<args>.*)\))?(?P<rest>[^()]*)", re.DOTALL)
_MEMBER: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a"}
_SAME_TYPE: Final = {"integer": "int", "geomcollection": "geometrycollection", "real": "double", "numeric": "decimal"}
_NOW: Final = re.compile(r"(?i)\(?(?:now|current_timestamp|localtimestamp)\s*(?:\(\s*(\d*)\s*\))?\)?")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")
_HEXADECIMAL: Final = re.compile(r"[xX]'(?:[0-9A-Fa-f]{2})*'")
_BITS: Final = re.compile(r"b'[01]*'")
_INTRODUCER: Final = re.compile(r"_[a-z0-9]+(?=')")
_PIECES: Final = re.compile(r"'(?:[^'\\]|''|\\.)*'|[^']+|'", re.DOTALL)

SAME_COLLATION: Final = {"utf8mb4_0900_bin": "utf8mb4_nopad_bin"}
"""MySQL's name -> MariaDB's: both compare code points and ignore no trailing space."""
NEAREST_COLLATION: Final = {
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
    "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
    "utf8mb4_uca1400_nopad_ai_ci": "utf8mb4_0900_ai_ci",
    "utf8mb4_uca1400_nopad_as_ci": "utf8mb4_0900_as_ci",
    "utf8mb4_uca1400_nopad_as_cs": "utf8mb4_0900_as_cs",
    "utf8mb4_uca1400_ai_ci": "utf8mb4_unicode_520_ci",
}
"""What comes closest in the other family: Unicode 9.0 against 14.0, so near, never the same."""


class ColumnType(NamedTuple):
    """What a COLUMN_TYPE says: fields as in ``schema.Column``."""

    data_type: str
    unsigned: bool
    length: int | None
    precision: int | None
    scale: int | None
    fsp: int | None
    members: tuple[str, ...]
    compressed: bool


def parse_type(text: str) -> ColumnType:
    """Read a COLUMN_TYPE. Display widths, ZEROFILL and YEAR's digits say nothing about the data and are dropped.

    Raises PlanError if the text is not a type.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        raise PlanError(
            f"column type {text!r}: expected a type's name with arguments; report it with the server's version"
        )
    name = _SAME_TYPE.get(match["name"], match["name"])
    args, rest = match["args"], match["rest"].lower()
    if "mariadb-5.3" in rest or "5.5 binary format" in rest:
        # another layout in the row image than the type of today
        name = f"{name} (old format)"
    takes = sql_type(name).arguments
    members = tuple(_unescaped(part) for part in _MEMBER.findall(args or "")) if takes is Arguments.MEMBERS else ()
    numbers = [int(part) for part in args.split(",")] if args is not None and takes is not Arguments.MEMBERS else []
    return ColumnType(
        data_type=name,
        unsigned="unsigned" in rest,
        length=numbers[0] if takes is Arguments.LENGTH and numbers else None,
        precision=numbers[0] if takes is Arguments.PRECISION and numbers else None,
        scale=numbers[1] if takes is Arguments.PRECISION and len(numbers) > 1 else None,
        fsp=(numbers[0] if numbers else 0) if takes is Arguments.FRACTION else None,
        members=members,
        compressed="compressed" in rest,
    )


def charset_name(name: str | None) -> str | None:
    """``utf8`` was an alias of ``utf8mb3`` before both servers said so."""
    return "utf8mb3" if name == "utf8" else name


def collation_name(name: str | None) -> str | None:
    """``utf8_bin`` and ``utf8mb3_bin`` are one collation."""
    return f"utf8mb3_{name.removeprefix('utf8_')}" if name is not None and name.startswith("utf8_") else name


def mysql_default(value: str | None, *, is_expression: bool, is_binary: bool) -> str | None:
    """A COLUMN_DEFAULT of MySQL: bare text, with ``DEFAULT_GENERATED`` in EXTRA (8.0) where it is an expression."""
    if value is None:
        return None
    now = _current_timestamp(value)
    if now is not None:
        return now
    if is_expression or _BITS.fullmatch(value) is not None:
        return value
    if is_binary and re.fullmatch(r"0x(?:[0-9A-Fa-f]{2})*", value) is not None:
        value = bytes.fromhex(value[2:]).decode("utf-8", "backslashreplace")
    return _quoted(value)


def mariadb_default(value: str | None) -> str | None:
    """A COLUMN_DEFAULT of MariaDB (10.2.7 or newer): SQL text, ``NULL`` included."""
    if value is None or value == "NULL":
        return None
    if _MEMBER.fullmatch(value) is not None:
        return _quoted(_unescaped(value[1:-1]))
    if _NUMBER.fullmatch(value) is not None:
        return _quoted(value)
    if _HEXADECIMAL.fullmatch(value) is not None:
        # what 11.8 says of a binary string that 10.11 calls 'x'
        return _quoted(bytes.fromhex(value[2:-1]).decode("utf-8", "backslashreplace"))
    return _current_timestamp(value) or value


def comparable(expression: str) -> str:
    """An expression without what only its printing adds: parentheses, spaces, introducers, letters' case.

    For comparing, never for running: two expressions that differ only in where their parentheses stand look alike.
    """
    kept = []
    for piece in _PIECES.findall(_INTRODUCER.sub("", expression.replace("\\'", "'"))):
        kept.append(piece if piece.startswith("'") else re.sub(r"[\s()`]", "", piece).lower())
    return "".join(kept)


def _current_timestamp(value: str) -> str | None:
    match = _NOW.fullmatch(value)
    if match is None:
        return None
    return "current_timestamp" if match[1] in (None, "", "0") else f"current_timestamp({match[1]})"


def _unescaped(text: str) -> str:
    text = text.replace("''", "'")
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
