"""Whether two servers with these definitions take the rows of a block in an order that leaves the same.

Columns that order the rows, or that a condition fixes, give all columns of a table of which they hold a unique key, and
equalities give columns of the next table. Rows that have equal values in all that is taken of them may change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from binlane.model import TableKey
from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, Table
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.parse.query_blocks import Block, Column, Source
from binlane.sql.parse.row_order import TEXT, OrderedPart, Proof

_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit"})
_ANY_LITERAL: Final = (TokenKind.NUMBER, TokenKind.STRING)
_OUTSIDE: Final = ""
"""In place of a table's alias: a value of the query around the block, or of a row that fires a trigger."""
_Place: TypeAlias = tuple[str, str]
"""A table's alias and its column's name."""
_Tables: TypeAlias = Sequence[tuple[Source, Table | None]]
_FLOATS: Final = ("float", "double")


def is_settled(part: OrderedPart, table_of: Callable[[TableKey], Table | None]) -> bool:
    """Whether the order of the rows changes nothing. ``table_of``: a table's definition; None if it is not known."""
    tables = [(each, None if each.table is None else table_of(each.table)) for each in part.block.sources]
    if not tables or _feels_nothing(part, tables):
        return True
    block = part.block
    if part.proof >= Proof.TABLES and all(table is not None and _has_key(table) for _, table in tables):
        return True
    if part.proof >= Proof.SCAN and not block.has_order and _is_one_scan(block, tables):
        return True
    if block.is_part and block.has_order:
        # an ORDER BY behind a UNION is that of all its parts
        return False
    if part.by_items and block.orders_all and not _has_texts(part, tables):
        return True
    given = _given(part, tables)
    if part.needed is not None:
        # a query in parentheses is taken for one that gives each row once
        places = (_place(column, tables) for column in part.needed)
        return all(place is None or place[0] == _OUTSIDE or place in given for place in places)
    if all(table is not None and _all_of(source, table) <= given for source, table in tables):
        return True
    return _has_all_values(part, tables, given)


def _has_key(table: Table) -> bool:
    return table.engine.lower() == "innodb" and table.primary_key is not None


def _is_one_scan(block: Block, tables: _Tables) -> bool:
    """Whether there is one table, and one index to read it by."""
    if len(tables) != 1 or (table := tables[0][1]) is None or not _has_key(table):
        return False
    return "WHERE" not in block.clauses or len(table.keys) == 1


def _feels_nothing(part: OrderedPart, tables: _Tables) -> bool:
    """Whether the types of the columns are others than those that feel the order."""
    if not part.only_of_types:
        return False
    found = list[Definition]()
    for column in part.used or ():
        for source, table in tables:
            if table is not None and column.qualifier in ("", source.alias):
                found += (each for each in table.columns if each.name.lower() == column.name)
    return not any(_type(each) in part.only_of_types for each in found)


def _has_texts(part: OrderedPart, tables: _Tables) -> bool:
    """Whether a column is known to be a text of which a collation takes different values for equal."""
    found = (_definition(place, tables) for column in part.used or () if (place := _place(column, tables)) is not None)
    return any(column is not None and _takes_for_equal(column) for column in found)


def _type(column: Definition) -> str:
    return TEXT if _takes_for_equal(column) else column.data_type


def _takes_for_equal(column: Definition) -> bool:
    return column.charset is not None and not (column.collation or "").endswith("_bin")


def _given(part: OrderedPart, tables: _Tables) -> set[_Place]:
    """The columns of which the rows in one place have one value."""
    given = {place for place in (_place(column, tables) for column in part.columns) if place is not None}
    for source, table in tables:
        if source.alias in part.rows_of and table is not None:
            given |= _all_of(source, table)
    pairs, not_null = list[tuple[_Place, _Place]](), set[_Place]()
    for place, other in _known_equalities(part.block, tables):
        not_null.add(place)
        if other is None:
            given.add(place)
        else:
            pairs.append((place, other))
    while True:
        more = {right for left, right in pairs if left in given}
        for source, table in tables:
            if table is not None and any(_holds(key, source, table, given, not_null) for key in table.keys):
                more |= _all_of(source, table)
        if more <= given:
            return given
        given |= more


def _known_equalities(block: Block, tables: _Tables) -> Iterator[tuple[_Place, _Place | None]]:
    """Columns that equal another one, or, with None, one value for all rows."""
    for column, other in block.equalities:
        place = _place(column, tables)
        if place is None or place[0] == _OUTSIDE:
            continue
        if not isinstance(other, Column):
            if _fits(_definition(place, tables), other):
                yield place, None
            continue
        same = _place(other, tables)
        if same is not None and _are_alike(place, same, tables):
            yield place, None if same[0] == _OUTSIDE else same


def _holds(key: Key, source: Source, table: Table, given: set[_Place], not_null: set[_Place]) -> bool:
    """Whether columns tell the rows of a table apart by a key."""
    if not key.unique or not all(part.name is not None for part in key.columns):
        return False
    for part in key.columns:
        name = (part.name or "").lower()
        column = next((each for each in table.columns if each.name.lower() == name), None)
        place = source.alias, name
        if column is None or place not in given or (column.nullable and not key.primary and place not in not_null):
            return False
    return True


def _all_of(source: Source, table: Table) -> set[_Place]:
    return {(source.alias, column.name.lower()) for column in table.columns}


def _place(column: Column, tables: _Tables) -> _Place | None:
    """Where a column is; None if it is none, or if nobody can tell."""
    if column.qualifier:
        if any(source.alias == column.qualifier for source, _ in tables):
            known = next(table for source, table in tables if source.alias == column.qualifier)
            is_there = known is not None and any(each.name.lower() == column.name for each in known.columns)
            return (column.qualifier, column.name) if is_there else None
        return _OUTSIDE, f"{column.qualifier}.{column.name}"
    found = [
        (source.alias, column.name)
        for source, table in tables
        if table is not None and any(each.name.lower() == column.name for each in table.columns)
    ]
    return found[0] if found else None


def _definition(place: _Place, tables: _Tables) -> Definition | None:
    known = next((table for source, table in tables if source.alias == place[0]), None)
    return None if known is None else next((each for each in known.columns if each.name.lower() == place[1]), None)


def _are_alike(one: _Place, other: _Place, tables: _Tables) -> bool:
    """Whether a value of one column equals one value of the other at most."""
    left, right = _definition(one, tables), _definition(other, tables)
    if left is None or right is None:
        return _OUTSIDE in (one[0], other[0])
    if {left.data_type, right.data_type} <= _NUMBERS:
        return True
    return (left.data_type, left.collation) == (right.data_type, right.collation) or (
        None not in (left.collation, right.collation) and left.collation == right.collation
    )


def _fits(column: Definition | None, kind: TokenKind) -> bool:
    """Whether a literal equals one value of the column at most: many texts equal the number 0."""
    if column is None:
        return False
    return kind is TokenKind.STRING or (kind in _ANY_LITERAL and column.charset is None)


def _has_all_values(part: OrderedPart, tables: _Tables, given: set[_Place]) -> bool:
    """Whether rows in one place have equal values in all that is taken of them."""
    if any(table is None for _, table in tables):
        return False
    used: Iterable[_Place | None] = (
        (place for source, table in tables if table is not None for place in _all_of(source, table))
        if part.used is None
        else (_place(column, tables) for column in part.used)
    )
    definitions = [(place, _definition(place, tables)) for place in used if place is not None and place[0] != _OUTSIDE]
    return all(
        place in given
        and column is not None
        and not _takes_for_equal(column)
        and column.data_type not in ("float", "double")
        for place, column in definitions
    )
