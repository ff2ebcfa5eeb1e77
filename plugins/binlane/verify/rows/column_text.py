"""Columns as SQL expressions whose text is the same on both families, and keys as literals.

A row's checksum and its comparison use the same expressions (``binlog.types.sql_values``), so a difference in
the checksums is visible in the rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from binlane.binlog.types.charsets import decode_text
from binlane.binlog.types.decimals import spell_decimal
from binlane.binlog.types.json_typed import typed_json
from binlane.binlog.types.literals import identifier, quoted
from binlane.binlog.types.readers import Value
from binlane.binlog.types.sql_types import Arguments, sql_type
from binlane.binlog.types.sql_values import FLOAT, INTEGER, JSON, LARGE, NOT_COPIED, OPAQUE, STRING, TEXT, unsigned_zero
from binlane.errors import DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey, plural
from binlane.schema.model import Column, Generated, Table

Key = tuple[str, ...]
"""The texts of a primary key's values."""
Row = tuple[str | None, ...]
"""The texts of the values in a table's compared columns."""

_HASH: Final = re.compile(r"(\d+):([0-9a-f]{64})(\+\d+)?")
_EXACT_MEMBERS: Final = 53
_HASHED: Final = (LARGE, JSON, OPAQUE, NOT_COPIED)
"""Stand as length and SHA-256, the last two those of their hexadecimal digits; for JSON see ``json_typed``, too."""
_UNSEEN: Final = frozenset({Generated.VIRTUAL, Generated.ROW_START, Generated.ROW_END})
"""Computed when read, or set by the server itself, so not replicated."""


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table of both servers, prepared for comparison. ``source`` and ``target`` are its names there."""

    source: TableKey
    target: TableKey
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    """Columns of the primary key; empty: the table is compared as a whole."""
    flavors: tuple[Flavor, Flavor]
    types_json: bool = False
    """JSON is compared as ``json_typed`` has it: both servers are MySQL 8.0.14 or newer."""
    prefixed: frozenset[str] = frozenset()
    """Text columns of which the primary key has the first characters only. Under a collation that compares several
    characters as one (ß and ss), the order of such beginnings is not that of the values."""

    @property
    def has_ranges(self) -> bool:
        """Whether the order in which an index has the keys is proven to be that in which a condition compares them, so
        that a range of keys, which is read by the index, has all of its rows.

        FLOAT and DOUBLE: their literals in conditions are not proven to be exact on either family.
        """
        inexact = any(sql_type(column.data_type).values is FLOAT for column in self.key)
        return bool(self.key) and not self.prefixed and not inexact

    @property
    def expressions(self) -> tuple[str, ...]:
        """One expression a column, in the order of the columns."""
        return tuple(
            typed_json(column.name) if self.types_json and column.data_type == "json" else self._expression(column)
            for column in self.columns
        )

    @property
    def row_expressions(self) -> tuple[str, ...]:
        """``expressions`` for reading rows: columns of ``by_value`` give their text itself."""
        return tuple(
            f"CAST({identifier(column.name)} AS CHAR CHARACTER SET utf8mb4)" if number in self.by_value else text
            for number, (column, text) in enumerate(zip(self.columns, self.expressions, strict=True))
        )

    @property
    def by_value(self) -> frozenset[int]:
        """JSON columns between two families: different texts may have one value (``binlog.types.json_equality``)."""
        json = (number for number, one in enumerate(self.columns) if one.data_type == "json")
        return frozenset(json if self._is_across else ())

    @property
    def key_expressions(self) -> tuple[str, ...]:
        """One expression a column of the key."""
        return tuple(self._expression(column, whole=True) for column in self.key)

    @property
    def _is_across(self) -> bool:
        return self.flavors[0] is not self.flavors[1]

    def _expression(self, column: Column, *, whole: bool = False) -> str:
        is_float = sql_type(column.data_type).values is FLOAT
        return unsigned_zero(column) if is_float and self._is_across else expression(column, whole=whole)

    @property
    def keys_are_logged(self) -> bool:
        """Whether a key decoded from the log has the text that a server returns."""
        return bool(self.key) and all(
            sql_type(column.data_type).values.is_exact and not column.compressed for column in self.key
        )


def compared(
    source: Table, target: Table, flavors: tuple[Flavor, Flavor], *, by_key: bool, types_json: bool = False
) -> ComparedTable:
    """The comparison of two matching tables; ``by_key``: both servers order the primary key's values alike."""
    columns = shown_columns(target)
    place = {column.name: column for column in columns}
    primary = target.primary_key
    names = () if primary is None or not by_key else tuple(part.name or "" for part in primary.columns)
    key = tuple(place[name] for name in names if name in place)
    is_usable = len(key) == len(names) and not any(map(_is_large_set, key))
    prefixed = frozenset(column.name for column in key if _is_prefixed(source, column) or _is_prefixed(target, column))
    return ComparedTable(source.key, target.key, columns, key if is_usable else (), flavors, types_json, prefixed)


