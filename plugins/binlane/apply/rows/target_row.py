"""Rows of the target as text: the values that ``binlane.conflicts`` keeps of an overwritten row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from binlane.apply.rows.sql import KnownTable
from binlane.binlog.row_values import Absent, Image
from binlane.binlog.types.charsets import decode_text
from binlane.binlog.types.json_binary import JsonDiffs
from binlane.binlog.types.literals import identifier, spell, spell_float
from binlane.binlog.types.sql_types import DisplayForm, sql_type
from binlane.schema.model import Column as TargetColumn
from binlane.state.records.conflicts import Values

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_SHOWN: Final = 65_536
"""Most characters or bytes that are kept of a value."""


def rows_where(session: LaneSession, table: KnownTable, name: str, condition: str) -> list[Values]:
    """The rows that a condition finds, locked. ``name``: the table's name, quoted."""
    columns = table.target.columns
    values = ", ".join(_as_hex(column) for column in columns)
    rows = session.rows(f"SELECT {values} FROM {name} WHERE {condition} FOR UPDATE")
    return [{column.name: _from_hex(column, value) for column, value in zip(columns, row, strict=True)} for row in rows]


def key_in(table: KnownTable, row: Values) -> Values:
    """The primary key of a found row."""
    return {name: row[name] for number in table.bound.primary_key for name in [table.target.columns[number].name]}


def key_of(table: KnownTable, image: Image) -> Values:
    """The primary key of a logged row."""
    return spelled(table, image, table.bound.primary_key)


def spelled(table: KnownTable, image: Image, columns: Iterable[int]) -> Values:
    """The image's values of ``columns``, without absent ones, as text."""
    values: dict[str, str | None] = {}
    for number in columns:
        column, value = table.bound.columns[number], image[number]
        if isinstance(value, Absent):
            continue
        text = decode_text(value, column.charset) if isinstance(value, bytes) and column.is_text else None
        if text is None:
            text = f"0x{value.hex().upper()}" if isinstance(value, bytes) else spell(column, value)
        values[column.label] = text
    return values


def is_full(table: KnownTable, image: Image) -> bool:
    """Whether the image has every column that a statement sets."""
    return not any(isinstance(image[number], Absent | JsonDiffs) for number in table.bound.written)


def _as_hex(column: TargetColumn) -> str:
    """An expression for the column's value that no character set of the connection can change."""
    shown = sql_type(column.data_type).shown
    return shown.format(name=identifier(column.name), length=_SHOWN + 1)


def _from_hex(column: TargetColumn, value: object) -> str | None:
    if value is None:
        return None
    shown = sql_type(column.data_type).shown
    if shown in (DisplayForm.BYTES, DisplayForm.WHOLE):
        return _cut(f"0x{value}", 2 * _SHOWN + 2)
    text = bytes.fromhex(str(value)).decode("utf-8", "replace")
    return spell_float(float(text)) if shown is DisplayForm.SINGLE else _cut(text, _SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}... (cut)"
