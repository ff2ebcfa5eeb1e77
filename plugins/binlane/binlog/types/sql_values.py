"""SQL for values of each kind: to compare them between servers, to find a row by its key, to copy them.

``compared`` gives an expression whose text is the same on both families, in sessions with ``time_zone = '+00:00'``,
``sql_mode = 'ALLOW_INVALID_DATES'`` and utf8mb4. NULL stays NULL; no other value's text is ``NULL`` or holds a comma.
TEXT, BLOB and JSON are compared by length and SHA-256, because HEX of a large value exceeds ``max_allowed_packet``, for
which both servers return NULL.

``copied`` gives an expression to select and the literal that stores the same value. The text of dump tools is not
exact: MySQL prints six digits of a FLOAT. Strings are copied as stored bytes, without character set conversion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from binlane.binlog.types.json_sql import document_of, expression
from binlane.binlog.types.literals import identifier, introducer, quoted
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor


class DefinedColumn(Protocol):
    """A column as defined in information_schema (``schema.model.Column``)."""

    @property
    def name(self) -> str:
        """The column's name, not quoted."""

    @property
    def data_type(self) -> str:
        """The type's name in ``sql_types``."""

    @property
    def unsigned(self) -> bool:
        """Whether a number is unsigned."""

    @property
    def octets(self) -> int | None:
        """Maximum bytes of a string value."""

    @property
    def precision(self) -> int | None:
        """Digits of DECIMAL, bits of BIT."""

    @property
    def scale(self) -> int | None:
        """Digits behind the point."""

    @property
    def fsp(self) -> int | None:
        """Digits of a second's fraction."""

    @property
    def charset(self) -> str | None:
        """None for binary strings and types that are not text."""

    @property
    def members(self) -> tuple[str, ...]:
        """Members of ENUM and SET."""


@dataclass(frozen=True, slots=True)
class Literal:
    """The literal that stores a selected value: its text between two others."""

    before: bytes = b""
    after: bytes = b""
    escapes: bool = False
    """Whether the text is escaped, for a session without NO_BACKSLASH_ESCAPES. Without it, it is a number."""
    exponent: bool = False
    """Whether a text without an exponent gets one: without it the target would read a DECIMAL."""
    document: bool = False
    """Whether the text is a document of MySQL's."""

    def __call__(self, value: bytes) -> bytes:
        """The literal of a value that is not NULL. Raises SourceError for a text that is no number, where one is
        expected."""
        if not self.escapes and not _NUMBER.issuperset(value):
            raise SourceError(
                f"expected the text of a number, found {value[:60].decode('utf-8', 'replace')!r}: nothing was written "
                "by it; another program answers in the source's place, or changes what it says: look at host, port and "
                "ssl_mode of the connection"
            )
        text = _escaped(value) if self.escapes else value
        return self.before + text + (b"e0" if self.exponent and b"e" not in text else b"") + self.after

    def with_number_types(self, value: bytes) -> bytes:
        """The literal of a value; that of a document has its numbers by type, as ``document_of`` reads them from the
        text, which the server would parse as other numbers."""
        return expression(document_of(value.decode())).encode() if self.document else self(value)


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A group of types with the same SQL forms."""

    compared: Callable[[DefinedColumn, bool], str]
    """The SQL expression of a column's value; True: large values in full, in hexadecimal."""
    literal: Callable[[DefinedColumn, str, Flavor], str]
    """The literal of a key's compared value, for a condition on its column. It is SQL of a text of ``keys`` alone."""
    keys: re.Pattern[str]
    """The texts that ``compared`` gives of a key's value: none of them ends a literal."""
    copied: Callable[[DefinedColumn], tuple[str, Literal]] | None
    """The expression to select and what makes a literal of its text; None: binlane cannot copy them exactly."""
    is_exact: bool
    """Whether a key that is decoded from the log has the text of ``compared``."""


def _sign(column: DefinedColumn) -> str:
    return "UNSIGNED" if column.unsigned else "SIGNED"


_INTEGERS: Final = re.compile(r"-?[0-9]+")
_DECIMALS: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_DOUBLES: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BYTES: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")
_QUOTED: Final = re.compile(r"(?s:.*)")
"""``literals.quoted`` writes any text."""


def _number(sign: Callable[[DefinedColumn], str]) -> ValueKind:
    def number(column: DefinedColumn) -> str:
        return f"CAST({identifier(column.name)} AS {sign(column)})"

    return ValueKind(
        lambda column, _whole: f"CAST({number(column)} AS CHAR)",  # ZEROFILL is display only
        lambda _column, text, _flavor: text,
        _INTEGERS,
        lambda column: (number(column), _PLAIN),
        is_exact=True,
    )


def _year(column: DefinedColumn) -> str:
    """All digits of a year, as logs have them: MariaDB's YEAR(2) shows two, of 1970 to 2069."""
    name = identifier(column.name)
    shown = f"CAST({name} AS UNSIGNED)"
    return f"{shown} + IF(LENGTH({name}) = 2, IF({shown} < 70, 2000, 1900), 0)"


def _decimal(column: DefinedColumn, _whole: bool) -> str:
    kind = f"DECIMAL({column.precision},{column.scale})"
    return f"CAST(CAST({identifier(column.name)} AS {kind}) AS CHAR)"


