"""Splits a rows event: each row as an event of its own, with its key and images as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from binlane.binlog.row_values import Absent, Image, RowDecoder
from binlane.binlog.rows import COMPRESSED_ROWS, image_ranges
from binlane.binlog.rows_payload import parse_rows, parse_table_map, rows_with_tables, with_body
from binlane.binlog.table_map import columns_of
from binlane.binlog.types.columns import Column
from binlane.binlog.types.literals import spell
from binlane.binlog.wire import HEADER
from binlane.model import Flavor

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_SHOWN: Final = 1_000
"""Characters of an image shown in a message."""
_COLUMNS: Final = (
    "SELECT column_name, column_key = 'PRI' FROM information_schema.columns "
    "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)


def single_rows(payload: bytes, session: LaneSession, source: Flavor) -> Iterator[tuple[bytes, str]]:
    """For a TABLE_MAP and the rows event behind it: both again for each row alone, and the row as text.

    Empty for a compressed event. Raises BinlogError for rows that do not fit the TABLE_MAP.
    """
    [(table_map, logged)] = rows_with_tables(payload, bytes)
    if logged[4] in COMPRESSED_ROWS:
        return
    event, table = parse_rows(logged), parse_table_map(table_map, source)
    columns = columns_of(table, source)
    names = [(str(name), bool(is_key)) for name, is_key in session.rows(_COLUMNS, (table.database, table.table))]
    if len(names) != len(columns):
        names = [(column.label, False) for column in columns]
    head, rows = logged[HEADER.size :][: event.images_at], bytes(event.rows)
    changes = RowDecoder(table, columns).changes(event)
    for (before, after), change in zip(image_ranges(event, table), changes, strict=True):
        places = [place for place in (before, after) if place is not None]
        alone = with_body(logged, head + rows[places[0][0] : places[-1][1]])
        images = [image for image in (change.before, change.after) if image is not None]
        key = _words(columns, images[0], [name if is_key else None for name, is_key in names])
        said = " -> ".join(_words(columns, image, [name for name, _ in names]) for image in images)
        told = f"{table.database}.{table.table}, primary key {key or '(none)'}: {change.kind.value} {said}"
        yield table_map + alone, told


def _words(columns: Sequence[Column], image: Image, names: Sequence[str | None]) -> str:
    text = " ".join(
        f"{name}={spell(column, value)}"
        for column, value, name in zip(columns, image, names, strict=True)
        if name is not None and not isinstance(value, Absent)
    )
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
