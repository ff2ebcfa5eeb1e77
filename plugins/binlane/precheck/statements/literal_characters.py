"""Literals of logged statements that are no text in their client's character set.

Both servers write the value of a parameter (``EXECUTE .. USING``, a prepared statement of a client's) into the logged
text with the bytes that it has in its own character set, and say none (tried on MySQL 9.7 and MariaDB 10.11). Whoever
reads the text takes them for characters of the client's set: another text, or none at all. Where they are none, the
text shows it. A client's own literal has such bytes as a value of a binary column, or inside of a function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from binlane.model import ItemKind, SessionContext, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import Column
from binlane.sql.charset import client_charset
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import UNDECODED, TokenKind

_HIGH: Final = re.compile(rb"[\x80-\xff]")
_UTF8: Final = frozenset({"utf8mb3", "utf8mb4"})
"""Of others nobody can tell: each byte of a latin1 text is a character."""
_INTRODUCER: Final = re.compile(r"\b_[0-9A-Za-z]+\s*+['\"]")
_OF_BYTES: Final = ("binary", "blob")
_GEOMETRY: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
    | {"geometrycollection", "geomcollection"}
)
_OTHERS_OF_BYTES: Final = frozenset({"bit", "vector", "uuid", "inet4", "inet6"}) | _GEOMETRY
_OF_OPERATORS: Final = frozenset(
    {"VALUES", "VALUE", "IN", "AND", "OR", "NOT", "XOR", "WHERE", "ON", "SET", "BETWEEN", "LIKE", "THEN", "WHEN"}
    | {"ELSE", "SELECT", "HAVING"}
)
"""Words in front of a parenthesis that is no call's."""
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "a server has written the value of a parameter or variable there, in a character set that the log does not have, "
    "and the target would store or compare another text: log such statements as rows (binlog_format = ROW); for this "
    "one set allow_unsafe in the channel's file and compare the rows afterwards, or skip its transaction "
    "(docs/control.md) and make its changes by hand"
)


def check_literal_characters(situation: Situation) -> Iterator[Finding]:
    """Literals that are no text in their client's character set, of statements whose tables have no binary column: the
    value of a parameter in another character set, which the log does not have."""
    if situation.needs.statements and not situation.channel.apply.allow_unsafe:
        yield from islice(_found(situation), _MOST_FINDINGS)


def _found(situation: Situation) -> Iterator[Finding]:
    for logged, _ in situation.transactions_with(_HIGH):
        item, header = logged.item, logged.header
        charset = client_charset(SessionContext() if item.context is None else item.context)
        if item.kind is not ItemKind.STATEMENT or charset not in _UTF8 or _is_utf8(item.payload):
            continue
        text = LoggedText.of(header.first_seqno, header.source, item, situation.plan.flavor)
        if text is None or text.facts.kind is not StatementKind.DML or _may_take_bytes(situation, text.facts.tables):
            continue
        if _has_broken_literal(text):
            where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
            expected = f"literals in {charset}, its client's character set"
            found = "one with bytes that are no character of it"
            yield Finding(Severity.FATAL, where, expected, found, _TODO, header.first_seqno)


def _is_utf8(sql: bytes) -> bool:
    try:
        sql.decode()
    except UnicodeDecodeError:
        return False
    return True


def _may_take_bytes(situation: Situation, keys: Collection[TableKey]) -> bool:
    """Whether one of a statement's tables has a binary column, or is not known."""
    tables = [situation.every_table.table(key) for key in keys]
    return not tables or any(table is None or any(map(_is_of_bytes, table.columns)) for table in tables)


def _is_of_bytes(column: Column) -> bool:
    return column.data_type.endswith(_OF_BYTES) or column.data_type in _OTHERS_OF_BYTES


def _has_broken_literal(text: LoggedText) -> bool:
    """Whether a literal without an introducer, which no function takes, has bytes that are no character."""
    calls, tokens = [False], text.tokens
    ends = [*(begin for begin, _ in text.places[1:]), len(text.sql)]
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else token
        if is_symbol(token, "("):
            is_name = before.kind in (TokenKind.WORD, TokenKind.NAME) and before.upper not in _OF_OPERATORS
            calls.append(calls[-1] or is_name)
        elif is_symbol(token, ")") and len(calls) > 1:
            calls.pop()
        # long lists of literals have no tokens of their own
        begin, end = text.places[at][0], ends[at] if token.omits else text.places[at][1]
        if calls[-1] or not (token.omits or token.kind is TokenKind.STRING):
            continue
        literal = text.sql[begin:end]
        has_charset = before.text.startswith("_") or _INTRODUCER.search(literal) is not None
        if UNDECODED in literal and not has_charset:
            return True
    return False
