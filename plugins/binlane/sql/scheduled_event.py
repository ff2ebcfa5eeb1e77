"""CREATE EVENT and ALTER EVENT are executed with DISABLE ON SLAVE, as a replica does it.

Otherwise the event would run on both servers, and its changes on the source would arrive through the log as well.
One that says DISABLE stays so, other than on a replica: the target alone keeps which events ran on the source, for
whoever puts it in the source's place. (ALTER EVENT without a status gets DISABLE ON SLAVE, whatever the event had.)
A server evaluates the schedule when the event is made or altered, in the session that does it (``init_execute_at()``
and its like in ``Event_parse_data`` of both families). So it may call functions of times, numbers and texts alone: no
lock of the session is given up there, nothing waits, and no function of a library runs.
Grammar: https://dev.mysql.com/doc/refman/9.0/en/create-event.html, https://mariadb.com/kb/en/create-event/
"""

from __future__ import annotations

import contextlib
import re
from typing import Final, NamedTuple

from binlane.errors import PlanError
from binlane.model import Flavor
from binlane.sql.charset import masked
from binlane.sql.parse.cursor import Cursor, account_end, is_symbol
from binlane.sql.parse.functions import BUILTIN
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.set_statement import clause_of
from binlane.sql.parse.unsafe import UNSAFE_FUNCTIONS

DISABLED: Final = "DISABLE ON SLAVE"
"""What every version of both families reads. MySQL has the word REPLICA here since 8.2.0 alone, and keeps SLAVE."""


