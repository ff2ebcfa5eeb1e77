"""Functions and operators that MySQL and MariaDB both have, and that give other values of the same arguments.

A statement in the log of one family that the other one executes would write other values than the source did. The list
is of what differs for arguments of the types that the function is for, and of what differs by a literal that stands
there; the sweep ``tests/trials/test_other_answers.py`` asks servers of both families. MySQL keeps a JSON document in an
order of keys of its own and MariaDB its text; MariaDB divides exact numbers with more digits; the two have other
libraries for regular expressions and geometry, of whose functions only those are alike that the sweep has shown to be.
No text tells the types of columns: what differs for a number beside a text, or for a binary string taken as a number,
is known by literals alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, every_string

_NAMES: Final = """
JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_CONTAINS JSON_EXTRACT JSON_INSERT JSON_KEYS JSON_MERGE
JSON_MERGE_PATCH JSON_MERGE_PRESERVE JSON_OBJECT JSON_OBJECTAGG JSON_PRETTY JSON_REMOVE JSON_REPLACE JSON_SEARCH
JSON_SET JSON_TYPE JSON_VALID JSON_VALUE
REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR
ADDTIME SUBTIME TIMEDIFF TIME_FORMAT TIME_TO_SEC LOG2
BIT_AND BIT_COUNT BIT_OR BIT_XOR CONVERT_TZ FROM_DAYS WEIGHT_STRING
"""
_FUNCTIONS: Final = frozenset(_NAMES.split())
_OPERATORS: Final = frozenset({"REGEXP", "RLIKE"})
_SPATIAL: Final = ("ST_", "MBR")
_MEASURED_ALIKE: Final = """
ST_ASBINARY ST_ASWKB ST_ENDPOINT ST_EXTERIORRING ST_GEOMETRYN ST_INTERIORRINGN ST_NUMGEOMETRIES ST_NUMINTERIORRINGS
ST_NUMPOINTS ST_POINTN ST_SRID ST_STARTPOINT ST_X ST_Y
"""
_SPATIAL_ALIKE: Final = frozenset(_MEASURED_ALIKE.split())
_MADE_GEOMETRY: Final = re.compile(r"ST_\w+FROM(?:TEXT|WKB)")
"""Alike without a reference system, of which each family has axes of its own."""
_NOW: Final = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_HOURS: Final = re.compile("DAY_.*|HOUR.*")
_MAY_HAVE: Final = re.compile(
    rb"/|\b(?:JSON_|REGEXP|ST_|MBR|RLIKE|ADDTIME|SUBTIME|TIMEDIFF|TIME_FORMAT|TIME_TO_SEC|LOG2|BINARY|BIT_|CONVERT_TZ"
    rb"|FROM_DAYS|FROM_UNIXTIME|UNIX_TIMESTAMP|WEIGHT_STRING|GREATEST|LEAST|EXTRACT|[LR]PAD|[xX]'|MULTIPOINT)|[-+]\d\d:\d\d['\"]",
    re.IGNORECASE,
)
_OFFSET: Final = re.compile(r"[nN]?(['\"])\s*\d[\dT :./-]{7,}[-+]\d\d:\d\d\1", re.IGNORECASE)
"""A time with an offset, which MariaDB leaves out."""
_LATE: Final = re.compile(r"\d{11}|[3-9]\d{9}|2[1-9]\d{8}|[\d.]+e", re.IGNORECASE)
"""2,100,000,000, in front of the last second of 32 bits, or later."""
_POINTS: Final = re.compile(r"\bMULTIPOINT\s*\(\s*\(\s*[-+.\d]", re.IGNORECASE)
_EMPTY: Final = ("''", '""')
_ON_NUMBERS: Final = frozenset({"-", "+", "*", "%", "&", "|", "^", "~", "<<", ">>", "DIV", "MOD"})
BETWEEN_FAMILIES: Final = " between the families"
"""End of the name of such a part."""


def may_have_other_answer(sql: bytes) -> bool:
    """Whether a statement may have such a part, and is worth to be read by tokens."""
    return _MAY_HAVE.search(sql) is not None


def other_literal(sql: str, dialect: Dialect, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> str | None:
    """The first literal that the families read otherwise, or None: MariaDB leaves an offset out, and has no number in
    X'..'. Tokens and their places as ``lexer.lex`` gives them."""
    if _OFFSET.search(sql) is not None and any(_OFFSET.fullmatch(each) for each in every_string(sql, dialect)):
        return f"a time with an offset{BETWEEN_FAMILIES}"
    written = [
        token._replace(text=sql[begin:end]) if token.kind in (TokenKind.STRING, TokenKind.NUMBER) else token
        for token, (begin, end) in zip(tokens, places, strict=True)
    ]
    for at, token in enumerate(written):
        if token.kind is TokenKind.STRING:
            beside = (each.upper or each.text for each in (*written[max(0, at - 1) : at], *written[at + 1 : at + 2]))
            if token.text[:2].upper() == "X'" and not _ON_NUMBERS.isdisjoint(beside):
                return f"X'..' as a number{BETWEEN_FAMILIES}"
            if _POINTS.search(token.text) is not None:
                return f"MULTIPOINT with parentheses{BETWEEN_FAMILIES}"
        elif token.upper in _BY_LITERALS and at + 1 < len(written) and is_symbol(written[at + 1], "("):
            what, has_one = _BY_LITERALS[token.upper]
            if has_one(_arguments(written, at)):
                return what + BETWEEN_FAMILIES
    return None


def _pads_nothing(arguments: Sequence[Sequence[Token]]) -> bool:
    return len(arguments) > 2 and [token.text for token in arguments[2]] in ([each] for each in _EMPTY)


def _is_late(arguments: Sequence[Sequence[Token]]) -> bool:
    return bool(arguments) and _LATE.match(arguments[0][0].text) is not None


_BY_LITERALS: Final[Mapping[str, tuple[str, Callable[[Sequence[Sequence[Token]]], bool]]]] = {
    "LPAD": ("LPAD() or RPAD() with nothing", _pads_nothing),
    "RPAD": ("LPAD() or RPAD() with nothing", _pads_nothing),
    "FROM_UNIXTIME": ("FROM_UNIXTIME() behind 2036", _is_late),
}


def other_answer(tokens: Sequence[Token], alike: Collection[str] = ()) -> str | None:
    """The first such part, or None. Tokens as ``lexer.lex`` gives them; ``alike``: functions that are none here."""
    for at, token in enumerate(tokens):
        is_open = at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")
        if is_symbol(token, "/"):
            found = "/"
        elif token.kind is TokenKind.NAME:
            # a function whose name is no word of the grammar may be quoted
            found = _function(token.text.upper(), tokens, at) if is_open else ""
        elif token.upper in _OPERATORS:
            found = token.upper
        elif token.upper == "BINARY":
            found = "CAST AS BINARY" if is_open and at > 0 and tokens[at - 1].upper == "AS" else ""
        else:
            found = _function(token.upper, tokens, at) if is_open else ""
        if found and found.removesuffix("()") not in alike:
            return found + BETWEEN_FAMILIES
    return None


def _function(name: str, tokens: Sequence[Token], at: int) -> str:
    """The function's name if it is such a part of these arguments, or "". ``at``: the place of its name."""
    if name in _FUNCTIONS:
        return f"{name}()"
    if name.startswith(_SPATIAL):
        if name in _SPATIAL_ALIKE:
            return ""
        differs = _MADE_GEOMETRY.fullmatch(name) is None or _has_reference(_arguments(tokens, at))
        return f"{name}()" if differs else ""
    differs_by = _BY_ARGUMENTS.get(name)
    return f"{name}()" if differs_by is not None and differs_by(_arguments(tokens, at)) else ""


