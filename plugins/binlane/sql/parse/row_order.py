"""Parts of a statement, or of a body behind one, whose result depends on the order in which a server takes rows.

The servers warn of some of them (1592: LIMIT, IGNORE, REPLACE, AUTO_INCREMENT, RAND) and log the others in MIXED format
as statements, too: variables that rows set in turn, window functions, GROUP_CONCAT and its like, columns beside a GROUP
BY, an UPDATE by a join that finds several rows. Whether the order is the same on every server, the tables' keys tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import (
    Block,
    Column,
    blocks,
    call_end,
    columns_in,
    items,
    order_columns,
    own_tokens,
    plain_column,
)


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
    rows_of: tuple[str, ...] = ()
    """All columns of these tables, by alias, are given, too."""
    needed: tuple[Column, ...] | None = None
    """The columns that must be given; None: all of every table."""
    by_items: bool = False
    """It takes of the rows what the select list has, in the order of the block."""
    only_of_types: frozenset[str] = field(default_factory=frozenset)
    """Types of the columns in ``used`` that feel the order: others do not. ``TEXT`` is text of which a collation takes
    different values for equal."""


TEXT: Final = "text by a collation"
FLOATS: Final = frozenset({"float", "double"})
_PLACED: Final = frozenset({"ROW_NUMBER", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "NTILE"})
_LISTS: Final = frozenset({"GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "ST_COLLECT", "ANY_VALUE"})
_FLOAT_SUMS: Final = frozenset(
    {"SUM", "AVG", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"}
)
_EXTREMES: Final = frozenset({"MIN", "MAX"})
_AGGREGATES: Final = frozenset({"COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "GROUPING", *_FLOAT_SUMS, *_EXTREMES, *_LISTS})
_IN_TURN: Final = frozenset({"RAND", "NEXTVAL", "SETVAL"})
_TAKES_ROWS: Final = ("INSERT", "REPLACE", "CREATE")


def order_felt(tokens: Sequence[Token], database: str, *, full_group_by: bool) -> Iterator[OrderedPart]:
    """The parts of a statement, a query or a body. ``full_group_by``: its ``sql_mode`` takes no columns beside a GROUP
    BY."""
    for block in blocks(tokens, database):
        if not block.sources:
            continue
        for find in _FINDERS:
            yield from find(block)
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
    clauses = block.clauses
    fetch = clauses.get("FETCH", ())
    takes_some = "LIMIT" in clauses or (fetch and not any(token.upper == "TIES" for token in fetch))
    if block.has_order and takes_some and [each.text for each in clauses.get("LIMIT", ())] != ["0"]:
        yield OrderedPart("LIMIT", block, block.ordered, _names(block), by_items=True)


def _cursor(block: Block) -> Iterator[OrderedPart]:
    if block.is_cursor:
        yield whole(block, "a cursor", Proof.SCAN)


def _in_turn(block: Block) -> Iterator[OrderedPart]:
    for tokens in block.tokens:
        for at, token in enumerate(tokens):
            behind = tokens[at + 1 : at + 3]
            is_called = bool(behind) and is_symbol(behind[0], "(")
            if token.kind is TokenKind.VARIABLE and behind and is_symbol(behind[0], ":="):
                yield whole(block, f"{token.text}, which rows set in turn", Proof.SCAN)
            elif (token.upper in _IN_TURN and is_called) or (
                token.upper == "NEXT" and [each.upper for each in behind] == ["VALUE", "FOR"]
            ):
                yield whole(block, f"{token.upper}() of each row")


def _windows(block: Block) -> Iterator[OrderedPart]:
    for tokens in block.tokens:
        for at, token in enumerate(tokens):
            if token.upper != "OVER" or at == 0:
                continue
            name = _called_before(tokens, at)
            over = _window(block, tokens, at)
            if name not in _PLACED and not any(each.upper == "ROWS" for each in over):
                continue
            columns = tuple(order_columns_of(over))
            yield OrderedPart(f"{name}() OVER", block, columns, _names(block), Proof.SCAN)


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


def _lists(block: Block) -> Iterator[OrderedPart]:
    """Aggregates that show the order of their rows."""
    for tokens in block.tokens:
        for name, inner in _calls(tokens, _LISTS):
            words = [token.upper for token in inner]
            end = next((at for at, word in enumerate(words) if word in ("ORDER", "SEPARATOR", "LIMIT")), len(inner))
            columns = (*grouped(block), *order_columns_of(inner))
            yield OrderedPart(f"{name}()", block, columns, tuple(columns_in(inner[:end])), Proof.SCAN)


def _sums(block: Block) -> Iterator[OrderedPart]:
    """Sums of floating-point numbers, whose last digits depend on the order."""
    for tokens in block.tokens:
        for name, inner in _calls(tokens, _FLOAT_SUMS):
            used = tuple(columns_in(inner))
            what = f"{name}() of floating-point numbers"
            yield OrderedPart(what, block, grouped(block), used, Proof.TABLES, only_of_types=FLOATS)


def _equal_texts(block: Block) -> Iterator[OrderedPart]:
    """One of the texts that a collation takes for equal, by GROUP BY, DISTINCT, MIN or MAX."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    kept = frozenset({TEXT})
    if chosen and chosen[0].upper in ("DISTINCT", "DISTINCTROW"):
        yield OrderedPart("DISTINCT of texts", block, (), tuple(columns_in(chosen)), Proof.TABLES, only_of_types=kept)
    for name, inner in _calls(chosen, _EXTREMES):
        what = f"{name}() of texts"
        yield OrderedPart(what, block, grouped(block), tuple(columns_in(inner)), Proof.TABLES, only_of_types=kept)
    if "GROUP" in block.clauses:
        given, outside = set(grouped(block)), tuple(_outside_aggregates(chosen))
        used = tuple(column for column in outside if column in given)
        yield OrderedPart("GROUP BY of texts", block, (), used, Proof.TABLES, only_of_types=kept)


