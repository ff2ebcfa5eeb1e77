"""What is added to a column, or compared with it, row by row: whether it leaves the same in any order, by the types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
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
_KEEPING: Final = OR_NULL | _INSERTED | {"IF", "ABS", "GREATEST", "LEAST"}
"""Functions whose results have no more digits behind the point than their arguments."""
_DIGITS: Final = re.compile(r"[0-9]*\.?([0-9]*)")
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


class _Leaf(NamedTuple):
    """A number in an expression."""

    scale: int
    nullable: bool


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
    begins_anew = value[0].upper in OR_NULL
    for at, term in enumerate(_terms(value)):
        leaves = list(_leaves(term, type_of))
        scales = [each.scale for each in leaves if each is not None]
        is_product = any(is_symbol(token, "*") for token in term)
        if len(scales) < len(leaves) or (sum(scales) if is_product else max(scales, default=0)) > scale:
            return False
        if at and begins_anew and any(each is None or each.nullable for each in leaves):
            return False
    return True


def _has_no_ties(column: Definition, value: Sequence[Token], type_of: TypeOf) -> bool:
    """Whether GREATEST or LEAST takes no value for another one, and compares all of them in one way."""
    _, *others = items(value[2:-1])
    if scale_of(column) is not None:
        # what is rounded behind a comparison is the greatest one, too
        return not any(leaf is None for each in others for leaf in _leaves(each, type_of))
    if differs(column):
        return False
    for each in others:
        inserted = each[2:-1] if each[0].upper in _INSERTED and _is_called(each, 0) else each
        name = plain_column(inserted)
        of = None if name is None else type_of(name)
        if of is None or not are_alike(column, of):
            return False
    return True


def _terms(value: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What is added and subtracted, outside of parentheses."""
    begin = depth = 0
    for at, token in enumerate(value):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and is_symbol(token, "+", "-"):
            yield value[begin:at]
            begin = at + 1
    yield value[begin:]


def _leaves(tokens: Sequence[Token], type_of: TypeOf) -> Iterator[_Leaf | None]:
    """The exact numbers of an expression; None for whatever may be another value."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        behind = at + 1
        if token.kind is TokenKind.NUMBER:
            yield _literal(token.text)
        elif token.kind is TokenKind.WORD and _is_called(tokens, at):
            if token.upper not in _KEEPING:
                yield None
            behind = call_end(tokens, at + 1) + 1
            inner = list(items(tokens[at + 2 : behind - 1]))
            leaves = [leaf for each in inner for leaf in _leaves(each, type_of)]
            is_given = token.upper in OR_NULL and [each.kind for each in inner[-1]] == [TokenKind.NUMBER]
            yield from (each and each._replace(nullable=each.nullable and not is_given) for each in leaves)
        elif token.kind in _NAMES:
            while behind + 1 < len(tokens) and is_symbol(tokens[behind], "."):
                behind += 2
            yield _named(tokens[at:behind], type_of)
        elif token.kind is not TokenKind.SYMBOL or is_symbol(token, "/"):
            yield None
        at = behind


def _named(tokens: Sequence[Token], type_of: TypeOf) -> _Leaf | None:
    if len(tokens) == 1 and tokens[0].upper in ("NULL", "TRUE", "FALSE"):
        return _Leaf(0, nullable=tokens[0].upper == "NULL")
    name = next(columns_in(tokens), None)
    of = None if name is None else type_of(name)
    scale = None if of is None else scale_of(of)
    return None if of is None or scale is None else _Leaf(scale, of.nullable)


def _literal(text: str) -> _Leaf | None:
    match = _DIGITS.fullmatch(text) if text else None
    if match is None:
        return None
    return _Leaf(len(match[1]) if "." in text else 0, nullable=False)


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    return at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")
