"""The types of ``framing.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Halves, Ints, Numbers, Sizes, Words

OK: Final[int]
SHORT_HEADER: Final[int]
SMALL_SIZE: Final[int]
SHORT_EVENT: Final[int]
SHORT_BODY: Final[int]
UNMAPPED: Final[int]
REFUSED: Final[int]
BAD_EXTRA: Final[int]
BAD_WIDTH: Final[int]
OVERRUN: Final[int]
NO_IMAGES: Final[int]
NO_COLUMNS: Final[int]
UNKNOWN_LENGTH: Final[int]
BAD_OPTIONS: Final[int]

def frame(
    data: Bytes,
    start: int,
    header_len: int,
    tail: int,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    time: Sizes,
    flags: Halves,
) -> tuple[int, int, int]: ...
def whole_events(data: Bytes, least: int) -> tuple[int, int]: ...
def first_bad_crc(data: Bytes, offset: Ints, kind: Bytes, size: Sizes) -> int: ...
def index(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    header_len: int,
    tail: int,
    number: Numbers,
    first: Ints,
    slots: Numbers,
    hashes: Words,
    bodies: Ints,
    ids: Ints,
    meant: Numbers,
    since: Ints,
) -> tuple[int, int, int]: ...
def appearances(number: Numbers, seen: Numbers, used: Ints, first: Ints) -> int: ...
