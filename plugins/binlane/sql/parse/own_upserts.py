"""Upserts that a body writes by itself: ``IF EXISTS (SELECT ...) THEN UPDATE ...; ELSE INSERT ...; END IF``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, Column, blocks, call_end, conditions, plain_column
from binlane.sql.parse.row_effects import PLAIN, assigned_values, found_by_row, inserts

_CLAUSES: Final = frozenset({"SELECT", "FROM", "WHERE", "LIMIT", "UPDATE", "SET"})
_DOUBLED: Final = tuple(Token(TokenKind.WORD, word, word) for word in ("ON", "DUPLICATE", "KEY", "UPDATE"))


class _Branches(NamedTuple):
    query: Sequence[Token]
    update: Sequence[Token]
    insert: Sequence[Token]
    end: int
    """Behind END IF."""


def with_upserts(
    tokens: Sequence[Token], database: str, is_key: Callable[[TableKey, frozenset[str]], bool]
) -> Sequence[Token]:
    """A trigger's tokens with ``INSERT ... ON DUPLICATE KEY UPDATE`` in place of each of these, if the query and the
    UPDATE find their row by values of the row at hand for a unique key, with which the INSERT makes it.

    ``is_key``: whether the columns, in lower case, are the one unique key of a table. A NULL is inserted either way.
    """
    found, at = list[Token](), 0
    while at < len(tokens):
        branches = _branches(tokens, at)
        upsert = None if branches is None else _upsert(branches, database, is_key)
        if branches is None or upsert is None:
            found.append(tokens[at])
            at += 1
        else:
            found += upsert
            at = branches.end
    return tokens if len(found) == len(tokens) else found


def _branches(tokens: Sequence[Token], at: int) -> _Branches | None:
    if tokens[at].upper != "IF":
        return None
    exists = at + (2 if _words(tokens, at + 1, "NOT") else 1)
    if not (_words(tokens, exists, "EXISTS") and exists + 1 < len(tokens) and is_symbol(tokens[exists + 1], "(")):
        return None
    closed = call_end(tokens, exists + 1)
    first = next((each for each in range(closed, len(tokens)) if is_symbol(tokens[each], ";")), len(tokens))
    second = next((each for each in range(first + 1, len(tokens)) if is_symbol(tokens[each], ";")), len(tokens))
    if not (_words(tokens, first + 1, "ELSE") and _words(tokens, second + 1, "END", "IF")):
        return None
    # behind THEN; of a longer condition it begins with no verb
    branches = [tokens[closed + 2 : first], tokens[first + 2 : second]]
    update, insert = branches if exists == at + 1 else branches[::-1]
    return _Branches(tokens[exists + 2 : closed], update, insert, second + 3)


def _words(tokens: Sequence[Token], at: int, *words: str) -> bool:
    return tuple(token.upper for token in tokens[at : at + len(words)]) == words


def _upsert(
    branches: _Branches, database: str, is_key: Callable[[TableKey, frozenset[str]], bool]
) -> Sequence[Token] | None:
    query, update = (_only(each, database) for each in (branches.query, branches.update))
    inserted = [each for _, each in inserts(branches.insert, database)]
    if query is None or update is None or len(inserted) != 1 or not _words(branches.insert, 0, "INSERT"):
        return None
    if (query.verb, update.verb, inserted[0].what) != ("SELECT", "UPDATE", PLAIN) or inserted[0].values is None:
        return None
    row, columns = _row(query), inserted[0].columns
    changes = update.clauses.get("SET", ())
    names = frozenset(name for name, _ in row)
    given = dict(zip(columns, map(plain_column, inserted[0].values), strict=False))
    is_same = row == _row(update) and all(given.get(name) == value for name, value in row)
    tables = {query.sources[0].table, update.sources[0].table, inserted[0].key}
    if not is_same or len(tables) != 1 or not is_key(inserted[0].key, names):
        return None
    if any(name in names for name, _ in assigned_values(changes)):
        return None
    return (*branches.insert, *_DOUBLED, *changes)


def _only(tokens: Sequence[Token], database: str) -> Block | None:
    """The one block of a statement, of one table."""
    every = list(blocks(tokens, database))
    is_one = len(every) == 1 and len(every[0].sources) == 1 and every[0].clauses.keys() <= _CLAUSES
    return every[0] if is_one and tokens[0].upper == every[0].verb else None


def _row(block: Block) -> frozenset[tuple[str, Column]]:
    """The columns that have values of the row at hand, if these are all that a block finds its rows by."""
    found = frozenset(found_by_row(block, {}, ()))
    is_all = sum(1 for _ in conditions(block.clauses.get("WHERE", ()))) == len(found)
    return found if is_all else frozenset()
