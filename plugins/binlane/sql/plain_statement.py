"""A logged statement without what may stand around its words: the one place where comments are left out of a text.

Many questions about a statement are answered by its first words: what kind it is, whether it may run twice, whether it
makes a table. A pattern for the comments between these words would be a second reading of the text, and every module
with its own pattern another one. So the lexer reads the text once, where it comes from the log, by the rules of the
source's session, and its comments become blanks. What follows looks at plain words, and the target gets the same text.

Comments of a program's text belong to its definition and stay; so do optimizer hints, comments between the words of
changes of rows, where nothing but the verb is looked for, and comments behind the last word, which servers write, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.sql.charset import dialect_of, placed
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, Unreadable, front_length, lex
from binlane.sql.parse.set_statement import clause_of
from binlane.sql.words import words_of

_CHANGES_ROWS: Final = re.compile(rb"(?:INSERT|REPLACE|UPDATE|DELETE)\b", re.I)
_VARIABLES: Final = re.compile(rb"SET\s+STATEMENT\b", re.I)
_VERBS: Final = frozenset({"CREATE", "ALTER"})
_PROGRAMS: Final = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "VIEW", "LIBRARY"})
_OBJECTS: Final = _PROGRAMS | {"TABLE", "DATABASE", "SCHEMA", "INDEX", "KEY", "SEQUENCE", "USER", "ROLE", "SERVER"}
_LOADABLE: Final = "SONAME"
_HINT: Final = b"/*+"


def plain(sql: bytes, context: SessionContext, flavor: Flavor) -> bytes:
    """The statement from its first word on, with blanks in place of the comments between its words.

    A conditional comment is unwrapped, as everywhere behind ``shared_reading``. A text without a word stays as it is.
    """
    start = front_length(sql, flavor)
    if start == len(sql):
        return sql
    if _CHANGES_ROWS.match(sql, start) is not None or not (b"/*" in sql or b"--" in sql or b"#" in sql):
        return sql[start:] if start else sql
    text, place, _ = placed(sql, context)
    tokens, places, comments = list[Token](), list[tuple[int, int]](), list[tuple[int, int]]()
    try:
        lex(text, dialect_of(context, flavor), tokens, places, comments)
        end: int | None = len(places) - 1
    except Unreadable:
        end = None
    if (kind := program_at(tokens)) is not None:
        end = kind
    if end is None or end < 0:
        return sql[start:]
    first, last = places[0][0], places[end][0 if kind is not None else 1]
    found, at = bytearray(), place(first)
    for begins, ends in comments:
        if first < begins < last and not text.startswith(_HINT.decode(), begins):
            found += sql[at : place(begins)] + b" "
            at = place(ends)
    return bytes(found + sql[at:])


def parted(sql: bytes, context: SessionContext, flavor: Flavor) -> tuple[bytes, bytes]:
    """MariaDB's ``SET STATEMENT ... FOR`` in front of a plain statement, empty if there is none, and the statement."""
    if flavor is not Flavor.MARIADB or _VARIABLES.match(sql) is None:
        return b"", sql
    try:
        words = words_of(sql, context, flavor)
        at = words.places[clause_of(words.tokens).body][0]
    except Unreadable:
        return b"", sql
    return sql[:at], sql[at:]


def program_at(tokens: Sequence[Token]) -> int | None:
    """The index of the word that names the kind of program that is defined, whose text begins behind it; None for any
    other statement."""
    try:
        verb = clause_of(tokens).body
    except Unreadable:
        return None
    if verb >= len(tokens) or tokens[verb].upper not in _VERBS or any(token.upper == _LOADABLE for token in tokens):
        return None
    for at in range(verb + 1, len(tokens)):
        # an account's part may be called so
        if tokens[at].upper in _OBJECTS and not is_symbol(tokens[at - 1], "="):
            return at if tokens[at].upper in _PROGRAMS else None
    return None
