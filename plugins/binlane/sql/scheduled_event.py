"""CREATE EVENT and ALTER EVENT are executed with DISABLE ON SLAVE, as a replica does it.

Otherwise the event would run on both servers, and its changes on the source would arrive through the log as well.
Grammar: https://dev.mysql.com/doc/refman/9.0/en/create-event.html, https://mariadb.com/kb/en/create-event/
"""

from __future__ import annotations

import contextlib
import re
from typing import Final, NamedTuple

from binlane.sql.charset import masked
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

DISABLED: Final = "DISABLE ON SLAVE"
"""What every version of both families reads. MySQL has the word REPLICA here since 8.2.0 alone, and keeps SLAVE."""


class _Token(NamedTuple):
    token: Token
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.token.upper in words


def disabled(statement: bytes, charset: str, dialect: Dialect) -> bytes:
    """The statement for the target: unchanged unless it creates or alters a scheduled event. ``dialect``: the target's,
    in the session of the statement."""
    if re.search(rb"\bEVENT\b", statement, re.I) is None:
        return statement
    tokens = _tokens(masked(statement, charset), dialect)
    keyword = _event_keyword(tokens)
    if keyword is None:
        return statement
    start, end = _place_of_status(tokens[keyword:])
    return statement[:start] + f" {DISABLED} ".encode() + statement[end:]


def _tokens(text: str, dialect: Dialect) -> list[_Token]:
    """As the target reads them, up to where it cannot: what it takes for a comment decides nothing."""
    tokens, places = list[Token](), list[tuple[int, int]]()
    with contextlib.suppress(Unreadable):
        lex(text, dialect, tokens, places)
    return [_Token(token, *place) for token, place in zip(tokens, places, strict=False)]


def _event_keyword(tokens: list[_Token]) -> int | None:
    """The index of EVENT in CREATE [OR REPLACE] [DEFINER = ...] EVENT or ALTER [DEFINER = ...] EVENT; None in other
    statements."""
    if not tokens or not tokens[0].is_word("CREATE", "ALTER"):
        return None
    at = 1
    if len(tokens) > 2 and tokens[1].is_word("OR") and tokens[2].is_word("REPLACE"):
        at = 3
    if at < len(tokens) and tokens[at].is_word("DEFINER"):
        at = _after_definer(tokens, at + 1)
    return at if at < len(tokens) and tokens[at].is_word("EVENT") else None


def _after_definer(tokens: list[_Token], at: int) -> int:
    """The index behind ``= user@host``, ``= CURRENT_USER`` or ``= CURRENT_USER()``, where the object's kind stands."""
    kinds = ("EVENT", "FUNCTION", "PROCEDURE", "TRIGGER", "VIEW", "SQL", "AGGREGATE", "PACKAGE")
    while at < len(tokens) and not (tokens[at].is_word(*kinds) and tokens[at - 1].token.text not in ("=", "@")):
        at += 1
    return at


def _place_of_status(tokens: list[_Token]) -> tuple[int, int]:
    """Begin and end of the text that the status replaces: by the grammar behind the schedule, before COMMENT and DO."""
    depth = 0
    insert_at = tokens[-1].end if tokens[-1].token.text != ";" else tokens[-1].start
    removed: tuple[int, int] | None = None
    for at, token in enumerate(tokens[1:], start=1):
        depth += is_symbol(token.token, "(") - is_symbol(token.token, ")")
        if depth or token.token.kind is not TokenKind.WORD or is_symbol(tokens[at - 1].token, "."):
            continue
        if token.is_word("COMMENT", "DO") and _behind_name(tokens, at):
            insert_at = token.start
            break
        if token.is_word("ENABLE", "DISABLE") and _behind_name(tokens, at):
            removed = (token.start, _status_end(tokens, at))
    return (insert_at, insert_at) if removed is None else removed


def _behind_name(tokens: list[_Token], at: int) -> bool:
    """Whether a word is a clause and not the event's name, which may be an unreserved word such as ``comment``."""
    return not tokens[at - 1].is_word("EVENT", "EXISTS", "TO")


def _status_end(tokens: list[_Token], at: int) -> int:
    following = tokens[at + 1 : at + 3]
    if len(following) == 2 and following[0].is_word("ON") and following[1].is_word("SLAVE", "REPLICA"):
        return following[1].end
    return tokens[at].end
