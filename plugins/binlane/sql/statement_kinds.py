"""The kinds of ``[filter.kinds]`` that a statement has, by its text; finer than ``StatementKind``.

A statement may have several kinds: CREATE OR REPLACE TABLE also drops a table, ALTER TABLE ... TRUNCATE PARTITION also
truncates. Statements on temporary tables have no kind: these tables belong to one connection.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from binlane.choices import FilterKind
from binlane.sql.parse.account_statements import is_about_accounts
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import UNDECODED, Dialect, Token, Unreadable, lex
from binlane.sql.parse.set_statement import clause_of

_VERBS: Final = {
    "CREATE": FilterKind.CREATE,
    "ALTER": FilterKind.ALTER,
    "RENAME": FilterKind.RENAME,
    "DROP": FilterKind.DROP,
    "TRUNCATE": FilterKind.TRUNCATE,
}
_PARTS: Final = {("DROP", "PARTITION"): FilterKind.DROP, ("TRUNCATE", "PARTITION"): FilterKind.TRUNCATE}
_LONGEST: Final = 1 << 16
"""Characters. Longer statements are not cached."""


def kinds_of(sql: str, facts: StatementFacts, dialect: Dialect) -> frozenset[str]:
    """The kinds of a statement; empty if no kind applies or the lexer cannot read the text."""
    read = _cached if len(sql) <= _LONGEST else _kinds_of
    return read(sql, facts.kind, facts.temporary, dialect, bool(facts.moves))


def _kinds_of(sql: str, kind: StatementKind, is_temporary: bool, dialect: Dialect, renames: bool) -> frozenset[str]:
    if is_temporary or kind is StatementKind.TRANSACTION:
        return frozenset()
    if kind is StatementKind.GLOBAL:
        return frozenset({FilterKind.ACCOUNTS})
    tokens: list[Token] = []
    with contextlib.suppress(Unreadable):  # of no kind that servers log (``logged_kinds``): it is refused
        # a name with bytes outside its character set is a name
        lex(sql.replace(UNDECODED, "x"), dialect, tokens)
        tokens = tokens[clause_of(tokens).body :]
    words = [token.upper for token in tokens]
    found = _named(words)
    if FilterKind.ALTER in found and (renames or (kind is StatementKind.UNKNOWN and _may_rename(words))):
        found.add(FilterKind.RENAME)
    return frozenset(found)


_cached = functools.lru_cache(maxsize=4096)(_kinds_of)


def _may_rename(words: Sequence[str]) -> bool:
    """Whether an ALTER may give its table another name: RENAME of a column or a key says so with a reserved word."""
    return any(one == "RENAME" and other not in ("COLUMN", "INDEX", "KEY") for one, other in pairwise(words))


def _named(words: Sequence[str]) -> set[str]:
    first = words[0] if words else ""
    if is_about_accounts(words):  # and is not read
        return {FilterKind.ACCOUNTS}
    if first == "WITH":
        return {FilterKind.DELETE} if FilterKind.DELETE.upper() in words else set()  # reserved: it stands nowhere else
    if first == "DELETE":
        return {FilterKind.DELETE}
    if first not in _VERBS:
        return set()
    if first == "DROP" and words[1:2] in (["DATABASE"], ["SCHEMA"]):
        return {FilterKind.DROP_DATABASE}
    found: set[str] = {_VERBS[first]}
    if first == "CREATE" and tuple(words[1:3]) == ("OR", "REPLACE"):
        found.add(FilterKind.DROP_DATABASE if words[3:4] in (["DATABASE"], ["SCHEMA"]) else FilterKind.DROP)
    if first == "ALTER":
        found |= {kind for pair, kind in _PARTS.items() if pair in pairwise(words)}
    return found
