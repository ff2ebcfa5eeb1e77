"""One spelling for the types, defaults, expressions and collations that servers print differently.

``information_schema`` of MySQL 5.7, 8 and 9 and of MariaDB 10.3 to 11 prints ``int(11)`` or ``int``, ``utf8`` or
``utf8mb3``, ``current_timestamp()`` or ``CURRENT_TIMESTAMP``, ``'a''b'`` or ``a'b``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from typing import Final, NamedTuple

from binlane.binlog.types.sql_types import Arguments, sql_type
from binlane.errors import PlanError
from binlane.model import Flavor

_TYPE: Final = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:\((?P<args>.*)\))?(?P<rest>[^()]*)", re.DOTALL)
_MEMBER: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a"}
_SAME_TYPE: Final = {"integer": "int", "geomcollection": "geometrycollection", "real": "double", "numeric": "decimal"}
_NOW: Final = re.compile(r"(?i)\(?(?:now|current_timestamp|localtimestamp)\s*+(?:\(\s*+(\d*+)\s*+\))?\)?")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")
_HEXADECIMAL: Final = re.compile(r"[xX]'(?:[0-9A-Fa-f]{2})*'")
_BITS: Final = re.compile(r"b'[01]*'")
_ESCAPED: Final = re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL)
"""A text all of whose quotes are escaped."""
_INTRODUCER: Final = re.compile(r"_[a-z0-9]+(?=')")
_PIECES: Final = re.compile(r"'(?:[^'\\]|''|\\.)*'|[^']+|'", re.DOTALL)

SAME_COLLATION: Final = {"utf8mb4_0900_bin": "utf8mb4_nopad_bin"}
"""MySQL's name -> MariaDB's, for collations that compare code points and do not pad."""
RENAMED_COLLATIONS: Final = {
    f"{charset}_croatian_ci": f"{charset}_croatian_mysql561_ci"
    for charset in ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
}
"""MySQL's name -> MariaDB's, for collations whose name of MySQL is that of another one of MariaDB."""
NEAREST_COLLATION: Final = {
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
    "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
    "utf8mb4_uca1400_nopad_ai_ci": "utf8mb4_0900_ai_ci",
    "utf8mb4_uca1400_nopad_as_ci": "utf8mb4_0900_as_ci",
    "utf8mb4_uca1400_nopad_as_cs": "utf8mb4_0900_as_cs",
    "utf8mb4_uca1400_ai_ci": "utf8mb4_unicode_520_ci",
}
"""The closest collation of the other family. Never equal: MySQL follows Unicode 9.0, MariaDB Unicode 14.0."""
_MYSQL_NAMES: Final = {theirs: ours for ours, theirs in RENAMED_COLLATIONS.items()}
OLD_FORMAT: Final = " (old format)"
"""Behind the name of a temporal type as MySQL before 5.6.4 and MariaDB with mysql56_temporal_format=OFF store it."""


class ColumnType(NamedTuple):
    """A parsed COLUMN_TYPE; fields as in ``model.Column``."""

    data_type: str
    unsigned: bool
    length: int | None
    precision: int | None
    scale: int | None
    fsp: int | None
    members: tuple[str, ...]
    compressed: bool


def parse_type(text: str) -> ColumnType:
    """Parse a COLUMN_TYPE. Display widths, ZEROFILL and YEAR's digits do not affect the data and are dropped.

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
        # its layout in row images differs from today's type
        name = f"{name}{OLD_FORMAT}"
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
    """The character set's name of today: ``utf8`` is ``utf8mb3``."""
    return "utf8mb3" if name == "utf8" else name


def collation_name(name: str | None) -> str | None:
    """The collation's name of today: ``utf8_bin`` is ``utf8mb3_bin``."""
    return f"utf8mb3_{name.removeprefix('utf8_')}" if name is not None and name.startswith("utf8_") else name


def across_families(name: str, known: Collection[str]) -> str:
    """What a collation of one family is called on a server of the other one, which has the collations ``known``; the
    name itself, unless it means another collation there."""
    if name in RENAMED_COLLATIONS:
        renamed = RENAMED_COLLATIONS[name]
        # a server without that name is MySQL, and the collation is MariaDB's own
        return renamed if renamed in known else f"MariaDB's {name}"
    return _MYSQL_NAMES.get(name, name)


def mysql_default(value: str | None, *, is_expression: bool, is_binary: bool) -> str | None:
    """A COLUMN_DEFAULT of MySQL: unquoted text; an expression has ``DEFAULT_GENERATED`` in EXTRA (8.0)."""
    if value is None:
        return None
    now = _current_timestamp(value)
    if now is not None:
        return now
    if is_expression:
        return expression_sql(value, Flavor.MYSQL)
    if _BITS.fullmatch(value) is not None:
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
        # 11.8 prints a binary string as hexadecimal, 10.11 as 'x'
        return _quoted(bytes.fromhex(value[2:-1]).decode("utf-8", "backslashreplace"))
    return _current_timestamp(value) or value


def expression_sql(text: str, flavor: Flavor) -> str:
    """An expression of a catalogue of that family as SQL: MariaDB shows SQL. MySQL shows each byte of UTF-8 as a
    letter, and escapes quotes, backslashes and ends of lines once more (8.0 and newer; seen on 9.7)."""
    if flavor is not Flavor.MYSQL:
        return text
    # bytes that are no UTF-8, and letters that are no byte: the text is shown as it is
    with contextlib.suppress(UnicodeError):
        text = text.encode("latin-1").decode()
    return _escaped_once(text)


def _escaped_once(text: str) -> str:
    # 5.7 shows SQL, too, of which each literal has a quote that nothing escapes
    return _without_escapes(text) if _ESCAPED.fullmatch(text) is not None else text


def comparable(expression: str) -> str:
    """An expression without parentheses, spaces, introducers and letter case, which servers print differently.

    Only for comparing: expressions that differ only in the place of their parentheses become equal.
    """
    kept = []
    for piece in _PIECES.findall(_INTRODUCER.sub("", _escaped_once(expression))):
        kept.append(piece if piece.startswith("'") else re.sub(r"[\s()`]", "", piece).lower())
    return "".join(kept)


def _current_timestamp(value: str) -> str | None:
    match = _NOW.fullmatch(value)
    if match is None:
        return None
    return "current_timestamp" if match[1] in (None, "", "0") else f"current_timestamp({match[1]})"


def _unescaped(text: str) -> str:
    return _without_escapes(text.replace("''", "'"))


def _without_escapes(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text, flags=re.DOTALL)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
