"""A logged statement as tokens with byte offsets, so that single tokens can be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.sql.charset import dialect_of, placed
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind, lex


@dataclass(frozen=True, slots=True)
class StatementWords:
    """A statement's tokens with their byte offsets."""

    sql: bytes
    tokens: Sequence[Token]
    places: Sequence[tuple[int, int]]
    """Offset of each token's first byte, and of the byte behind its last."""
    encode: Callable[[str], bytes | None]
    """Encodes a name in the statement's character set; gives None if that is not possible."""

    def bytes_of(self, number: int) -> bytes:
        """A token's bytes."""
        start, end = self.places[number]
        return self.sql[start:end]

    def text(self, number: int) -> str:
        """A name or an option's value without its quotes; non-ASCII characters become U+FFFD."""
        token = self.tokens[number]
        if token.kind is TokenKind.STRING:
            return self.bytes_of(number).decode("ascii", "replace").strip("'\"")
        return token.text

    def value(self, number: int) -> int | None:
        """The index of the value of the option at ``number``, behind an optional equals sign; None if there is none."""
        at = number + 1
        if at < len(self.tokens) and is_symbol(self.tokens[at], "="):
            at += 1
        kinds = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)
        return at if at < len(self.tokens) and self.tokens[at].kind in kinds else None

    def has_collation(self, number: int) -> bool:
        """Whether the character set at ``number`` has COLLATE or BINARY among the options of the same object."""
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
        """The first word and the kind of object, for example CREATE and TABLE."""
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
    """The tokens of a statement. Raises Unreadable if the lexer cannot read the text."""
    text, place, encode = placed(sql, context)
    tokens: list[Token] = []
    spans: list[tuple[int, int]] = []
    lex(text, dialect_of(context, flavor), tokens, spans)
    return StatementWords(sql, tokens, [(place(start), place(end)) for start, end in spans], encode)