def _arguments(tokens: Sequence[Token], at: int) -> Sequence[Sequence[Token]]:
    """The tokens of each argument in the parentheses behind ``at``."""
    # few windows need it
    from binlane.sql.parse.query_blocks import call_end, items

    # a text that no server takes may lack one
    return [each for each in items(tokens[at + 2 : call_end(tokens, at + 1)]) if each]


def _has_reference(arguments: Sequence[Sequence[Token]]) -> bool:
    return len(arguments) > 1 and [token.text for token in arguments[1]] != ["0"]


def _has_text(arguments: Sequence[Sequence[Token]]) -> bool:
    return any(argument and argument[0].kind is TokenKind.STRING for argument in arguments)


def _is_not_now(arguments: Sequence[Sequence[Token]]) -> bool:
    return len(arguments) > 0 and arguments[0][0].upper not in _NOW


def _is_no_number(arguments: Sequence[Sequence[Token]]) -> bool:
    if not arguments or arguments[0][0].upper == "UNIX_TIMESTAMP":
        return False
    return [token.kind for token in arguments[0]] != [TokenKind.NUMBER]


def _takes_hours(arguments: Sequence[Sequence[Token]]) -> bool:
    return len(arguments) > 0 and _HOURS.fullmatch(arguments[0][0].upper) is not None


_BY_ARGUMENTS: Final[Mapping[str, Callable[[Sequence[Sequence[Token]]], bool]]] = {
    # compared as numbers or as texts
    "GREATEST": _has_text,
    "LEAST": _has_text,
    "FROM_UNIXTIME": _is_no_number,
    # before 1970 NULL or 0
    "UNIX_TIMESTAMP": _is_not_now,
    # of a TIME of more than a day
    "EXTRACT": _takes_hours,
}
