"""The types of ``transactions.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Numbers, Sizes, Words

OTHER: Final[int]
BETWEEN: Final[int]
MARIADB_GTID: Final[int]
GTID: Final[int]
QUERY: Final[int]
XID: Final[int]
PAYLOAD: Final[int]
MAP: Final[int]
ROWS: Final[int]
COMPRESSED: Final[int]
NOTE: Final[int]

def find_begun(data: Bytes, start: Ints, event: Ints, begun: Flags) -> None: ...
def find_numbered(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    roles: Bytes,
    header_length: int,
    tail: int,
    knows_query: bool,
    is_whole: Flags,
    first: Ints,
    last: Ints,
    time: Ints,
    line: Words,
) -> int: ...
def find_of_one_database(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    roles: Bytes,
    tail: int,
    knows_query: bool,
    number: Numbers,
    database_of: Numbers,
    first: Ints,
    last: Ints,
    database: Numbers,
) -> int: ...
