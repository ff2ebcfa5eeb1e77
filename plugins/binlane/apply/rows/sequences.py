"""Completes partial row images of MariaDB's sequences: statements refuse them, while a replica completes them.

With ``binlog_row_image`` MINIMAL or NOBLOB a NEXTVAL is logged with the value and the round only. A replica takes the
other columns from the sequence; in a BINLOG statement, also of ``mariadb-binlog``, and in an INSERT they are zero,
which gives error 4085 (seen on 10.11.18). The missing columns are the sequence's options, which its DDL has set alike
on source and target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from binlane.binlog.rows_payload import events_of, is_table_map, parse_table_map, with_body
from binlane.binlog.types.literals import identifier
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import HEADER, EventType
from binlane.model import Flavor, TableKey

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_TYPES: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
"""The bytes of an integer. Since MariaDB 11.5 the first four columns, the numbers, have the sequence's type, or that
type without a sign (``sequence_structure`` in its ``sql/sql_sequence.cc``)."""
_END: Final = (ColumnType.LONGLONG, ColumnType.LONGLONG, ColumnType.TINY, ColumnType.LONGLONG)
"""The increment, the cache's size, whether it cycles, and how often it has."""
_MARKS: Final = {
    bytes((8, *(4 * (code,)), *_END)): (*(4 * (width,)), *(_TYPES[each] for each in _END))
    for code, width in _TYPES.items()
}
"""In the TABLE_MAP of every sequence: eight columns, and their types; with the columns' bytes."""
_POST_HEADER: Final = 8
_ALL: Final = 0xFF


def with_whole_sequences(session: LaneSession, payload: bytes) -> bytes:
    """The payload with whole rows of sequences, whose missing columns are read from the target."""
    if session.flavor is not Flavor.MARIADB or _widths(payload) is None:
        return payload

    def options(key: TableKey) -> tuple[int, ...] | None:
        kind = "SELECT table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        if session.value(kind, (key.database, key.table)) != "SEQUENCE":
            return None
        (row,) = session.rows(f"SELECT * FROM {identifier(key.database)}.{identifier(key.table)}")
        return tuple(map(int, row))

    return with_whole_rows(payload, options)


def with_whole_rows(payload: bytes, options: Callable[[TableKey], Sequence[int] | None]) -> bytes:
    """The payload with all eight columns in each row of a sequence.

    ``options``: the present row of a sequence on the target, None for a table that is not a sequence.
    """
    events = []
    sequences: dict[bytes, tuple[TableKey, Sequence[int]]] = {}
    for event in events_of(payload):
        body = event[HEADER.size :]
        if is_table_map(event) and (widths := _widths(body)) is not None:
            table = parse_table_map(event, Flavor.MARIADB)
            sequences[body[:6]] = TableKey(table.database, table.table), widths
        elif event[4] == EventType.WRITE_ROWS_V1 and body[:6] in sequences and body[_POST_HEADER + 1] != _ALL:
            key, widths = sequences[body[:6]]
            row = options(key)
            body = body if row is None else _whole(body, row, widths)
        events.append(with_body(event, body))
    return b"".join(events)


def _widths(data: bytes) -> Sequence[int] | None:
    """The bytes of the columns of a sequence whose mark the data has; None without a mark."""
    return next((widths for mark, widths in _MARKS.items() if mark in data), None)


def _whole(body: bytes, row: Sequence[int], widths: Sequence[int]) -> bytes:
    """A rows event's body with all columns; missing ones are taken from ``row``."""
    present = body[_POST_HEADER + 1]
    columns = [number for number in range(len(widths)) if present >> number & 1]
    rows, at = [], _POST_HEADER + 2
    while at < len(body):
        values = [
            (value % (1 << 8 * width)).to_bytes(width, "little") for value, width in zip(row, widths, strict=True)
        ]
        at += 1  # no column of a sequence is ever NULL
        for number in columns:
            values[number] = body[at : at + widths[number]]
            at += widths[number]
        rows.append(b"\0" + b"".join(values))
    return body[: _POST_HEADER + 1] + bytes([_ALL]) + b"".join(rows)
