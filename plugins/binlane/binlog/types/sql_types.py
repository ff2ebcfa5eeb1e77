"""Every column type of information_schema, one row each: how it is logged, read, compared, copied and shown.

Names as ``schema.normalize.parse_type`` writes them. A new type is a new row; a type with a type code of its own also
needs a row in ``column_types``. A type without a row is refused where exactness is required.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from binlane.binlog.types import readers
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.readers import Reader
from binlane.binlog.types.sql_values import (
    DECIMAL,
    FLOAT,
    INTEGER,
    JSON,
    LARGE,
    NOT_COPIED,
    NUMBERED,
    OPAQUE,
    STRING,
    TEXT,
    YEAR,
    DefinedColumn,
    ValueKind,
)
from binlane.lazy_dataclass import dataclass


class Arguments(StrEnum):
    """The arguments in parentheses behind a type's name; display widths do not affect the data."""

    NONE = "nothing, or a display width"
    LENGTH = "length"
    PRECISION = "precision, scale"
    FRACTION = "digits of a second's fraction"
    MEMBERS = "members"


class DisplayForm(StrEnum):
    """How a value of the target is selected for display, in hexadecimal digits, safe from character set conversion."""

    TEXT = "HEX(CONVERT(LEFT({name}, {length}) USING utf8mb4))"
    SINGLE = "HEX(CONVERT(LEFT({name} * 1e0, {length}) USING utf8mb4))"
    """A FLOAT, of which the servers' own text has six digits."""
    MEMBER = "HEX(CONVERT(LEFT(IF({name} = 0, '0 (error value)', {name}), {length}) USING utf8mb4))"
    """An ENUM: the text of its error value, which is no member, is that of the member ''."""
    BYTES = "HEX(LEFT({name}, {length}))"
    WHOLE = "HEX({name})"
    """Types that LEFT() does not accept on every server."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type by its name."""

    values: ValueKind
    logged: str | Callable[[DefinedColumn], str] | None = None
    """A column of the target as the target's own TABLE_MAP would show it, in the words of ``column_types``; None: the
    type's name."""
    arguments: Arguments = Arguments.NONE
    shown: DisplayForm = DisplayForm.TEXT
    read: Reader | None = None
    """The reader for types that are logged like BINARY; None: the reader of ``column_types``."""


def sql_type(name: str) -> SqlType:
    """The row of a type."""
    return SQL_TYPES.get(name, _UNKNOWN)


def reader_of(column: Column, *, text: bool = True) -> Reader:
    """The function that reads a logged column's bytes; it raises ValueError or struct.error for bytes that no server
    writes.

    ``text=False``: characters, members and JSON become bytes, numbers and documents, for writing them again. Raises
    KeyError for a type that is never logged.
    """
    by_name = SQL_TYPES.get(column.data_type or "")
    if by_name is not None and by_name.read is not None:
        return by_name.read
    kind = LOGGED_TYPES[column.type_code]
    if kind.with_digits is not None and column.fsp:
        read, digits = kind.with_digits[1], column.fsp
        return lambda data: read(data, digits)
    if kind.read is None:
        raise KeyError(column.type_code)
    return kind.read(column, text)


def column_words(column: DefinedColumn, *, compressed: bool) -> str:
    """A column of the target as the target's own TABLE_MAP would show it, in words."""
    kind = sql_type(column.data_type)
    if compressed:
        # a layout of its own; any length is compatible with any other
        what = "varchar" if column.data_type in _VARYING else "blob" if kind.values is LARGE else column.data_type
        return f"compressed {what}"
    if kind.logged is None:
        return column.data_type
    return kind.logged if isinstance(kind.logged, str) else kind.logged(column)


def _sized(word: str) -> Callable[[DefinedColumn], str]:
    return lambda column: f"{word} of {column.octets} bytes"


def _large(prefix: int, shown: DisplayForm = DisplayForm.TEXT) -> SqlType:
    return SqlType(LARGE, f"blob with {prefix} bytes of length", shown=shown)


