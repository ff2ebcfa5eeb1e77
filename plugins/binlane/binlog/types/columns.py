"""What is known of a logged table's columns.

A TABLE_MAP alone says types and lengths. Names, signs, members and character sets come with it where the source logs
them (``binlog_row_metadata``); a schema may add what no log tells. What is not known is never guessed into another
value: members stay numbers, bytes stay bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from binlane.binlog.types.charsets import BINARY, decode_text
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.type_codes import LengthRule


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a logged table."""

    number: int
    """1 is the first."""
    name: str | None
    type_code: int
    """``ColumnType``, ENUM and SET told apart from STRING."""
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    """None where the log does not say, and for what is no number."""
    charset: str | None = None
    """``binary`` for bytes; None where the log does not say, and for what is no string."""
    members: tuple[bytes, ...] | None = None
    """Of ENUM and SET, in the column's character set."""
    data_type: str | None = None
    """What a schema calls it: tells INET4, INET6 and UUID from BINARY."""
    fsp: int = 0
    """Digits of the fraction of MariaDB 5.3's types, which only a schema knows."""

    @property
    def label(self) -> str:
        """Its name, or ``@`` and its number."""
        return f"@{self.number}" if self.name is None else self.name

    @property
    def is_text(self) -> bool:
        """Whether it holds characters, as far as is known."""
        return self.charset is not None and self.charset != BINARY

    def member_texts(self) -> list[str] | None:
        """The members of ENUM and SET as text; None where the log or their bytes do not tell."""
        texts = [decode_text(member, self.charset) for member in self.members or ()]
        return None if self.members is None or None in texts else [text for text in texts if text is not None]

    def length_rule(self, logged: LengthRule) -> LengthRule:
        """How long it is in an image: as logged, unless a schema knows of a fraction that the log does not tell."""
        kind = LOGGED_TYPES[self.type_code]
        return logged if kind.with_digits is None or self.fsp == 0 else (0, kind.with_digits[0][self.fsp])
