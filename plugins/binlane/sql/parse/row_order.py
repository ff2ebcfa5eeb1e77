"""Parts of a statement, or of a body behind one, whose result depends on the order in which a server takes rows.

The servers warn of some of them (1592: LIMIT, IGNORE, REPLACE, AUTO_INCREMENT, RAND) and log the others in MIXED format
as statements, too: variables that rows set in turn, window functions, GROUP_CONCAT and its like, columns beside a GROUP
BY, an UPDATE by a join that finds several rows. Whether the order is the same on every server, the tables' keys tell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, number_of
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind, is_floating
from binlane.sql.parse.query_blocks import (
    NO_QUERIES,
    Block,
    Column,
    Equality,
    Query,
    aliases,
    blocks,
    blocks_of,
    call_end,
    columns_in,
    items,
    order_columns,
    own_tokens,
    plain_column,
    without_alias,
)
from binlane.sql.parse.view_columns import has_other_names


class Proof(IntEnum):
    """What is enough to take the order for the same on two servers."""

    KEY = 1
    """The text orders the rows by a key: servers warn of these parts, and MIXED format logs rows for them."""
    SCAN = 2
    """Or there is one way to read the table: by its primary key."""
    TABLES = 3
    """Or all tables have a primary key: rows are taken in another order where the servers choose other indexes."""


@dataclass(frozen=True, slots=True)
class OrderedPart:
    """A part that feels the order of the rows of a block."""

    what: str
    block: Block
    columns: tuple[Column, ...] = ()
    """What orders or groups the rows for it."""
    used: tuple[Column, ...] | None = None
    """The columns whose values it takes; None: of whole rows."""
    proof: Proof = Proof.KEY
    rows_of: tuple[Column, ...] = ()
    """All columns of these columns' tables are given, too."""
    needed: tuple[Column, ...] | None = None
    """The columns that must be given, or be among those that group the rows; None: all of every table."""
    by_items: bool = False
    """It takes of the rows what the select list has, in the order of the block."""
    only_of_types: frozenset[str] = field(default_factory=frozenset)
    """Types of the columns in ``used`` that feel the order: others do not. ``TEXT`` is text of which a collation takes
    different values for equal."""


