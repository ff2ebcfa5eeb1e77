"""The columns of a view that have other names than its query gives them: ``CREATE VIEW v (a, b) AS SELECT c, d ...``.

MariaDB prints such a view with the names in the query (``SELECT c AS a, d AS b``). MySQL keeps them beside it: its
``view_definition`` is the same whatever the columns are called. What reads views reads them in MariaDB's form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.query_blocks import without_alias

_PRINTED: Final = Dialect(Flavor.MYSQL)
"""Of what a server prints in its catalogue, whatever the sql_mode of the view is."""
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_ENDS: Final = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "INTO", "FOR", "LOCK", "PROCEDURE"}
    | {"UNION", "EXCEPT", "INTERSECT", "MINUS", "WITH"}
)
"""Words behind a select list."""
_AS: Final = Token(TokenKind.WORD, "AS", "AS")


def named_by(definition: str, columns: str) -> str:
    """A view's query as a server prints it, with the names of its columns: a JSON object of them, by their places.

    A query whose select list has other columns than these (``VALUES ROW(1)``) gets their names in front.
    """
    names = [name for _, name in sorted(json.loads(columns).items(), key=lambda each: int(each[0]))]
    tokens, places = list[Token](), list[tuple[int, int]]()
    try:
        lex(definition, _PRINTED, tokens, places)
    except Unreadable:
        return _in_front(names, definition)
    lists = list(_select_list(tokens, 0))
    if len(lists) != len(names) or any(end - begin < 2 or tokens[end - 2].upper != "AS" for begin, end in lists):
        return _in_front(names, definition)
    found, at = list[str](), 0
    for (_, end), name in zip(lists, names, strict=True):
        begin, behind = places[end - 1]
        if tokens[end - 1].text != name:
            found += (definition[at:begin], _quoted(name))
            at = behind
    return "".join((*found, definition[at:]))


def with_column_list(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a CREATE VIEW, with the names of its list in the select list; unchanged without a list, or where
    ``*`` stands for columns that no text has (``has_other_names``)."""
    names, lists = _column_list(tokens)
    if not names or not _fits(tokens, names, lists):
        return tokens
    found, begin = list[Token](), 0
    for (first, behind), name in zip(lists, names, strict=True):
        item = tokens[first:behind]
        found += (*tokens[begin:first], *without_alias(item), _AS, Token(TokenKind.NAME, name.text))
        begin = behind
    return (*found, *tokens[begin:])


def has_other_names(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE VIEW gives its columns names, and no text tells which columns of its tables they are."""
    names, lists = _column_list(tokens)
    return bool(names) and not _fits(tokens, names, lists)


def _column_list(tokens: Sequence[Token]) -> tuple[Sequence[Token], Sequence[tuple[int, int]]]:
    """The names in the list of a CREATE VIEW, none without a list; and the places of its select list."""
    at = next((at for at, token in enumerate(tokens) if token.upper == "VIEW"), len(tokens)) + 1
    while at < len(tokens) and tokens[at].upper in ("IF", "NOT", "EXISTS"):
        at += 1
    at += 3 if at + 1 < len(tokens) and is_symbol(tokens[at + 1], ".") else 1
    if at >= len(tokens) or not is_symbol(tokens[at], "("):
        return (), ()
    end = next((place for place in range(at, len(tokens)) if is_symbol(tokens[place], ")")), len(tokens))
    return [token for token in tokens[at + 1 : end] if token.kind in _NAMES], list(_select_list(tokens, end + 2))


def _fits(tokens: Sequence[Token], names: Sequence[Token], lists: Sequence[tuple[int, int]]) -> bool:
    return len(lists) == len(names) and not any(is_symbol(tokens[behind - 1], "*") for _, behind in lists)


def _select_list(tokens: Sequence[Token], at: int) -> Iterator[tuple[int, int]]:
    """Where each element of the first select list of a query begins and ends; the query begins at ``at``."""
    outer, depth, begin = 0, 0, -1
    while at + outer < len(tokens) and is_symbol(tokens[at + outer], "("):
        outer += 1
    for place in range(at, len(tokens)):
        token = tokens[place]
        depth -= is_symbol(token, ")")
        if begin < 0:
            begin = place + 1 if depth == outer and token.upper == "SELECT" else -1
        elif depth < outer or (depth == outer and (token.upper in _ENDS or is_symbol(token, ";"))):
            yield begin, place
            return
        elif depth == outer and is_symbol(token, ","):
            yield begin, place
            begin = place + 1
        depth += is_symbol(token, "(")
    if begin >= 0:
        yield begin, len(tokens)


def _in_front(names: Sequence[str], definition: str) -> str:
    return f"({','.join(map(_quoted, names))}) as {definition}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
