"""The definitions of what queries give as tables: derived tables, those of WITH clauses, and views.

A query gives each row once for the columns of its GROUP BY or DISTINCT, and for a unique key of its tables if its joins
add nothing to the rows of that key. For all others nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from binlane.model import TableKey, number_of
from binlane.schema.common_values import (
    OUTSIDE,
    UNKNOWN_CHARSET,
    Place,
    Tables,
    definition_of,
    given_by,
    place_of,
)
from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, KeyColumn, Table
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import (
    Block,
    Column,
    Query,
    blocks_of,
    call_end,
    items,
    own_tokens,
    plain_column,
    without_alias,
    without_modifiers,
)
from binlane.sql.parse.row_order import has_aggregate

DERIVED: Final = "derived"
"""In place of an engine: the rows are those of a query."""
COMPUTED_TYPE: Final = ""
"""The type of an expression of which nothing is known."""
_TYPES: Final = {
    **dict.fromkeys(("COUNT", "BIT_COUNT", "LENGTH", "CHAR_LENGTH", "ROW_NUMBER", "RANK", "DENSE_RANK"), "bigint"),
    **dict.fromkeys(("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR"), "int"),
    **dict.fromkeys(("HOUR", "MINUTE", "SECOND", "DATEDIFF", "TO_DAYS", "YEARWEEK", "WEEKDAY"), "int"),
    **dict.fromkeys(("DATE", "LAST_DAY", "CURDATE", "FROM_DAYS"), "date"),
}
"""The types of functions whose arguments do not matter."""
_SUMS: Final = frozenset({"SUM", "AVG"})
_OF_ARGUMENT: Final = frozenset({"MIN", "MAX", "ANY_VALUE", "FIRST_VALUE", "LAST_VALUE"})
_EXACT: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit"})
_LITERALS: Final = (TokenKind.NUMBER, TokenKind.STRING)
_DISTINCT: Final = ("DISTINCT", "DISTINCTROW")


class _Output(NamedTuple):
    """An element of a select list."""

    name: str
    """In lower case; "" for one that no other query can name."""
    expression: Sequence[Token]
    place: Place | None
    """The column that it is, if it is one."""
    definition: Definition


def tables_of(block: Block, table_of: Callable[[TableKey], Table | None]) -> Tables:
    """The tables of a block, those of queries among them; None for those of which nothing is known."""
    return [
        (each, table_of(each.table) if each.table is not None else _of_query(each.query, table_of))
        for each in block.sources
    ]


def derived_table(key: TableKey, query: Query, table_of: Callable[[TableKey], Table | None]) -> Table | None:
    """What a query gives as a table, with keys that hold for certain; None if its columns are not known."""
    found = [each for each in blocks_of(query) if each.is_top]
    if not query.is_plain or len(found) != 1 or found[0].is_part or found[0].verb != "SELECT":
        return None
    block = found[0]
    tables = tables_of(block, table_of)
    outputs = _outputs(block, tables)
    if outputs is None:
        return None
    columns = tuple(replace(each.definition, name=each.name, ordinal=at) for at, each in enumerate(outputs, 1))
    return Table(key, DERIVED, columns, tuple(_keys(block, tables, outputs)))


def _of_query(query: Query | None, table_of: Callable[[TableKey], Table | None]) -> Table | None:
    return None if query is None else derived_table(TableKey(query.database, ""), query, table_of)


def _outputs(block: Block, tables: Tables) -> list[_Output] | None:
    found = list[_Output]()
    for item in map(without_modifiers, items(block.clauses["SELECT"])):
        expression = without_alias(item)
        if expression and is_symbol(expression[-1], "*"):
            qualifier = expression[0].text.lower() if len(expression) == 3 else ""
            if len(expression) not in (1, 3):
                return None
            for source, table in tables:
                if source.may_be(qualifier):
                    if table is None:
                        return None
                    found += (
                        _Output(each.name.lower(), (), (source.alias, each.name.lower()), each)
                        for each in table.columns
                    )
            continue
        column = plain_column(expression)
        place = None if column is None else place_of(column, tables)
        known = None if place is None else definition_of(place, tables)
        name = item[-1].text.lower() if len(expression) < len(item) else "" if column is None else column.name
        found.append(_Output(name, expression, place if known else None, known or _computed(expression, tables)))
    return found


def _computed(expression: Sequence[Token], tables: Tables) -> Definition:
    """The definition of an expression, as far as its type is certain."""
    unknown = Definition("", 0, COMPUTED_TYPE, charset=UNKNOWN_CHARSET)
    is_call = len(expression) > 2 and is_symbol(expression[1], "(") and call_end(expression, 1) == len(expression) - 1
    if not is_call:
        return unknown
    name, inner = expression[0].upper, plain_column(expression[2:-1])
    if name in _TYPES:
        return Definition("", 0, _TYPES[name])
    place = None if inner is None else place_of(inner, tables)
    argument = None if place is None else definition_of(place, tables)
    if argument is not None and name in _OF_ARGUMENT:
        return argument
    if argument is not None and name in _SUMS and argument.data_type in _EXACT:
        return Definition("", 0, "decimal")
    return unknown


def _keys(block: Block, tables: Tables, outputs: Sequence[_Output]) -> Iterator[Key]:
    names = {source.alias for source, _ in tables}
    chosen = own_tokens(block.clauses["SELECT"])
    limit = [token.text for token in block.clauses.get("LIMIT", ())]
    if limit == ["1"] or (has_aggregate(chosen) and "GROUP" not in block.clauses):
        yield _key(())
    if chosen and chosen[0].upper in _DISTINCT and all(each.name for each in outputs):
        yield _key([each.name for each in outputs])
    if "GROUP" in block.clauses and (grouped := _grouped(block, tables, outputs)) is not None:
        yield grouped
    if OUTSIDE in names or len(names) < len(tables):
        return
    plain = {each.place: each.name for each in outputs if each.place is not None and each.name}
    candidates = [(), tuple(plain)]
    for source, table in tables:
        for key in () if table is None else table.keys:
            candidates.append(tuple((source.alias, (part.name or "").lower()) for part in key.columns))
    for places in dict.fromkeys(candidates):
        columns = [Column(*place) for place in places]
        if all(place in plain for place in places) and given_by(block, tables, columns).rows >= names:
            yield _key([plain[place] for place in places])


def _key(names: Sequence[str], *, has_null: bool = False) -> Key:
    """Rows with NULL are told apart, too, unless ``has_null``: as in a primary key."""
    return Key("", unique=True, primary=not has_null, columns=tuple(map(KeyColumn, names)))


def _grouped(block: Block, tables: Tables, outputs: Sequence[_Output]) -> Key | None:
    """The columns by which the rows are grouped, if all are given away."""
    names, words = list[str](), block.clauses["GROUP"][1:]
    has_rollup = any(token.upper in ("ROLLUP", "CUBE") for token in words)
    for item in items(words):
        while item and item[-1].upper in ("ASC", "DESC", "ROLLUP", "WITH"):
            item = item[:-1]
        found = _output_of(item, tables, outputs)
        if found is None or not found.name:
            return None
        names.append(found.name)
    return _key(names, has_null=has_rollup)


def _output_of(item: Sequence[Token], tables: Tables, outputs: Sequence[_Output]) -> _Output | None:
    if len(item) == 1 and item[0].kind is TokenKind.NUMBER:
        number = number_of(item[0].text) if item[0].text.isdigit() else 0
        return outputs[number - 1] if 0 < number <= len(outputs) else None
    column = plain_column(item)
    place = None if column is None else place_of(column, tables)
    if column is not None and place is not None and place[0] != OUTSIDE:
        return next((each for each in outputs if each.place == place), None)
    if column is not None:
        # the name of an expression, which a column of an unknown table may have, too
        is_known = all(table is not None for _, table in tables)
        return next((each for each in outputs if is_known and each.name == column.name), None)
    if any(token.kind in _LITERALS for token in item):
        # these have no text
        return None
    texts = [token[:2] for token in item]
    return next((each for each in outputs if [token[:2] for token in each.expression] == texts), None)
