"""The parts of a text that take rows of tables: each SELECT, UPDATE and DELETE, with what its clauses say of columns.

Names are read, not resolved: which names are columns, and of which table, the definitions of the tables tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, number_of
from binlane.rename_rules import lower
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_LITERALS: Final = (TokenKind.STRING, TokenKind.NUMBER)
_SET_OPERATORS: Final = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_NO_VERB: Final = {
    "UPDATE": ("FOR", "KEY", "ON", "BEFORE", "AFTER", "OR", "NO"),
    "DELETE": ("ON", "BEFORE", "AFTER", "OR"),
}
"""Words behind which UPDATE or DELETE begins no statement."""
_CLAUSES: Final = (
    *("FROM", "SET", "USING", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "INTO"),
    *("PROCEDURE", "LOCK", "RETURNING", "PREPARE"),
)
_BEFORE_NESTED: Final = frozenset({"SELECT", "FROM", "WHERE", "SET", "VALUES", "VALUE", "WITH", "DUPLICATE"})
"""Words before a query in parentheses that is not the statement's own."""
_FACTOR_ENDS: Final = ("PARTITION", "USE", "FORCE", "IGNORE", "ON", "USING", "FOR", "TABLESAMPLE")
_QUERIES: Final = ("SELECT", "WITH", "VALUES", "TABLE")
_JOINS: Final = ("JOIN", "STRAIGHT_JOIN")
_BEFORE_JOIN: Final = ("LEFT", "RIGHT", "INNER", "CROSS", "OUTER", "NATURAL", "FULL")
_MODIFIERS: Final = (
    *("LOW_PRIORITY", "QUICK", "IGNORE", "HIGH_PRIORITY", "ALL", "DISTINCT", "DISTINCTROW", "SQL_NO_CACHE"),
    *("SQL_CACHE", "SQL_CALC_FOUND_ROWS", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT"),
)


NO_QUERIES: Final[Mapping[str, Query]] = {}
_IN: Final = "\0"
"""Between database and table in one qualifier."""


class Column(NamedTuple):
    """A name that may be a column's, in lower case."""

    qualifier: str
    """The alias or name of its table; "" if the text has none."""
    name: str


class Query(NamedTuple):
    """A query whose rows another one takes."""

    tokens: Sequence[Token]
    database: str
    """Of names without one."""
    common: Mapping[str, Query]
    """The queries of WITH clauses that it may name, in lower case."""
    is_plain: bool = True
    """It is one SELECT that can be read by itself, and its columns have the names of its select list."""


class Source(NamedTuple):
    """A table whose rows are taken."""

    alias: str
    """In lower case; of tables of one name in several databases with the database in front."""
    table: TableKey | None
    """None for a query in parentheses or of a WITH clause, or a function that gives rows."""
    query: Query | None = None
    name: Token | None = None
    """The last token of the table's name: the very one of the text."""

    def may_be(self, qualifier: str) -> bool:
        """Whether a column with this qualifier, or with none, may be one of it."""
        return qualifier in ("", self.alias) or self.alias.endswith(f"{_IN}{qualifier}")


class Equality(NamedTuple):
    """``column = literal``, or ``column = column``, that holds for every row that is taken."""

    column: Column
    other: Column | TokenKind
    excludes_null: bool = True
    """False for a condition of joins of which one is an outer join: rows without a partner have NULL."""
    outer: OuterJoin | None = None
    """The outer join whose condition it is."""


class OuterJoin(NamedTuple):
    """An outer join. Columns of one side have values by its condition, or NULL: the other side tells which, never the
    other way round."""

    nullable: frozenset[str]
    """The aliases of the side that may have no row."""
    felt: tuple[Column, ...]
    """All columns of its condition."""


@dataclass(frozen=True, slots=True)
class Block:
    """A SELECT, UPDATE or DELETE without the queries in its parentheses."""

    verb: str
    sources: tuple[Source, ...]
    clauses: Mapping[str, Sequence[Token]]
    """By its first word, the tokens behind that; the select list, or the tables of an UPDATE, by the verb."""
    equalities: tuple[Equality, ...]
    ordered: tuple[Column, ...]
    """The columns of ORDER BY."""
    is_top: bool
    """It is the statement, or the query of it."""
    is_part: bool
    """It is combined with others by UNION or its like."""
    is_cursor: bool
    """It is the query of a cursor, whose rows a body takes one after the other."""
    orders_all: bool = False
    """ORDER BY has every element of the select list."""
    is_distinct: bool = False
    """It is combined with others by UNION or its like, and of equal rows one remains."""

    @property
    def has_order(self) -> bool:
        """Whether the text gives an order."""
        return "ORDER" in self.clauses

    @property
    def tokens(self) -> Iterator[Sequence[Token]]:
        """The tokens of all its clauses, those of queries in parentheses left out."""
        return map(own_tokens, self.clauses.values())


def blocks(tokens: Sequence[Token], database: str, common: Mapping[str, Query] = NO_QUERIES) -> Iterator[Block]:
    """Every block of a statement, a body or a query. ``database``: of names without one. ``common``: queries of WITH
    clauses around it."""
    depth, tokens = 0, _with_selects(tokens)
    scope = _Scope(database, _common_queries(tokens, database, common))
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        before = tokens[at - 1] if at else None
        if token.upper not in ("SELECT", "UPDATE", "DELETE"):
            continue
        if token.upper != "SELECT" and before is not None and before.upper in _NO_VERB[token.upper]:
            continue
        end = _end(tokens, at)
        # parentheses around the query of an INSERT
        is_top = not depth or not any(each.upper in _BEFORE_NESTED for each in tokens[:at])
        behind = tokens[end].upper if end < len(tokens) else ""
        is_part = behind in _SET_OPERATORS or (before is not None and _is_combined(tokens, at))
        is_cursor = [each.upper for each in tokens[max(0, at - 2) : at]] in (["CURSOR", "FOR"], ["CURSOR", "IS"])
        block = _block(tokens[at:end], scope, (is_top, is_part, is_cursor))
        # a UNION without ALL takes equal rows away from all parts before it
        is_distinct = (is_part or _is_combined_in_parentheses(tokens, at, end)) and _has_distinct(tokens)
        yield replace(block, is_distinct=True) if is_distinct else block


def blocks_of(query: Query) -> Iterator[Block]:
    """Every block of a query."""
    return blocks(query.tokens, query.database, query.common)


class _Scope(NamedTuple):
    """What the names of tables mean."""

    database: str
    common: Mapping[str, Query]
    doubled: frozenset[str] = frozenset()
    """Names that several tables of a block have."""


def _common_queries(tokens: Sequence[Token], database: str, around: Mapping[str, Query]) -> Mapping[str, Query]:
    """The queries of all WITH clauses of a text. Each may name those before it."""
    if not any(token.upper == "WITH" for token in tokens):
        return around
    found = dict(around)
    for at in range(1, len(tokens) - 2):
        if tokens[at].upper != "AS" or not is_symbol(tokens[at + 1], "(") or tokens[at + 2].upper not in _QUERIES:
            continue
        name, has_columns = at - 1, is_symbol(tokens[at - 1], ")")
        while has_columns and name > 0 and not is_symbol(tokens[name + 1], "("):
            name -= 1
        before = tokens[name - 1] if name > 0 else None
        if tokens[name].kind not in _NAMES or not (before and (before.upper in _WITH or is_symbol(before, ","))):
            continue
        key = tokens[name].text.lower()
        inner = tokens[at + 2 : call_end(tokens, at + 1)]
        is_plain = not has_columns and key not in found and not any(token.text.lower() == key for token in inner)
        found[key] = Query(inner, database, dict(found), is_plain)
    return found


_WITH: Final = ("WITH", "RECURSIVE")


def _with_selects(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens with ``SELECT * FROM name`` for MySQL's ``TABLE name``."""
    if not any(token.upper == "TABLE" for token in tokens[1:]) and not _is_table_query(tokens, 0):
        return tokens
    found = list[Token]()
    for at, token in enumerate(tokens):
        found += _SELECT_ALL if _is_table_query(tokens, at) else (token,)
    return found


def _is_table_query(tokens: Sequence[Token], at: int) -> bool:
    if at + 1 >= len(tokens) or tokens[at].upper != "TABLE" or tokens[at + 1].kind not in _NAMES:
        return False
    return at == 0 or (tokens[at - 1].upper not in _BEFORE_TABLE and not is_symbol(tokens[at - 1], ".", ","))


_SELECT_ALL: Final = (
    Token(TokenKind.WORD, "SELECT", "SELECT"),
    Token(TokenKind.SYMBOL, "*"),
    Token(TokenKind.WORD, "FROM", "FROM"),
)
_BEFORE_TABLE: Final = frozenset(
    {"CREATE", "TEMPORARY", "REPLACE", "ALTER", "DROP", "TRUNCATE", "RENAME", "LOCK", "ANALYZE", "CHECK", "OPTIMIZE"}
    | {"REPAIR", "CHECKSUM", "FLUSH", "SHOW", "IGNORE", "INTO", "LOCAL", "NO_WRITE_TO_BINLOG", "ONLINE", "ON", "OF"}
    | {"BACKUP", "END", "FOR"}
)
"""Words before a TABLE that is no query."""


def _is_combined_in_parentheses(tokens: Sequence[Token], begin: int, end: int) -> bool:
    while begin and is_symbol(tokens[begin - 1], "("):
        begin -= 1
    while end < len(tokens) and is_symbol(tokens[end], ")"):
        end += 1
    return _is_combined(tokens, begin) or (end < len(tokens) and tokens[end].upper in _SET_OPERATORS)


def _has_distinct(tokens: Sequence[Token]) -> bool:
    """Whether parts of a text are combined without ALL."""
    operators = (at for at, token in enumerate(tokens) if token.upper in _SET_OPERATORS)
    return any(at + 1 == len(tokens) or tokens[at + 1].upper != "ALL" for at in operators)


def _is_combined(tokens: Sequence[Token], at: int) -> bool:
    words = [token.upper or token.text for token in tokens[max(0, at - 3) : at]]
    while words and words[-1] in ("ALL", "DISTINCT"):
        words.pop()
    return bool(words) and words[-1] in _SET_OPERATORS


def _end(tokens: Sequence[Token], begin: int) -> int:
    depth = 0
    for at in range(begin, len(tokens)):
        token = tokens[at]
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth < 0 or (depth == 0 and at > begin and (is_symbol(token, ";") or token.upper in _SET_OPERATORS)):
            return at
        behind = tokens[at + 1].upper if at + 1 < len(tokens) else ""
        if depth == 0 and behind in _BEHIND.get(token.upper, ()):
            return at
    return len(tokens)


_BEHIND: Final = {"ON": ("DUPLICATE",), "FOR": ("UPDATE", "SHARE")}
"""Words, and those that may follow them, behind the end of a block."""


def _block(tokens: Sequence[Token], scope: _Scope, marks: tuple[bool, bool, bool]) -> Block:
    verb, clauses, depth, name = tokens[0].upper, dict[str, list[Token]](), 0, tokens[0].upper
    clauses[name] = []
    for token in tokens[1:]:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        is_clause = depth == 0 and token.upper in _CLAUSES
        if token.upper == "USING":
            # of a DELETE the tables, unless it is the condition of a join
            is_joined = name == "USING" or any(each.upper in _JOINS for each in clauses[name])
            is_clause = is_clause and verb == "DELETE" and not is_joined
        if is_clause:
            name = token.upper
            clauses.setdefault(name, [])
        else:
            clauses[name].append(token)
    place = {"UPDATE": "UPDATE", "DELETE": "USING" if "USING" in clauses else "FROM"}.get(verb, "FROM")
    sources, _ = _sources(clauses.get(place, ()), scope)
    names = [source.alias for source in sources]
    scope = scope._replace(doubled=frozenset(name for name in names if names.count(name) > 1))
    sources, _ = _sources(clauses.get(place, ()), scope)
    clauses = {name: _with_one_qualifier(each, sources) for name, each in clauses.items()}
    sources, conditions = _sources(clauses.get(place, ()), scope)
    equalities = [*conditions, *_equalities(clauses.get("WHERE", ()))]
    ordered = _ordered(clauses)
    return Block(verb, tuple(sources), clauses, tuple(equalities), tuple(ordered), *marks, _orders_all(clauses))


def _with_one_qualifier(tokens: Sequence[Token], sources: Sequence[Source]) -> list[Token]:
    """A clause in which each column with a database has the alias of its table, or what is none, as its qualifier."""
    found, at, behind_query = list[Token](), 0, 0
    while at < len(tokens):
        chain = tokens[at : at + 5]
        if is_symbol(tokens[at], "(") and tokens[at + 1 : at + 2] and tokens[at + 1].upper in _QUERIES:
            behind_query = max(behind_query, call_end(tokens, at))
        is_column = len(chain) == 5 and all(is_symbol(each, ".") for each in chain[1::2])
        is_column = is_column and not any(is_symbol(each, "(") for each in tokens[at + 5 : at + 6])
        if at < behind_query or not is_column or any(each.kind not in _NAMES for each in chain[:3:2]):
            found.append(tokens[at])
            at += 1
            continue
        database, name = lower(chain[0].text), chain[2].text.lower()
        owner = next((each.alias for each in sources if _is_named(each, database, name)), f"{database}{_IN}{name}")
        found += (Token(TokenKind.NAME, owner), *chain[3:])
        at += 5
    return found


def _is_named(source: Source, database: str, name: str) -> bool:
    """Servers take an alias behind the database, too."""
    key = source.table
    return key is not None and lower(key.database) == database and source.alias in (name, f"{database}{_IN}{name}")


def _sources(tokens: Sequence[Token], scope: _Scope) -> tuple[list[Source], list[Equality]]:
    """The tables of a FROM clause, and what their joins say."""
    found, equalities, first, kind = list[Source](), list[Equality](), 0, frozenset[str]()
    has_outer = any(token.upper in _OUTER and not _is_called(tokens, at) for at, token in enumerate(tokens))
    for begins_list, factor in _factors(tokens):
        words, join = list(factor), kind
        while words and words[-1].upper in _BEFORE_JOIN:
            words.pop()
        kind = frozenset(token.upper for token in factor[len(words) :])
        if begins_list:
            # a comma joins less tightly than JOIN
            first = len(found)
        is_lateral = False
        while words and words[0].upper in (*_MODIFIERS, *_BEFORE_JOIN, "LATERAL"):
            is_lateral = words.pop(0).upper == "LATERAL"
        if not words:
            continue
        ends = [at for at, depth, token in _levels(words) if not depth and token.upper in ("ON", "USING")]
        head, behind = words[: ends[0] if ends else len(words)], words[ends[0] :] if ends else []
        before = found[first:]
        if _is_join_in_parentheses(head):
            # as servers show the joins of views
            inner, conditions = _sources(_unwrapped(head), scope)
            equalities += conditions
        else:
            source = _source(head, scope)
            if is_lateral and source.query is not None:
                source = source._replace(query=source.query._replace(is_plain=False))
            inner = [source]
        found += inner
        # with two conditions in a row, the first one is of another join
        if len(ends) == 1 and not (has_outer and behind[0].upper == "USING" and len(before) > 1):
            equalities += _joined(join, before, inner, behind)
    return found, [each._replace(excludes_null=False) for each in equalities] if has_outer else equalities


def _joined(
    join: frozenset[str], before: Sequence[Source], inner: Sequence[Source], condition: Sequence[Token]
) -> Iterator[Equality]:
    """What ON or USING says of the rows of a join. No literal fixes a column: an outer join keeps other rows."""
    if not {"NATURAL", "FULL"}.isdisjoint(join):
        return
    outer = None
    if condition[0].upper == "ON":
        found = [each for each in _equalities(condition[1:]) if isinstance(each.other, Column)]
        felt = tuple(columns_in(condition[1:]))
    else:
        # which of several tables has a column of USING, nothing tells
        pairs = [(left.alias, right.alias) for left in before[-1:] for right in inner if len(inner) == 1]
        sides = [*pairs, *((right, left) for left, right in pairs)]
        names = [token.text.lower() for token in condition[1:] if token.kind in _NAMES]
        found = [Equality(Column(one, name), Column(other, name)) for one, other in sides for name in names]
        felt = tuple(each.column for each in found)
    if not _OUTER.isdisjoint(join):
        if any(token.upper == "SELECT" or _is_called(condition, at) for at, token in enumerate(condition)):
            return
        side = inner if "LEFT" in join else before
        outer = OuterJoin(frozenset(each.alias for each in side), felt)
    yield from (each._replace(outer=outer) for each in found)


_OUTER: Final = frozenset({"LEFT", "RIGHT", "FULL"})


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    is_name = tokens[at].kind is TokenKind.WORD and tokens[at].upper not in ("AND", "OR", "ON", "NOT", "USING", "IN")
    return is_name and at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")


def _is_join_in_parentheses(tokens: Sequence[Token]) -> bool:
    inner = _unwrapped(tokens)
    first = next((token.upper for token in inner if not is_symbol(token, "(")), "")
    return len(inner) < len(tokens) and first not in _QUERIES


def _source(tokens: Sequence[Token], scope: _Scope) -> Source:
    if is_symbol(tokens[0], "("):
        end = call_end(tokens, 0)
        behind = [token for token in tokens[end + 1 :] if token.upper != "AS"]
        inner = _unwrapped(tokens[1:end])
        query = Query(inner, scope.database, scope.common, is_plain=len(behind) == 1)
        return Source(behind[0].text.lower() if behind and behind[0].kind in _NAMES else "", None, query)
    if len(tokens) > 1 and is_symbol(tokens[1], "("):
        last = tokens[-1]
        return Source(last.text.lower() if last.kind in _NAMES else "", None)
    chain, at = [tokens[0].text], 1
    while at + 1 < len(tokens) and is_symbol(tokens[at], "."):
        chain.append(tokens[at + 1].text)
        at += 2
    name = tokens[at - 1]
    key = TableKey(chain[-2] if len(chain) > 1 else scope.database, chain[-1])
    behind = [token for token in tokens[at:] if token.upper != "AS"]
    named = behind and behind[0].kind in _NAMES and behind[0].upper not in _FACTOR_ENDS
    alias = (behind[0].text if named else chain[-1]).lower()
    if len(chain) == 1 and chain[0].lower() in scope.common:
        return Source(alias, None, scope.common[chain[0].lower()])
    return Source(f"{lower(key.database)}{_IN}{alias}" if alias in scope.doubled else alias, key, name=name)


def _factors(tokens: Sequence[Token]) -> Iterator[tuple[bool, Sequence[Token]]]:
    """The tables of a FROM clause with their conditions, and whether a list of joins begins there."""
    begin, begins_list = 0, True
    for at, depth, token in _levels(tokens):
        if depth == 0 and (is_symbol(token, ",") or token.upper in _JOINS):
            yield begins_list, tokens[begin:at]
            begin, begins_list = at + 1, is_symbol(token, ",")
    yield begins_list, tokens[begin:]


def _levels(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Token]]:
    """Each token with its index and the number of parentheses around it, those of a token that is one included."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(")
        yield at, depth, token
        depth -= is_symbol(token, ")")


def _equalities(tokens: Sequence[Token]) -> Iterator[Equality]:
    """What a condition says of each row, if it is a conjunction."""
    for part in conditions(tokens):
        middle = next((at for at, _, token in _levels(part) if is_symbol(token, "=")), None)
        if middle is None:
            continue
        left, right = part[:middle], part[middle + 1 :]
        for one, other in ((left, right), (right, left)):
            column, value = plain_column(one), plain_column(other)
            if column is None:
                continue
            if value is not None:
                yield Equality(column, value)
            elif len(other) == 1 and other[0].kind in _LITERALS:
                yield Equality(column, other[0].kind)


def conditions(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The conditions of a conjunction, each of which every row fulfils; none of any other condition."""
    tokens = _unwrapped(tokens)
    if any(
        depth == 0 and (token.upper in ("OR", "XOR") or is_symbol(token, "||")) for _, depth, token in _levels(tokens)
    ):
        return
    begin = 0
    for end in (*_ands(tokens), len(tokens)):
        part = _unwrapped(tokens[begin:end])
        begin = end + 1
        is_nested = part != tokens and any(token.upper == "AND" for token in part)
        if is_nested and not any(is_symbol(token, "=") for token in part):
            yield from conditions(part)
        else:
            yield part


def _ands(tokens: Sequence[Token]) -> Iterator[int]:
    """The places of each AND between conditions; one inside of CASE, and the one of BETWEEN, is none of them."""
    cases = betweens = 0
    for at, depth, token in _levels(tokens):
        if depth:
            continue
        cases += (token.upper == "CASE") - (token.upper == "END" and cases > 0)
        if cases:
            continue
        if token.upper == "BETWEEN":
            betweens += 1
        elif betweens and token.upper == "AND":
            betweens -= 1
        elif token.upper == "AND" or is_symbol(token, "&&"):
            yield at


def _unwrapped(tokens: Sequence[Token]) -> Sequence[Token]:
    while len(tokens) > 2 and is_symbol(tokens[0], "(") and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closes(tokens: Sequence[Token]) -> int:
    depth = 0
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0:
            return at
    return -1


def plain_column(tokens: Sequence[Token]) -> Column | None:
    """The column, if the tokens are one name and nothing else."""
    tokens = _unwrapped(tokens)
    if len(tokens) % 2 == 0 or len(tokens) > 5 or tokens[0].upper in ("NULL", "TRUE", "FALSE", "DEFAULT"):
        return None
    if not all(token.kind in _NAMES for token in tokens[::2]) or not all(is_symbol(each, ".") for each in tokens[1::2]):
        return None
    return Column(tokens[-3].text.lower() if len(tokens) > 1 else "", tokens[-1].text.lower())


def items(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The elements of a list, separated by commas outside parentheses."""
    begin = 0
    for at, depth, token in _levels(tokens):
        if depth == 0 and is_symbol(token, ","):
            yield tokens[begin:at]
            begin = at + 1
    if begin < len(tokens):
        yield tokens[begin:]


def order_columns(tokens: Sequence[Token]) -> Iterator[Column]:
    """The columns in a list of ORDER BY, PARTITION BY or GROUP BY."""
    for item in items(tokens):
        while item and item[-1].upper in ("ASC", "DESC"):
            item = item[:-1]
        if (column := plain_column(item)) is not None:
            yield column


def aliases(tokens: Sequence[Token]) -> dict[str, Sequence[Token]]:
    """The names that a select list gives, each with the expression behind it."""
    found = dict[str, Sequence[Token]]()
    for item in items(tokens):
        expression = without_alias(item)
        if len(expression) < len(item):
            found[item[-1].text.lower()] = expression
    return found


def without_modifiers(item: Sequence[Token]) -> Sequence[Token]:
    """An element of a select list without the words that may stand in front of the first one."""
    while item and item[0].upper in _MODIFIERS:
        item = item[1:]
    return item


def without_alias(item: Sequence[Token]) -> Sequence[Token]:
    """An element of a select list without the name that it gets."""
    item = without_modifiers(item)
    if len(item) < 2 or item[-1].kind not in _NAMES:
        return item
    before = item[-2]
    if before.upper == "AS":
        return item[:-2]
    is_operator = before.kind is TokenKind.SYMBOL and before.text != ")"
    return item if is_operator or before.upper in _OPERATORS else item[:-1]


_OPERATORS: Final = frozenset({"NOT", "AND", "OR", "XOR", "DIV", "MOD", "LIKE", "IN", "IS", "BINARY", "COLLATE"})


def _ordered(clauses: Mapping[str, Sequence[Token]]) -> Iterator[Column]:
    chosen = clauses.get("SELECT", ())
    named, places = aliases(chosen), list(items(chosen))
    for item in items(list(clauses.get("ORDER", ()))[1:]):
        while item and item[-1].upper in ("ASC", "DESC"):
            item = item[:-1]
        if len(item) == 1 and item[0].kind is TokenKind.NUMBER:
            # by its place in the list, if the tokens tell that
            place = number_of(item[0].text) if item[0].text.isdigit() else 0
            behind = plain_column(without_alias(places[place - 1])) if 0 < place <= len(places) else None
        else:
            behind = plain_column(item)
            if behind is not None and not behind.qualifier and behind.name in named:
                behind = plain_column(named[behind.name])
        if behind is not None:
            yield behind


def _orders_all(clauses: Mapping[str, Sequence[Token]]) -> bool:
    chosen, ordered = list(items(clauses.get("SELECT", ()))), list(items(list(clauses.get("ORDER", ()))[1:]))
    numbers = {item[0].text for item in ordered if item and item[0].kind is TokenKind.NUMBER}
    texts = [[each[:2] for each in item if each.upper not in ("ASC", "DESC")] for item in ordered]

    def is_ordered(place: int, item: Sequence[Token]) -> bool:
        plain = [each[:2] for each in without_alias(item)]
        return str(place) in numbers or plain in texts or [each[:2] for each in item[-1:]] in texts

    has_rows = any(is_symbol(each, "*") for item in chosen for each in item)
    return bool(chosen) and not has_rows and all(is_ordered(at + 1, item) for at, item in enumerate(chosen))


def own_tokens(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without the queries in parentheses."""
    found, hidden, depth = list[Token](), 0, 0
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(")
        if (
            not hidden
            and is_symbol(token, "(")
            and tokens[at + 1 : at + 2]
            and tokens[at + 1].upper in ("SELECT", "WITH")
        ):
            hidden = depth
        if not hidden:
            found.append(token)
        if hidden == depth and is_symbol(token, ")"):
            hidden = 0
        depth -= is_symbol(token, ")")
    return found


def columns_in(tokens: Sequence[Token]) -> Iterator[Column]:
    """Every name of the tokens that may be a column's: those of functions are none."""
    at = 0
    while at < len(tokens):
        if tokens[at].kind not in _NAMES:
            at += 1
            continue
        end = at + 1
        while (
            end + 1 < len(tokens)
            and is_symbol(tokens[end], ".")
            and tokens[end + 1].kind in (*_NAMES, TokenKind.SYMBOL)
        ):
            end += 2
        called = end < len(tokens) and is_symbol(tokens[end], "(") and tokens[at].kind is TokenKind.WORD
        if not called:
            qualifier = tokens[end - 3].text.lower() if end - at > 1 else ""
            yield Column(qualifier, tokens[end - 1].text.lower())
        at = end


def call_end(tokens: Sequence[Token], at: int) -> int:
    """The index of the parenthesis that closes the one at ``at``; the number of tokens if none does."""
    closed = _closes(tokens[at:])
    return len(tokens) if closed < 0 else at + closed
