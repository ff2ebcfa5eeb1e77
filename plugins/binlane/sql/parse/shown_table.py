"""Whether a SHOW CREATE TABLE, or SEQUENCE, is what it seems: a list of columns and keys, and options.

Servers write most of it anew from what they have read, with each name and each literal in quotes, but not all: MySQL
prints SECONDARY_ENGINE as it was given, MariaDB DATA DIRECTORY, the names of foreign keys (up to 10.11.18), the values
of an engine's options that were given as quoted names, and options that an engine does not know in a comment, which one
of them can end. So a table's owner can have any clause there, a query for one, which another account runs when it makes
the table on another server. (MariaDB 10.11, MySQL 9.7: tests/security/test_shown_tables.py.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

_DIALECT: Final = Dialect(Flavor.MYSQL)
"""Of sessions that read definitions, but for ``/*M!``, which is a comment here: the only one is in ``_COMMENT``."""
_COMMENT: Final = re.compile(
    r"/\*!\d*|\*/|/\*M!\d+ COMPRESSED\*/|/\* mariadb-5\.3 \*/"
    r"|/\*(?: (?:`(?:[^`]|``)+`|\w+)=(?:'(?:[^'\\]|''|\\.)*'|[-+.\w]+))+ \*/",
    re.DOTALL,
)
"""A conditional comment's beginning and end; MariaDB's comments: a compressed column, a time in its older format, and
options of other engines."""
_FOREIGN_KEY: Final = re.compile(r"^(  CONSTRAINT `)(.+?)(?=` FOREIGN KEY \()", re.MULTILINE)
_QUOTED: Final = re.compile(r"(?:[^`]++|``){1,256}")
_NOWHERE: Final = frozenset({"SELECT", "INTO"})
LINE_BREAK: Final = "a line break in a name"
ENDED_QUOTES: Final = "a name that ends its quotes"
_NOT_OUTSIDE: Final = frozenset({"TABLE", "VALUES", "TRANSACTION"})
"""Words that do not follow the list of columns and keys. WITH and AS may, and need one of these to begin a query."""
_NAME: Final = r"(?:`(?:[^`\n]|``){1,64}`|\"(?:[^\"\n]|\"\"){1,64}\"|[\w$]{1,64})"
_NAMES: Final = rf"\({_NAME}(?:, {_NAME}){{0,31}}\)"
_PRINTED_KEY: Final = re.compile(
    rf"^  CONSTRAINT {_NAME} FOREIGN KEY {_NAMES} REFERENCES {_NAME}(?:\.{_NAME})? {_NAMES}"
    r"(?: ON (?:DELETE|UPDATE) (?:CASCADE|RESTRICT|NO ACTION|SET NULL|SET DEFAULT)){0,2},?$",
    re.MULTILINE,
)
"""A foreign key as both families print it. What a name of 64 characters adds can have this form, too, only if the names
of the other database, table and column have five characters together."""
_SERVER_S_OWN: Final = frozenset(
    {
        *("ENGINE", "TYPE", "CHARSET", "SET", "COLLATE", "ROW_FORMAT", "INSERT_METHOD", "PACK_KEYS", "CHECKSUM"),
        *("TABLE_CHECKSUM", "PAGE_CHECKSUM", "TRANSACTIONAL", "DELAY_KEY_WRITE", "STATS_PERSISTENT", "SEQUENCE"),
        *("STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "KEY_BLOCK_SIZE", "COMMENT", "CONNECTION", "PASSWORD", "UNION"),
        *("AUTO_INCREMENT", "AVG_ROW_LENGTH", "MAX_ROWS", "MIN_ROWS", "DIRECTORY", "TABLESPACE", "STORAGE"),
        "NODEGROUP",
        *("COMPRESSION", "ENCRYPTION", "AUTOEXTEND_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE"),
        *("SECONDARY_ENGINE_ATTRIBUTE", "ALGORITHM"),
    }
)
"""Words in front of an equals sign that are no option of an engine. As such an option's name they are in quotes."""
_OF_VECTORS: Final = frozenset({"M", "DISTANCE"})
"""Options of MariaDB's vector keys, behind which foreign keys stand. Servers take a few values alone for them, unless
sql_mode has IGNORE_BAD_TABLE_OPTIONS."""
_OF_OTHERS: Final = frozenset(
    {"UNION", "CONNECTION", "REFERENCES", "NEXTVAL", "LASTVAL", "SETVAL", "NEXT", "PREVIOUS", "CURRVAL"}
)
"""Words behind which a definition without a query may name another table, sequence or server."""


def with_quoted_names(text: str) -> str:
    """A SHOW CREATE TABLE with the names of its foreign keys quoted: MariaDB up to 10.11.18 prints them as they are."""

    def quoted_name(found: re.Match[str]) -> str:
        name = found[2] if _QUOTED.fullmatch(found[2]) else found[2].replace("`", "``")
        return found[1] + name

    return _FOREIGN_KEY.sub(quoted_name, text)


def hidden_part(text: str) -> str | None:
    """What such a text, with quoted names, has that is no definition, for messages; None if there is nothing.

    A text without such a part has a line for each column and key, and no line break inside of a name.
    """
    tokens, places, comments = list[Token](), list[tuple[int, int]](), list[tuple[int, int]]()
    try:
        lex(text, _DIALECT, tokens, places, comments)
    except Unreadable as exc:
        return str(exc)
    if any(_COMMENT.fullmatch(text, *each) is None for each in comments):
        return "a comment that an option has begun or ended"
    if any("\n" in text[begin:end] for begin, end in places):
        return LINE_BREAK
    if (word := behind_option(tokens)) is not None:
        return f"{word} behind an option of its engine"
    if sum(token.upper == "REFERENCES" for token in tokens) != printed_keys(text):
        return ENDED_QUOTES
    ends = [text.startswith("\n", end) for _, end in places]
    return _foreign_part(tokens, ends)


def behind_option(tokens: Sequence[Token]) -> str | None:
    """A word that may name another table behind an option of an engine, whose value MariaDB prints as it was given;
    None if there is none. The value may have any length, and any form: ``x='y' UNION=(other.t)``."""
    depth, is_behind, is_behind_any = 0, False, False
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.upper in _OF_OTHERS and (is_behind if token.upper == "REFERENCES" else is_behind_any):
            return token.upper
        name = tokens[at - 1] if at and depth <= 1 and is_symbol(token, "=") else None
        if name is None or not (
            name.kind is TokenKind.NAME or (name.kind is TokenKind.WORD and name.upper not in _SERVER_S_OWN)
        ):
            continue
        is_behind_any = True
        is_behind = is_behind or name.text.upper() not in _OF_VECTORS
    return None


def printed_keys(text: str) -> int:
    """How many foreign keys of a table's text have the form in which servers print them."""
    return len(_PRINTED_KEY.findall(text))


def query_part(tokens: Sequence[Token]) -> str | None:
    """The word with which a query, or the name of another table, begins in a table's text; None if there is none."""
    depth, is_named = 0, False
    for token in tokens:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.upper == "SELECT" or (depth == 0 and is_named and token.upper in ("TABLE", "VALUES", "LIKE")):
            return token.upper
        is_named |= token.upper == "TABLE"
    return None


def _foreign_part(tokens: Sequence[Token], ends: Sequence[bool]) -> str | None:
    """``ends``: whether a token is the last one of its line."""
    depth, engines, is_list = 0, 0, True
    for token, is_end in zip(tokens, ends, strict=True):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        is_list = is_list and not (depth == 0 and is_symbol(token, ")"))
        if token.upper in _NOWHERE or (depth == 0 and token.upper in _NOT_OUTSIDE and token is not tokens[1]):
            return f"{token.upper} in an option"
        if is_list and depth == 1 and is_symbol(token, ",") and not is_end:
            return ENDED_QUOTES
        engines += depth == 0 and token.upper == "ENGINE"
    return None if depth == 0 and engines == 1 else "an option that has other options in it"