def _is_prefixed(table: Table, column: Column) -> bool:
    """Whether the primary key has the first characters of this column. (A beginning of bytes is ordered as bytes.)"""
    parts = () if table.primary_key is None else table.primary_key.columns
    return column.charset is not None and any(
        part.prefix is not None and (part.name or "").lower() == column.name.lower() for part in parts
    )


def _is_large_set(column: Column) -> bool:
    """Whether servers find and order a SET inexactly by its number: as a double, and none with the 64th member."""
    return column.data_type == "set" and len(column.members) > _EXACT_MEMBERS


def key_shape(table: ComparedTable) -> str:
    """The primary key's definition: the key of a row belongs to it."""
    return ", ".join(
        f"{one.name} {one.data_type} {one.charset or ''} {one.collation or ''}".strip() for one in table.key
    )


def shown_columns(table: Table) -> tuple[Column, ...]:
    """The columns whose values are compared."""
    return tuple(column for column in table.columns if column.generated not in _UNSEEN)


def as_text(column: Column, value: str | None) -> str | None:
    """A value's text for an operator, as ``literals.spell`` has it: text in quotes, bytes as X'..', members by name."""
    if value is None:
        return None
    kind = sql_type(column.data_type)
    if (large := _HASH.fullmatch(value)) is not None and kind.values in _HASHED:
        length = int(large[1]) // (1 if kind.values in (LARGE, JSON) else 2)
        typed = "" if large[3] is None else ", with SQL values (dates, times, bytes)"
        return f"{plural(length, 'byte')} of SHA-256 {large[2][:12]}...{typed}"
    if kind.values in (STRING, LARGE):
        text = decode_text(bytes.fromhex(value), column.charset)
        return f"X'{value.lower()}'" if text is None else quoted(text)
    if kind.arguments is Arguments.MEMBERS and column.members:
        number = int(value)
        names = [name for at, name in enumerate(column.members) if number >> at & 1]
        if column.data_type == "enum":
            names = [column.members[number - 1]] if 0 < number <= len(column.members) else [""]
        return quoted(",".join(names))
    if column.data_type == "bit":
        return f"b'{int(value):b}'"
    return quoted(value) if kind.values in (TEXT, JSON) else value


def expression(column: Column, *, whole: bool = False) -> str:
    """The SQL expression for a column value's text. ``whole``: large values too, as hexadecimal digits."""
    return sql_type(column.data_type).values.compared(column, whole)


def key_text(column: Column, value: Value) -> str:
    """The text of a key's value from the log, decoded with ``text=False``, as ``expression`` gives it."""
    match value:
        case bytes():
            return value.hex().upper()
        case Decimal():
            return spell_decimal(value)
        case _:
            return str(value)


def is_key(table: ComparedTable, key: Key) -> bool:
    """Whether these texts can be those of a row's primary key: what was stored between two commands, or in a file, may
    have been changed there."""
    return len(key) == len(table.key) and all(map(_is_value, table.key, key))


def _is_value(column: Column, text: str) -> bool:
    return sql_type(column.data_type).values.keys.fullmatch(text) is not None


def literal(column: Column, text: str, flavor: Flavor) -> str:
    """A key's value as a literal for a condition on its column. Raises DriftError for a text that is none: whoever
    reads a stored key has asked ``is_key``, so a server has given it."""
    if not _is_value(column, text):
        raise DriftError(
            f"column {column.name}: expected the text of a {column.data_type} in a primary key, found {text[:60]!r}: "
            "nothing was read or written by it; look at what both servers answer to a SELECT of that column"
        )
    return sql_type(column.data_type).values.literal(column, text, flavor)


