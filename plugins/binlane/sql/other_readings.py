"""Texts that may have been another statement to their source than the log says.

A session can PREPARE a text in one sql_mode and character set and EXECUTE it in another; a routine can SET both between
its statements. The server has read the text by the first, the log has the second, and whoever reads the log reads it by
that one, a replica of the server too. ANSI_QUOTES, NO_BACKSLASH_ESCAPES and a character whose last byte is a backslash
or a backquote decide where a literal or a name ends: a user who may write one table of the source could have another
one written on the target, or an account changed.

So a text with such bytes is split by all these rules, as it stands in the log, with its comments. It is refused unless
all give the same quoted parts, comments and names, or the others give what no server takes. What the statements are
about is not compared: a reading that nobody can follow would be the way around. Of a text with names in Chinese or
Japanese nearly every other reading is noise that only a grammar tells from a statement, so those of a statement about
tables go into the plan with the text, and the precheck asks a server's parser (``precheck.statements.other_modes``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final

from binlane.model import SessionContext
from binlane.sql.charset import MODES_OF_TEXT, dialect_of
from binlane.sql.parse.cursor import END, is_symbol
from binlane.sql.parse.keywords import KEYWORDS
from binlane.sql.parse.lexer import NO_SQL, Token, TokenKind, Unreadable, lex
from binlane.sql.shared_reading import AmbiguousTextError, Reader, UntakenTextError, parts_of, plain_parts

SETS: Final = {"latin1": 8, "utf8mb4": 45, "gbk": 28, "sjis": 13, "big5": 1}
"""Character sets of a client, by the number of a collation: the others end characters at the same bytes as one of
these (gb18030 as gbk, cp932 as sjis, all others as latin1)."""
WAY_ON: Final = (
    "a session may have prepared it in the one and executed it in the other, so the log does not tell what the source "
    "did: log such statements as rows (binlog_format=ROW), or compare the tables and skip the transaction"
)
_BY_MODE: Final = re.compile(rb"\\['\"\x80-\xff]")
"""Without it both modes give the same parts: an escape decides something in front of a quote alone."""
_BY_SET: Final = re.compile(rb"[\x80-\xff][\\`@]")
_ACCOUNT: Final = rb"(?:`[\x20-\x5f\x61-\x7e]*`|'[\x20-\x26\x28-\x5b\x5d-\x7e]*'|\w+)"
_OF_TABLES: Final = re.compile(
    rb"\s*+(?:/\*(?![!M])[\x09\x0a\x0d\x20-\x29\x2b-\x7e]*\*/\s*+)*"
    rb"(?:INSERT|REPLACE|UPDATE|DELETE|TRUNCATE|LOAD|(?:CREATE|ALTER|DROP|RENAME)\s+(?:TEMPORARY\s+)?TABLE|"
    rb"(?:CREATE|DROP)\s+(?:UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)?INDEX|DROP\s+(?:VIEW|TRIGGER|PROCEDURE|FUNCTION)|"
    rb"CREATE\s+(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?(?:DEFINER\s*=\s*"
    + _ACCOUNT
    + rb"@"
    + _ACCOUNT
    + rb"\s+)?"
    rb"(?:SQL\s+SECURITY\s+\w+\s+)?(?:VIEW|TRIGGER|PROCEDURE|FUNCTION))\b",
    re.IGNORECASE,
)
"""Statements about tables and programs, in ASCII up to there: they have the same kind in every character set."""
_END: Final = b"\0"
_MARKS: Final = ((b'"', "ANSI_QUOTES"), (b"\\", "NO_BACKSLASH_ESCAPES"))
SPLITTING: Final = sum(MODES_OF_TEXT.values())
"""The bits of those modes."""
_HAS_COLUMNS: Final = frozenset({"SELECT", "RETURNING"})
_BEFORE_STATEMENT: Final = frozenset({"SQLSTATE", "VALUE"})
"""A handler's statement may follow the literal behind these words."""


