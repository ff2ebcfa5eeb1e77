"""The content of a compressed file in pieces, from its beginning to its end: of gzip and of zstandard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final

import zstandard

from binlane.source.gzip_stream import GzipStream

_PIECE: Final = 1 << 20
_FRAGMENT: Final = 1 << 9
"""Compressed bytes at once, since what they grow to is held whole: a block of 4 bytes can stand for 128 KiB."""


def _of_gzip(file: IO[bytes]) -> Iterator[bytes]:
    stream = GzipStream(file)
    while piece := stream.read(_PIECE):
        yield piece


def _of_zstd(file: IO[bytes]) -> Iterator[bytes]:
    """All frames; zstandard's own reader ends in silence where the last one was cut."""
    frame, is_inside = zstandard.ZstdDecompressor().decompressobj(), False
    while packed := file.read(_FRAGMENT):
        while packed:
            yield frame.decompress(packed)
            packed, is_inside = frame.unused_data if frame.eof else b"", not frame.eof
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
    if is_inside:
        raise EOFError("the compressed file ends too early")


UNPACKED: Final[Mapping[str, Callable[[IO[bytes]], Iterator[bytes]]]] = {".gz": _of_gzip, ".zst": _of_zstd}
"""By the file's suffix. Raises zlib.error, zstandard.ZstdError or EOFError for a damaged or cut file."""
