"""The types of ``folding.pyx``."""

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Numbers, Words

PRIMARY: Final[int]
UNIQUE: Final[int]
PHASES: Final[int]
NEIGHBOURS: Final[int]
NOTHING: Final[int]
DELETE: Final[int]
UPDATE: Final[int]
INSERT: Final[int]
SPLIT: Final[int]

def fold(
    data: Bytes,
    images: Ints,
    table_of: Ints,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    flags: Bytes,
    counters: Ints,
    slots: Numbers,
    key_hash: Words,
    key_image: Ints,
    entry_table: Ints,
    before: Ints,
    now: Ints,
    kept: Ints,
    highest: Words,
    was_absent: Bytes,
    misfit: Bytes,
) -> int: ...
def judge(
    data: Bytes,
    count: int,
    entry_table: Ints,
    before: Ints,
    now: Ints,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    flags: Bytes,
    counters: Ints,
    was_absent: Bytes,
    left: Ints,
    written: Words,
    unsure: Bytes,
) -> None: ...
def places(left: Ints, entry_table: Ints, is_restored: Flags, bucket_end: Ints) -> int: ...
def arrange(
    left: Ints,
    entry_table: Ints,
    before: Ints,
    now: Ints,
    is_restored: Flags,
    kept: Ints,
    bucket_end: Ints,
    bucket: Ints,
    images: Ints,
) -> None: ...
def lanes_of(
    data: Bytes,
    images: Ints,
    table: Ints,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    flags: Bytes,
    ranged: Ints,
    seeds: Ints,
    lanes: int,
    lane: Ints,
) -> None: ...
def by_key(
    data: Bytes,
    images: Ints,
    kind: Ints,
    table: Ints,
    tables: Ints,
    rule: Bytes,
    param: Ints,
    flags: Bytes,
    out_table: Ints,
    out_kind: Ints,
    out_images: Ints,
) -> int: ...
