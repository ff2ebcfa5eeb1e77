"""The columns and keys of a table as its CREATE TABLE has them, as far as they tell which rows are one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from binlane.model import number_of
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import items

NO_COLUMN: Final = frozenset(
    {"PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "LIKE", "PERIOD"}
    | {"PARTITION"}
)
"""Words that begin an item which is no column, of a CREATE TABLE or behind the verb of an ALTER TABLE."""


class MadeColumn(NamedTuple):
    """A column as a statement declares it."""

    name: str
    data_type: str
    """In small letters, without length."""
    length: int | None = None
    """The number in parentheses behind the type."""


class MadeTable(NamedTuple):
    """What a CREATE TABLE with a list of columns, and no query behind it, makes."""

    columns: tuple[MadeColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """The columns of the primary key. Unique keys are left out: their columns may be NULL."""


def made_table(tokens: Sequence[Token]) -> MadeTable | None:
    """None if the statement is another one, or makes the table like others or from a query."""
    words = [token.upper if token.kind is TokenKind.WORD else "" for token in tokens]
    begin = next((at for at, token in enumerate(tokens) if is_symbol(token, "(")), None)
    if words[:1] != ["CREATE"] or "TABLE" not in words[:4] or begin is None or "SELECT" in words or "LIKE" in words:
        return None
    end, depth = begin, 0
    for end in range(begin, len(tokens)):
        depth += is_symbol(tokens[end], "(") - is_symbol(tokens[end], ")")
        if depth == 0:
            break
    columns, keys = list[MadeColumn](), list[tuple[str, ...]]()
    for item in items(tokens[begin + 1 : end]):
        first = item[0]
        is_column = first.kind is not TokenKind.WORD or first.upper not in NO_COLUMN
        names = [token.upper for token in item]
        if is_column and len(item) > 1:
            columns.append(_column(item))
        if "PRIMARY" in names:
            at = names.index("PRIMARY")
            keys.append((first.text,) if is_column else _listed(item[at:]))
    return MadeTable(tuple(columns), tuple(key for key in keys if key))


def altered_table(made: MadeTable, tokens: Sequence[Token]) -> MadeTable | None:
    """The table behind an ALTER TABLE or CREATE INDEX that adds columns, keys and options; None behind any other."""
    words = [token.upper if token.kind is TokenKind.WORD else "" for token in tokens]
    if words[:1] != ["ALTER"] or "TABLE" not in words[:4]:
        return None
    at = words.index("TABLE") + 1
    at += 3 if at + 1 < len(tokens) and is_symbol(tokens[at + 1], ".") else 1
    columns, keys = list(made.columns), list(made.keys)
    for item in items(tokens[at:]):
        names = [token.upper if token.kind is TokenKind.WORD else "" for token in item]
        if names[:1] != ["ADD"]:
            if names[0] not in _HARMLESS and names[:2] not in _HARMLESS_PAIRS:
                return None
            continue
        rest = item[2:] if names[1:2] == ["COLUMN"] else item[1:]
        if len(rest) < 2 or is_symbol(rest[0], "(") or "PRIMARY" in names or "PARTITION" in names or "IF" in names:
            return None
        if rest[0].kind is not TokenKind.WORD or rest[0].upper not in NO_COLUMN:
            columns.append(_column(rest))
    return MadeTable(tuple(columns), tuple(keys))


_HARMLESS: Final = frozenset({"ENGINE", "COMMENT", "AUTO_INCREMENT", "ROW_FORMAT", "FORCE", "ALGORITHM", "LOCK"})
_HARMLESS_PAIRS: Final = (
    *(["DROP", "INDEX"], ["DROP", "KEY"], ["DROP", "FOREIGN"], ["RENAME", "TO"], ["RENAME", "AS"], ["RENAME", "INDEX"]),
    ["RENAME", "KEY"],
)


def _column(item: Sequence[Token]) -> MadeColumn:
    has_length = len(item) > 4 and is_symbol(item[2], "(") and is_symbol(item[4], ")") and item[3].text.isdecimal()
    return MadeColumn(item[0].text, item[1].text.lower(), number_of(item[3].text) if has_length else None)


def _listed(item: Sequence[Token]) -> tuple[str, ...]:
    """The columns in the first parentheses; none if one is there with a prefix or as an expression."""
    begin = next((at for at, token in enumerate(item) if is_symbol(token, "(")), len(item))
    end = next((at for at in range(begin, len(item)) if is_symbol(item[at], ")")), len(item))
    inside = item[begin + 1 : end]
    if any(is_symbol(token, "(") for token in inside):
        return ()
    return tuple(token.text for token in inside if not is_symbol(token, ",") and token.upper not in ("ASC", "DESC"))