_OTHER_NAMES: Final = "columns of a view"
"""A clause of an UPDATE of a view whose columns have names that none of its tables has."""
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
TEXT: Final = "text by a collation"
FLOATS: Final = frozenset({"float", "double"})
_DIFFERENT: Final = frozenset({TEXT, *FLOATS})
"""Types whose equal values may differ: a collation takes texts for equal, and -0 equals 0."""
COMPUTED: Final = "an expression that computes values which may be equal and not the same"
_BYTES: Final = frozenset(
    {"char", "varchar", "binary", "varbinary", "enum", "set"}
    | {f"{size}{kind}" for size in ("tiny", "", "medium", "long") for kind in ("text", "blob")}
)
_FLOATING: Final = frozenset(
    {"DOUBLE", "FLOAT", "REAL", "POW", "POWER", "SQRT", "EXP", "LN", "LOG", "LOG2", "LOG10", "SIN", "COS", "TAN", "COT"}
    | {"ASIN", "ACOS", "ATAN", "ATAN2", "RADIANS", "DEGREES", "PI", "RAND"}
)
"""Functions and types that make an expression a floating-point number."""
_CHOOSES: Final = frozenset({"CASE", "IF", "ELT", "IFNULL", "COALESCE", "NVL", "NVL2", "MAKE_SET", "EXPORT_SET"})
_CUTS: Final = frozenset({"SUBSTRING", "SUBSTR", "MID", "LEFT", "RIGHT", "SUBSTRING_INDEX", "REGEXP_SUBSTR"})
_OTHER_TEXTS: Final = frozenset({"COLLATE", "USING", "CHAR", "NCHAR", "VARCHAR"})
"""Words that make a text by another collation."""
_PLACED: Final = frozenset({"ROW_NUMBER", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "NTILE"})
_LISTS: Final = frozenset({"GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "ST_COLLECT", "ANY_VALUE"})
_FLOAT_SUMS: Final = frozenset(
    {"SUM", "AVG", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"}
)
_EXTREMES: Final = frozenset({"MIN", "MAX"})
_AGGREGATES: Final = frozenset({"COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "GROUPING", *_FLOAT_SUMS, *_EXTREMES, *_LISTS})
_IN_TURN: Final = frozenset({"RAND", "NEXTVAL", "SETVAL"})
_TAKES_ROWS: Final = ("INSERT", "REPLACE", "CREATE")


BESIDE_GROUP: Final = "a column beside GROUP BY"
ViewOf: TypeAlias = Callable[[TableKey], Sequence[Token] | None]


def order_felt(
    tokens: Sequence[Token],
    database: str,
    *,
    full_group_by: bool,
    view_of: ViewOf = lambda _: None,
    is_body: bool = False,
) -> Iterator[OrderedPart]:
    """The parts of a statement, a query or a body. ``full_group_by``: its ``sql_mode`` takes no columns beside a GROUP
    BY. ``view_of``: the text of a view. ``is_body``: also a LIMIT of a query without ORDER BY, which another check
    refuses in statements."""
    for block in blocks(tokens, database):
        if not block.sources:
            continue
        if is_body and not _is_asked(block) and _takes_some(block):
            yield _limited(block)
        for find in _FINDERS:
            for part in find(block):
                yield part
                if part.only_of_types:
                    yield from _inside(part, view_of)
        for joined in of_tables(block, view_of):
            yield from _joined_update(joined)
        if not full_group_by:
            yield from _beside_group(block)
        if block.is_top and block.has_order and (sink := _sink(tokens)) is not None:
            yield OrderedPart(sink, block, block.ordered, _names(block), by_items=True)


def feeding(tokens: Sequence[Token], database: str) -> Iterator[Block]:
    """The blocks whose rows a statement changes, or takes to change others, one after the other."""
    return (each for each in blocks(tokens, database) if each.is_top)


def fed(block: Block) -> OrderedPart:
    """The rows that a block feeds to what takes them one after the other."""
    return OrderedPart("rows", block, block.ordered, _names(block), Proof.SCAN, by_items=True)


def whole(block: Block, what: str, proof: Proof = Proof.KEY) -> OrderedPart:
    """All that a block does, if each row feels the ones before it."""
    return OrderedPart(what, block, block.ordered, _names(block), proof)


def _sink(tokens: Sequence[Token]) -> str | None:
    """What of a statement with a query feels the query's order, by the text alone."""
    words = [token.upper for token in tokens]
    verb = next((word for word in words if word in ("INSERT", "REPLACE", "CREATE", "UPDATE", "DELETE")), "")
    begin = words.index(verb) if verb else 0
    end = next((at for at, word in enumerate(words) if at > begin and word in ("SELECT", "SET", "WITH")), len(words))
    head = words[begin:end]
    if verb == "REPLACE" or (verb == "CREATE" and "REPLACE" in head[3:]):
        return "REPLACE ... SELECT"
    if "IGNORE" in head and verb != "DELETE":
        return f"{verb} IGNORE"
    if verb == "CREATE" and not {"AUTO_INCREMENT", "SERIAL"}.isdisjoint(head):
        return "AUTO_INCREMENT for the rows of a query"
    if verb == "INSERT" and any(words[at : at + 3] == ["ON", "DUPLICATE", "KEY"] for at in range(end, len(words))):
        return "INSERT ... SELECT ... ON DUPLICATE KEY UPDATE"
    return None


def _limit(block: Block) -> Iterator[OrderedPart]:
    if _is_asked(block) and _takes_some(block):
        yield _limited(block)


def _is_asked(block: Block) -> bool:
    """Whether the text orders the rows of a LIMIT, or is asked for their order: another check refuses a query's."""
    return block.has_order or (block.is_top and block.verb in ("UPDATE", "DELETE"))


def _takes_some(block: Block) -> bool:
    """Whether a LIMIT or FETCH may take some of the rows alone."""
    clauses = block.clauses
    fetch = clauses.get("FETCH", ())
    is_limited = "LIMIT" in clauses or (fetch and not any(token.upper == "TIES" for token in fetch))
    # all rows are one behind an aggregate without GROUP BY
    is_one = "GROUP" not in clauses and has_aggregate(own_tokens(clauses.get("SELECT", ())))
    return bool(is_limited) and not is_one and [each.text for each in clauses.get("LIMIT", ())] != ["0"]


def _limited(block: Block) -> OrderedPart:
    return OrderedPart("LIMIT", block, block.ordered, _names(block), by_items=True)


def _cursor(block: Block) -> Iterator[OrderedPart]:
    if block.is_cursor:
        yield whole(block, "a cursor", Proof.SCAN)


def _in_turn(block: Block) -> Iterator[OrderedPart]:
    for tokens in block.tokens:
        for at, token in enumerate(tokens):
            if token.kind is TokenKind.VARIABLE and tokens[at + 1 : at + 2] and is_symbol(tokens[at + 1], ":="):
                yield whole(block, f"{token.text}, which rows set in turn", Proof.SCAN)
        for name in taken_in_turn(tokens):
            yield whole(block, f"{name}() of each row")


def taken_in_turn(tokens: Sequence[Token]) -> Iterator[str]:
    """Calls that give each row another value, in the order of the rows."""
    for at, token in enumerate(tokens):
        behind = tokens[at + 1 : at + 3]
        is_called = bool(behind) and is_symbol(behind[0], "(")
        is_next = token.upper == "NEXT" and [each.upper for each in behind] == ["VALUE", "FOR"]
        if is_next or (token.upper in _IN_TURN and is_called):
            yield token.upper


def sets_number(tokens: Sequence[Token]) -> bool:
    """Whether a body sets what LAST_INSERT_ID() gives behind it."""
    return any(
        token.upper == "LAST_INSERT_ID" and is_symbol(behind, "(") and not is_symbol(last, ")")
        for token, behind, last in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _windows(block: Block) -> Iterator[OrderedPart]:
    for tokens in block.tokens:
        for at, token in enumerate(tokens):
            if token.upper != "OVER" or at == 0:
                continue
            name, over = _called_before(tokens, at), _window(block, tokens, at)
            if name not in _PLACED | _LISTS and not any(each.upper == "ROWS" for each in over):
                continue
            columns, proof = tuple(order_columns_of(over)), _proof_of(over)
            yield OrderedPart(f"{name}() OVER", block, columns, _names(block), proof)


def _proof_of(over: Sequence[Token]) -> Proof:
    """Rows that a sort takes for equal come out of it in any order, whatever order they were read in."""
    return Proof.SCAN if {"PARTITION", "ORDER"}.isdisjoint(token.upper for token in over) else Proof.KEY


def order_columns_of(over: Sequence[Token]) -> Iterator[Column]:
    """The columns of a window's PARTITION BY and ORDER BY."""
    words = [token.upper for token in over]
    for word in ("PARTITION", "ORDER"):
        if word not in words:
            continue
        begin = words.index(word) + 2
        ends = ("ORDER", "ROWS", "RANGE", "GROUPS", "SEPARATOR", "LIMIT")
        end = next((at for at in range(begin, len(words)) if words[at] in ends), len(words))
        yield from order_columns(over[begin:end])


def _window(block: Block, tokens: Sequence[Token], at: int) -> Sequence[Token]:
    if at + 1 < len(tokens) and is_symbol(tokens[at + 1], "("):
        return tokens[at + 2 : call_end(tokens, at + 1)]
    name = tokens[at + 1].text.lower() if at + 1 < len(tokens) else ""
    named = block.clauses.get("WINDOW", ())
    for place, token in enumerate(named):
        if token.text.lower() == name and [each.upper for each in named[place + 1 : place + 2]] == ["AS"]:
            return named[place + 3 : call_end(named, place + 2)]
    return ()


def _called_before(tokens: Sequence[Token], at: int) -> str:
    """The function whose parentheses end before a token."""
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += is_symbol(tokens[place], ")") - is_symbol(tokens[place], "(")
        if depth == 0 and is_symbol(tokens[place], "("):
            return tokens[place - 1].upper if place else ""
    return ""


def _calls(tokens: Sequence[Token], names: frozenset[str]) -> Iterator[tuple[str, Sequence[Token]]]:
    """Aggregates of a block, each with what is between its parentheses."""
    for at, token in enumerate(tokens):
        if token.upper in names and at + 1 < len(tokens) and is_symbol(tokens[at + 1], "("):
            end = call_end(tokens, at + 1)
            if not (end + 1 < len(tokens) and tokens[end + 1].upper == "OVER"):
                yield token.upper, tokens[at + 2 : end]


def has_aggregate(chosen: Sequence[Token]) -> bool:
    """Whether a select list makes one value of several rows."""
    return any(True for _ in _calls(chosen, _AGGREGATES))


def _lists(block: Block) -> Iterator[OrderedPart]:
    """Aggregates that show the order of their rows."""
    for tokens in block.tokens:
        for name, inner in _calls(tokens, _LISTS):
            words = [token.upper for token in inner]
            end = next((at for at, word in enumerate(words) if word in ("ORDER", "SEPARATOR", "LIMIT")), len(inner))
            columns = (*grouped(block), *order_columns_of(inner))
            yield OrderedPart(f"{name}()", block, columns, tuple(columns_in(inner[:end])), _proof_of(inner))


def _sums(block: Block) -> Iterator[OrderedPart]:
    """Sums of floating-point numbers, whose last digits depend on the order."""
    for tokens in block.tokens:
        for name, inner in _calls(tokens, _FLOAT_SUMS):
            used = tuple(columns_in(inner))
            what = f"{name}() of floating-point numbers"
            yield OrderedPart(what, block, grouped(block), used, Proof.TABLES, only_of_types=FLOATS)


def _equal_values(block: Block) -> Iterator[OrderedPart]:
    """One of the values that are equal and not the same, by GROUP BY, DISTINCT, UNION, MIN or MAX."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    if chosen and chosen[0].upper in ("DISTINCT", "DISTINCTROW"):
        yield _one_of_equal("DISTINCT", block, (), _taken(chosen), chosen)
    if block.is_distinct:
        yield _one_of_equal("UNION", block, (), _taken(chosen), chosen)
    for name, inner in _calls(chosen, _EXTREMES):
        yield _one_of_equal(f"{name}()", block, grouped(block), tuple(columns_in(inner)), inner)
    if "GROUP" in block.clauses:
        given, outside = set(grouped(block)), tuple(_outside_aggregates(chosen))
        used = tuple(column for column in outside if any(_may_be_one(column, each) for each in given))
        yield _one_of_equal("GROUP BY", block, (), (*used, *_grouped_items(block, chosen)))
        computed = [each for each in items(chosen) if any(True for _ in _outside_aggregates(each)) and len(each) > 1]
        for item in computed:
            if COMPUTED in _may_differ(_without_aggregates(item)):
                yield _one_of_equal("GROUP BY", block, (), tuple(_outside_aggregates(item)), item)


def _inside(part: OrderedPart, view_of: ViewOf) -> Iterator[OrderedPart]:
    """The same for the columns of queries whose rows the block takes: derived tables, those of a WITH clause, views."""
    inner, is_named = _queries_behind(part.block, view_of)
    names = None if part.used is None or not is_named else {column.name for column in part.used}
    lists, types = [each.clauses["SELECT"] for each in inner], part.only_of_types
    for chosen in lists if names is None else ():
        types |= _may_differ(own_tokens(chosen))
    while names is not None:
        found = set[str]()
        for chosen in lists:
            for name, behind in aliases(chosen).items():
                if name in names and behind and behind[0].upper != "COUNT":
                    found.update(column.name for column in columns_in(own_tokens(behind)))
                    types |= _may_differ(own_tokens(behind))
        if found <= names:
            break
        names |= found
    for each, chosen in zip(inner, lists, strict=True):
        used = _taken(own_tokens(chosen)) if names is None else tuple(Column("", name) for name in sorted(names))
        yield replace(part, block=each, columns=(), used=used, only_of_types=types)


def _queries_behind(block: Block, view_of: ViewOf) -> tuple[list[Block], bool]:
    """All blocks of these queries, and whether the columns of each have the names of its select list."""
    found, taking, seen, is_named = list[Block](), [block], set[Hashable](), True
    for each in taking:
        for source in each.sources:
            query, key = source.query, source.table
            if key is not None and (text := view_of(key)) is not None:
                query = Query(text, key.database, NO_QUERIES)
            if query is None or (mark := (query.database, *query.tokens)) in seen:
                continue
            seen.add(mark)
            behind = [one for one in blocks_of(query) if one.verb == "SELECT"]
            is_named = is_named and query.is_plain and not any(one.is_part for one in behind)
            found += behind
            taking += behind
    return found, is_named


def _may_differ(expression: Sequence[Token]) -> frozenset[str]:
    """Types of columns of which an expression may make values that are equal and not the same; ``COMPUTED``: any."""
    words = {token.upper for token in expression}
    strings = [at for at, token in enumerate(expression) if token.kind is TokenKind.STRING]
    is_calculated = any(
        is_symbol(each, "*", "/", "%", "+", "-")
        for at in strings
        for each in (*expression[max(0, at - 1) : at], *expression[at + 1 : at + 2])
    )
    is_cut = any(
        token.upper in _CUTS and [each.kind for each in expression[at + 2 : at + 3]] == [TokenKind.STRING]
        for at, token in enumerate(expression)
    )
    is_chosen = len(strings) > 1 and not _CHOOSES.isdisjoint(words)
    if is_calculated or is_cut or is_chosen or not _FLOATING.isdisjoint(words) or any(map(_is_float, expression)):
        return frozenset({COMPUTED})
    return frozenset() if _OTHER_TEXTS.isdisjoint(words) else _BYTES


def _is_float(token: Token) -> bool:
    return token.kind is TokenKind.NUMBER and is_floating(token.text)


def _taken(chosen: Sequence[Token]) -> tuple[Column, ...] | None:
    """The columns of a select list; None if it has whole rows."""
    has_rows = any(is_symbol(item[-1], "*") for item in items(chosen) if item)
    return None if has_rows else tuple(columns_in(chosen))


def _one_of_equal(
    what: str,
    block: Block,
    columns: Sequence[Column],
    used: tuple[Column, ...] | None,
    expression: Sequence[Token] = (),
) -> OrderedPart:
    what = f"{what} of equal values that may differ"
    types = _DIFFERENT | _may_differ(expression)
    return OrderedPart(what, block, tuple(columns), used, Proof.TABLES, only_of_types=types)


def _grouped_items(block: Block, chosen: Sequence[Token]) -> Iterator[Column]:
    """The columns in elements of the select list that GROUP BY names by an alias, or by their place."""
    named, places = aliases(chosen), list(items(chosen))
    for item in items(list(block.clauses["GROUP"])[1:]):
        if len(item) != 1:
            continue
        text = item[0].text
        if text.lower() in named:
            yield from columns_in(named[text.lower()])
        elif item[0].kind is TokenKind.NUMBER and text.isdigit() and 0 < number_of(text) <= len(places):
            yield from columns_in(places[number_of(text) - 1])


def of_tables(block: Block, view_of: ViewOf, seen: frozenset[TableKey] = frozenset()) -> Iterator[Block]:
    """A block; an UPDATE of a view as one of the tables of its query, with what the view's names are there in SET."""
    key = block.sources[0].table if block.verb == "UPDATE" and len(block.sources) == 1 else None
    text = None if key is None or key in seen else view_of(key)
    if key is None or text is None:
        yield block
        return
    for query in blocks(text, key.database):
        if query.verb == "SELECT" and query.sources and query.is_top:
            named = _named_columns(query.clauses["SELECT"])
            changes = tuple(_replaced(block.clauses.get("SET", ()), named))
            clauses = {**query.clauses, "UPDATE": query.clauses.get("FROM", ()), "SET": changes}
            if any(map(has_other_names, texts_of(text))):
                clauses[_OTHER_NAMES] = ()
            fixed = (*query.equalities, *_fixed(block.equalities, named))
            joined = replace(query, verb="UPDATE", clauses=clauses, equalities=fixed)
            yield from of_tables(joined, view_of, seen | {key})


def texts_of(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The definitions that a view has had, which a semicolon separates."""
    begin = 0
    for at, token in enumerate(tokens):
        if is_symbol(token, ";"):
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]


def _named_columns(chosen: Sequence[Token]) -> dict[str, Sequence[Token]]:
    """The columns of a view by its select list, each with the expression behind it."""
    plain = {column.name: item for item in items(chosen) if (column := plain_column(item)) is not None}
    return {**plain, **aliases(chosen)}


def _fixed(equalities: Sequence[Equality], named: Mapping[str, Sequence[Token]]) -> Iterator[Equality]:
    """The columns behind those of a view that have the values of literals."""
    for each in equalities:
        behind = plain_column(named.get(each.column.name, ()))
        if behind is not None and not isinstance(each.other, Column):
            yield Equality(behind, each.other)


def _replaced(tokens: Sequence[Token], named: Mapping[str, Sequence[Token]]) -> Iterator[Token]:
    """Assignments with the expressions behind names, which may stand behind the name of a view."""
    at = 0
    while at < len(tokens):
        end = at + 1
        while tokens[at].kind in _NAMES and end + 1 < len(tokens) and is_symbol(tokens[end], "."):
            end += 2
        is_called = end < len(tokens) and is_symbol(tokens[end], "(") and tokens[at].kind is TokenKind.WORD
        behind = None if is_called or tokens[at].kind not in _NAMES else named.get(tokens[end - 1].text.lower())
        yield from tokens[at:end] if behind is None else behind
        at = end


def _joined_update(block: Block) -> Iterator[OrderedPart]:
    if block.verb != "UPDATE" or len(block.sources) < 2:
        return
    what = "an UPDATE by a join that may find several rows for one"
    if _OTHER_NAMES in block.clauses:
        yield OrderedPart(what, block)
        return
    names = {source.alias for source in block.sources}
    for item in items(block.clauses.get("SET", ())):
        middle = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
        column = plain_column(item[:middle])
        changed = () if column is None else (column,)
        value = item[middle + 1 :]
        # of the columns in a query those of its own tables are none of the block's
        inner = (each for each in columns_in(value) if each.qualifier in names)
        yield OrderedPart(what, block, rows_of=changed, needed=(*columns_in(own_tokens(value)), *inner))


class AssignedAndRead(NamedTuple):
    """A column that one assignment of an UPDATE sets, and another one reads."""

    column: str
    is_alone: bool
    """The UPDATE names one table, beside those of the queries in it."""


def assigned_and_read(
    tokens: Sequence[Token], database: str, view_of: ViewOf = lambda _: None
) -> Iterator[AssignedAndRead]:
    """Of UPDATEs of several tables, and of those that a server may make such by a query in them.

    MySQL changes the first table of its own order of joining row by row, so that the other reads the new value, and all
    other tables behind the join. MariaDB reads the old values of several tables in any order, and of one table the new
    ones. Both join the tables of IN and EXISTS where they think that cheaper, MariaDB since 11.1 (tried on 9.7, 10.5,
    10.11 and 11.8). ``view_of``: the text of a view.
    """
    for block in (each for one in blocks(tokens, database) for each in of_tables(one, view_of)):
        is_alone = len(block.sources) == 1
        if block.verb != "UPDATE" or (is_alone and not _has_query(block)):
            continue
        found = list[tuple[Column, tuple[Column, ...]]]()
        for item in items(block.clauses.get("SET", ())):
            middle = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
            if (column := plain_column(item[:middle])) is not None:
                found.append((column, tuple(columns_in(item[middle + 1 :]))))
        for at, (own, read) in enumerate(found):
            for place, (column, _) in enumerate(found):
                # of one row the first assignments come first, on both families
                is_own = is_alone or column.qualifier == own.qualifier != ""
                if (place < at or (place > at and not is_own)) and any(_may_be_one(column, each) for each in read):
                    yield AssignedAndRead(column.name, is_alone)


def _has_query(block: Block) -> bool:
    return any(token.upper == "SELECT" for tokens in block.clauses.values() for token in tokens)


def _may_be_one(column: Column, other: Column) -> bool:
    """Whether two names may be of one column: a name without its table may be of any."""
    return column.name == other.name and (
        column.qualifier == other.qualifier or "" in (column.qualifier, other.qualifier)
    )


def grouped(block: Block) -> tuple[Column, ...]:
    """The columns of GROUP BY, also those that it names by their place in the select list."""
    named = order_columns([each for each in block.clauses.get("GROUP", ())[1:] if each.upper != "ROLLUP"])
    expressions = items(block.clauses.get("GROUP", ())[1:])
    chosen = list(items(own_tokens(block.clauses.get("SELECT", ()))))
    placed = _at_their_places([each for each in expressions if _is_place(each)], chosen)
    return (*named, *filter(None, map(plain_column, placed)))


def _beside_group(block: Block) -> Iterator[OrderedPart]:
    """Columns beside a GROUP BY, or beside an aggregate of all rows: of whichever row."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    expressions = list(items(block.clauses.get("GROUP", ())[1:]))
    if block.verb != "SELECT" or not (expressions or has_aggregate(chosen)):
        return
    expressions = list(_at_their_places(expressions, list(items(chosen))))
    named = {each.text.lower() for item in expressions for each in item if len(item) == 1}
    outside = list[Column]()
    for item in items(chosen):
        is_named = len(without_alias(item)) < len(item) and item[-1].text.lower() in named
        if not is_named:
            outside += _outside_aggregates(_without(item, expressions))
    if outside:
        yield OrderedPart(BESIDE_GROUP, block, grouped(block), None, Proof.SCAN, needed=tuple(outside))


def _at_their_places(
    expressions: Sequence[Sequence[Token]], chosen: Sequence[Sequence[Token]]
) -> Iterator[Sequence[Token]]:
    """The expressions of GROUP BY, elements of the select list in place of their numbers, with and without alias. A
    number that is no place gives none: then all columns count as beside it."""
    for each in expressions:
        if not _is_place(each):
            yield each
        elif each[0].text.isdigit() and 0 < number_of(each[0].text) <= len(chosen):
            item = chosen[number_of(each[0].text) - 1]
            yield item
            if len(item) > 1 and item[-1].kind in (TokenKind.WORD, TokenKind.NAME):
                yield item[: -2 if item[-2].upper == "AS" else -1]


def _is_place(expression: Sequence[Token]) -> bool:
    return len(expression) == 1 and expression[0].kind is TokenKind.NUMBER


def _without(item: Sequence[Token], expressions: Sequence[Sequence[Token]]) -> Sequence[Token]:
    """A part of the select list without the expressions of GROUP BY."""
    found, plain = list(item), [[each[:2] for each in one] for one in expressions if len(one) > 1]
    for one in plain:
        at = 0
        while at + len(one) <= len(found):
            if [each[:2] for each in found[at : at + len(one)]] == one:
                del found[at : at + len(one)]
            else:
                at += 1
    return found


def _outside_aggregates(tokens: Sequence[Token]) -> Iterator[Column]:
    yield from columns_in(_without_aggregates(tokens))


def _without_aggregates(tokens: Sequence[Token]) -> Sequence[Token]:
    found, at = list[Token](), 0
    while at < len(tokens):
        is_call = at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")
        if is_call and (tokens[at].upper in _AGGREGATES or tokens[at].upper == "OVER"):
            at = call_end(tokens, at + 1) + 1
        elif len(tokens) > at + 1 and tokens[at].upper == "AS":
            at += 2
        else:
            found.append(tokens[at])
            at += 1
    return found


def _names(block: Block) -> tuple[Column, ...] | None:
    """The columns that a block gives away; None if these are whole rows."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    if block.verb != "SELECT" or any(is_symbol(each, "*") for each in chosen):
        return None
    return tuple(columns_in(chosen))


class Inserted(NamedTuple):
    """An INSERT or REPLACE of a body."""

    key: TableKey
    """The table."""
    begin: int
    """Of its tokens among the body's."""
    behind: int
    """Of those behind the table's name."""
    end: int


def inserted_in(tokens: Sequence[Token], database: str) -> Iterator[Inserted]:
    """What a body inserts."""
    for at, token in enumerate(tokens):
        # AFTER INSERT ON is the event of a trigger, OR REPLACE a part of CREATE
        if token.upper not in ("INSERT", "REPLACE") or (at > 0 and tokens[at - 1].upper in _NO_STATEMENT):
            continue
        begin = next((n for n in range(at + 1, len(tokens)) if tokens[n].upper not in _INSERT_WORDS), len(tokens))
        if begin == len(tokens) or tokens[begin].kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        name = tokens[begin].text
        if begin + 2 < len(tokens) and is_symbol(tokens[begin + 1], "."):
            key, behind = TableKey(name, tokens[begin + 2].text), begin + 3
        else:
            key, behind = TableKey(database, name), begin + 1
        end = next((n for n in range(behind, len(tokens)) if is_symbol(tokens[n], ";")), len(tokens))
        yield Inserted(key, at, behind, end)


def written_in(tokens: Sequence[Token], database: str) -> Iterator[TableKey]:
    """The tables into which a body inserts."""
    return (each.key for each in inserted_in(tokens, database))


def sets_variable(tokens: Sequence[Token]) -> str | None:
    """A variable of the session that a body sets."""
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.VARIABLE and not token.text.startswith("@@"):
            before = tokens[at - 1].upper if at else ""
            behind = tokens[at + 1] if at + 1 < len(tokens) else None
            if before == "INTO" or (behind is not None and is_symbol(behind, ":=")):
                return token.text
            if before == "SET" and behind is not None and is_symbol(behind, "="):
                return token.text
    return None


_NO_STATEMENT: Final = frozenset({"BEFORE", "AFTER", "OR", "INSTEAD"})
_INSERT_WORDS: Final = frozenset({"INTO", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"})
_FINDERS: Final[tuple[Callable[[Block], Iterator[OrderedPart]], ...]] = (
    _limit,
    _cursor,
    _in_turn,
    _windows,
    _lists,
    _sums,
    _equal_values,
)
