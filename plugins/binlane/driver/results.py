"""The columns and rows of an answer, taken by chunks: as many packets at a time as have come.

PyMySQL reads each packet by two calls through several layers, and makes an object of it with a cursor of its own. Rows
and columns are nearly all packets that a window reads; what waits, ends an answer or is an error goes through PyMySQL's
way as before, and with it every limit (``wire``).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pymysql.connections import TEXT_TYPES, MySQLResult
from pymysql.constants import FIELD_TYPE
from pymysql.converters import through
from pymysql.protocol import FieldDescriptorPacket

_NULL: Final = frozenset({251, 255})
"""First bytes of a value that is NULL; PyMySQL takes the second, which no server sends, for it as well."""
_LENGTHS: Final = {252: (struct.Struct("<H"), 2), 253: (struct.Struct("<HB"), 3), 254: (struct.Struct("<Q"), 8)}
"""First bytes of a longer length, by which it is told in so many bytes."""
_BINARY: Final = 63
"""The collation of bytes."""
_KNOWN_BYTES: Final = 512
"""Longer descriptions of columns are not kept: they are the server's own text."""

Converter = tuple[str | None, Callable[[Any], Any] | None]
"""A column's encoding and what makes its value of the text."""


def row_of(data: bytes, converters: Sequence[Converter]) -> tuple[Any, ...]:
    """The row of a packet. Raises one of ``wire.UNREADABLE`` for a value that the packet does not hold, or that is none
    of its column's type."""
    at, row = 0, list[Any]()
    for encoding, converter in converters:
        try:
            length = data[at]
        except IndexError:
            # as PyMySQL: no more columns in this row
            break
        at += 1
        if length > 250:
            if length in _NULL:
                row.append(None)
                continue
            form, size = _LENGTHS[length]
            parts = form.unpack_from(data, at)
            length = parts[0] if len(parts) == 1 else parts[0] + (parts[1] << 16)
            at += size
        value: Any = data[at : at + length]
        if len(value) != length:
            raise AssertionError(f"expected a value of {length} bytes, found {len(value)}")
        at += length
        if encoding is not None:
            value = value.decode(encoding)
        row.append(value if converter is None else converter(value))
    return tuple(row)


def _described(data: bytes, encoding: str) -> tuple[Any, tuple[Any, ...]]:
    return _kept(data, encoding) if len(data) <= _KNOWN_BYTES else _parsed(data, encoding)


def _parsed(data: bytes, encoding: str) -> tuple[Any, tuple[Any, ...]]:
    field: Any = FieldDescriptorPacket(data, encoding)
    return field, field.description()


_kept: Final = functools.lru_cache(maxsize=4096)(_parsed)
"""A window asks the same statements again and again."""


class Result(MySQLResult):
    """PyMySQL's result of a ``WireConnection``."""

    if TYPE_CHECKING:
        # missing in the type stubs
        connection: Any
        converters: list[Converter]
        fields: list[Any]

        def _check_packet_is_eof(self, packet: Any) -> bool: ...

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._taken: list[bytes] = []
        """Rows of an answer that is not kept, the next one last."""

    def _get_descriptions(self) -> None:
        connection, count = self.connection, self.field_count
        self.fields, self.converters, description = [], [], []
        while len(self.fields) < count:
            here = connection.columns_here(count - len(self.fields))
            for data in here or [connection._read_packet(FieldDescriptorPacket).get_all_data()]:
                field, described = _described(data, connection.encoding)
                self.fields.append(field)
                description.append(described)
                self.converters.append(_converter(field, connection))
        end = connection._read_packet()
        assert end.is_eof_packet(), "Protocol error, expecting EOF"
        self.description = tuple(description)

    def _read_rowdata_packet(self) -> None:
        connection, converters = self.connection, self.converters
        rows: list[tuple[Any, ...]] = []
        while True:
            rows += [row_of(data, converters) for data in connection.rows_here()]
            packet = connection._read_packet()
            if self._check_packet_is_eof(packet):
                self.connection = None
                break
            rows.append(row_of(packet.get_all_data(), converters))
        self.affected_rows, self.rows = len(rows), tuple(rows)

    def _read_rowdata_packet_unbuffered(self) -> tuple[Any, ...] | None:
        if self.unbuffered_active and not self._taken:
            self._taken = self.connection.rows_here()[::-1]
        if not self.unbuffered_active or not self._taken:
            last: tuple[Any, ...] | None = super()._read_rowdata_packet_unbuffered()  # type: ignore[misc]
            return last
        row = row_of(self._taken.pop(), self.converters)
        self.affected_rows, self.rows = 1, (row,)
        return row

    def _read_row_from_packet(self, packet: Any) -> tuple[Any, ...]:
        return row_of(packet.get_all_data(), self.converters)


def _converter(field: Any, connection: Any) -> Converter:
    """As PyMySQL's: JSON and texts have the connection's encoding, bytes none, all else is ASCII."""
    kind = field.type_code
    converter = connection.decoders.get(kind)
    if converter is through:
        converter = None
    if not connection.use_unicode:
        return None, converter
    if kind == FIELD_TYPE.JSON or (kind in TEXT_TYPES and field.charsetnr != _BINARY):
        return connection.encoding, converter
    return None if kind in TEXT_TYPES else "ascii", converter
