"""MariaDB's ANALYZE in front of a statement, which executes it and shows how; the log has both.

The target gets the statement alone: its effect is the same, and so are its kind, its tables and its filter's rules.
Grammar: ``ANALYZE [FORMAT = JSON | TRADITIONAL] statement``, also behind SET STATEMENT (seen on 10.11).
"""

from __future__ import annotations

import re
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Unreadable
from binlane.sql.parse.set_statement import clause_of
from binlane.sql.words import words_of

_ANALYZE: Final = re.compile(rb"\bANALYZE\b", re.I)
_STATEMENTS: Final = frozenset({"SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "VALUES"})


def executed(sql: bytes, context: SessionContext, flavor: Flavor) -> bytes:
    """The statement that a ``flavor`` server has executed, without ANALYZE in front of it."""
    if flavor is not Flavor.MARIADB or _ANALYZE.search(sql) is None:
        return sql
    try:
        words = words_of(sql, context, flavor)
        tokens, at = words.tokens, clause_of(words.tokens).body
    except Unreadable:
        return sql
    upper = [token.upper for token in tokens]
    if upper[at : at + 1] != ["ANALYZE"]:
        return sql
    behind = at + 1
    if upper[behind : behind + 1] == ["FORMAT"] and behind + 2 < len(tokens) and is_symbol(tokens[behind + 1], "="):
        behind += 3
    if behind >= len(tokens) or not (upper[behind] in _STATEMENTS or is_symbol(tokens[behind], "(")):
        return sql
    start, end = words.places[at][0], words.places[behind][0]
    return sql[:start] + sql[end:]
