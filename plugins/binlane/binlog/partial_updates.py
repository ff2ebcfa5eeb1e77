"""MySQL's PARTIAL_UPDATE_ROWS as plain updates, where no row has a difference of a JSON document.

A session with ``binlog_row_value_options = PARTIAL_JSON`` logs every update in this form, of tables without JSON
columns too. Such an event differs from UPDATE_ROWS by its type and by the value options in front of each after-image
(MySQL ``rows_event.h``). MariaDB does not know the type (error 1730).
"""

from __future__ import annotations

from typing import Final

from binlane.binlog.rows import image_ranges, partial_head
from binlane.binlog.rows_payload import events_of, is_table_map, parse_rows, parse_table_map, with_body
from binlane.binlog.table_map import FLAGS_IN_BODY, TableMap
from binlane.binlog.wire import HEADER, EventType, type_name
from binlane.errors import UnsupportedEventError
from binlane.model import Flavor

_TYPE_AT: Final = 4
_TABLE_ID: Final = slice(HEADER.size, HEADER.size + FLAGS_IN_BODY)
_PARTIAL: Final = int(EventType.PARTIAL_UPDATE_ROWS)


def with_plain_updates(payload: bytes, source: Flavor) -> bytes:
    """A self-contained payload without PARTIAL_UPDATE_ROWS; it is never longer.

    Raises UnsupportedEventError for a row with a difference of a JSON document, which a plain update cannot have.
    """
    events = tuple(events_of(payload))
    if all(event[_TYPE_AT] != _PARTIAL for event in events):
        return payload
    tables: dict[bytes, bytes] = {}
    made: list[bytes] = []
    for event in events:
        if is_table_map(event):
            tables[event[_TABLE_ID]] = event
        is_partial = event[_TYPE_AT] == _PARTIAL
        made.append(_plain(event, parse_table_map(tables[event[_TABLE_ID]], source)) if is_partial else event)
    return b"".join(made)


def _plain(event: bytes, table: TableMap) -> bytes:
    parsed = parse_rows(event)
    rows, images = bytes(parsed.rows), bytearray()
    name = f"{type_name(_PARTIAL)}: {table.database}.{table.table}: "
    for before, after in image_ranges(parsed, table):
        assert before is not None
        assert after is not None
        differences, at = partial_head(rows, after[0], table.json_columns, name)
        if any(differences):
            raise UnsupportedEventError(f"{name}expected whole documents, found differences; they are written by SQL")
        images += rows[before[0] : before[1]] + rows[at : after[1]]
    head = event[HEADER.size : HEADER.size + parsed.images_at]
    return with_body(event, head + bytes(images), EventType.UPDATE_ROWS_V2)