def _joined_update(block: Block) -> Iterator[OrderedPart]:
    if block.verb != "UPDATE" or len(block.sources) < 2:
        return
    changed, values = set[str](), list[Column]()
    for item in items(own_tokens(block.clauses.get("SET", ()))):
        middle = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
        column = plain_column(item[:middle])
        changed.add(column.qualifier if column is not None else "")
        values += columns_in(item[middle + 1 :])
    # a name without its table may be of any: then the definitions tell
    rows_of = tuple(sorted(changed)) if "" not in changed else tuple(each.alias for each in block.sources[:1])
    what = "an UPDATE by a join that may find several rows for one"
    yield OrderedPart(what, block, (), None, Proof.SCAN, rows_of, tuple(values))


def grouped(block: Block) -> tuple[Column, ...]:
    """The columns of GROUP BY."""
    return tuple(order_columns([each for each in block.clauses.get("GROUP", ())[1:] if each.upper != "ROLLUP"]))


def _beside_group(block: Block) -> Iterator[OrderedPart]:
    """Columns beside a GROUP BY, or beside an aggregate of all rows: of whichever row."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    expressions = list(items(block.clauses.get("GROUP", ())[1:]))
    has_aggregate = any(True for _ in _calls(chosen, _AGGREGATES))
    if block.verb != "SELECT" or not (expressions or has_aggregate):
        return
    if any(len(each) == 1 and each[0].kind is TokenKind.NUMBER for each in expressions):
        # by the place of a column in the list, which no token tells
        return
    named = {each.text.lower() for item in expressions for each in item if len(item) == 1}
    outside = list[Column]()
    for item in items(chosen):
        is_named = len(item) > 1 and item[-1].text.lower() in named and item[-1].kind is not TokenKind.SYMBOL
        if not is_named:
            outside += _outside_aggregates(_without(item, expressions))
    if outside:
        what = "a column beside GROUP BY"
        yield OrderedPart(what, block, grouped(block), None, Proof.SCAN, needed=tuple(outside))


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
    yield from columns_in(found)


def _names(block: Block) -> tuple[Column, ...] | None:
    """The columns that a block gives away; None if these are whole rows."""
    chosen = own_tokens(block.clauses.get("SELECT", ()))
    if block.verb != "SELECT" or any(is_symbol(each, "*") for each in chosen):
        return None
    return tuple(columns_in(chosen))


def written_in(tokens: Sequence[Token], database: str) -> Iterator[TableKey]:
    """The tables into which a body inserts."""
    for at, token in enumerate(tokens):
        if token.upper not in ("INSERT", "REPLACE"):
            continue
        behind = [each for each in tokens[at + 1 : at + 8] if each.upper not in _INSERT_WORDS]
        if behind and behind[0].kind in (TokenKind.WORD, TokenKind.NAME):
            is_qualified = len(behind) > 2 and is_symbol(behind[1], ".")
            yield TableKey(behind[0].text, behind[2].text) if is_qualified else TableKey(database, behind[0].text)


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


_INSERT_WORDS: Final = frozenset({"INTO", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"})
_FINDERS: Final[tuple[Callable[[Block], Iterator[OrderedPart]], ...]] = (
    _limit,
    _cursor,
    _in_turn,
    _windows,
    _lists,
    _sums,
    _equal_texts,
    _joined_update,
)
