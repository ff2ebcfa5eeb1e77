"""The table names of a canonical text (``queries``), by sqlglot. The only module that imports sqlglot."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from binlane.sql.parse.lexer import Unreadable

_FRAMES: Final = 10_000
"""The recursion limit for the deepest nesting of parentheses that ``queries`` accepts."""

Name = tuple[str | None, str]


_CACHED_LENGTH: Final = 100_000
"""Characters of a canonical text. Of longer ones the last few are kept: the plan job reads a statement twice."""


def named_tables(text: str) -> tuple[tuple[Name, bool], ...]:
    """The table names of a canonical text, each with False if a common table expression has that name."""
    return _of_long(text) if len(text) > _CACHED_LENGTH else _of_short(text)


def _read(text: str) -> tuple[tuple[Name, bool], ...]:
    try:
        with _room_for_recursion():
            trees = sqlglot.parse(text, dialect="mysql")
    except Exception as error:  # sqlglot may raise anything on an unusual text: the query is then Unreadable
        raise Unreadable(f"sqlglot: {type(error).__name__}", _place_of(error)) from error
    if len(trees) != 1 or trees[0] is None or trees[0].find(exp.Command) is not None:
        raise Unreadable("sqlglot does not read it")
    found: dict[tuple[Name, bool], None] = {}
    # the nodes around a table may be thousands: a list of OR is as deep as it is long
    has_with = trees[0].find(exp.With) is not None
    for node in trees[0].find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            continue  # JSON_TABLE and other functions
        if node.args.get("catalog") is not None:
            raise Unreadable("a table's name of three parts")
        name = (node.db if node.args.get("db") is not None else None, node.name)
        if name[0] is None and name[1].upper() == "DUAL" and not node.this.quoted:
            continue
        found[name, name[0] is not None or not (has_with and _is_cte(node, name[1]))] = None
    return tuple(found)


_of_short = functools.lru_cache(maxsize=4096)(_read)
_of_long = functools.lru_cache(maxsize=8)(_read)


def _place_of(error: Exception) -> str:
    """The word at which sqlglot stopped; empty if it does not say."""
    places = error.errors if isinstance(error, ParseError) else []
    return str(places[0].get("highlight") or "") if places else ""


def _is_cte(table: exp.Expr, name: str) -> bool:
    """Whether a WITH around the table defines this name. Compared letter by letter: at worst one table too many."""
    inside: exp.Expr = table
    while (parent := inside.parent) is not None:
        clause = parent if isinstance(parent, exp.With) else next(_with_of(parent), None)
        if clause is not None and clause is not inside:
            visible = clause.expressions
            if clause is parent:
                index = next((at for at, cte in enumerate(visible) if cte is inside), len(visible))
                visible = visible[: index + bool(clause.args.get("recursive"))]
            if any(cte.alias == name for cte in visible):
                return True
        inside = parent
    return False


def _with_of(node: exp.Expr) -> Iterator[exp.With]:
    return (value for value in node.args.values() if isinstance(value, exp.With))


@contextlib.contextmanager
def _room_for_recursion() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
