"""What stands behind the columns and keys of a SHOW CREATE TABLE: options, each with one value, and partitions.

Read by the lexer, so that what a value, a comment or another option says is no option: a table's owner writes those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

_DIALECT: Final = Dialect(Flavor.MYSQL)
_VALUE: Final = re.compile(r"\w+|'(?:[^'\\]|''|\\.)*'|\(`(?:[^`]|``)+`(?:[.,]`(?:[^`]|``)+`)*\)", re.DOTALL)
"""A word, a number, a text, or tables of a UNION."""
_CONDITION: Final = re.compile(r"/\*!\d*")
_COUNT: Final = re.compile(r"(?<!\s)\s++PARTITIONS \d+")
_FOLDERS: Final = frozenset({"DATA", "INDEX"})


class _Piece(NamedTuple):
    """An option, or the folder of a table or a partition."""

    name: str
    value: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The text behind the columns and keys, without folders, which are of a server's own machine."""

    options: dict[str, str]
    """Values as they are printed, by name in capital letters."""
    partitions: str | None
    rest: str
    """What is neither, each gap as one blank."""


def is_value(text: str) -> bool:
    """Whether a text is one value of an option: no clause can follow in it."""
    return _VALUE.fullmatch(text) is not None


def options_in(text: str) -> dict[str, str]:
    """The options of a text that has nothing else; none if it cannot be read."""
    try:
        tokens, places, _ = _tokens(text)
    except Unreadable:
        return {}
    return {each.name: each.value for each in _pieces(text, tokens, places)}


def table_options(tail: str) -> TableOptions:
    """The options and partitions in ``tail``."""
    try:
        tokens, places, comments = _tokens(tail)
    except Unreadable:
        return TableOptions({}, None, tail)
    number = _partitioned(tokens)
    begin = len(tail) if number is None else _with_condition(tail, places[number][0], comments)
    pieces = list(_pieces(tail, tokens[:number], places[:number]))
    partitions = None
    if number is not None:
        partitions = _without(tail, begin, len(tail), _folders(tail, tokens[number:], places[number:]))
        # MariaDB adds history partitions automatically, each server at its own time
        automatic = "SYSTEM_TIME" in partitions and " AUTO" in partitions
        partitions = (_COUNT.sub("", partitions) if automatic else partitions).strip()
    folders = list(_folders(tail, tokens[:number], places[:number]))
    options = {each.name: each.value for each in pieces if each not in folders}
    return TableOptions(options, partitions, " ".join(_without(tail, 0, begin, pieces).split()))


def _tokens(text: str) -> tuple[list[Token], list[tuple[int, int]], list[tuple[int, int]]]:
    tokens, places, comments = list[Token](), list[tuple[int, int]](), list[tuple[int, int]]()
    lex(text, _DIALECT, tokens, places, comments)
    return tokens, places, comments


def _pieces(text: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> Iterator[_Piece]:
    """Each NAME=VALUE outside of parentheses."""
    depth = 0
    for at, token in enumerate(tokens[:-1]):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth or at == 0 or not is_symbol(token, "=") or tokens[at - 1].kind is not TokenKind.WORD:
            continue
        first = at - 2 if at > 1 and tokens[at - 2].upper in {"DEFAULT", *_FOLDERS} else at - 1
        name = " ".join(each.upper for each in tokens[first:at])
        begin, end = places[at + 1][0], places[_last_of_value(tokens, at + 1)][1]
        yield _Piece(name, text[begin:end], places[first][0], end)


def _last_of_value(tokens: Sequence[Token], at: int) -> int:
    """The index of a value's last token: a value in parentheses has several."""
    depth = 0
    for last in range(at, len(tokens)):
        depth += is_symbol(tokens[last], "(") - is_symbol(tokens[last], ")")
        if depth <= 0:
            return last
    return len(tokens) - 1


def _folders(text: str, tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> Iterator[_Piece]:
    """Each DATA DIRECTORY and INDEX DIRECTORY, with or without an equals sign, those of partitions, too."""
    for at, token in enumerate(tokens):
        if token.upper not in _FOLDERS or at + 1 >= len(tokens) or tokens[at + 1].upper != "DIRECTORY":
            continue
        value = at + 2 + (at + 2 < len(tokens) and is_symbol(tokens[at + 2], "="))
        if value < len(tokens) and tokens[value].kind is TokenKind.STRING:
            begin, end = places[value]
            yield _Piece(f"{token.upper} DIRECTORY", text[begin:end], places[at][0], end)


def _partitioned(tokens: Sequence[Token]) -> int | None:
    """The index of PARTITION BY."""
    depth = 0
    for at, token in enumerate(tokens[:-1]):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and token.upper == "PARTITION" and tokens[at + 1].upper == "BY":
            return at
    return None


def _with_condition(text: str, begin: int, comments: Sequence[tuple[int, int]]) -> int:
    """Where the conditional comment begins that begins with the token at ``begin``."""
    conditions = (each for each in comments if _CONDITION.fullmatch(text, *each) is not None)
    return next((start for start, end in conditions if end <= begin and not text[end:begin].strip()), begin)


def _without(text: str, begin: int, end: int, pieces: Iterator[_Piece] | Sequence[_Piece]) -> str:
    """The text from ``begin`` to ``end`` without these, and without the blanks in front of each."""
    kept, at = "", begin
    for each in pieces:
        kept += text[at : each.begin].rstrip()
        at = each.end
    return kept + text[at:end]
