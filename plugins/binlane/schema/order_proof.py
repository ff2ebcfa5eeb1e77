"""Whether two servers with these definitions take the rows of a block in an order that leaves the same.

Columns that order the rows, or that a condition fixes, give all columns of a table of which they hold a unique key, and
equalities give columns of the next table. Rows that have equal values in all that is taken of them may change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from binlane.model import TableKey
from binlane.schema.common_values import (
    OUTSIDE,
    CommonValues,
    Place,
    Tables,
    all_of,
    definition_of,
    differs,
    given_by,
    is_column,
    is_cut,
    place_of,
    takes_for_equal,
)
from binlane.schema.derived_tables import COMPUTED_TYPE, DERIVED, tables_of
from binlane.schema.model import Column as Definition
from binlane.schema.model import KeyColumn, Table
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, Column, Source, own_tokens
from binlane.sql.parse.row_order import COMPUTED, TEXT, OrderedPart, Proof

_NO_COLUMNS: Final = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND", "DATE", "TIME", "DATETIME"}
    | {"TIMESTAMP", "CHAR", "NCHAR", "BINARY", "SIGNED", "UNSIGNED", "INTEGER", "DECIMAL", "DOUBLE", "FLOAT", "REAL"}
    | {"JSON", "BOTH", "LEADING", "TRAILING"}
)
"""Words in place of an argument: units, types, and sides."""
_JOINED: Final = frozenset({"IN", "EXISTS", "ANY", "SOME", "ALL"})
"""Before a query that a server may join with the table in front of it, and so read first."""
PARTITIONED: Final = "innodb in partitions"
"""In place of an engine: the rows are read partition by partition."""


def is_settled(part: OrderedPart, table_of: Callable[[TableKey], Table | None], fired: Table | None = None) -> bool:
    """Whether the order of the rows changes nothing. ``table_of``: a table's definition, with an engine if both servers
    read it in one way; None if it is not known. ``fired``: the table whose row has the names NEW and OLD."""
    tables = tables_of(part.block, table_of)
    bases = [(source, None if table is None or table.engine == DERIVED else table) for source, table in tables]
    if not tables or _feels_nothing(part, bases):
        return True
    block = part.block
    if part.proof >= Proof.TABLES and all(table is not None and _has_key(table) for _, table in tables):
        return True
    if part.proof >= Proof.SCAN and _is_one_scan(block, tables):
        return True
    if len({source.alias for source, _ in tables}) < len(tables):
        # names that differ in the case of their letters alone
        return False
    if block.is_part and not block.clauses.keys().isdisjoint(("ORDER", "LIMIT", "FETCH")):
        # behind a UNION they are those of all its parts
        return False
    if part.by_items and block.orders_all and not _has_ties(part, tables):
        return True
    given = given_by(block, tables, part.columns, part.rows_of, fired)
    if part.needed is not None:
        # which of its equal values a column of GROUP BY shows is a part of its own
        grouped = {place for column in part.columns if (place := place_of(column, tables)) is not None}
        return all(
            place_of(column, tables) in grouped or _is_given(column, tables, given)
            for column in part.needed
            if is_column(column, tables)
        )
    return given.rows >= {source.alias for source, _ in tables} or _has_all_values(part, tables, given)


def _is_given(column: Column, tables: Tables, given: CommonValues) -> bool:
    place = place_of(column, tables)
    return place is not None and (place[0] == OUTSIDE or given.has_one(place, tables))


def has_one_row(block: Block, table_of: Callable[[TableKey], Table | None]) -> bool:
    """Whether a block takes one row at most, by the values that its text gives for unique keys, or by LIMIT 1, if its
    tokens have the text of numbers."""
    if block.is_part:
        return False
    if [token.text for token in block.clauses.get("LIMIT", ())] == ["1"]:
        return True
    tables = tables_of(block, table_of)
    names = {source.alias for source, _ in tables}
    return len(names) == len(tables) and given_by(block, tables).rows >= names


def _has_key(table: Table) -> bool:
    return table.engine.lower() in ("innodb", PARTITIONED) and table.primary_key is not None


def _is_one_scan(block: Block, tables: Tables) -> bool:
    """Whether there is one table, one index to read it by, and nothing that sorts the rows."""
    if len(tables) != 1 or (table := tables[0][1]) is None or not _has_key(table) or table.engine == PARTITIONED:
        return False
    if not block.clauses.keys().isdisjoint(("ORDER", "GROUP")):
        return False
    condition = {token.upper for token in block.clauses.get("WHERE", ())}
    if "SELECT" in condition and not condition.isdisjoint(_JOINED):
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


def _feels_nothing(part: OrderedPart, tables: Tables) -> bool:
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


def _has_ties(part: OrderedPart, tables: Tables) -> bool:
    """Whether a column is known to have different values that a sort takes for equal."""
    places = (place_of(column, tables) for column in part.used or ())
    found = (None if place is None else definition_of(place, tables) for place in places)
    known = (column for column in found if column is not None and column.data_type != COMPUTED_TYPE)
    return any(differs(column) or is_cut(column) for column in known)


def _type(column: Definition) -> str:
    return TEXT if takes_for_equal(column) else column.data_type


def _has_all_values(part: OrderedPart, tables: Tables, given: CommonValues) -> bool:
    """Whether rows in one place have the same values in all that is taken of them."""
    if any(table is None for _, table in tables):
        return False
    used: Iterable[Place | None] = (
        (place for source, table in tables if table is not None for place in all_of(source, table))
        if part.used is None
        else (place_of(column, tables) for column in part.used)
    )
    return all(given.has_one(place, tables) for place in used if place is not None and place[0] != OUTSIDE)
