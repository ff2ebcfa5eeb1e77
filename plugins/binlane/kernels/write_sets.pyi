"""The types of ``write_sets.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Words

KEY: Final[int]
WHOLE_ROW: Final[int]
REFERENCE: Final[int]
BEGIN: Final[int]
UNKNOWN: Final[int]
IS_FULL: Final[int]
CHAIN: Final[int]
ROWS: Final[int]
LEFT: Final[int]
OPENED: Final[int]
ALL_ROWS: Final[int]
FREE: Final[int]
SHARED: Final[int]
NOT_TOLD: Final[int]
SUM_CHAIN: Final[int]
SUM_ROWS: Final[int]
SUM_LEFT: Final[int]
SUM_OPENED: Final[int]
SUM_ALL_ROWS: Final[int]
FACTS: Final[int]

def move_to(seqno: int, blocks: Ints, sizes: Ints, depth: Ints, slots: Words, used: Ints) -> None: ...
def count(
    data: Bytes,
    images: Ints,
    seqno: Ints,
    number: Ints,
    tables: Ints,
    rule: Bytes,
    length: Ints,
    ranges: Ints,
    is_told: Flags,
    table_id: Ints,
    opened: Ints,
    key_at: Ints,
    seed: Words,
    kind: Ints,
    place_at: Ints,
    place: Ints,
    cut: Ints,
    unknown: Ints,
    blocks: Ints,
    sizes: Ints,
    depth: Ints,
    slots: Words,
    who: Ints,
    used: Ints,
    own: Words,
) -> None: ...
