"""The types of ``narrowing.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Ints, Numbers, Sizes

MOST_COLUMNS: Final[int]

def narrow(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    number: Numbers,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    key_from: Ints,
    key_columns: Ints,
    out: Bytes,
) -> int: ...
