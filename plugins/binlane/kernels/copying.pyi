"""The types of ``copying.pyx``."""

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Sizes

def gather(data: Bytes, offsets: Ints, lengths: Ints, out: Bytes) -> int: ...
def strip(data: Bytes, offset: Ints, size: Sizes, wanted: Ints, header_len: int, tail: int, out: Bytes) -> int: ...
def strip_renamed(
    data: Bytes,
    offset: Ints,
    size: Sizes,
    wanted: Ints,
    header_len: int,
    tail: int,
    which: Ints,
    names: Bytes,
    edges: Ints,
    out: Bytes,
) -> int: ...
def take(
    data: Bytes, at: int, filled: int, special: Flags, events: Bytes, taken: int, last: int
) -> tuple[int, int, int]: ...
