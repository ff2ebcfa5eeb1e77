"""Whether a statement's result depends on rows that its table, or another one, has already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.queries import FROM_IN_CALLS
from binlane.sql.parse.row_statements import ignores_errors

_CHANGING: Final = frozenset({"UPDATE", "DELETE"})
LIMIT: Final = "LIMIT"
_FILLING: Final = frozenset({"INSERT", "REPLACE"})
_OF_CALLS: Final = {"FROM": FROM_IN_CALLS, "USING": ("CONVERT", "CHAR")}
"""Words that functions have between their parentheses: of them they name no table."""
_LISTS: Final = ("INDEX", "KEY", "PARTITION")
"""Words with a list of other names than those of tables."""
_BEFORE_EVENT: Final = ("BEFORE", "AFTER", "OR", "ON", "KEY")
"""Words behind which UPDATE begins no statement: it is a trigger's event, say."""


def met_rows(tokens: Sequence[Token]) -> str | None:
    """By what a statement, or a body, may find rows of whose number or values its result depends; None if it only sets
    values of the rows that its WHERE clause names, or inserts those of its text. REPLACE is none of these: the row is
    the text's, whatever was there."""
    before = list(_words_before(tokens))
    words = [
        "" if of_call in _OF_CALLS.get(token.upper, ()) else token.upper
        for token, of_call in zip(tokens, before, strict=True)
    ]
    pairs = set(pairwise(words))
    if ("ON", "DUPLICATE") in pairs:
        return "ON DUPLICATE KEY UPDATE"
    if ignores_errors(tokens):
        return "IGNORE"
    if "SELECT" in words and any(word == "FROM" and after != "DUAL" for word, after in pairs):
        return "a query"
    if _CHANGING.isdisjoint(words):
        return "a query" if "TABLE" in words and words[0] in _FILLING else None
    if "JOIN" in words or "USING" in words or _has_list(tokens, before):
        return "a join"
    return LIMIT if LIMIT in words else None


def _words_before(tokens: Sequence[Token]) -> Iterator[str]:
    """For each token the word in front of the parentheses that it stands in; empty if it stands in none."""
    found = [""]
    for at, token in enumerate(tokens):
        if is_symbol(token, ")") and len(found) > 1:
            found.pop()
        yield found[-1]
        if is_symbol(token, "("):
            found.append(tokens[at - 1].upper if at > 0 else "")


def _has_list(tokens: Sequence[Token], before: Sequence[str]) -> bool:
    """Whether an UPDATE has several tables in front of SET. ``before``: ``_words_before``."""
    is_of_tables = False
    for at, token in enumerate(tokens):
        if token.upper == "UPDATE":
            is_of_tables = not at or tokens[at - 1].upper not in _BEFORE_EVENT
        elif token.upper == "SET" or is_symbol(token, ";"):
            is_of_tables = False
        elif is_of_tables and is_symbol(token, ",") and before[at] not in _LISTS:
            return True
    return False
