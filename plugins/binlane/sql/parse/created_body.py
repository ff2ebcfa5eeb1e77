"""The body of a routine, trigger or event in the statement with which a server would make it (SHOW CREATE)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Final

from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

TRIGGER: Final = "trigger"
EVENT: Final = "event"
_FOR_EACH_ROW: Final = ["FOR", "EACH", "ROW"]
_ORDER: Final = frozenset({"FOLLOWS", "PRECEDES"})
_PACKAGES: Final = frozenset({"package", "package body"})
_OF_PACKAGE: Final = {"SQL": 3, "COMMENT": 2}
"""Number of tokens of each characteristic."""
_CHARACTERISTICS: Final = re.compile(
    r"(?: {4}(?:NO SQL|READS SQL DATA|MODIFIES SQL DATA)\n)?(?: {4}DETERMINISTIC\n)?(?: {4}SQL SECURITY INVOKER\n)?"
    r"(?: {4}LANGUAGE \w+\n)?(?: {4}COMMENT '(?:[^'\\]|\\.|'')*'\n)?",
    re.DOTALL,
)
"""As both families print them, each on a line of its own, behind the line of the name."""


def body_of(statement: str, kind: str, dialect: Dialect) -> str | None:
    """The body, from its first letter; None if the statement cannot be read up to there."""
    tokens, places = list[Token](), list[tuple[int, int]]()
    # what cannot be read may be the body: the tokens in front of it are there
    with contextlib.suppress(Unreadable):
        lex(statement, dialect, tokens, places)
    if kind == TRIGGER:
        return _of_trigger(statement, tokens, places)
    if kind == EVENT:
        return _of_event(statement, tokens, places)
    return _of_package(statement, tokens, places) if kind in _PACKAGES else _of_routine(statement, tokens, places)


def _of_routine(statement: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> str | None:
    head = _behind_parameters(tokens)
    if head is None:
        return None
    begins = [*(begin for begin, _ in places[head + 1 :]), len(statement)]
    for (_, end), begin in zip(places[head:], begins, strict=True):
        line = statement.find("\n", end, begin)
        if line >= 0:
            match = _CHARACTERISTICS.match(statement, line + 1)
            return statement[line + 1 if match is None else match.end() :]
    return None


def _of_package(statement: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> str | None:
    words = [token.upper for token in tokens]
    if "PACKAGE" not in words:
        return None
    at = words.index("PACKAGE") + 2
    at += words[at - 1 : at] == ["BODY"]
    while at < len(words) and words[at] in _OF_PACKAGE:
        at += _OF_PACKAGE[words[at]]
    return statement[places[at][0] :] if at < len(words) else None


def _of_trigger(statement: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> str | None:
    for at in range(len(tokens) - 3):
        if [token.upper for token in tokens[at : at + 3]] != _FOR_EACH_ROW:
            continue
        behind = at + (5 if tokens[at + 3].upper in _ORDER else 3)
        return statement[places[behind][0] :] if behind < len(tokens) else None
    return None


def _of_event(statement: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> str | None:
    words = [token.upper for token in tokens]
    behind = words.index("DO") + 1 if "DO" in words else len(words)
    return statement[places[behind][0] :] if behind < len(words) else None


def _behind_parameters(tokens: Sequence[Token]) -> int | None:
    """The place of the parenthesis that ends the list of parameters."""
    depth = 0
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
            if token.text == ")" and depth == 0:
                return at
    return None
