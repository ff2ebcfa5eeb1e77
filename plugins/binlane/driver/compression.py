"""The compressed protocol of MySQL and MariaDB, by zlib, which PyMySQL leaves out: frames around the stream of packets.

A frame has 3 bytes of its own length, a number, and 3 bytes of the length that its content has inflated; 0: it is not
compressed. Packets and frames begin and end independently of each other.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_HEAD: Final = 7
_LONGEST: Final = 0xFF_FFFF
_WORTH: Final = 50
"""Bytes below which a content is sent as it is, as the servers do."""
_LEVEL: Final = 1
"""Rows shrink by about as much as with zlib's default, for a third of its time."""


def frames_of(data: bytes, first: int) -> Iterator[bytes]:
    """Packets as frames. ``first``: the number of the first frame; 0 for those that begin a command."""
    for number, begin in enumerate(range(0, len(data), _LONGEST), first):
        content, inflated = data[begin : begin + _LONGEST], 0
        if len(content) >= _WORTH:
            packed = zlib.compress(content, _LEVEL)
            if len(packed) < len(content):
                content, inflated = packed, len(content)
        head = len(content).to_bytes(3, "little") + bytes([number % 256]) + inflated.to_bytes(3, "little")
        yield head + content


class InflatedStream(io.RawIOBase):
    """The packets in the frames that a server sends. ``frames``: a blocking, buffered stream."""

    def __init__(self, frames: io.BufferedReader) -> None:
        super().__init__()
        self._frames = frames
        self._content = memoryview(b"")

    def readable(self) -> bool:
        """The stream is readable."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Wait for a frame, unless a part of the last one is left. 0 at the end of the stream. Raises OSError for a
        stream that ends within a frame, or has other content than the frame's head says."""
        while not self._content:
            head = self._frames.read(_HEAD)
            if not head:
                return 0
            self._content = memoryview(self._frame(head))
        out = memoryview(buffer).cast("B")
        count = min(len(out), len(self._content))
        out[:count] = self._content[:count]
        self._content = self._content[count:]
        return count

    def _frame(self, head: bytes) -> bytes:
        length, inflated = (int.from_bytes(head[begin : begin + 3], "little") for begin in (0, 4))
        content = self._frames.read(length)
        if len(head) < _HEAD or len(content) < length:
            raise OSError("the stream ends within a compressed packet")
        if not inflated:
            return content
        try:
            # one byte more than said: a frame that inflates to more is as wrong as one that inflates to less
            found = zlib.decompressobj().decompress(content, inflated + 1)
        except zlib.error as exc:
            raise OSError(f"a compressed packet cannot be inflated: {exc}") from exc
        if len(found) != inflated:
            raise OSError(f"expected a compressed packet of {inflated:,} bytes, found {len(found):,} or more")
        return found
