"""Which blocks of transactions in a row share a key: the keys of all row changes as hashes, of both images.

A change *writes* the keys of its row, and *reads* the keys of the rows that its foreign keys refer to. Two transactions
share a key if one of them writes a key that the other writes or reads. Only `binlane advise` uses this: what scheduling
by a graph of transactions could gain (docs/decisions/0016).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Words
from binlane.binlog.vector.compiled import copying, inlined, kernel

SIZES: Final = (10, 100, 1000)
"""Transactions in a row. Each divides the next, so that a block begins only where all smaller ones do."""
KEY, WHOLE_ROW, REFERENCE = range(3)
"""Kinds of a key: a unique key, all columns of a row without one, and the key of another table that a foreign key
reads."""
KEYS: Final = 1 << 20
"""Most keys of a block that are remembered; of a block with more, less is known."""

(BEGIN, UNKNOWN, IS_FULL, CHAIN, ROWS, LEFT, OPENED, ALL_ROWS,
 FREE, SHARED, NOT_TOLD, SUM_CHAIN, SUM_ROWS, SUM_LEFT, SUM_OPENED, SUM_ALL_ROWS) = range(16)  # fmt: skip
"""Columns of ``blocks``: the first seqno and the facts of the block that is being read, then the sums over all blocks
before it. CHAIN: the most transactions of the block that have to follow one another, less one."""
_NOBODY: Final = -1
_PRIME = np.uint64(1099511628211)
_SHIFT = np.uint64(29)


@inlined
def _columns(data: Bytes, at: int, width: int, first: int, rule: Bytes, length: Ints, ranges: Ints) -> None:
    """Fills ``ranges`` with begin and end of each value of a full image, without the bytes of its length; -1: NULL."""
    nulls = at
    at += (width + 7) >> 3
    for column in range(width):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            ranges[column, 0] = _NOBODY
            continue
        prefix = np.int64(rule[first + column])
        size = length[first + column]
        if prefix:
            size = np.int64(0)
            for byte in range(prefix):
                size |= np.int64(data[at + byte]) << (8 * byte)
        ranges[column, 0] = at + prefix
        at += prefix + size
        ranges[column, 1] = at


@inlined
def _hash(
    data: Bytes, ranges: Ints, seed: np.uint64, kind: int, place: Ints, cut: Ints, at: int, end: int
) -> np.uint64:
    """Hash of one key of an image; 0: a column is NULL, so that no other row has the key."""
    value = seed
    for part in range(at, end):
        start, stop = ranges[place[part], 0], ranges[place[part], 1]
        if start == _NOBODY:
            if kind != WHOLE_ROW:
                return np.uint64(0)
            value = (value ^ np.uint64(256)) * _PRIME
            continue
        if cut[part]:
            stop = min(stop, start + cut[part])
        for byte in range(start, stop):
            value = (value ^ np.uint64(data[byte])) * _PRIME
        value = (value ^ np.uint64(stop - start + 257)) * _PRIME
    return max(value ^ (value >> _SHIFT), np.uint64(1))


@kernel
def move_to(seqno: int, blocks: Ints, sizes: Ints, depth: Ints, slots: Words, used: Ints) -> None:
    """End the blocks that end before ``seqno``. ``used``: the slots that are in use, their number in front."""
    for size in range(sizes.size):
        while seqno >= blocks[size, BEGIN] + sizes[size]:
            block = blocks[size]
            block[SHARED if block[CHAIN] else NOT_TOLD if block[UNKNOWN] else FREE] += 1
            block[SUM_CHAIN] += block[CHAIN] + 1
            if not block[IS_FULL]:
                block[SUM_ROWS] += block[ROWS]
                block[SUM_LEFT] += block[LEFT]
            block[SUM_OPENED] += block[OPENED]
            block[SUM_ALL_ROWS] += block[ALL_ROWS]
            block[UNKNOWN : ALL_ROWS + 1] = 0
            depth[size] = 0
            block[BEGIN] += sizes[size]
            if size == sizes.size - 1:
                for number in range(used[0]):
                    slots[used[1 + number]] = np.uint64(0)
                used[0] = 0


@inlined
def _slot(value: np.uint64, slots: Words, who: Ints, used: Ints) -> int:
    """The slot of a key, made if it is new; -1 if there is no room."""
    mask = slots.size - 1
    slot = int(np.int64(value >> np.uint64(1))) & mask
    while slots[slot] != np.uint64(0) and slots[slot] != value:
        slot = (slot + 1) & mask
    if slots[slot] == np.uint64(0):
        if used[0] == used.size - 1:
            return -1
        used[0] += 1
        used[used[0]] = slot
        slots[slot] = value
        who[slot, :] = _NOBODY
    return slot


@inlined
def _touch(slot: int, seqno: int, reads: bool, who: Ints) -> int:
    """Note that a transaction touches a key; returns the last other one that it shares the key with. ``who``, by slot:
    the last writer, the last reader, and the last reader that is another transaction than this one."""
    other = _NOBODY
    if who[slot, 0] != seqno:
        other = who[slot, 0]
    if reads:
        if who[slot, 1] != seqno:
            who[slot, 2] = who[slot, 1]
            who[slot, 1] = seqno
        return other
    who[slot, 0] = seqno
    return int(max(other, who[slot, 2] if who[slot, 1] == seqno else who[slot, 1]))


@kernel
def _follow(now: int, other: int, blocks: Ints, sizes: Ints, depth: Ints) -> None:
    """A transaction has to wait for an earlier one, if that is in its block: its chain is longer by one."""
    for size in range(sizes.size):
        begin = blocks[size, BEGIN]
        if other >= begin:
            depth[size, now - begin] = max(depth[size, now - begin], depth[size, other - begin] + 1)
            blocks[size, CHAIN] = max(blocks[size, CHAIN], depth[size, now - begin])


@copying
def count(  # noqa: C901 -- a call with arrays costs more than reading an image
    data: Bytes, images: Ints, seqno: Ints, number: Ints, tables: Ints, rule: Bytes, length: Ints, ranges: Ints,
    is_told: Flags, table_id: Ints, opened: Ints, key_at: Ints, seed: Words, kind: Ints, place_at: Ints, place: Ints,
    cut: Ints, unknown: Ints, blocks: Ints, sizes: Ints, depth: Ints, slots: Words, who: Ints, used: Ints, own: Words,
) -> None:  # fmt: skip
    """Count the rows of a segment into ``blocks``.

    ``seqno`` and ``number``, by row: its transaction and its table; ``tables``: first rule and width; ``is_told``: the
    table's keys are known; ``table_id``: its number in ``opened``, by size the first seqno of the last block that has
    opened it. A table's keys are those from ``key_at`` on, a key's columns those from ``place_at`` on; the first
    key identifies the row. ``unknown``: seqnos of transactions of which not all keys are known, ascending. ``depth``,
    by size and place in the block: the longest chain of transactions before one. Fills ``own`` with the hash of each
    row's first key, 0 without a key.
    """
    behind = 0
    for row in range(seqno.size):
        now, one = seqno[row], number[row]
        while behind < unknown.size and unknown[behind] <= now:
            move_to(unknown[behind], blocks, sizes, depth, slots, used)
            blocks[:, UNKNOWN] = 1
            behind += 1
        move_to(now, blocks, sizes, depth, slots, used)
        for size in range(sizes.size):
            blocks[size, ALL_ROWS] += 1
            if opened[size, table_id[one]] != blocks[size, BEGIN]:
                opened[size, table_id[one]] = blocks[size, BEGIN]
                blocks[size, OPENED] += 1
        own[row] = np.uint64(0)
        if not is_told[one]:
            blocks[:, UNKNOWN] = 1
            continue
        blocks[:, ROWS] += 1
        is_first = True
        for half in range(0, 4, 2):
            if images[row, half] < 0:
                continue
            _columns(data, images[row, half], tables[one, 1], tables[one, 0], rule, length, ranges)
            for key in range(key_at[one], key_at[one + 1]):
                value = _hash(data, ranges, seed[key], kind[key], place, cut, place_at[key], place_at[key + 1])
                if value == np.uint64(0):
                    continue
                slot = _slot(value, slots, who, used)
                if slot < 0:
                    blocks[:, UNKNOWN] = 1
                    blocks[:, IS_FULL] = 1
                    continue
                if is_first and key == key_at[one]:
                    if kind[key] == KEY:
                        own[row] = value
                    for size in range(sizes.size):
                        blocks[size, LEFT] += who[slot, 0] < blocks[size, BEGIN]
                _follow(now, _touch(slot, now, kind[key] == REFERENCE, who), blocks, sizes, depth)
            is_first = False
    for left in range(behind, unknown.size):
        move_to(unknown[left], blocks, sizes, depth, slots, used)
        blocks[:, UNKNOWN] = 1
