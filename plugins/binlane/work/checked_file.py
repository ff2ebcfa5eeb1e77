"""A file whose bytes are those of its digest, however often and in whatever order they are read.

Others may be able to write to the work folder, also between the comparison of a digest and the reading behind it. So
the comparison keeps a digest of each piece, and every later read compares the pieces that it touches.
"""

from __future__ import annotations

import io
from typing import IO, Final

from blake3 import blake3

from binlane.errors import PlanError

_PIECE: Final = 1 << 20


class CheckedFile(io.RawIOBase):
    """Reads ``file``. Raises PlanError, naming ``where``, if its BLAKE3 is not ``digest``, or if it changes later."""

    def __init__(self, file: IO[bytes], digest: str, where: str) -> None:
        super().__init__()
        self._file, self._where = file, where
        self._at = self._size = 0
        self._held: tuple[int, bytes] = (-1, b"")
        whole, self._pieces = blake3(), list[bytes]()
        while piece := _whole(file, _PIECE):
            whole.update(piece)
            self._pieces.append(blake3(piece).digest())
            self._size += len(piece)
            self._held = (len(self._pieces) - 1, piece)
        if whole.hexdigest() != digest:
            raise self._changed(f"expected BLAKE3 {digest} as in the plan, found another")

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase."""
        if self._at >= self._size:
            return 0
        number, begin = divmod(self._at, _PIECE)
        part = self._piece(number)[begin : begin + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _piece(self, number: int) -> bytes:
        if self._held[0] != number:
            self._file.seek(number * _PIECE)
            piece = _whole(self._file, min(_PIECE, self._size - number * _PIECE))
            if blake3(piece).digest() != self._pieces[number]:
                raise self._changed("it was changed while it was read")
            self._held = (number, piece)
        return self._held[1]

    def _changed(self, why: str) -> PlanError:
        return PlanError(
            f"{self._where}: {why}: the file was changed or is damaged; remove the plan's folder and run the plan "
            "job again: it writes the same file"
        )

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See io.RawIOBase."""
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """See io.RawIOBase."""
        return self._at

    def readable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def seekable(self) -> bool:
        """See io.RawIOBase."""
        return True


def _whole(file: IO[bytes], size: int) -> bytes:
    """As many bytes as the file has, up to ``size``: a remote file may give fewer at once."""
    parts, left = list[bytes](), size
    while left > 0 and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
