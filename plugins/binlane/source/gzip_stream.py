"""Files of gzip, member by member, with a time that follows their size.

Python's own reader takes the heads of members, and the zeros behind the last one, apart byte by byte: a file of 20 MB
that consists of them keeps it busy for minutes.
"""

from __future__ import annotations

import zlib
from typing import IO, Final

_WITH_HEADER: Final = zlib.MAX_WBITS | 16
_FRAGMENT: Final = 1 << 13
"""Compressed bytes that are read at once. What follows a member is copied, so it is few."""


class GzipStream:
    """The content of a file of gzip, read forward."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._member = zlib.decompressobj(_WITH_HEADER)
        self._packed = b""
        self._is_inside = False
        """A member has begun."""
        self._is_first = True

    def read(self, size: int) -> bytes:
        """Some bytes, at most ``size``; none at the end. Raises zlib.error for what is no gzip, EOFError for a file
        that ends inside a member."""
        while True:
            if not self._packed:
                self._packed = self._file.read(_FRAGMENT)
            is_end = not self._packed
            if not self._is_inside:
                if not self._is_first:
                    # padding of tapes and disks
                    self._packed = self._packed.lstrip(b"\0")
                if is_end:
                    return b""
                if not self._packed:
                    continue
                self._is_inside, self._is_first = True, False
            data = self._member.decompress(self._packed, size)
            if self._member.eof:
                self._packed, self._is_inside = self._member.unused_data, False
                self._member = zlib.decompressobj(_WITH_HEADER)
            elif is_end and not data:
                raise EOFError("it ends inside a compressed member")
            else:
                self._packed = self._member.unconsumed_tail
            if data:
                return data
