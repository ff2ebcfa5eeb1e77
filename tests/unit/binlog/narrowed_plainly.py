"""What ``vector.narrow_rows`` does, event by event in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from binlane.binlog.rows import RowsEvent, RowsKind, image_ranges
from binlane.binlog.rows_payload import events_of, is_table_map, parse_rows, parse_table_map, with_body
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.type_codes import LengthRule
from binlane.binlog.wire import HEADER, EventType
from binlane.model import Flavor
from tests.unit.binlog.row_events import bitmap

PLAIN = {
    EventType.UPDATE_ROWS_V1,
    EventType.DELETE_ROWS_V1,
    EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V2,
}
Values = list[bytes | None]
"""The bytes of each column's value, with its length; None: NULL."""


def narrowed_plainly(payload: bytes, key_of: Callable[[TableMap], Sequence[int]]) -> bytes:
    tables, out = dict[bytes, TableMap](), list[bytes]()
    for event in events_of(payload):
        table_id = event[HEADER.size : HEADER.size + 6]
        if is_table_map(event):
            tables[table_id] = parse_table_map(event, Flavor.MYSQL)
            out.append(event)
        else:
            out.append(_narrowed(event, tables[table_id], key_of(tables[table_id])))
    return b"".join(out)


def _narrowed(event: bytes, table: TableMap, key: Sequence[int]) -> bytes:
    rows, everything = parse_rows(event), range(table.width)
    masks = [mask for mask in (rows.columns_before, rows.columns_after) if mask is not None]
    is_whole = all(mask[n >> 3] >> (n & 7) & 1 for mask in masks for n in everything)
    if not key or event[4] not in PLAIN or not is_whole:
        return event
    changes = list(_changes(rows, table))
    changed = sorted({n for before, after in changes for n in everything if after and after[n] != before[n]}) or key
    head = event[HEADER.size : HEADER.size + rows.images_at - len(masks) * len(masks[0])]
    head = head[:6] + bytes([head[6] & ~8]) + head[7:]
    sent = [key, changed] if rows.kind is RowsKind.UPDATE else [key]
    body = head + b"".join(bitmap([n in columns for n in everything]) for columns in sent)
    for images in changes:
        body += b"".join(_image(values, columns) for values, columns in zip(images, sent, strict=False))
    return with_body(event, body)


def _changes(event: RowsEvent, table: TableMap) -> Iterable[tuple[Values, Values]]:
    """Both images of each row; no values for an image that there is not."""
    spec, data = table.column_length_spec(), bytes(event.rows)
    for before, after in image_ranges(event, table):
        assert before is not None
        yield _values(data, before[0], spec), [] if after is None else _values(data, after[0], spec)


def _values(data: bytes, at: int, spec: Sequence[LengthRule]) -> Values:
    nulls, at = data[at:], at + (len(spec) + 7) // 8
    values: Values = []
    for n, (prefix, length) in enumerate(spec):
        if nulls[n >> 3] >> (n & 7) & 1:
            values.append(None)
            continue
        end = at + prefix + (int.from_bytes(data[at : at + prefix], "little") if prefix else length)
        values.append(data[at:end])
        at = end
    return values


def _image(values: Values, columns: Sequence[int]) -> bytes:
    chosen = [values[n] for n in columns]
    return bitmap([value is None for value in chosen]) + b"".join(value for value in chosen if value is not None)
