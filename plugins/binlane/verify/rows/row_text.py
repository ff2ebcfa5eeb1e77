"""Compared rows for a person: ``id=7 note='text'``, with values as ``inspect --rows`` and error messages spell them.

A verification keeps strings as hexadecimal digits, members as numbers and large values as length and SHA-256
(``column_text``): the target's definition says what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from binlane.schema.model import Column, Table
from binlane.verify.rows.column_text import Key, Row, as_text, shown_columns

Values = tuple[tuple[str, str | None], ...]
"""Names of columns, each with its value as text; None is NULL."""
Changes = tuple[tuple[str, str | None, str | None], ...]
"""Names of columns, each with the target's value and the source's."""

_VALUE: Final = 80
"""Characters of a value that are shown; all of it is stored."""
_ROW: Final = 400
"""Of a whole row."""


def key_values(table: Table | None, key: Key) -> Values:
    """The primary key's columns; empty where the table is not the one that was compared, or has no primary key."""
    primary = None if table is None else table.primary_key
    if table is None or primary is None or len(primary.columns) != len(key):
        return ()
    columns = {column.name: column for column in table.columns}
    pairs = zip(primary.columns, key, strict=True)
    return tuple((part.name, as_text(columns[part.name], text)) for part, text in pairs if part.name in columns)


def changed_values(table: Table | None, source: Row | None, target: Row | None, columns: Sequence[str]) -> Changes:
    """The columns that differ where both sides have the row; all but the primary key's where only one has.

    Empty where the table is not the one that was compared.
    """
    shown = () if table is None else shown_columns(table)
    if table is None or any(side is not None and len(side) != len(shown) for side in (source, target)):
        return ()
    key = () if table.primary_key is None else {part.name for part in table.primary_key.columns}
    is_update = source is not None and target is not None
    wanted = set(columns) if is_update else {column.name for column in shown} - set(key)
    nothing: Row = (None,) * len(shown)
    return tuple(
        (column.name, as_text(column, theirs), as_text(column, ours))
        for column, theirs, ours in zip(shown, target or nothing, source or nothing, strict=True)
        if column.name in wanted
    )


def row_values(columns: Sequence[Column], row: Row) -> Values:
    """A whole row of these columns."""
    return tuple((column.name, as_text(column, text)) for column, text in zip(columns, row, strict=True))


def words(values: Iterable[tuple[str, str | None]]) -> str:
    """One line, cut; ``safe_text`` makes it safe for a terminal."""
    text = " ".join(f"{name}={shown(value)}" for name, value in values)
    return text if len(text) <= _ROW else f"{text[:_ROW]}..."


def shown(value: str | None) -> str:
    """A value, cut."""
    text = "NULL" if value is None else value
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}..."