def _temporal() -> SqlType:
    return SqlType(TEXT, lambda column: f"{column.data_type}({column.fsp})", Arguments.FRACTION)


def _fixed(length: int, read: Reader) -> SqlType:
    return SqlType(TEXT, f"char of {length} bytes", read=read)


def _enum(column: DefinedColumn) -> str:
    return f"enum of {1 if len(column.members) < 256 else 2} bytes"


def _set(column: DefinedColumn) -> str:
    size = (len(column.members) + 7) // 8
    return f"set of {size if size <= 4 else 8} bytes"


def _decimal(column: DefinedColumn) -> str:
    return f"decimal({column.precision},{column.scale})"


def _json(column: DefinedColumn) -> str:
    return "json stored in binary" if column.charset is None else "blob with 4 bytes of length"


def _vector(column: DefinedColumn) -> str:
    return "vector" if column.octets is None else f"varchar of {column.octets} bytes"


_A = Arguments
_UNKNOWN: Final = SqlType(NOT_COPIED)
_VARYING: Final = ("varchar", "varbinary")
_OLD: Final = SqlType(NOT_COPIED, arguments=_A.FRACTION)
_GEOMETRY: Final = SqlType(OPAQUE, "geometry", shown=DisplayForm.WHOLE)
SQL_TYPES: Final[Mapping[str, SqlType]] = {
    "tinyint": SqlType(INTEGER),
    "smallint": SqlType(INTEGER),
    "mediumint": SqlType(INTEGER),
    "int": SqlType(INTEGER),
    "bigint": SqlType(INTEGER),
    "decimal": SqlType(DECIMAL, _decimal, _A.PRECISION),
    "float": SqlType(FLOAT, arguments=_A.PRECISION, shown=DisplayForm.SINGLE),
    "double": SqlType(FLOAT, arguments=_A.PRECISION),
    "bit": SqlType(NUMBERED, lambda column: f"bit({column.precision})", _A.PRECISION, DisplayForm.WHOLE),
    "year": SqlType(YEAR),
    "date": SqlType(TEXT),
    "time": _temporal(),
    "datetime": _temporal(),
    "timestamp": _temporal(),
    "time (old format)": _OLD,
    "datetime (old format)": _OLD,
    "timestamp (old format)": _OLD,
    "char": SqlType(STRING, _sized("char"), _A.LENGTH),
    "varchar": SqlType(STRING, _sized("varchar"), _A.LENGTH),
    "binary": SqlType(STRING, _sized("char"), _A.LENGTH, DisplayForm.BYTES),
    "varbinary": SqlType(STRING, _sized("varchar"), _A.LENGTH, DisplayForm.BYTES),
    "tinytext": _large(1),
    "text": _large(2),
    "mediumtext": _large(3),
    "longtext": _large(4),
    "tinyblob": _large(1, DisplayForm.BYTES),
    "blob": _large(2, DisplayForm.BYTES),
    "mediumblob": _large(3, DisplayForm.BYTES),
    "longblob": _large(4, DisplayForm.BYTES),
    "enum": SqlType(NUMBERED, _enum, _A.MEMBERS, DisplayForm.MEMBER),
    "set": SqlType(NUMBERED, _set, _A.MEMBERS),
    "json": SqlType(JSON, _json),
    "uuid": _fixed(16, readers.uuid_text),
    "inet6": _fixed(16, readers.inet6),
    "inet4": _fixed(4, readers.inet4),
    "vector": SqlType(OPAQUE, _vector, _A.LENGTH, DisplayForm.WHOLE),
    "geometry": _GEOMETRY,
    "point": _GEOMETRY,
    "linestring": _GEOMETRY,
    "polygon": _GEOMETRY,
    "multipoint": _GEOMETRY,
    "multilinestring": _GEOMETRY,
    "multipolygon": _GEOMETRY,
    "geometrycollection": _GEOMETRY,
}
