"""What is added to a column, or compared with it, row by row: whether it leaves the same in any order, by the types."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from binlane.model import number_of
from binlane.schema.common_values import UNKNOWN_CHARSET, are_alike, differs
from binlane.schema.kept_values import scale_of
from binlane.schema.model import Column as Definition
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Column, call_end, columns_in, items, plain_column
from binlane.sql.parse.row_effects import OR_NULL, Change

TypeOf: TypeAlias = Callable[[Column], Definition | None]
"""The definition of what a name in a value stands for: a column, or a variable; None if that is not known."""

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_INSERTED: Final = frozenset({"VALUES", "VALUE"})
_KEEPING: Final = OR_NULL | _INSERTED | {"", "IF", "ABS", "GREATEST", "LEAST"}
"""Functions whose results have no more digits behind the point than their arguments; empty: parentheses alone."""
_ROUNDING: Final = frozenset({"ROUND", "TRUNCATE", "FLOOR", "CEIL", "CEILING"})
"""Functions that leave so many digits of an exact number as the second argument says; without one, none."""
_CASTS: Final = frozenset({"CAST", "CONVERT"})
_WHOLE_TYPES: Final = frozenset({"SIGNED", "UNSIGNED"})
_COUNTS: Final = frozenset(
    {"CHAR_LENGTH", "CHARACTER_LENGTH", "LENGTH", "OCTET_LENGTH", "BIT_LENGTH", "SIGN"}
    | {"DATEDIFF", "TIMESTAMPDIFF", "TO_DAYS", "YEAR", "MONTH", "DAY", "DAYOFMONTH", "HOUR", "MINUTE", "SECOND"}
)
"""Functions whose results are whole numbers, whatever their arguments are."""
_TYPE_TOKENS: Final = 6
"""How many tokens a type in a cast has at most: DECIMAL(10, 2)."""
_OF_QUOTIENT: Final = 39
"""For digits of a quotient, which a variable of the server decides: more than any column has."""
_UNKNOWN: Final = 1000
"""In place of the digits of what is no exact number, or is not known."""
_ADDED: Final = ("+", "-")
_DIGITS: Final = re.compile(r"[0-9]*+\.?([0-9]*+)")
_SYNONYMS: Final = {
    **dict.fromkeys(("integer", "int4"), "int"),
    **dict.fromkeys(("bool", "boolean", "int1"), "tinyint"),
    **dict.fromkeys(("int3", "middleint"), "mediumint"),
    "int2": "smallint",
    "int8": "bigint",
    **dict.fromkeys(("dec", "numeric", "fixed"), "decimal"),
}
_OTHER_TEXTS: Final = ("date", "time", "datetime", "timestamp")
"""Types of variables, beside those of exact numbers, that are no texts."""


class _Number(NamedTuple):
    """What an expression gives."""

    scale: int
    """Digits behind the point at most."""
    nullable: bool


_NOT_KNOWN: Final = _Number(_UNKNOWN, nullable=True)


class _Call:
    """A function, or parentheses alone, whose end is not read yet."""

    def __init__(self, function: str, begin: int) -> None:
        self.function = function
        self.begin = begin
        """The index of the token that the last argument begins with."""
        self.arguments = [list[_Number]()]
        """Of each, what is added and subtracted."""
        self._operator = "+"
        """The one in front of the next operand; empty behind an operand."""

    def operate(self, text: str) -> None:
        """Reads an operator, or a sign."""
        if self._operator and text in _ADDED:
            return
        self._operator = "+" if text in _ADDED else text if not self._operator else "?"

    def take(self, number: _Number) -> None:
        """Reads an operand."""
        terms, operator = self.arguments[-1], self._operator
        self._operator = ""
        if operator == "+":
            terms.append(number)
            return
        before = terms.pop() if terms else _NOT_KNOWN
        scale = _UNKNOWN
        if operator in ("*", "/"):
            scale = before.scale + number.scale + (_OF_QUOTIENT if operator == "/" else 0)
        elif operator == "%":
            scale = max(before.scale, number.scale)
        # what is divided by 0 is NULL
        terms.append(_Number(scale, before.nullable or number.nullable or operator != "*"))

    def begin_argument(self, at: int) -> None:
        """Reads what separates two arguments."""
        self.begin = at
        self.arguments.append([])
        self._operator = "+"

    def result(self, last: Sequence[Token]) -> _Number:
        """What the call gives. ``last``: the tokens of its last argument."""
        function, every = self.function, [_whole(terms) for terms in self.arguments]
        if function in _COUNTS:
            return _Number(0, nullable=True)
        if function in _CASTS and len(every) == 2:
            return _Number(_cast_scale(last), every[0].nullable)
        if function in _ROUNDING and every[0].scale < _UNKNOWN:
            is_told = len(last) == 1 and last[0].kind is TokenKind.NUMBER and last[0].text.isdecimal()
            digits = number_of(last[0].text) if len(every) > 1 and is_told else 0 if len(every) == 1 else _UNKNOWN
            return _Number(min(every[0].scale, digits), any(each.nullable for each in every))
        if function not in _KEEPING:
            return _NOT_KNOWN
        given = every[1:] if function == "IF" else every
        are_null = all if function in OR_NULL else any
        return _Number(max((each.scale for each in given), default=_UNKNOWN), are_null(each.nullable for each in given))


def declared(name: str, type_tokens: Sequence[Token]) -> Definition:
    """A variable by the tokens of its type, with the texts of numbers; of one that is not known, a text."""
    word = type_tokens[0].text.lower() if type_tokens else ""
    kind = _SYNONYMS.get(word, word)
    listed = items(type_tokens[2 : call_end(type_tokens, 1)]) if _is_called(type_tokens, 0) else ()
    sizes = [number_of(each[0].text) for each in listed if each[0].text.isdecimal()]
    found = Definition(name, 0, kind, scale=(sizes[1] if len(sizes) > 1 else 0) if kind == "decimal" else None)
    is_number = scale_of(found) is not None
    return found if is_number or kind in _OTHER_TEXTS else Definition(name, 0, kind, charset=UNKNOWN_CHARSET)


def leaves_one(change: Change, column: Definition | None, value: Sequence[Token], type_of: TypeOf) -> bool:
    """Whether values of one kind leave the same in a column, whichever of them is taken first.

    ``value``: the whole one, of which ``change`` is the kind. What a strict ``sql_mode`` refuses is no result.
    """
    if column is None or change is Change.OTHER:
        return False
    return _adds_exactly(column, value, type_of) if change is Change.SUM else _has_no_ties(column, value, type_of)


def _adds_exactly(column: Definition, value: Sequence[Token], type_of: TypeOf) -> bool:
    """Whether no sum is rounded, and none begins anew behind a NULL."""
    scale = scale_of(column)
    if scale is None:
        return False
    terms = _terms(value, type_of)
    begins_anew = value[0].upper in OR_NULL and any(each.nullable for each in terms[1:])
    return not begins_anew and all(each.scale <= scale for each in terms)


def _has_no_ties(column: Definition, value: Sequence[Token], type_of: TypeOf) -> bool:
    """Whether GREATEST or LEAST takes no value for another one, and compares all of them in one way."""
    _, *others = items(value[2:-1])
    if scale_of(column) is not None:
        # what is rounded behind a comparison is the greatest one, too
        return all(_whole(_terms(each, type_of)).scale < _UNKNOWN for each in others)
    if differs(column):
        return False
    for each in others:
        inserted = each[2:-1] if each[0].upper in _INSERTED and _is_called(each, 0) else each
        name = plain_column(inserted)
        of = None if name is None else type_of(name)
        if of is None or not are_alike(column, of):
            return False
    return True


def _terms(tokens: Sequence[Token], type_of: TypeOf) -> Sequence[_Number]:
    """What is added and subtracted, outside of parentheses. Each token is read once: calls may be nested deeply."""
    calls = [_Call("", 0)]
    at = 0
    while at < len(tokens):
        token, call, behind = tokens[at], calls[-1], at + 1
        if is_symbol(token, "("):
            calls.append(_Call("", behind))
        elif is_symbol(token, ")"):
            if len(calls) == 1:
                return [_NOT_KNOWN]
            calls.pop()
            calls[-1].take(call.result(tokens[call.begin : at]))
        elif is_symbol(token, ",") or token.upper == "AS":
            call.begin_argument(behind)
        elif token.kind is TokenKind.SYMBOL:
            call.operate(token.text)
        elif token.kind is TokenKind.NUMBER:
            call.take(_literal(token.text))
        elif token.kind is TokenKind.WORD and _is_called(tokens, at):
            behind += 1
            calls.append(_Call(token.upper, behind))
        elif token.kind in _NAMES:
            while behind + 1 < len(tokens) and is_symbol(tokens[behind], "."):
                behind += 2
            call.take(_named(tokens[at:behind], type_of))
        else:
            call.take(_NOT_KNOWN)
        at = behind
    return calls[0].arguments[0] if len(calls) == 1 and len(calls[0].arguments) == 1 else [_NOT_KNOWN]


def _whole(terms: Sequence[_Number]) -> _Number:
    scale = max((each.scale for each in terms), default=_UNKNOWN)
    return _Number(scale, any(each.nullable for each in terms))


def _cast_scale(type_tokens: Sequence[Token]) -> int:
    if type_tokens and type_tokens[0].upper in _WHOLE_TYPES:
        return 0
    scale = scale_of(declared("", type_tokens)) if len(type_tokens) <= _TYPE_TOKENS else None
    return _UNKNOWN if scale is None else scale


def _named(tokens: Sequence[Token], type_of: TypeOf) -> _Number:
    if len(tokens) == 1 and tokens[0].upper in ("NULL", "TRUE", "FALSE"):
        return _Number(0, nullable=tokens[0].upper == "NULL")
    name = next(columns_in(tokens), None)
    of = None if name is None else type_of(name)
    if of is None:
        return _NOT_KNOWN
    scale = scale_of(of)
    return _Number(_UNKNOWN if scale is None else scale, of.nullable)


def _literal(text: str) -> _Number:
    match = _DIGITS.fullmatch(text) if text else None
    if match is None:
        return _NOT_KNOWN
    return _Number(len(match[1]) if "." in text else 0, nullable=False)


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    return at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")