def _double(column: DefinedColumn, _whole: bool) -> str:
    """All digits of a double.

    MySQL's CAST drops digits of the longest numbers, and the families print exponents differently. Their JSON text is
    equal, except that MySQL's has ``.0`` behind whole numbers. FLOAT itself prints six digits.
    """
    return _digits_of(identifier(column.name), "1e0")


def unsigned_zero(column: DefinedColumn) -> str:
    """``FLOAT.compared`` between the families: MariaDB shows and writes -0 as 0, where MySQL keeps the sign."""
    return _digits_of(identifier(column.name), "1e0 + 0e0")


def _digits_of(name: str, times: str) -> str:
    text = f"REPLACE(JSON_ARRAY({name} * {times}), '.0]', ']')"
    return f"IF({name} IS NULL, NULL, TRIM(LEADING '[' FROM TRIM(TRAILING ']' FROM {text})))"


def _hashed(value: str) -> str:
    return f"CONCAT(LENGTH({value}), ':', SHA2({value}, 256))"


def _digits(column: DefinedColumn, _whole: bool) -> str:
    return f"HEX({identifier(column.name)})"


def _large(column: DefinedColumn, whole: bool) -> str:
    name = identifier(column.name)
    return f"HEX({name})" if whole else _hashed(f"CAST({name} AS BINARY)")


def _json(column: DefinedColumn, _whole: bool) -> str:
    name = identifier(column.name)
    return _hashed(f"CAST({name} AS {'CHAR CHARACTER SET utf8mb4' if column.charset is None else 'BINARY'})")


def _hashed_digits(column: DefinedColumn, _whole: bool) -> str:
    # HEX of more than max_allowed_packet is NULL, and two such values must not compare equal
    name = identifier(column.name)
    too_large = f"{name} IS NOT NULL AND HEX({name}) IS NULL"
    return f"IF({too_large}, CONCAT('larger than max_allowed_packet: ', UUID()), {_hashed(f'HEX({name})')})"


def _key_bytes(column: DefinedColumn, text: str, flavor: Flavor) -> str:
    return f"X'{text}'" if column.charset is None else f"_{introducer(column.charset, flavor)} X'{text}'"


def _key_double(_column: DefinedColumn, text: str, _flavor: Flavor) -> str:
    return text if "e" in text.lower() else f"{text}e0"


def _key_text(_column: DefinedColumn, text: str, _flavor: Flavor) -> str:
    return quoted(text)


def _copied(literal: Literal) -> Callable[[DefinedColumn], tuple[str, Literal]]:
    return lambda column: (identifier(column.name), literal)


def _copied_json(column: DefinedColumn) -> tuple[str, Literal]:
    return identifier(column.name), (_DOCUMENT if column.charset is None else _BINARY)


def _escaped(value: bytes) -> bytes:
    for raw, safe in _ESCAPES.items():
        if raw in value:
            value = value.replace(raw, safe)
    return value


_NUMBER: Final = frozenset(b"0123456789+-.eE")
_ESCAPES: Final[Mapping[bytes, bytes]] = {b"\\": b"\\\\", b"'": b"\\'", b"\0": b"\\0"}
"""Replacements, applied in this order."""
_PLAIN: Final = Literal()
_WITH_EXPONENT: Final = Literal(exponent=True)
_TEXT: Final = Literal(b"'", b"'", escapes=True)
_BINARY: Final = Literal(b"_binary'", b"'", escapes=True)
_DOCUMENT: Final = Literal(b"CAST(_utf8mb4'", b"' AS JSON)", escapes=True, document=True)


INTEGER: Final = _number(_sign)
NUMBERED: Final = _number(lambda _column: "UNSIGNED")
"""ENUM by number: its text is the same for the empty string and the error value 0."""
YEAR: Final = ValueKind(
    # conditions on a key have the digits that the column shows
    lambda column, whole: NUMBERED.compared(column, whole) if whole else f"CAST({_year(column)} AS CHAR)",
    NUMBERED.literal,
    _INTEGERS,
    lambda column: (_year(column), _PLAIN),
    is_exact=True,
)
DECIMAL: Final = ValueKind(_decimal, INTEGER.literal, _DECIMALS, _copied(_PLAIN), is_exact=True)
FLOAT: Final = ValueKind(
    _double,
    _key_double,
    _DOUBLES,
    lambda column: (f"{identifier(column.name)} * 1e0", _WITH_EXPONENT),
    is_exact=False,
)
TEXT: Final = ValueKind(
    lambda column, _whole: f"CAST({identifier(column.name)} AS CHAR)",
    _key_text,
    _QUOTED,
    _copied(_TEXT),
    is_exact=True,
)
"""Types that every server casts to the same text: dates, times, addresses."""
STRING: Final = ValueKind(_digits, _key_bytes, _BYTES, _copied(_BINARY), is_exact=True)
LARGE: Final = ValueKind(_large, _key_bytes, _BYTES, _copied(_BINARY), is_exact=True)
JSON: Final = ValueKind(_json, _key_text, _QUOTED, _copied_json, is_exact=False)
"""JSON: MySQL's has no character set, MariaDB's is text."""
OPAQUE: Final = ValueKind(_hashed_digits, _key_text, _QUOTED, _copied(_BINARY), is_exact=False)
NOT_COPIED: Final = ValueKind(_hashed_digits, _key_text, _QUOTED, None, is_exact=False)
"""Types without a known exact text: the temporal layouts before MySQL 5.6, and types that have no row."""
