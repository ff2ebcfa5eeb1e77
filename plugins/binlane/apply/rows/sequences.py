"""Completes partial row images of MariaDB's sequences: statements refuse them, while a replica completes them.

With ``binlog_row_image`` MINIMAL or NOBLOB a NEXTVAL is logged with the value and the round only. A replica takes the
other columns from the sequence; in a BINLOG statement, also of ``mariadb-binlog``, and in an INSERT they are zero,
which gives error 4085 (seen on 10.11.18). The missing columns are the sequence's options, which its DDL has set alike
on source and target.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from binlane.binlog.rows_payload import events_of, is_table_map, parse_table_map, with_body
from binlane.binlog.types.literals import identifier
from binlane.binlog.wire import HEADER, EventType
from binlane.model import Flavor, TableKey

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_WIDTHS: Final = (8, 8, 8, 8, 8, 8, 1, 8)
_FORMATS: Final = ("<q", "<q", "<q", "<q", "<q", "<q", "<B", "<q")
_MARK: Final = b"\x08" + b"\x08" * 6 + b"\x01\x08"
"""In the TABLE_MAP of every sequence: eight columns, and their types."""
_POST_HEADER: Final = 8
_ALL: Final = 0xFF


def with_whole_sequences(session: LaneSession, payload: bytes) -> bytes:
    """The payload with whole rows of sequences, whose missing columns are read from the target."""
    if session.flavor is not Flavor.MARIADB or _MARK not in payload:
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
    sequences: dict[bytes, TableKey] = {}
    for event in events_of(payload):
        body = event[HEADER.size :]
        if is_table_map(event) and _MARK in body:
            table = parse_table_map(event, Flavor.MARIADB)
            sequences[body[:6]] = TableKey(table.database, table.table)
        elif event[4] == EventType.WRITE_ROWS_V1 and body[:6] in sequences and body[_POST_HEADER + 1] != _ALL:
            row = options(sequences[body[:6]])
            body = body if row is None else _whole(body, row)
        events.append(with_body(event, body))
    return b"".join(events)


def _whole(body: bytes, row: Sequence[int]) -> bytes:
    """A rows event's body with all columns; missing ones are taken from ``row``."""
    present = body[_POST_HEADER + 1]
    columns = [number for number in range(len(_WIDTHS)) if present >> number & 1]
    rows, at = [], _POST_HEADER + 2
    while at < len(body):
        values = [struct.pack(layout, value) for layout, value in zip(_FORMATS, row, strict=True)]
        at += 1  # no column of a sequence is ever NULL
        for number in columns:
            values[number] = body[at : at + _WIDTHS[number]]
            at += _WIDTHS[number]
        rows.append(b"\0" + b"".join(values))
    return body[: _POST_HEADER + 1] + bytes([_ALL]) + b"".join(rows)
