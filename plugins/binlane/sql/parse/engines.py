"""The storage engines that the definition of a table names, for itself and for its partitions.

Some engines have a table's rows on another server, in any file, or in other tables (FEDERATED, CONNECT, SPIDER ...).
A source that does not have the engine makes an InnoDB table where sql_mode allows it, and logs the text as given, so a
user of one database could reach through such a table what only the target's server can.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable
from binlane.sql.parse.set_statement import clause_of

LOCAL_ENGINES: Final = frozenset(
    {
        *(
            "innodb",
            "innobase",
            "myisam",
            "aria",
            "maria",
            "memory",
            "heap",
            "csv",
            "archive",
            "blackhole",
            "rocksdb",
            "tokudb",
        ),
        *("columnstore", "ndb", "ndbcluster"),
        # of the tables in its UNION, which the filter sees
        *("mrg_myisam", "merge"),
    }
)
"""Those that keep a table's rows, if they keep any, in the server's own data, in lower case."""
_ELSEWHERE: Final = frozenset(
    {"cassandra", "connect", "federated", "mroonga", "oqgraph", "s3", "sequence", "sphinx", "spider"}
)
_DEFAULTS: Final = frozenset(
    {"DEFAULT_STORAGE_ENGINE", "DEFAULT_TMP_STORAGE_ENGINE", "STORAGE_ENGINE", "ENFORCE_STORAGE_ENGINE"}
)
"""Variables that stand for the option: MariaDB's SET STATEMENT sets them for one statement."""
_FOLDERS: Final = frozenset({"DATA", "INDEX"})
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_DEFINED: Final = ("TABLE", "SEQUENCE")
_OBJECTS: Final = frozenset(
    {
        *("TABLE", "SEQUENCE", "DATABASE", "SCHEMA", "INDEX", "KEY", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION"),
        *("EVENT", "PACKAGE", "LIBRARY", "USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "RESOURCE", "INSTANCE"),
    }
)
"""Kinds of objects. Any words may stand in front of one: newer servers have new ones (``CREATE EXTERNAL TABLE``)."""
_BEFORE_COLUMN: Final = frozenset(
    {
        *("ADD", "COLUMN", "DROP", "MODIFY", "CHANGE", "ALTER", "AFTER", "BY", "RENAME", "TO", "AS", "KEY", "INDEX"),
        *("UNIQUE", "CONSTRAINT", "PARTITION", "FULLTEXT", "SPATIAL"),
    }
)
"""Words of an ALTER TABLE behind which the name of a column or a key stands."""
EXTERNAL: Final = "LAKEHOUSE"
"""The engine of CREATE EXTERNAL TABLE (MySQL 9.4), whose text need not name it: the rows are in files elsewhere."""
_BEFORE_NAME: Final = frozenset({*_DEFINED, "EXISTS", "LIKE"})
"""Words behind which the name of a table stands."""


def engine_places(tokens: Sequence[Token]) -> Iterator[int]:
    """The places of the engines' names in a statement that makes or alters a table: words, names or strings.

    ENGINE may also be a column's name. Behind it stands an equals sign, a string, or an engine that servers are known
    to have, if it is the option; and in parentheses it is one of a partition.
    """
    if not defines_table(tokens):
        # the body of a program may compare or set a column of that name
        return
    depth, has_partitions, is_made = 0, False, any(token.upper == "CREATE" for token in tokens)
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        before = tokens[at - 1] if at else None
        if depth == 0 and token.upper == "SELECT":
            return
        has_partitions |= depth == 0 and token.upper == "PARTITION"
        if token.upper not in ("ENGINE", *_DEFAULTS) or (depth and not has_partitions):
            continue
        has_sign = at + 1 < len(tokens) and is_symbol(tokens[at + 1], "=", ":=")
        name = at + 1 + has_sign
        kind = tokens[name].kind if name < len(tokens) else None
        # behind the columns of a new table it is the option, whatever it names
        is_option = depth == 0 and before is not None and before.upper not in _BEFORE_NAME
        if is_option and not is_made:
            is_option = not _is_column(tokens, at)
        if kind is TokenKind.STRING or (kind in _NAMES and (has_sign or is_option or _is_engine(tokens[name].text))):
            yield name


def has_computed_default(tokens: Sequence[Token]) -> bool:
    """Whether a statement that makes or alters a table sets one of the variables for its engine, in SET STATEMENT, to
    what is no name of an engine: an expression, a number, a variable. Raises Unreadable."""
    if not defines_table(tokens):
        return False
    for begin, end in clause_of(tokens).assignments:
        sign = next((at for at in range(begin, end) if is_symbol(tokens[at], "=", ":=")), end)
        if any(name in token.text.upper() for token in tokens[begin:sign] for name in _DEFAULTS):
            value = tokens[sign + 1 : end]
            is_plain = sign == begin + 1 and tokens[begin].kind is TokenKind.WORD
            if not is_plain or len(value) != 1 or value[0].kind not in (*_NAMES, TokenKind.STRING):
                return True
    return False


def engine_elsewhere(tokens: Sequence[Token]) -> str | None:
    """The engine of a table that a body makes whose rows are elsewhere; None if there is none. Strings have no text
    here, so an engine in quotes may be any."""
    begins = [at for at, token in enumerate(tokens) if token.upper in ("CREATE", "ALTER")]
    for begin, end in itertools.pairwise((*begins, len(tokens))):
        text = tokens[begin:end]
        last = next((at for at, token in enumerate(text) if is_symbol(token, ";")), len(text))
        for place in engine_places(text[:last]):
            named = text[place].text
            if named.lower() not in LOCAL_ENGINES:
                return f"ENGINE {named or 'in quotes'}"
        if is_external(text[:last]):
            return f"ENGINE {EXTERNAL}"
    return None


def defines_table(tokens: Sequence[Token]) -> bool:
    """Whether a statement makes or alters a table, or a sequence; behind MariaDB's variables of one statement, too."""
    try:
        begin = clause_of(tokens).body
    except Unreadable:
        begin = 0
    if begin >= len(tokens) or tokens[begin].upper not in ("CREATE", "ALTER"):
        return False
    return _kind_of(tokens[begin:]) in _DEFINED


def is_external(tokens: Sequence[Token]) -> bool:
    """Whether a statement makes or alters a table whose rows are in files elsewhere, by the word EXTERNAL."""
    if not defines_table(tokens):
        return False
    words = [token.upper for token in tokens]
    return "EXTERNAL" in words[: next(at for at, word in enumerate(words) if word in _DEFINED)]


def _kind_of(tokens: Sequence[Token]) -> str:
    """The kind of object that a definition is about: the first word of one, but for a part of an account's name."""
    pairs = itertools.pairwise(tokens)
    return next((token.upper for before, token in pairs if token.upper in _OBJECTS and not is_symbol(before, "=")), "")


def _is_column(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word at ``at`` of an ALTER TABLE is the name of a column or a key. ``at``: 1 or more."""
    words = [token.upper for token in tokens[max(at - 5, 0) : at]]
    if words[-2:-1] and words[-2] in (*_BEFORE_NAME, "TABLESPACE") and "CHANGE" not in words:
        # behind the table's name, or that of its tablespace, which may be such a word
        return False
    # CHANGE [COLUMN] [IF EXISTS] motor engine INT
    return words[-1] in _BEFORE_COLUMN or "CHANGE" in words[-3:-1] or ("CHANGE" in words and words[-2] == "EXISTS")


def folder_named(tokens: Sequence[Token]) -> str | None:
    """The option of a table that names a folder; None if there is none."""
    for one, other, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_given = value.kind is TokenKind.STRING or is_symbol(value, "=", ":=")
        if one.upper in _FOLDERS and other.upper == "DIRECTORY" and is_given:
            return f"{one.upper} DIRECTORY"
    return None


def _is_engine(name: str) -> bool:
    return name.lower() in LOCAL_ENGINES | _ELSEWHERE
