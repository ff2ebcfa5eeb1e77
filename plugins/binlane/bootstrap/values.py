"""A column's value: how it is read from the source, and the literal that stores the same value on the target.

The dump tools' text is not enough: MySQL prints six digits of a FLOAT. Strings go as the bytes that are stored, without
a conversion of character sets on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.errors import PrecheckError
from binlane.model import TableKey
from binlane.schema.model import Column

Literal = Callable[[bytes], bytes]

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_NUMBERED: Final = frozenset({"bit", "year", "enum", "set"})
"""By number: an ENUM's text cannot tell the empty string from the error value 0."""
_FLOATS: Final = frozenset({"float", "double"})
_TEXTS: Final = frozenset({"date", "time", "datetime", "timestamp", "uuid", "inet4", "inet6"})
_BYTES: Final = frozenset(
    {"char", "varchar", "binary", "varbinary", "vector", "geometry", "point", "linestring", "polygon", "multipoint"}
    | {"multilinestring", "multipolygon", "geometrycollection", "geomcollection"}
    | {f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")}
)


def selected(table: TableKey, column: Column) -> tuple[str, Literal]:
    """The expression to select, and what makes a literal of its text. Raises PrecheckError for an unknown type."""
    name, kind = identifier(column.name), column.data_type
    if kind in _INTEGERS or kind in _NUMBERED:
        sign = "UNSIGNED" if column.unsigned or kind in _NUMBERED else "SIGNED"
        return f"CAST({name} AS {sign})", _plain
    if kind == "decimal":
        return name, _plain
    if kind in _FLOATS:
        return f"{name} * 1e0", _double
    if kind in _TEXTS:
        return name, _text
    if kind == "json" and column.charset is None:
        return name, _json
    if kind in _BYTES or kind == "json":
        return name, _binary
    raise PrecheckError(
        f"{table}: column {column.name}: expected a type that binlane can copy exactly, found {kind}; leave its "
        "database out with --databases, and load that database from a backup instead"
    )


def faithful(columns: Sequence[Column]) -> str:
    """1 for a row that its text gives back. MySQL's JSON can hold an SQL date or bytes, whose text is another value."""
    checks = []
    for column in columns:
        if column.data_type == "json" and column.charset is None:
            name = identifier(column.name)
            checks.append(f"COALESCE({name} = CAST(CAST({name} AS CHAR CHARACTER SET utf8mb4) AS JSON), 1)")
    return " AND ".join(checks) or "1"


def _plain(value: bytes) -> bytes:
    return value


def _double(value: bytes) -> bytes:
    """With an exponent: without one the target would read a DECIMAL."""
    return value if b"e" in value else value + b"e0"


def _escaped(value: bytes) -> bytes:
    for raw, safe in _ESCAPES.items():
        if raw in value:
            value = value.replace(raw, safe)
    return value


_ESCAPES: Final[Mapping[bytes, bytes]] = {b"\\": b"\\\\", b"'": b"\\'", b"\0": b"\\0"}
"""In this order."""


def _text(value: bytes) -> bytes:
    return b"'" + value + b"'"


def _binary(value: bytes) -> bytes:
    return b"_binary'" + _escaped(value) + b"'"


def _json(value: bytes) -> bytes:
    return b"CAST(_utf8mb4'" + _escaped(value) + b"' AS JSON)"
