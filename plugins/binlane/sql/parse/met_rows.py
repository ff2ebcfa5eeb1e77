"""Whether a statement's result depends on rows that its table, or another one, has already."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.row_statements import ignores_errors

_CHANGING: Final = frozenset({"UPDATE", "DELETE"})
_FILLING: Final = frozenset({"INSERT", "REPLACE"})


def met_rows(tokens: Sequence[Token]) -> str | None:
    """By what a statement, or a body, may find rows of whose number or values its result depends; None if it only sets
    values of the rows that its WHERE clause names, or inserts those of its text. REPLACE is none of these: the row is
    the text's, whatever was there."""
    words = [token.upper for token in tokens]
    pairs = set(pairwise(words))
    if ("ON", "DUPLICATE") in pairs:
        return "ON DUPLICATE KEY UPDATE"
    if ignores_errors(tokens):
        return "IGNORE"
    if "SELECT" in words and any(word == "FROM" and after != "DUAL" for word, after in pairs):
        return "a query"
    if _CHANGING.isdisjoint(words):
        return "a query" if "TABLE" in words and words[0] in _FILLING else None
    if "JOIN" in words or "USING" in words or _has_list(tokens):
        return "a join"
    return "LIMIT" if "LIMIT" in words else None


def _has_list(tokens: Sequence[Token]) -> bool:
    """Whether an UPDATE has several tables in front of SET."""
    words = [token.upper for token in tokens]
    if "UPDATE" not in words or "SET" not in words:
        return False
    return any(
        is_symbol(each, ",") for each in tokens[words.index("UPDATE") : words.index("SET", words.index("UPDATE"))]
    )
