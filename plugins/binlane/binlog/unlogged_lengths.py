"""Counts rows with TIME, DATETIME or TIMESTAMP columns with fractions in MariaDB 5.3's format.

A TABLE_MAP has the columns' types, and not the digits of their fractions, by which a value has one of four lengths. So
an event is divided into rows with each combination of lengths. If all that fit give the same number of rows, that is
its number, whatever the digits are; if they do not, the event is refused as before. The rows themselves are never taken
apart: the target's server reads them by the definition of its own table, as a replica does.
"""

from __future__ import annotations

import contextlib
from itertools import product
from math import prod
from typing import Final

from binlane.binlog.rows import RowsEvent, count_rows, image_ranges
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.type_codes import LengthRule
from binlane.errors import BinlogError

_MOST: Final = 1024
"""Combinations of lengths that are tried, at most."""


def may_have_fractions(table: TableMap) -> bool:
    """Whether the log does not tell the length of a column."""
    return any(LOGGED_TYPES[code].with_digits is not None for code in table.column_types)


def count_rows_of_any_length(event: RowsEvent, table: TableMap, where: str = "") -> tuple[int, bool]:
    """The number of rows that the event changes, and whether they are of the lengths that the log tells.

    Raises BinlogError as ``count_rows`` if the number cannot be told.
    """
    if event.partial or not may_have_fractions(table):
        return count_rows(event, table, where), True
    with contextlib.suppress(BinlogError):
        return _counted(event, table, table.column_length_spec()), True
    counts = _possible(event, table)
    if len(counts) != 1:
        return count_rows(event, table, where), True
    return counts.pop(), False


def _possible(event: RowsEvent, table: TableMap) -> set[int]:
    """The number of rows by each combination of lengths that fits."""
    choices = [_lengths(code, rule) for code, rule in zip(table.column_types, table.column_length_spec(), strict=True)]
    found = set[int]()
    if prod(map(len, choices)) > _MOST:
        return found
    for spec in product(*choices):
        try:
            found.add(_counted(event, table, spec))
        except BinlogError:
            continue
    return found


def _lengths(code: int, rule: LengthRule) -> list[LengthRule]:
    """The possible rules of a column."""
    digits = LOGGED_TYPES[code].with_digits
    return [rule] if digits is None else sorted({rule, *((0, length) for length in digits[0][1:])})


def _counted(event: RowsEvent, table: TableMap, spec: tuple[LengthRule, ...]) -> int:
    """Raises BinlogError if the event cannot be divided into such rows, each with a bitmap of NULLs as servers write
    it: with the bits behind those of the columns set, and those of columns that are NOT NULL not set."""
    count = 0
    masks = [None if each is None else _bitmap(each, table) for each in (event.columns_before, event.columns_after)]
    for images in image_ranges(event, table, "", spec):
        for image, mask in zip(images, masks, strict=True):
            if image is None or mask is None:
                continue
            length, known, expected = mask
            if int.from_bytes(event.rows[image[0] : image[0] + length], "little") & known != expected:
                raise BinlogError("no bitmap of NULLs")
        count += 1
    return count


def _bitmap(columns: bytes, table: TableMap) -> tuple[int, int, int]:
    """The bytes of an image's bitmap of NULLs, its bits that do not depend on the row, and what these are."""
    places = [at for at in range(table.width) if columns[at >> 3] >> (at & 7) & 1]
    length = (len(places) + 7) // 8
    unused = (1 << 8 * length) - (1 << len(places))
    nullable = table.null_bitmap
    filled = sum(1 << bit for bit, at in enumerate(places) if not nullable[at >> 3] >> (at & 7) & 1)
    return length, unused | filled, unused
