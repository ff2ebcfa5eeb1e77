"""Row images -> values: the row changes of a ROWS event, column by column.

NULL is None; a column that is not in the image is ABSENT (``binlog_row_image`` MINIMAL and NOBLOB). ``sql_types`` has
the readers of single values.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from binlane.binlog.rows import Range, RowsEvent, RowsKind, image_ranges, partial_head
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, parse_diffs
from binlane.binlog.types.json_diffs import changed
from binlane.binlog.types.readers import Reader, Value
from binlane.binlog.types.sql_types import reader_of
from binlane.binlog.types.type_codes import ColumnType, LengthRule
from binlane.binlog.wire import type_name
from binlane.errors import BinlogError
from binlane.lazy_dataclass import dataclass


class Absent(Enum):
    """The type of ABSENT."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""The column is not in the image: its value is not known."""
Image = tuple[Value | Absent, ...]
"""One entry a column of the table."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row change."""

    kind: RowsKind
    before: Image | None
    """None for inserts."""
    after: Image | None
    """None for deletes."""


class RowDecoder:
    """Decodes the ROWS events of one TABLE_MAP."""

    def __init__(
        self,
        table: TableMap,
        columns: Sequence[Column],
        *,
        text: bool = True,
        whole_documents: bool = False,
        where: str = "",
    ) -> None:
        """``columns``: one for each column of the table; ``text`` as in ``reader_of``. ``whole_documents``, without
        ``text``: partial updates of JSON become the new document.

        Raises BinlogError for metadata that no server writes.
        """
        self._table = table
        self._columns = columns
        self.readers: Final = [self._reader(column, text, where) for column in columns]
        """One for each column."""
        self._text, self._whole_documents = text, whole_documents
        logged = table.column_length_spec(where)
        self.rules: Final = [column.length_rule(rule) for column, rule in zip(columns, logged, strict=True)]
        """The lengths of the columns' values."""
        self._json = [column.type_code == ColumnType.JSON for column in columns]

    def _reader(self, column: Column, text: bool, where: str) -> Reader:
        try:
            return reader_of(column, text=text)
        except KeyError:
            place = f"{where}{self._table.database}.{self._table.table}, column {column.label}"
            raise BinlogError(f"{place}: type {column.type_code} has no values in a log; it is damaged") from None

    def changes(self, event: RowsEvent, where: str = "") -> Iterator[Change]:
        """Every row change of the event. ``where`` begins every message.

        Raises BinlogError, with file, offset, table and column, if the event does not fit the table or a value is one
        that no server writes; UnsupportedEventError for columns of unknown length.
        """
        rows = bytes(event.rows)
        for before, after in image_ranges(event, self._table, where, self.rules):
            old = None if before is None else self._image(rows, before, event, event.columns_before, where, False)
            new = None if after is None else self._image(rows, after, event, event.columns_after, where, event.partial)
            if event.partial and self._whole_documents and old is not None and new is not None:
                new = self._with_documents(old, new, where)
            yield Change(event.kind, old, new)

    def _with_documents(self, old: Image, new: Image, where: str) -> Image:
        values = list(new)
        for number, diffs in enumerate(new):
            if isinstance(diffs, JsonDiffs):
                document, column = old[number], self._columns[number].label
                place = f"{where}{self._table.database}.{self._table.table}, column {column}: "
                if not isinstance(document, JsonDocument):
                    raise BinlogError(f"{place}JSON diffs without the document before them")
                try:
                    values[number] = JsonDocument(changed(document.root, diffs))
                except ValueError as exc:
                    raise BinlogError(f"{place}{exc}; the event is damaged") from exc
        return tuple(values)

    def _image(
        self, rows: bytes, place: Range, event: RowsEvent, bitmap: bytes | None, where: str, partial: bool
    ) -> Image:
        assert bitmap is not None
        at, json_diffs = place[0], b""
        name = f"{where}{type_name(event.type_code)}: {self._table.database}.{self._table.table}"
        if partial:
            json_diffs, at = partial_head(rows, at, self._table.json_columns, f"{name}: ")
        present = [number for number in range(event.width) if bitmap[number >> 3] >> (number & 7) & 1]
        nulls_at, at = at, at + (len(present) + 7) // 8
        values: list[Value | Absent] = [ABSENT] * event.width
        for position, number in enumerate(present):
            if rows[nulls_at + (position >> 3)] >> (position & 7) & 1:
                values[number] = None
                continue
            start, at = _value_range(rows, at, self.rules[number])
            try:
                values[number] = (
                    parse_diffs(rows[start:at], text=self._text)
                    if self._is_diff(number, json_diffs)
                    else self.readers[number](rows[start:at])
                )
            except (ValueError, struct.error) as exc:
                column = self._columns[number].label
                raise BinlogError(f"{name}, column {column}: {exc}; the event is damaged") from exc
        return tuple(values)

    def _is_diff(self, number: int, json_diffs: bytes) -> bool:
        """Whether the image has diffs for the column: the head has a bit for each JSON column of the table."""
        if not json_diffs or not self._json[number]:
            return False
        index = sum(self._json[:number])
        return bool(json_diffs[index >> 3] >> (index & 7) & 1)


def _value_range(rows: bytes, at: int, rule: LengthRule) -> Range:
    """Begin and end of the value at ``at``; ``image_ranges`` has checked that it is complete."""
    prefix, length = rule
    if prefix:
        length = int.from_bytes(rows[at : at + prefix], "little")
    return at + prefix, at + prefix + length
