"""The tables of a dump, kept on the target's own server and in its own folders.

A dump is input: its engine may have its rows on another server or in any file (FEDERATED, CONNECT, SPIDER ...), and its
folders may be any that the server can write to. So engines are those of a literal table, and where a table's files are
is the target's to say. What its columns compute calls the server's own functions alone: MariaDB would call one of a
library for rows that the dump has, as the server's own account.
"""

from __future__ import annotations

from typing import Final

from binlane.errors import PlanError
from binlane.model import Flavor, SessionContext
from binlane.sql.parse.engines import LOCAL_ENGINES
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.parse.table_calls import called_elsewhere
from binlane.sql.words import words_of

_FOLDERS: Final = frozenset({"DATA", "INDEX"})
_FILES: Final = frozenset({"IMPORT", "DISCARD"})


def local_table(text: bytes, context: SessionContext, flavor: Flavor, where: str) -> tuple[bytes, bool]:
    """A definition of a table that was read to its end, without the folders and the tablespace that it names; whether
    it had some. Raises PlanError for one of another engine, for files that are taken from elsewhere, and for a function
    that servers of the family have not built in."""
    words = words_of(text, context, flavor)
    if (call := called_elsewhere(words.tokens, flavor)) is not None:
        raise PlanError(
            f"{where}: expected columns that compute by the server's own functions, found {call}; take it out of a "
            "copy of the dump, restore, and make it by hand"
        )
    cut = list[tuple[int, int]]()
    for at, token in enumerate(words.tokens):
        if token.kind is not TokenKind.WORD:
            continue
        value = words.value(at)
        if token.upper == "ENGINE" and value is not None and words.text(value).lower() not in LOCAL_ENGINES:
            raise _elsewhere(f"ENGINE {words.text(value)}", where)
        if token.upper == "TABLESPACE":
            if at and words.tokens[at - 1].upper in _FILES:
                raise _elsewhere(f"{words.tokens[at - 1].upper} TABLESPACE", where)
            cut.append((words.places[at][0], words.places[value or at][1]))
        elif token.upper == "DIRECTORY" and at and words.tokens[at - 1].upper in _FOLDERS:
            cut.append((words.places[at - 1][0], words.places[value or at][1]))
    for begins, ends in reversed(cut):
        text = text[:begins] + text[ends:]
    return text, bool(cut)


def _elsewhere(what: str, where: str) -> PlanError:
    return PlanError(
        f"{where}: expected a table of the server's own rows ({', '.join(sorted(LOCAL_ENGINES))}), found {what}; take "
        "it out of a copy of the dump, restore, and make it by hand"
    )