def require_one_reading(sql: bytes, context: SessionContext, source: Reader) -> tuple[tuple[int, int], ...]:
    """Raise AmbiguousTextError for a text that is another statement to a session of ``source`` with another sql_mode or
    client character set.

    Of a statement about tables, those character sets (as collations) with bits of sql_mode are returned in which a
    parser has to say whether it is one at all. Nearly every text has none.
    """
    by_mode, by_set = _BY_MODE.search(sql) is not None, _BY_SET.search(sql) is not None
    if _END in sql.rstrip(_END):
        parts_of(sql, context, source)
    if not (by_mode or by_set):
        return ()
    is_of_tables = by_set and _OF_TABLES.match(sql) is not None
    logged, doubtful = plain_parts(sql, context, source.flavor), list[tuple[int, int]]()
    for other, said in _others(sql, context, by_set=by_set):
        if logged is not None and plain_parts(sql, other, source.flavor) == logged:
            continue
        if _may_be_another(sql, context, other, source):
            if not is_of_tables or other.charset_client in (None, context.charset_client):
                raise AmbiguousTextError(f"a text that is another statement with {said} ({WAY_ON}),")
            doubtful.append((other.charset_client, (other.sql_mode or 0) & SPLITTING))
    return tuple(doubtful)


def _others(sql: bytes, context: SessionContext, *, by_set: bool) -> Iterator[tuple[SessionContext, str]]:
    yield from _in_other_modes(sql, context)
    for name, number in SETS.items() if by_set else ():
        session, said = replace(context, charset_client=number), f"character_set_client {name}"
        yield session, said
        yield from ((other, f"{said}, {modes}") for other, modes in _in_other_modes(sql, session))


def _in_other_modes(sql: bytes, context: SessionContext) -> Iterator[tuple[SessionContext, str]]:
    """The session with each other combination of the modes that decide on marks in the text, and what is said of it."""
    names = [name for mark, name in _MARKS if mark in sql]
    for changed in chain(((name,) for name in names), (names,) if len(names) > 1 else ()):
        mode = (context.sql_mode or 0) ^ sum(MODES_OF_TEXT[name] for name in changed)
        said = ", ".join(f"{name} {'on' if mode & MODES_OF_TEXT[name] else 'off'}" for name in changed)
        yield replace(context, sql_mode=mode), said


def _may_be_another(sql: bytes, logged: SessionContext, context: SessionContext, source: Reader) -> bool:
    try:
        text, places = parts_of(sql, context, source)
    except UntakenTextError:
        return False
    except AmbiguousTextError:
        return True
    if places == parts_of(sql, logged, source)[1]:
        return False
    tokens = list[Token]()
    try:
        lex(text, dialect_of(context, source.flavor), tokens)
    except Unreadable as unreadable:
        if str(unreadable) == NO_SQL:
            return False
    else:
        if not _is_balanced(tokens):
            return False
    # a text between dollars is none that the lexer knows
    return any(sql.startswith(b"$", begin) for begin, _ in places) or not _has_stray_word(tokens)


def _is_balanced(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth < 0:
            return False
    return depth == 0


def _has_stray_word(tokens: Sequence[Token]) -> bool:
    """Whether a word that is none of the grammar stands directly behind a literal, as in ``'it's``, where no server
    takes one. In a list of columns it may be an alias, which ends the column; MariaDB's options of an engine have a
    sign behind them."""
    has_columns, before = False, ""
    for at, (one, word) in enumerate(pairwise(tokens)):
        if is_symbol(one, ";"):
            has_columns = False
        has_columns = has_columns or one.upper in _HAS_COLUMNS
        is_behind_literal = one.kind is TokenKind.STRING and not one.omits and before not in _BEFORE_STATEMENT
        if is_behind_literal and _is_foreign(word):
            behind = tokens[at + 2] if at + 2 < len(tokens) else END
            ends = behind is END or is_symbol(behind, ",", ")", ";") or behind.upper in KEYWORDS
            if not (is_symbol(behind, "=", ":=") or (has_columns and ends)):
                return True
        before = one.upper
    return False


def _is_foreign(token: Token) -> bool:
    return token.kind is TokenKind.WORD and token.upper not in KEYWORDS
