"""A logged statement cut into words, each with the bytes it stands in, so that some of them can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from binlane.model import Flavor, SessionContext
from binlane.sql.charset import dialect_of, placed
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind, lex


@dataclass(frozen=True, slots=True)
class StatementWords:
    """A statement's tokens with the bytes that each stands in."""

    sql: bytes
    tokens: Sequence[Token]
    places: Sequence[tuple[int, int]]
    """First byte of each token and the byte behind it."""
    encode: Callable[[str], bytes | None]
    """A name in the statement's character set; None if that cannot be told."""

    def bytes_of(self, number: int) -> bytes:
        """A token as it was written."""
        start, end = self.places[number]
        return self.sql[start:end]

    def text(self, number: int) -> str:
        """A name or an option's value without its quotes; ASCII, other characters become U+FFFD."""
        token = self.tokens[number]
        if token.kind is TokenKind.STRING:
            return self.bytes_of(number).decode("ascii", "replace").strip("'\"")
        return token.text

    def value(self, number: int) -> int | None:
        """The token that is the value of the option at ``number``: behind it, and behind an equals sign."""
        at = number + 1
        if at < len(self.tokens) and is_symbol(self.tokens[at], "="):
            at += 1
        kinds = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)
        return at if at < len(self.tokens) and self.tokens[at].kind in kinds else None

    def has_collation(self, number: int) -> bool:
        """Whether the character set at ``number`` has COLLATE or BINARY beside it, among the options of one thing."""
        depth = 0
        for at in range(number, len(self.tokens)):
            token = self.tokens[at]
            if token.upper in ("COLLATE", "BINARY") and depth == 0:
                return True
            depth += is_symbol(token, "(") - is_symbol(token, ")")
            if depth < 0 or (depth == 0 and is_symbol(token, ",")) or is_symbol(token, ";"):
                break
        return self._collated_in_front(number)

    def _collated_in_front(self, number: int) -> bool:
        depth = 0
        for at in range(number - 1, -1, -1):
            token = self.tokens[at]
            if token.upper == "COLLATE" and depth == 0:
                return True
            depth += is_symbol(token, ")") - is_symbol(token, "(")
            if depth < 0 or (depth == 0 and is_symbol(token, ",")):
                break
        return False

    def verb_and_kind(self) -> tuple[str, str]:
        """CREATE and TABLE, for example: the first word, and what it is about."""
        verb = self.tokens[0].upper if self.tokens else ""
        known = ("TABLE", "DATABASE", "SCHEMA", "FUNCTION", "PROCEDURE", "VIEW", "TRIGGER", "EVENT", "INDEX")
        return verb, next((token.upper for token in self.tokens[1:12] if token.upper in known), "")

    def replaced(self, edits: Mapping[int, bytes]) -> bytes:
        """The statement with other bytes in place of some tokens."""
        found, at = bytearray(), 0
        for number in sorted(edits):
            start, end = self.places[number]
            found += self.sql[at:start] + edits[number]
            at = end
        return bytes(found + self.sql[at:])


def words_of(sql: bytes, context: SessionContext, flavor: Flavor) -> StatementWords:
    """Raises Unreadable for what cannot be cut into words."""
    text, place, encode = placed(sql, context)
    tokens: list[Token] = []
    spans: list[tuple[int, int]] = []
    lex(text, dialect_of(context, flavor), tokens, spans)
    return StatementWords(sql, tokens, [(place(start), place(end)) for start, end in spans], encode)
