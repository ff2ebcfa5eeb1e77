"""The columns of a logged table.

A TABLE_MAP always has types and lengths; names, signs, members and character sets only if the source logs them
(``binlog_row_metadata``). A schema may add further properties. Nothing is guessed: without member names an ENUM stays a
number, without a character set a string stays bytes.
"""

from __future__ import annotations

from binlane.binlog.types.charsets import BINARY, decode_text
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.type_codes import LengthRule
from binlane.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a logged table."""

    number: int
    """From 1."""
    name: str | None
    type_code: int
    """``ColumnType``, ENUM and SET told apart from STRING."""
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    """None if not logged, and for types that are no numbers."""
    charset: str | None = None
    """``binary`` for bytes; None if not logged, and for types that are no strings."""
    members: tuple[bytes, ...] | None = None
    """Members of ENUM and SET, in the column's character set."""
    data_type: str | None = None
    """The type's name by a schema, which distinguishes INET4, INET6 and UUID from BINARY."""
    fsp: int = 0
    """Digits of the fraction of MariaDB 5.3's types, by a schema."""

    @property
    def label(self) -> str:
        """The column's name, or ``@`` and its number."""
        return f"@{self.number}" if self.name is None else self.name

    @property
    def is_text(self) -> bool:
        """Whether the column is known to hold characters."""
        return self.charset is not None and self.charset != BINARY

    def member_texts(self) -> list[str] | None:
        """The members of ENUM and SET as text; None if they are not logged or not decodable."""
        texts = [decode_text(member, self.charset) for member in self.members or ()]
        return None if self.members is None or None in texts else [text for text in texts if text is not None]

    def length_rule(self, logged: LengthRule) -> LengthRule:
        """The length rule of the column's values: as logged, unless a schema has a fraction that the log lacks."""
        kind = LOGGED_TYPES[self.type_code]
        return logged if kind.with_digits is None or self.fsp == 0 else (0, kind.with_digits[0][self.fsp])
