"""The types of ``row_events.pyx``."""

from binlane.binlog.vector.arrays import Bytes, Flags, Ints

def cut(table: Ints, kind: Ints, length: Ints, limit: int, first: Ints) -> int: ...
def pack(table: Ints, size: Ints, map_size: Ints, limit: int, payload: Ints, has_map: Flags) -> None: ...
def write(
    data: Bytes,
    images: Ints,
    first: Ints,
    table: Ints,
    code: Bytes,
    size: Ints,
    has_map: Flags,
    is_last: Flags,
    group: Ints,
    maps: Bytes,
    map_at: Ints,
    map_size: Ints,
    width: Ints,
    is_v2: Flags,
    out: Bytes,
) -> None: ...
