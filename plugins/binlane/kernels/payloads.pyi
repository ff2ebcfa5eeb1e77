"""The types of ``payloads.pyx``."""

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Sizes

def payload_heads(
    data: Bytes, offset: Ints, kind: Bytes, size: Sizes, header_len: int, tail: int, most: int, room: int, found: Ints
) -> int: ...
def rows_heads(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    bitmaps: Bytes,
    has_extra: Flags,
    tail: int,
    most: int,
    room: int,
    found: Ints,
) -> int: ...
def plain_inside(data: Bytes, start: Ints, first: int, last: int, between: Flags, is_plain: Flags) -> None: ...
def count_events(data: Bytes, start: Ints, end: Ints) -> int: ...
def lay_out(
    data: Bytes,
    offset: Ints,
    size: Sizes,
    event: Ints,
    inner: Bytes,
    start: Ints,
    end: Ints,
    tail: int,
    out: Bytes,
    at: Ints,
    source: Ints,
) -> None: ...
