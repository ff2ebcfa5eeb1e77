"""The content of a compressed file in pieces, from its beginning to its end: of gzip and of zstandard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Final

import zstandard

from binlane.binlog.payload import MAX_UNCOMPRESSED
from binlane.source.gzip_stream import GzipStream

_PIECE: Final = 1 << 20
_FRAGMENT: Final = 1 << 9
"""Compressed bytes at once, since what they grow to is held whole: a block of 4 bytes can stand for 128 KiB."""


LOG_BYTES: Final = (1 << 30) + MAX_UNCOMPRESSED
"""The limit of what a compressed file of a log holds. A server begins a new file at max_binlog_size, 1 GiB at most, but
never inside of a transaction; a plain file takes its bytes on a disk already, and has no limit."""


class LogLengthError(Exception):
    """A compressed file holds more than a file of a log."""


def check_log_length(length: int, most: int = LOG_BYTES) -> None:
    """Raises LogLengthError if a file holds more than ``most`` bytes."""
    if length > most:
        raise LogLengthError(
            f"expected at most {most:,} bytes in a compressed file of a log, found more; if the file is whole, "
            "decompress it: a plain one has no limit"
        )


def of_log(pieces: Iterable[bytes], most: int = LOG_BYTES) -> Iterator[bytes]:
    """The pieces of a file of a log. Raises LogLengthError."""
    length = 0
    for piece in pieces:
        length += len(piece)
        check_log_length(length, most)
        yield piece


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
