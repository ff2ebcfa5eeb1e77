"""Integers and strings of event bodies."""

from __future__ import annotations

from typing import Final

_PACKED_LENGTHS: Final = {252: 2, 253: 3, 254: 8}
"""First byte of a length-encoded integer -> number of bytes after it. Below 251 the byte itself is the integer."""


NAME_LENGTH: Final = 64
"""Characters of the longest name of a database or table, in both families."""


def check_name(name: str) -> None:
    """Raises ValueError for a name that no server gives a database or table.

    A server that is given one may take another: the protocol ends a database's name at its NUL.
    """
    if len(name) > NAME_LENGTH:
        raise ValueError(f"a name of {len(name)} characters, {NAME_LENGTH} at most were expected: {name[:20]!r}...")
    if "\0" in name or name.endswith(" "):
        raise ValueError(f"{name!r} is no name of a database or table: it has a NUL, or a space at its end")


class Fields:
    """Reads the fields of a body one after another.

    Every method raises ValueError, with the field's offset in the body, if the body ends first; ``parse_body`` turns it
    into a BinlogError with file and offset.
    """

    __slots__ = ("_at", "_body")

    def __init__(self, body: memoryview, at: int = 0) -> None:
        self._body = body
        self._at = at

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._body) - self._at

    def take(self, length: int) -> memoryview:
        """The next ``length`` bytes."""
        if length > self.left:
            raise ValueError(f"body byte {self._at}: a field of {length} bytes, {self.left} are left")
        start = self._at
        self._at += length
        return self._body[start : self._at]

    def rest(self) -> memoryview:
        """All bytes that are left."""
        return self.take(self.left)

    def uint(self, length: int) -> int:
        """A little-endian unsigned integer of ``length`` bytes."""
        return int.from_bytes(self.take(length), "little")

    def sint(self, length: int) -> int:
        """A little-endian signed integer of ``length`` bytes."""
        return int.from_bytes(self.take(length), "little", signed=True)

    def text(self, length: int) -> str:
        """An identifier; servers log identifiers in UTF-8."""
        return str(self.take(length), "utf-8")

    def name(self, length: int) -> str:
        """The name of a database or table."""
        name = self.text(length)
        check_name(name)
        return name

    def short_text(self) -> str:
        """A length byte and that many bytes of UTF-8."""
        return self.text(self.uint(1))

    def until_nul(self) -> str:
        """UTF-8 up to a NUL, which is consumed."""
        end = bytes(self._body[self._at :]).find(0)
        if end < 0:
            raise ValueError(f"body byte {self._at}: expected a NUL before the body's end")
        text = self.text(end)
        self._at += 1
        return text

    def packed(self) -> int:
        """MySQL's length-encoded integer: 1, 3, 4 or 9 bytes (``net_field_length``)."""
        first = self.uint(1)
        if first < 251:
            return first
        length = _PACKED_LENGTHS.get(first)
        if length is None:
            raise ValueError(f"body byte {self._at - 1}: {first} does not begin a length-encoded integer")
        return self.uint(length)

    def varint(self) -> int:
        """An unsigned integer of MySQL's serialization library: its first byte has a low 1 bit for each further
        byte."""
        first = self.uint(1)
        more = (~first & (first + 1)).bit_length() - 1
        if more == 8:
            return self.uint(8)
        return (self.uint(more) << (7 - more)) | (first >> (more + 1))

    def signed_varint(self) -> int:
        """A signed integer of MySQL's serialization library: the sign is in the lowest bit."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)
