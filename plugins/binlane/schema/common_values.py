"""Which values and rows of tables a query's rows have in common, by what its text fixes, by unique keys, and by
equalities."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, Table
from binlane.sql.parse.cursor import RESERVED
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.parse.query_blocks import Block, Column, OuterJoin, Source
from binlane.sql.parse.row_order import FLOATS

_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit"})
_ANY_LITERAL: Final = (TokenKind.NUMBER, TokenKind.STRING)
OUTSIDE: Final = ""
"""In place of a table's alias: a value of the query around the block, or of a row that fires a trigger."""
Place: TypeAlias = tuple[str, str]
"""A table's alias and its column's name."""
Tables: TypeAlias = Sequence[tuple[Source, Table | None]]
_STRINGS: Final = frozenset(
    {"char", "varchar", "binary", "varbinary", "json"}
    | {f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")}
)
_SORTED_OCTETS: Final = 1024
"""The servers' default of ``max_sort_length``: strings that begin with so many equal bytes are equal to a sort."""
_WORDS: Final = RESERVED | {"TRUE", "FALSE", "INTERVAL", "DIV", "MOD", "END"}
UNKNOWN_CHARSET: Final = ""
"""The character set of a text whose collation is not known."""


def takes_for_equal(column: Definition) -> bool:
    """Whether different values of a column may be equal: texts by their collation, 1 and 1.0 in MySQL's JSON."""
    if column.charset is None:
        return column.data_type == "json"
    collation = column.collation or ""
    # PAD SPACE: a CHAR has no blanks at its end, a VARCHAR has
    is_padded = column.data_type != "char" and not collation.endswith(("_nopad_bin", "_0900_bin"))
    return not collation.endswith("_bin") or is_padded


_PLAIN_WORD: Final = frozenset(f"{string.ascii_letters}{string.digits}_")
_PLAIN_ORDERS: Final = frozenset(
    {"bin", "nopad_bin", "general_ci", "general_nopad_ci", "unicode_ci", "unicode_nopad_ci", "unicode_520_ci"}
    | {f"{version}_{order}" for version in ("0900", "uca1400") for order in ("ai_ci", "as_ci", "as_cs", "bin")}
)
"""Ends of collations to which two letters of ASCII are equal only if they are one. To some languages i is y, or v w."""


def compared_text(column: Definition, text: str) -> str | None:
    """A text as a column compares it: no other one is equal to the column, and it has it as it is. None where that is
    not known: for other texts than words of ASCII, and by the collation of a language."""
    if not text or not _PLAIN_WORD.issuperset(text) or column.charset is None:
        return None
    order = (column.collation or "").partition("_")[2]
    if order not in _PLAIN_ORDERS and column.collation != "latin1_swedish_ci":
        return None
    found = text.lower()
    if column.data_type == "enum":
        return found if found in map(str.lower, column.members) else None
    is_whole = column.data_type in ("char", "varchar") and column.length is not None and len(text) <= column.length
    return found if is_whole else None


def is_cut(column: Definition) -> bool:
    """Whether a sort compares the beginning of its values alone."""
    is_unknown = column.charset == UNKNOWN_CHARSET and column.data_type not in ("enum", "set")
    is_string = column.data_type in _STRINGS or is_unknown
    return is_string and (column.octets is None or column.octets > _SORTED_OCTETS)


class CommonValues(NamedTuple):
    """What the rows in one place have in common."""

    columns: frozenset[Place]
    """They have equal values, which texts of other letters may be."""
    rows: frozenset[str]
    """Aliases of tables of which they have one row."""

    def has_one(self, place: Place, tables: Tables) -> bool:
        """Whether they have the same value of a column."""
        column = definition_of(place, tables)
        if place[0] in self.rows:
            return column is not None
        return place in self.columns and column is not None and not differs(column)


def differs(column: Definition) -> bool:
    """Whether equal values of a column may be different ones: texts, and -0 and 0 of floating-point numbers."""
    return takes_for_equal(column) or column.data_type in FLOATS


class _Pair(NamedTuple):
    """A column that has the value of another one, if some others are given, too."""

    value: Place
    column: Place
    felt: frozenset[Place] = frozenset()
    """Other columns by which an outer join decides whether the column is NULL."""


def given_by(
    block: Block,
    tables: Tables,
    columns: Sequence[Column] = (),
    rows_of: Sequence[Column] = (),
    fired: Table | None = None,
) -> CommonValues:
    """What rows with equal values in some columns have in common. ``rows_of``: they are of one row of these columns'
    tables, too. ``fired``: the table whose row has the names NEW and OLD."""
    ordered = ((place, definition_of(place, tables)) for column in columns if (place := place_of(column, tables)))
    given = {place for place, column in ordered if column is None or not is_cut(column)}
    changed = {place[0] for column in rows_of if (place := place_of(column, tables)) is not None} - {OUTSIDE}
    rows = set(changed)
    pairs, not_null = list[_Pair](), set[Place]()
    for each in block.equalities:
        place = place_of(each.column, tables)
        if place is None or place[0] == OUTSIDE:
            continue
        if not isinstance(each.other, Column):
            if _fits(definition_of(place, tables), each.other):
                given.add(place)
                not_null.add(place)
            continue
        if each.excludes_null:
            not_null.add(place)
        other = place_of(each.other, tables)
        if other is None and not is_column(each.other, tables):
            # a variable, or a parameter
            other = OUTSIDE, each.other.name
        if other is not None and _are_alike(place, other, tables, fired):
            # of a row that is one of the changed table's, the condition of its join holds
            outer = None if each.outer is None or not each.outer.nullable.isdisjoint(changed) else each.outer
            pairs += [_Pair(other, place)] if outer is None else _of_outer(other, place, outer, tables)
    while True:
        for source, table in tables:
            if table is not None and source.alias in rows:
                given |= all_of(source, table)
        more = {
            pair.column
            for pair in pairs
            if (pair.value in given or pair.value[0] == OUTSIDE) and all(each in given for each in pair.felt)
        } - given
        found = {
            source.alias
            for source, table in tables
            if table is not None and any(_holds(key, source, table, given, not_null) for key in table.keys)
        }
        if not more and found <= rows:
            return CommonValues(frozenset(given), frozenset(rows))
        given |= more
        rows |= found


def _of_outer(value: Place, column: Place, outer: OuterJoin, tables: Tables) -> Iterator[_Pair]:
    """The value of a row, and of the one that an outer join may find for it."""
    if column[0] not in outer.nullable or value[0] in outer.nullable:
        return
    places = [place_of(each, tables) for each in outer.felt if is_column(each, tables)]
    if all(place is not None for place in places):
        felt = (place for place in places if place is not None and place[0] not in {*outer.nullable, OUTSIDE})
        yield _Pair(value, column, frozenset(felt))


def _holds(key: Key, source: Source, table: Table, given: set[Place], not_null: set[Place]) -> bool:
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


def all_of(source: Source, table: Table) -> set[Place]:
    """All columns of a table."""
    return {(source.alias, column.name.lower()) for column in table.columns}


def place_of(column: Column, tables: Tables) -> Place | None:
    """Where a column is; None if it is none, or if nobody can tell."""
    may_be = [(source, table) for source, table in tables if source.may_be(column.qualifier)]
    if not may_be:
        return OUTSIDE, f"{column.qualifier}.{column.name}"
    found = [
        (source.alias, column.name)
        for source, table in may_be
        if table is not None and any(each.name.lower() == column.name for each in table.columns)
    ]
    return found[0] if found else None


def is_column(column: Column, tables: Tables) -> bool:
    """Whether a name may be a column's: of tables that are all known, no other word is."""
    if column.qualifier:
        return True
    is_known = all(table is not None for _, table in tables)
    return place_of(column, tables) is not None or not (is_known or column.name.upper() in _WORDS)


def definition_of(place: Place, tables: Tables) -> Definition | None:
    """A column's definition; None if its table is not known."""
    known = next((table for source, table in tables if source.alias == place[0]), None)
    return None if known is None else next((each for each in known.columns if each.name.lower() == place[1]), None)


def _are_alike(one: Place, other: Place, tables: Tables, fired: Table | None) -> bool:
    left, right = definition_of(one, tables), definition_of(other, tables)
    if other[0] == OUTSIDE:
        qualifier, _, name = other[1].rpartition(".")
        of_row = () if fired is None or qualifier not in ("new", "old") else fired.columns
        right = next((each for each in of_row if each.name.lower() == name), None)
        if right is None and left is not None:
            # many texts equal one number
            return left.charset is None
    return left is not None and right is not None and are_alike(left, right)


def are_alike(left: Definition, right: Definition) -> bool:
    """Whether a value of one column equals one value of the other at most."""
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