_EFFECTS: Final = frozenset(["BENCHMARK", "LAST_INSERT_ID", "MASTER_POS_WAIT", "NEXTVAL", "RANDOM_BYTES", "SETVAL"])
"""Functions that move something, or take time; besides those that ``parse.unsafe`` has."""
_OF_TIMES: Final = frozenset({"SYSDATE", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_BEFORE_PARENTHESIS_WORDS: Final = """
AT EVERY STARTS ENDS INTERVAL AND OR XOR NOT DIV MOD IN BETWEEN CASE WHEN THEN ELSE LIKE IS AS CHAR DATETIME
"""
_BEFORE_PARENTHESIS: Final = frozenset(_BEFORE_PARENTHESIS_WORDS.split())
"""Words of expressions that call nothing."""


class _Token(NamedTuple):
    token: Token
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        return self.token.upper in words


def disabled(statement: bytes, charset: str, dialect: Dialect) -> bytes:
    """The statement for the target: unchanged unless it creates or alters a scheduled event. ``dialect``: the target's,
    in the session of the statement. Raises PlanError for a schedule that calls what is no function of times."""
    if re.search(rb"\bEVENT\b", statement, re.I) is None:
        return statement
    tokens = _tokens(masked(statement, charset), dialect)
    keyword = _event_keyword(tokens)
    if keyword is None:
        return statement
    if (call := _call(tokens[_name_end(tokens, keyword) :], dialect.flavor)) is not None:
        raise PlanError(
            f"an event: expected a schedule of times, intervals and functions of times, found {call}, which the target "
            "would run when it makes the event; give the event a schedule of literals on the source, and take a window "
            "that begins behind this one, or make it on the target by hand and leave this one out (binlane skip)"
        )
    place = _place_of_status(tokens, _name_end(tokens, keyword))
    return statement if place is None else statement[: place[0]] + f" {DISABLED} ".encode() + statement[place[1] :]


def schedule_call(statement: bytes, charset: str, dialect: Dialect) -> str | None:
    """What the schedule in CREATE or ALTER EVENT calls or reads that is no function of times; None if there is nothing,
    and for all other statements."""
    if re.search(rb"\bEVENT\b", statement, re.I) is None:
        return None
    tokens = _tokens(masked(statement, charset), dialect)
    keyword = _event_keyword(tokens)
    return None if keyword is None else _call(tokens[_name_end(tokens, keyword) :], dialect.flavor)


def _call(tokens: list[_Token], flavor: Flavor) -> str | None:
    """Of the tokens behind the event's name, up to the body."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += is_symbol(token.token, "(") - is_symbol(token.token, ")")
        if depth == 0 and token.is_word("DO", "COMMENT") and not _is_new_name(tokens, at):
            return None
        is_sequence = token.is_word("NEXT", "PREVIOUS") and at + 1 < len(tokens) and tokens[at + 1].is_word("VALUE")
        if is_sequence or token.is_word("SELECT") or is_symbol(token.token, ":="):
            return token.token.text
        before = tokens[at - 1].token if at else None
        if before is None or not is_symbol(token.token, "(") or before.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        is_of_database = at > 1 and is_symbol(tokens[at - 2].token, ".")
        if is_of_database or not _is_harmless(before.upper, flavor):
            return f"{before.text}()"
    return None


def _is_harmless(word: str, flavor: Flavor) -> bool:
    """Whether a word in front of a parenthesis is a function of the server's that only computes, or none."""
    if word in _OF_TIMES | _BEFORE_PARENTHESIS:
        return True
    return word in BUILTIN[flavor] and word not in UNSAFE_FUNCTIONS | _EFFECTS


def _tokens(text: str, dialect: Dialect) -> list[_Token]:
    """As the target reads them, up to where it cannot: what it takes for a comment decides nothing."""
    tokens, places = list[Token](), list[tuple[int, int]]()
    with contextlib.suppress(Unreadable):
        lex(text, dialect, tokens, places)
    return [_Token(token, *place) for token, place in zip(tokens, places, strict=False)]


def _event_keyword(tokens: list[_Token]) -> int | None:
    """The index of EVENT in CREATE [OR REPLACE] [DEFINER = ...] EVENT or ALTER [DEFINER = ...] EVENT, behind MariaDB's
    SET STATEMENT; None in other statements."""
    plain = [each.token for each in tokens]
    try:
        at = clause_of(plain).body
    except Unreadable:
        return None
    cursor = Cursor(plain, at)
    if cursor.any_word("CREATE", "ALTER") is None:
        return None
    cursor.words("OR", "REPLACE")
    if cursor.words("DEFINER"):
        cursor.symbol("=")
        cursor.at = account_end(plain, cursor.at)
    return cursor.at if cursor.peek().upper == "EVENT" else None


def _name_end(tokens: list[_Token], keyword: int) -> int:
    """The index behind the event's name, which may be any word that is not reserved: ``do``, ``comment``, ``event``."""
    at = keyword + 1
    while at < len(tokens) and tokens[at].is_word("IF", "NOT", "EXISTS"):
        at += 1
    return at + (3 if at + 1 < len(tokens) and is_symbol(tokens[at + 1].token, ".") else 1)


def _place_of_status(tokens: list[_Token], begin: int) -> tuple[int, int] | None:
    """Begin and end of the text that the status replaces: by the grammar behind the schedule, before COMMENT and DO;
    None if it is DISABLE, which stays. ``begin``: the index behind the event's name."""
    depth = 0
    insert_at = tokens[-1].end if tokens[-1].token.text != ";" else tokens[-1].start
    removed = list[tuple[int, int]]()
    is_off = False
    for at, token in enumerate(tokens[begin:], begin):
        depth += is_symbol(token.token, "(") - is_symbol(token.token, ")")
        if depth or _is_new_name(tokens, at):
            continue
        if token.is_word("COMMENT", "DO"):
            insert_at = token.start
            break
        if token.is_word("ENABLE", "DISABLE"):
            removed.append((token.start, _status_end(tokens, at)))
            is_off = token.is_word("DISABLE") and removed == [(token.start, token.end)]
    if is_off:
        return None
    return removed[-1] if removed else (insert_at, insert_at)


def _is_new_name(tokens: list[_Token], at: int) -> bool:
    """Whether a word is the name in ALTER EVENT .. RENAME TO, which may be that of a clause."""
    return at > 0 and tokens[at - 1].is_word("TO")


def _status_end(tokens: list[_Token], at: int) -> int:
    following = tokens[at + 1 : at + 3]
    if len(following) == 2 and following[0].is_word("ON") and following[1].is_word("SLAVE", "REPLICA"):
        return following[1].end
    return tokens[at].end