def behind(table: ComparedTable, key: Key, flavor: Flavor, *, up_to: bool = False) -> str:
    """The condition for keys after ``key``; ``up_to``: for keys up to and including it."""
    sign, values = ("<" if up_to else ">"), [literal(c, t, flavor) for c, t in zip(table.key, key, strict=True)]
    names = [identifier(column.name) for column in table.key]
    last = len(names) - 1
    branches = []
    for depth in range(len(names)):
        equal = [f"{names[n]} = {values[n]}" for n in range(depth)]
        own = sign + ("=" if up_to and depth == last else "")
        branches.append(" AND ".join([*equal, f"{names[depth]} {own} {values[depth]}"]))
    # the servers make an index range of the condition on the first column alone
    return f"({names[0]} {sign}= {values[0]} AND ({' OR '.join(f'({one})' for one in branches)}))"


def in_range(table: ComparedTable, after: Key | None, end: Key | None, flavor: Flavor) -> str:
    """The condition for keys after the first key, up to and including the second; empty for all of them."""
    parts = [] if after is None else [behind(table, after, flavor)]
    parts += [] if end is None else [behind(table, end, flavor, up_to=True)]
    return " AND ".join(parts)


def is_of(table: ComparedTable, shape: str | None) -> bool:
    """Whether a key that was stored with this definition of a primary key is one of the table, which may have had
    another one then."""
    return shape == key_shape(table)


def is_integer(column: Column) -> bool:
    """Whether a key's texts are those of integers."""
    return sql_type(column.data_type).values is INTEGER


def one_of(table: ComparedTable, keys: Sequence[Key], flavor: Flavor, *, ranges: bool = False) -> str:
    """The condition for rows with one of these keys, which are ``in_order``.

    ``ranges``: consecutive integers as one range, which servers read faster than its keys, and lock as a whole.
    """
    return _one_of(table, table.key, keys, flavor, ranges)


def _one_of(table: ComparedTable, columns: Sequence[Column], keys: Iterable[Key], flavor: Flavor, ranges: bool) -> str:
    *first, last = columns
    # of all keys with the same values before the last column, their last values
    last_of: dict[Key, list[str]] = defaultdict(list)
    for key in keys:
        last_of[key[:-1]].append(key[-1])
    if not first:
        return _one_of_texts(table, last, last_of[()], flavor, ranges and is_integer(last))
    # order lines 1 to 4 of many orders are one condition: servers read it at half the cost of a condition an order
    alike: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for before, texts in last_of.items():
        alike[tuple(texts)].append(before)
    of_last = ranges and is_integer(last)
    conditions = [
        f"{_one_of(table, first, befores, flavor, False)} AND {_one_of_texts(table, last, texts, flavor, of_last)}"
        for texts, befores in alike.items()
    ]
    return f"({' OR '.join(f'({one})' for one in conditions)})" if len(conditions) > 1 else conditions[0]


def _one_of_texts(table: ComparedTable, column: Column, texts: Sequence[str], flavor: Flavor, ranges: bool) -> str:
    name, single, conditions = identifier(column.name), [], []
    for begin, end in _runs(texts) if ranges else ((text, text) for text in texts):
        if begin == end:
            single.append(literal(column, begin, flavor))
        else:
            conditions.append(f"{name} BETWEEN {literal(column, begin, flavor)} AND {literal(column, end, flavor)}")
    if single:
        conditions.append(f"{name} IN ({', '.join(single)})")
    if column.name in table.prefixed:
        # the key is unique by its beginning: another row may have a value that the collation takes for this one
        conditions[0] += f" AND {expression(column, whole=True)} IN ({', '.join(map(quoted, texts))})"
    return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _runs(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """First and last of consecutive integers."""
    begin = end = texts[0]
    follower = int(end) + 1
    for text in texts[1:]:
        number = int(text)
        if number != follower:
            yield begin, end
            begin = text
        end, follower = text, number + 1
    yield begin, end
