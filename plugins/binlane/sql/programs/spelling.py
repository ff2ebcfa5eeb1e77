"""The text of a body without what means nothing: comments, and how many blanks stand where one may."""

from __future__ import annotations

import re
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex

_NOTHING: Final = re.compile(r"\s++|/\*(?!\+).*?\*/|--(?=[\x00-\x20\x7f]|\Z)[^\n]*+|#[^\n]*+", re.S)
"""A blank or a comment, but no hint. Of a version comment the lexer leaves the ends alone."""
_TIGHT: Final = re.compile(r"[,;=<>+*/]")
"""Symbols at which no blank changes the meaning; a minus may begin a comment, a parenthesis behind a name a call."""


def bare(text: str, flavor: Flavor, sql_mode: str) -> str:
    """The text with one blank, or none, between its tokens, and without comments; as it is if it cannot be read."""
    modes, tokens, places = sql_mode.split(","), list[Token](), list[tuple[int, int]]()
    try:
        lex(text, Dialect(flavor, "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" in modes), tokens, places)
    except Unreadable:
        return text.strip()
    pieces, end = list[str](), 0
    for begin, behind in places:
        pieces += (_between(text, pieces, end, begin), text[begin:behind])
        end = behind
    return "".join((*pieces, _between(text, pieces, end, len(text)))).strip()


def _between(text: str, before: list[str], end: int, begin: int) -> str:
    gap = text[end:begin]
    if not _is_nothing(gap):
        return gap  # the lexer leaves long lists of literals out
    is_tight = not before or begin == len(text) or _TIGHT.fullmatch(before[-1]) or _TIGHT.match(text, begin)
    return " " if gap and not is_tight else ""


def _is_nothing(gap: str) -> bool:
    at = 0
    while (found := _NOTHING.match(gap, at)) is not None:
        at = found.end()
    return at == len(gap)
