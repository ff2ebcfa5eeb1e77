"""What a GRANT or REVOKE of privileges is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.sql.logged_statement import index_of
from binlane.sql.parse.lexer import Token, TokenKind

ROUTINES: Final = frozenset({"FUNCTION", "PROCEDURE", "PACKAGE", "LIBRARY"})


@dataclass(frozen=True, slots=True)
class GrantScope:
    """The object of a GRANT; "" is everything."""

    database: str = ""
    table: str = ""
    """Or a routine."""

    def __str__(self) -> str:
        return ".".join(identifier(name) if name else "*" for name in (self.database, self.table))


def scope_of_name(tokens: Sequence[Token], database: str | None) -> GrantScope | None:
    """The scope that a name has under a default database; None if it cannot be told."""
    names = [token.text for token in tokens if token.text != "."]
    if names == ["*", "*"]:
        return GrantScope()
    if any(token.kind not in (TokenKind.WORD, TokenKind.NAME, TokenKind.SYMBOL) for token in tokens):
        return None
    if len(names) == 1:
        names = [database or "", *names]
    if len(names) != 2 or not names[0]:
        return None
    return GrantScope(names[0], "" if names[1] == "*" else names[1])


def scope_of_statement(tokens: Sequence[Token], database: str | None) -> tuple[GrantScope, bool] | None:
    """The scope of a statement's privileges, and whether it is a routine; None for roles, PROXY, and any other
    statement."""
    words = [token.upper for token in tokens]
    end = index_of(words, "TO", "FROM")
    on = index_of(words[:end], "ON")
    if words[:1] not in (["GRANT"], ["REVOKE"]) or on is None or "PROXY" in words[1:on]:
        return None
    behind = words[on + 1 : on + 3]
    is_routine = behind[:1] != [] and behind[0] in ROUTINES
    begin = on + 1 + (is_routine or behind[:1] == ["TABLE"]) + (is_routine and behind[1:] == ["BODY"])
    scope = scope_of_name(tokens[begin:end], database)
    return None if scope is None else (scope, is_routine)
