"""Whether two servers with these definitions take the rows of a block in an order that leaves the same.

Columns that order the rows, or that a condition fixes, give all columns of a table of which they hold a unique key, and
equalities give columns of the next table. Rows that have equal values in all that is taken of them may change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from binlane.model import TableKey
from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, KeyColumn, Table
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, Column, Source, own_tokens
from binlane.sql.parse.row_order import COMPUTED, FLOATS, TEXT, OrderedPart, Proof

_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit"})
_ANY_LITERAL: Final = (TokenKind.NUMBER, TokenKind.STRING)
_OUTSIDE: Final = ""
"""In place of a table's alias: a value of the query around the block, or of a row that fires a trigger."""
_Place: TypeAlias = tuple[str, str]
"""A table's alias and its column's name."""
_Tables: TypeAlias = Sequence[tuple[Source, Table | None]]
_STRINGS: Final = frozenset(
    {"char", "varchar", "binary", "varbinary", "json"}
    | {f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")}
)
_SORTED_OCTETS: Final = 1024
"""The servers' default of ``max_sort_length``: strings that begin with so many equal bytes are equal to a sort."""
_NO_COLUMNS: Final = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "DATE", "TIME", "DATETIME"}
    | {"TIMESTAMP", "CHAR", "NCHAR", "BINARY", "SIGNED", "UNSIGNED", "INTEGER", "DECIMAL", "DOUBLE", "FLOAT", "REAL"}
    | {"JSON", "BOTH", "LEADING", "TRAILING"}
)
"""Words in place of an argument: units, types, and sides."""
UNKNOWN_CHARSET: Final = ""
"""The character set of a text whose collation is not known."""


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
    if len({source.alias for source, _ in tables}) < len(tables):
        # names that differ in the case of their letters alone
        return False
    if block.is_part and block.has_order:
        # an ORDER BY behind a UNION is that of all its parts
        return False
    if part.by_items and block.orders_all and not _has_ties(part, tables):
        return True
    given = _given(part, tables)
    if part.needed is not None:
        # a query in parentheses is taken for one that gives each row once
        places = (_place(column, tables) for column in part.needed)
        return all(place is None or place[0] == _OUTSIDE or given.has_one(place, tables) for place in places)
    return given.rows >= {source.alias for source, _ in tables} or _has_all_values(part, tables, given)


def has_one_row(block: Block, table_of: Callable[[TableKey], Table | None]) -> bool:
    """Whether a block takes one row at most, by the values that its text gives for unique keys, or by LIMIT 1, if its
    tokens have the text of numbers."""
    if block.is_part:
        return False
    if [token.text for token in block.clauses.get("LIMIT", ())] == ["1"]:
        return True
    tables = [(each, None if each.table is None else table_of(each.table)) for each in block.sources]
    names = {source.alias for source, _ in tables}
    return len(names) == len(tables) and _given(OrderedPart("rows", block), tables).rows >= names


def _has_key(table: Table) -> bool:
    return table.engine.lower() == "innodb" and table.primary_key is not None


def _is_one_scan(block: Block, tables: _Tables) -> bool:
    """Whether there is one table, and one index to read it by."""
    if len(tables) != 1 or (table := tables[0][1]) is None or not _has_key(table):
        return False
    if len(table.keys) == 1:
        return True
    if block.verb != "SELECT":
        return "WHERE" not in block.clauses
    # a query is read by any index that has all of its columns
    return block.clauses.keys() <= {"SELECT", "FROM"} and _needs_rows(block, tables[0][0], table)


def _needs_rows(block: Block, source: Source, table: Table) -> bool:
    """Whether no secondary index has all columns that the select list takes for certain."""
    taken = frozenset(_taken(own_tokens(block.clauses["SELECT"]), source, table))
    primary = {_name(part) for key in table.keys if key.primary for part in key.columns}
    secondary = (key for key in table.keys if not key.primary)
    return all(not taken <= primary.union(map(_name, key.columns)) for key in secondary)


def _taken(chosen: Sequence[Token], source: Source, table: Table) -> Iterator[str]:
    """The columns that a select list certainly reads. A name that may be another one, an alias for example, is left
    out."""
    if any(token.upper == "DEFAULT" for token in chosen):
        return
    names = {column.name.lower() for column in table.columns}
    for at, token in enumerate(chosen):
        before = chosen[at - 1] if at else None
        if before is not None and (before.kind is not TokenKind.SYMBOL or is_symbol(before, ")", ".")):
            continue
        last = at
        if at + 2 < len(chosen) and is_symbol(chosen[at + 1], ".") and token.text.lower() == source.alias:
            last = at + 2
        behind = chosen[last + 1] if last + 1 < len(chosen) else None
        if (
            is_symbol(chosen[last], "*")
            and (before is None or last > at)
            and (behind is None or is_symbol(behind, ","))
        ):
            yield from names
        is_name = chosen[last].kind in (TokenKind.WORD, TokenKind.NAME)
        is_other = last == at and token.upper in _NO_COLUMNS
        if is_name and not is_other and not (behind is not None and is_symbol(behind, "(", ".")):
            yield from {chosen[last].text.lower()} & names


def _name(part: KeyColumn) -> str:
    """The column that an index has in full."""
    return "" if part.name is None or part.prefix is not None else part.name.lower()


