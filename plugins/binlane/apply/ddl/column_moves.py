"""ALTER TABLE by which a column's values come to stand under the name of another one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.sql.logged_statement import index_of, split
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, Unreadable
from binlane.sql.words import words_of

_RENAMES: Final = re.compile(rb"\s*ALTER\b.*?\bTABLE\b.*\b(?:CHANGE|RENAME)\b", re.I | re.S)
_VERBS: Final = ("CHANGE", "RENAME", "DROP", "ADD")
_NO_COLUMN: Final = frozenset(
    {
        *("INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK"),
        *("PARTITION", "TO", "AS"),
    }
)
"""Reserved words alone: no column is called so without quotes."""
_BEFORE_NAME: Final = frozenset({"COLUMN", "IF", "NOT", "EXISTS"})


def moves_columns(statement: bytes, context: SessionContext) -> bool:
    """Whether an ALTER TABLE may give a column the name of another one, and a third one its own, so that the table's
    definition is the same before and after: a swap, or DROP a, CHANGE b a, ADD b. Run twice, it moves the values
    again, or loses them.

    Without DROP it takes FIRST or AFTER: else other names stand at the places of the old ones.
    """
    if _RENAMES.match(statement) is None:
        return False
    try:
        tokens = words_of(statement, context, Flavor.MARIADB).tokens
    except Unreadable:
        return True
    renamed: dict[str, str] = {}
    dropped: set[str] = set()
    added: set[str] = set()
    for action in split(tokens):
        at = index_of((token.upper for token in action), *_VERBS)
        verb = "" if at is None else action[at].upper
        names = [] if at is None else list(_names(action[at + 1 :]))
        if verb in ("CHANGE", "RENAME"):
            old, new = [*names, "", ""][:2]
            renamed |= {old: new} if old != new else {}
        elif verb == "DROP":
            dropped |= set(names[:1])
        else:
            added |= set(names)
    is_placed = bool(dropped) or any(token.upper in ("FIRST", "AFTER") for token in tokens)
    left, made = dropped | renamed.keys(), added | set(renamed.values())
    return is_placed and any(new in left and old in made for old, new in renamed.items())


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """The columns of an action behind its verb: those in parentheses, or the first one and what stands behind it (of
    CHANGE and RENAME COLUMN the new name, of ADD a type)."""
    if not tokens or tokens[0].upper in _NO_COLUMN:
        return
    at = next((at for at, token in enumerate(tokens) if token.upper not in _BEFORE_NAME), len(tokens))
    names = [token for token in tokens[at : at + 3] if token.upper != "TO"][:2]
    if names and is_symbol(names[0], "("):
        names = [column[0] for column in split(tokens[at + 1 : -1]) if column and column[0].upper not in _NO_COLUMN]
    yield from (token.text.lower() for token in names)
