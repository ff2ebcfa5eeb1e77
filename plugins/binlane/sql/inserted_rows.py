"""The rows that an INSERT or REPLACE has in its text, as far as numbers of an AUTO_INCREMENT go by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from binlane.model import number_of
from binlane.sql.charset import dialect_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, every_token
from binlane.sql.parse.unsafe import is_query_of_rows, row_verb

_LISTS: Final = ("VALUES", "VALUE")
_TAKES: Final = re.compile(r"NULL|DEFAULT|'?0+'?|''", re.IGNORECASE)
"""A value in place of which a row may take a number; 0 does not under NO_AUTO_VALUE_ON_ZERO, and is below all then."""
_INTEGER: Final = re.compile(r"[0-9]+")


def list_of_rows(tokens: Sequence[Token]) -> int | None:
    """The index of VALUES in an INSERT or REPLACE whose rows are in its text; None for SET, and for any other."""
    if row_verb(tokens) not in ("INSERT", "REPLACE") or has_query_of_rows(tokens):
        return None
    depth = 0
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and token.upper in _LISTS:
            return at
    return None


def has_query_of_rows(tokens: Sequence[Token]) -> bool:
    """As ``is_query_of_rows``; VALUES ROW(), of which the server does not count the rows before, is a query, too."""
    if is_query_of_rows(tokens):
        return True
    at = next((at for at, token in enumerate(tokens) if token.upper in _LISTS), len(tokens))
    return [token.upper for token in tokens[at + 1 : at + 2]] == ["ROW"] or (at > 0 and is_symbol(tokens[at - 1], "("))


def gives_one_row(text: LoggedText) -> bool:
    """Whether an INSERT or REPLACE has one row in its text."""
    if row_verb(text.tokens) not in ("INSERT", "REPLACE") or has_query_of_rows(text.tokens):
        return False
    if (begin := list_of_rows(text.tokens)) is None:
        return "SET" in text.words
    if "/*!" in text.sql or "/*M!" in text.sql:
        # a row may be in a conditional comment
        return False
    rows = rows_of_text(text, begin)
    next(rows, None)
    return next(rows, None) is None


def _whole(value: Sequence[str]) -> str:
    return value[0] if len(value) == 1 else ""


def rows_of_text(
    text: LoggedText, begin: int, read: Callable[[Sequence[str]], str] = _whole
) -> Iterator[Sequence[str]]:
    """The rows behind the VALUES at ``begin``: of each what ``read`` makes of its values' tokens; without it values of
    one token, else ""."""
    depth, row, value = 0, list[str](), list[str]()
    for token in every_token(text.sql, dialect_of(text.context, text.flavor), text.places[begin][1]):
        if depth == 0 and token not in ("(", ","):
            return
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == ")":
            yield (*row, read(value))
        if depth == 1 and token in ("(", ","):
            row = [] if token == "(" and not value else [*row, read(value)]
            value = []
        elif depth:
            value.append(token)
        else:
            row, value = [], []


def numbers_in_between(rows: Iterable[Sequence[str]], place: int, first: int) -> bool:
    """Whether a row may take a number behind one that a row before it gives, and that is not below ``first``: the
    server has reserved the numbers up to there, and reserves others then. ``place``: of the column in each row."""
    has_taken = has_given = False
    for row in rows:
        value = row[place] if place < len(row) else "DEFAULT"
        if _TAKES.fullmatch(value) is not None:
            if has_given:
                return True
            has_taken = True
        elif has_taken:
            has_given = has_given or _INTEGER.fullmatch(value) is None or number_of(value) >= first
    return False
