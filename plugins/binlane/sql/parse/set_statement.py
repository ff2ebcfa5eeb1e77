"""MariaDB's variables for one statement: ``SET STATEMENT variable = value, ... FOR statement``, also one in another.

A value may have a FOR of its own: a query's in parentheses (``FOR UPDATE``), and by the grammar a sequence's
(``NEXT VALUE FOR s``) and a function's name (``app.for()``), which 10.11 does not run. What stands behind the wrong FOR
would pass for the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from binlane.sql.parse.cursor import END, group_end, is_symbol
from binlane.sql.parse.lexer import Token, Unreadable

_OF_SEQUENCES: Final = ("NEXT", "PREVIOUS")


class Clause(NamedTuple):
    """Indexes of a statement's tokens."""

    body: int
    """The first token of the statement itself; 0 without a clause."""
    assignments: tuple[tuple[int, int], ...]
    """The begin and the end of each ``variable = value``."""


def clause_of(tokens: Sequence[Token]) -> Clause:
    """The clause in front of a statement. Raises Unreadable if it has no end, or no statement behind it."""
    at, found = 0, list[tuple[int, int]]()
    while [token.upper for token in tokens[at : at + 2]] == ["SET", "STATEMENT"]:
        at = begin = at + 2
        while not _is_end(tokens, at):
            if at >= len(tokens):
                raise Unreadable("SET STATEMENT without FOR")
            if is_symbol(tokens[at], ","):
                found.append((begin, at))
                begin = at + 1
            at = group_end(tokens, at) if is_symbol(tokens[at], "(") else at + 1
        found.append((begin, at))
        at += 1
        if at >= len(tokens):
            raise Unreadable("SET STATEMENT without a statement")
    return Clause(at, tuple(found))


def computed(tokens: Sequence[Token], clause: Clause) -> list[Token]:
    """The assignments whose values may call functions or read tables, separated by commas."""
    found: list[Token] = []
    for begin, end in clause.assignments:
        part = tokens[begin:end]
        if any(is_symbol(token, "(", ":=") or token.upper in _OF_SEQUENCES for token in part):
            found += [*([_COMMA] if found else []), *part]
    return found


_COMMA: Final = END._replace(text=",")


def _is_end(tokens: Sequence[Token], at: int) -> bool:
    if at >= len(tokens) or tokens[at].upper != "FOR":
        return False
    return not (tokens[at - 1].upper == "VALUE" and tokens[at - 2].upper in _OF_SEQUENCES)
