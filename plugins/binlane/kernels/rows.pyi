"""The types of ``rows.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Numbers, Sizes

COMPRESSED: Final[int]

def find_partial(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    header_len: int,
    tail: int,
    number: Numbers,
    width: Ints,
    found: Flags,
) -> None: ...
def count(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    header_len: int,
    tail: int,
    number: Numbers,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    rows: Ints,
    images: Ints,
    lacking: Flags,
) -> tuple[int, int]: ...
def value_ranges(
    data: Bytes, images: Ints, width: int, rule: Bytes, param: Ints, column: int, ranges: Ints
) -> bool: ...
def places(data: Bytes, images: Ints, width: int, rule: Bytes, length: Ints, start: Ints, end: Ints) -> None: ...
