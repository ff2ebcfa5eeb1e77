"""Whether a column has each value of another column as it is."""

from __future__ import annotations

from typing import Final

from binlane.schema.model import Column

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_DECIMAL: Final = "decimal"
_WITH_LENGTH: Final = ("char", "varchar", "binary", "varbinary")
_WITH_FRACTION: Final = ("time", "datetime", "timestamp")
_PADDED: Final = {"varchar": "char", "varbinary": "binary"}
"""Types that have the values of others as those are read: a CHAR without the blanks at its end, a BINARY with its
zeros. The other way round 'a' and 'a' with a zero become one."""


def scale_of(column: Column) -> int | None:
    """Digits behind the point of an exact number; None for another type, and where it is not known."""
    if column.data_type in _BITS or column.data_type in ("bit", "year"):
        return 0
    return column.scale if column.data_type == _DECIMAL else None


def keeps(column: Column, other: Column) -> bool:
    """Whether different values of ``other``, written into ``column``, are different there to a key of all of it.

    Not so where they are rounded, cut or clipped (also by IGNORE, and by a ``sql_mode`` that is not strict), where
    NULL becomes a value, or where another collation compares them.
    """
    if other.nullable and not column.nullable:
        return False
    if {column.data_type, other.data_type} & {_DECIMAL, *_BITS}:
        return _has_range(column, other)
    if other.data_type not in (column.data_type, _PADDED.get(column.data_type)):
        return False
    of_both = [
        (each.unsigned, each.charset, each.collation, each.members, each.precision, each.scale)
        for each in (column, other)
    ]
    is_known = column.charset is None or column.collation is not None
    size, needed = _size(column), _size(other)
    return is_known and of_both[0] == of_both[1] and size is not None and needed is not None and needed <= size


def holds(column: Column, number: int) -> bool:
    """Whether a number column has a whole number as it is."""
    values = _range(column)
    return values is not None and values[0] <= number <= values[1]


def _has_range(column: Column, other: Column) -> bool:
    ours, theirs = _range(column), _range(other)
    scale, needed = scale_of(column), scale_of(other)
    if ours is None or theirs is None or scale is None or needed is None:
        return False
    return ours[0] <= theirs[0] and theirs[1] <= ours[1] and needed <= scale


def _range(column: Column) -> tuple[int, int] | None:
    """The least and the greatest whole number."""
    if column.data_type in _BITS:
        values = 1 << _BITS[column.data_type]
        return (0, values - 1) if column.unsigned else (-values // 2, values // 2 - 1)
    if column.data_type != _DECIMAL or column.precision is None or column.scale is None:
        return None
    greatest = 10 ** (column.precision - column.scale) - 1
    return 0 if column.unsigned else -greatest, greatest


def _size(column: Column) -> int | None:
    """How long a value may be; None if that is not known, 0 for types that have one size."""
    kind = column.data_type.partition(" ")[0]
    if kind in _WITH_LENGTH:
        return column.length
    if kind in _WITH_FRACTION:
        return column.fsp
    return column.precision if kind == "bit" else 0
