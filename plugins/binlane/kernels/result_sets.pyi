"""The types of ``result_sets.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Ints

OK: Final[int]
MORE: Final[int]
FULL: Final[int]
NO_ROOM: Final[int]
END: Final[int]
ERROR: Final[int]
LONG: Final[int]
UNFAITHFUL: Final[int]
DAMAGED: Final[int]
ESCAPES: Final[int]
EXPONENT: Final[int]

def spell_rows(
    data: Bytes,
    at: int,
    end: int,
    around: Bytes,
    places: Ints,
    flags: Ints,
    checked: bool,
    out: Bytes,
    filled: int,
    pending: int,
    limit: int,
) -> tuple[int, int, int, int]: ...