def _feels_nothing(part: OrderedPart, tables: _Tables) -> bool:
    """Whether the types of the columns are others than those that feel the order."""
    if not part.only_of_types:
        return False
    found = list[Definition]()
    if part.used is None:
        found += (each for _, table in tables if table is not None for each in table.columns)
    for column in part.used or ():
        for source, table in tables:
            if table is not None and source.may_be(column.qualifier):
                found += (each for each in table.columns if each.name.lower() == column.name)
    if COMPUTED in part.only_of_types:
        return not found
    return not any(_type(each) in part.only_of_types or each.data_type in part.only_of_types for each in found)


def _has_ties(part: OrderedPart, tables: _Tables) -> bool:
    """Whether a column is known to have different values that a sort takes for equal."""
    found = (_definition(place, tables) for column in part.used or () if (place := _place(column, tables)) is not None)
    return any(column is not None and (_differs(column) or _is_cut(column)) for column in found)


def _type(column: Definition) -> str:
    return TEXT if _takes_for_equal(column) else column.data_type


def _takes_for_equal(column: Definition) -> bool:
    """Whether different values of a column may be equal: texts by their collation, 1 and 1.0 in MySQL's JSON."""
    if column.charset is None:
        return column.data_type == "json"
    collation = column.collation or ""
    # PAD SPACE: a CHAR has no blanks at its end, a VARCHAR has
    is_padded = column.data_type != "char" and not collation.endswith(("_nopad_bin", "_0900_bin"))
    return not collation.endswith("_bin") or is_padded


def _is_cut(column: Definition) -> bool:
    """Whether a sort compares the beginning of its values alone."""
    is_unknown = column.charset == UNKNOWN_CHARSET and column.data_type not in ("enum", "set")
    is_string = column.data_type in _STRINGS or is_unknown
    return is_string and (column.octets is None or column.octets > _SORTED_OCTETS)


class _CommonValues(NamedTuple):
    """What the rows in one place have in common."""

    columns: frozenset[_Place]
    """They have equal values, which texts of other letters may be."""
    rows: frozenset[str]
    """Aliases of tables of which they have one row."""

    def has_one(self, place: _Place, tables: _Tables) -> bool:
        """Whether they have the same value of a column."""
        column = _definition(place, tables)
        if place[0] in self.rows:
            return column is not None
        return place in self.columns and column is not None and not _differs(column)


def _differs(column: Definition) -> bool:
    """Whether equal values of a column may be different ones: texts, and -0 and 0 of floating-point numbers."""
    return _takes_for_equal(column) or column.data_type in FLOATS


def _given(part: OrderedPart, tables: _Tables) -> _CommonValues:
    ordered = ((place, _definition(place, tables)) for column in part.columns if (place := _place(column, tables)))
    given = {place for place, column in ordered if column is None or not _is_cut(column)}
    rows = {place[0] for column in part.rows_of if (place := _place(column, tables)) is not None} - {_OUTSIDE}
    pairs, not_null = list[tuple[_Place, _Place]](), set[_Place]()
    for place, other in _known_equalities(part.block, tables):
        not_null.add(place)
        if other is None:
            given.add(place)
        else:
            pairs.append((place, other))
    while True:
        for source, table in tables:
            if table is not None and source.alias in rows:
                given |= _all_of(source, table)
        more = {right for left, right in pairs if left in given} - given
        found = {
            source.alias
            for source, table in tables
            if table is not None and any(_holds(key, source, table, given, not_null) for key in table.keys)
        }
        if not more and found <= rows:
            return _CommonValues(frozenset(given), frozenset(rows))
        given |= more
        rows |= found


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
        if column is None or place not in given:
            return False
        # equal texts may begin with letters that are not: ß and ss
        if part.prefix is not None and column.charset is not None:
            return False
        if column.nullable and not key.primary and place not in not_null:
            return False
    return True


def _all_of(source: Source, table: Table) -> set[_Place]:
    return {(source.alias, column.name.lower()) for column in table.columns}


def _place(column: Column, tables: _Tables) -> _Place | None:
    """Where a column is; None if it is none, or if nobody can tell."""
    may_be = [(source, table) for source, table in tables if source.may_be(column.qualifier)]
    if not may_be:
        return _OUTSIDE, f"{column.qualifier}.{column.name}"
    found = [
        (source.alias, column.name)
        for source, table in may_be
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
    if left.charset is None and right.charset is None:
        return left.data_type == right.data_type
    return left.collation is not None and left.collation == right.collation


def _fits(column: Definition | None, kind: TokenKind) -> bool:
    """Whether a literal equals one value of the column at most: many texts equal the number 0."""
    if column is None:
        return False
    return kind is TokenKind.STRING or (kind in _ANY_LITERAL and column.charset is None)


def _has_all_values(part: OrderedPart, tables: _Tables, given: _CommonValues) -> bool:
    """Whether rows in one place have the same values in all that is taken of them."""
    if any(table is None for _, table in tables):
        return False
    used: Iterable[_Place | None] = (
        (place for source, table in tables if table is not None for place in _all_of(source, table))
        if part.used is None
        else (_place(column, tables) for column in part.used)
    )
    return all(given.has_one(place, tables) for place in used if place is not None and place[0] != _OUTSIDE)
