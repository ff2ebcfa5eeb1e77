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
EVENT_COST = 160
"""As in the module."""
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
    front = rows.images_at - len(masks) * len(masks[0])
    head = event[HEADER.size : HEADER.size + front]
    head = head[:6] + bytes([head[6] & ~8]) + head[7:]
    unended = head[:6] + bytes([head[6] & ~1]) + head[7:]
    changes = list(_changes(rows, table))
    if rows.kind is not RowsKind.UPDATE:
        return _event(event, head, changes, [key], table.width)
    runs = list(_runs(changes, HEADER.size + rows.images_at + EVENT_COST))
    out = [
        _event(event, head if number == len(runs) else unended, run, [key, changed or key], table.width)
        for number, (run, changed) in enumerate(runs, 1)
    ]
    return event if sum(map(len, out)) > len(event) else b"".join(out)


def _runs(
    changes: Sequence[tuple[Values, Values]], limit: int
) -> Iterable[tuple[list[tuple[Values, Values]], list[int]]]:
    """Updates that are sent with the same columns, and these columns."""
    run, sent = list[tuple[Values, Values]](), set[int]()
    for before, after in changes:
        changed = {n for n, value in enumerate(after) if value != before[n]}
        longer = _length([after], sent - changed) + _length([each for _, each in run], changed - sent)
        if run and longer > limit:
            yield run, sorted(sent)
            run, sent = [], set()
        run.append((before, after))
        sent |= changed
    yield run, sorted(sent)


def _length(rows: Iterable[Values], columns: Iterable[int]) -> int:
    return sum(len(values[n] or b"") for n in columns for values in rows)


def _event(
    event: bytes, head: bytes, changes: Iterable[tuple[Values, Values]], sent: Sequence[Sequence[int]], width: int
) -> bytes:
    body = head + b"".join(bitmap([n in columns for n in range(width)]) for columns in sent)
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
