"""Folds row images by primary key over consecutive row events to the net change of each row, without decoding values.

The rules (docs/reduction.md) for the state of one key; an update that changes the primary key is a delete of the old
key and an insert of the new one:

======== ================= =====================
change   state before      state after
======== ================= =====================
insert   no row            the new image
update   a row             the new image
delete   a row             no row
======== ================= =====================

A change that does not fit the state before is a misfit: its table is not folded. Tables are independent of each other.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import Bytes, Flags, Ints, Numbers, Words
from binlane.binlog.vector.compiled import AHEAD, inlined, kernel, prefetch, prefetch_row

PRIMARY: Final = 1
UNIQUE: Final = 2
"""Flags of a column: in the primary key, in any unique key (the primary one included)."""
NOTHING, DELETE, UPDATE, INSERT, SPLIT = range(5)
"""The net change of a key; SPLIT: a delete of the old image and an insert of the new one."""
PHASES: Final = 5
"""The order of a table's rows: deletes, insert and delete of the highest AUTO_INCREMENT value, updates, inserts."""
_GONE, _BACK, _GONE_AGAIN, _CHANGED, _COME = range(PHASES)

_PRIME = np.uint64(1099511628211)
_SEED = np.uint64(14695981039346656037)
_SHIFT = np.uint64(29)


@inlined
def _column_end(data: Bytes, at: int, rule: int, param: int) -> int:
    """The end of a column's value; the image's length was checked before."""
    if rule == 0:
        return at + param
    length = np.int64(0)
    for index in range(rule):
        length |= np.int64(data[at + index]) << (8 * index)
    return int(at + rule + length)


@inlined
def hash_of_key(
    data: Bytes, at: int, table: int, first: int, width: int, end_column: int, rule: Bytes, param: Ints, flags: Bytes,
    flag_at: int,
) -> np.uint64:  # fmt: skip
    """Hash of the table and the primary key of a full image; the key's columns are before ``end_column``."""
    value = (_SEED ^ np.uint64(table)) * _PRIME
    nulls = at
    at += (width + 7) >> 3
    for column in range(end_column):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            continue
        end = _column_end(data, at, rule[first + column], param[first + column])
        if flags[flag_at + column] & PRIMARY:
            for byte in range(at, end):
                value = (value ^ np.uint64(data[byte])) * _PRIME
        at = end
    return value ^ (value >> _SHIFT)


@inlined
def same(
    data: Bytes, left: int, right: int, first: int, width: int, end_column: int, rule: Bytes, param: Ints, flags: Bytes,
    flag_at: int, mask: int,
) -> bool:  # fmt: skip
    """Whether two full images have the same bytes in all columns of ``mask``, all before ``end_column``.

    NULL equals NULL.
    """
    left_nulls, right_nulls = left, right
    left += (width + 7) >> 3
    right += (width + 7) >> 3
    for column in range(end_column):
        left_null = (data[left_nulls + (column >> 3)] >> (column & 7)) & 1
        right_null = (data[right_nulls + (column >> 3)] >> (column & 7)) & 1
        left_end, right_end = left, right
        if not left_null:
            left_end = _column_end(data, left, rule[first + column], param[first + column])
        if not right_null:
            right_end = _column_end(data, right, rule[first + column], param[first + column])
        if flags[flag_at + column] & mask:
            if left_null != right_null or left_end - left != right_end - right:
                return False
            for byte in range(left_end - left):
                if data[left + byte] != data[right + byte]:
                    return False
        left, right = left_end, right_end
    return True


@inlined
def integer_of(
    data: Bytes, at: int, first: int, width: int, rule: Bytes, param: Ints, column: int, signed: int
) -> np.uint64:
    """An integer column of a full image; 0 for NULL and, if it is ``signed``, negative values."""
    nulls = at
    at += (width + 7) >> 3
    value = np.uint64(0)
    for before in range(column):
        if not (data[nulls + (before >> 3)] >> (before & 7)) & 1:
            at = _column_end(data, at, rule[first + before], param[first + before])
    if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
        return value
    length = param[first + column]
    for byte in range(length):
        value |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    if signed and (value >> np.uint64(8 * length - 1)) & np.uint64(1):
        return np.uint64(0)
    return value


@inlined
def _slot(
    data: Bytes, image: int, table: int, first: int, width: int, end_column: int, rule: Bytes, param: Ints,
    flags: Bytes, flag_at: int, value: np.uint64, slots: Numbers, key_hash: Words, key_image: Ints, entry_table: Ints,
) -> int:  # fmt: skip
    """The slot of an image's key in the hash table, used or free."""
    mask = slots.size - 1
    slot = int(np.int64(value)) & mask
    while slots[slot] >= 0:
        entry = slots[slot]
        if (
            key_hash[entry] == value
            and entry_table[entry] == table
            and same(data, key_image[entry], image, first, width, end_column, rule, param, flags, flag_at, PRIMARY)
        ):
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def fold(
    data: Bytes, images: Ints, table_of: Ints, tables: Ints, rule: Bytes, param: Ints, flags: Bytes, counters: Ints,
    slots: Numbers, key_hash: Words, key_image: Ints, entry_table: Ints, before: Ints, now: Ints, kept: Ints,
    highest: Words, was_absent: Bytes, misfit: Bytes,
) -> int:  # fmt: skip
    """Fold all rows; returns the number of entries.

    ``tables``, per table: its first rule, width and first flag, number of columns up to the primary key's last, and up
    to the last of any other unique key (0: no such key); ``counters``, per table: (column or -1, signed). Fills, per
    key: ``entry_table``, ``before`` and ``now`` (image [start, end), -1: no row), ``was_absent`` (its row or its unique
    values were deleted at some time); per table: ``highest`` (highest AUTO_INCREMENT value among the first images of
    all keys, and among all later ones), ``kept`` (image and entry of the latter), ``misfit`` (its results are void).
    """
    count = 0
    for row in range(images.shape[0]):
        prefetch_row(data, images, row)
        table = table_of[row]
        first, width, flag_at = tables[table, 0], tables[table, 1], tables[table, 2]
        key_end, unique_end = tables[table, 3], tables[table, 4]
        counter, signed = counters[table, 0], counters[table, 1]
        old, new = images[row, 0], images[row, 2]
        both = old >= 0 and new >= 0
        moves = both and not same(data, old, new, first, width, key_end, rule, param, flags, flag_at, PRIMARY)
        differs = moves or (
            both and not same(data, old, new, first, width, unique_end, rule, param, flags, flag_at, UNIQUE)
        )
        for half in range(2 if moves else 1):
            # a change of the primary key: delete of the old key, then insert of the new one
            takes, gives = old >= 0 and half == 0, new >= 0 and (half == 1 or not moves)
            image = old if takes else new
            value = hash_of_key(data, image, table, first, width, key_end, rule, param, flags, flag_at)
            slot = _slot(
                data, image, table, first, width, key_end, rule, param, flags, flag_at, value,
                slots, key_hash, key_image, entry_table,
            )  # fmt: skip
            entry = slots[slot]
            if entry < 0:
                entry = slots[slot] = count
                key_hash[entry], key_image[entry], entry_table[entry] = value, image, table
                before[entry, 0] = before[entry, 1] = -1
                was_absent[entry] = 0
                count += 1
                if takes:
                    before[entry, 0], before[entry, 1] = images[row, 0], images[row, 1]
                    if counter >= 0:
                        number = integer_of(data, old, first, width, rule, param, counter, signed)
                        highest[table, 0] = max(highest[table, 0], number)
            elif (now[entry, 0] >= 0) != takes:
                misfit[table] = 1
            now[entry, 0] = now[entry, 1] = -1
            if gives:
                now[entry, 0], now[entry, 1] = images[row, 2], images[row, 3]
                if differs or not takes:
                    was_absent[entry] = 1
                if counter >= 0:
                    number = integer_of(data, new, first, width, rule, param, counter, signed)
                    if number > highest[table, 1]:
                        highest[table, 1] = number
                        kept[table, 0], kept[table, 1], kept[table, 2] = images[row, 2], images[row, 3], entry
    return count


@kernel
def judge(
    data: Bytes, count: int, entry_table: Ints, before: Ints, now: Ints, tables: Ints, rule: Bytes, param: Ints,
    flags: Bytes, counters: Ints, was_absent: Bytes, left: Ints, written: Words, unsure: Bytes,
) -> None:  # fmt: skip
    """Fills, per key: ``left`` (the net change); per table: ``written`` (the highest AUTO_INCREMENT value to be
    written), ``unsure`` (a remaining row did not exist all the time, so the net changes may violate a unique key)."""
    for entry in range(count):
        following = min(entry + AHEAD, count - 1)
        prefetch(data, before[following, 0])
        prefetch(data, now[following, 0])
        table = entry_table[entry]
        first, width, flag_at = tables[table, 0], tables[table, 1], tables[table, 2]
        old, new = before[entry, 0], now[entry, 0]
        if old < 0 and new < 0:
            left[entry] = NOTHING
        elif new < 0:
            left[entry] = DELETE
        elif old < 0:
            left[entry] = INSERT
        elif _same_bytes(data, before[entry], now[entry]):
            left[entry] = NOTHING
        elif same(data, old, new, first, width, tables[table, 4], rule, param, flags, flag_at, UNIQUE):
            left[entry] = UPDATE
        else:
            left[entry] = SPLIT
        if was_absent[entry] and old >= 0 and (left[entry] == NOTHING or left[entry] == UPDATE):
            unsure[table] = 1
        if left[entry] >= UPDATE and counters[table, 0] >= 0:
            number = integer_of(data, new, first, width, rule, param, counters[table, 0], counters[table, 1])
            written[table] = max(written[table], number)


@inlined
def _same_bytes(data: Bytes, left: Ints, right: Ints) -> bool:
    if left[1] - left[0] != right[1] - right[0]:
        return False
    for byte in range(left[1] - left[0]):
        if data[left[0] + byte] != data[right[0] + byte]:
            return False
    return True


@kernel
def places(left: Ints, entry_table: Ints, is_restored: Flags, bucket_end: Ints) -> int:
    """Fills ``bucket_end``, per table and phase (``PHASES``): number of rows up to its end. Returns the total."""
    for table in range(is_restored.size):
        bucket_end[PHASES * table + _GONE_AGAIN] = bucket_end[PHASES * table + _BACK] = is_restored[table]
    for entry in range(left.size):
        bucket = PHASES * entry_table[entry]
        bucket_end[bucket + _GONE] += left[entry] in (DELETE, SPLIT)
        bucket_end[bucket + _CHANGED] += left[entry] == UPDATE
        bucket_end[bucket + _COME] += left[entry] in (INSERT, SPLIT)
    total = 0
    for bucket in range(bucket_end.size):
        total += bucket_end[bucket]
        bucket_end[bucket] = total
    return total


@kernel
def arrange(
    left: Ints, entry_table: Ints, before: Ints, now: Ints, is_restored: Flags, kept: Ints, bucket_end: Ints,
    bucket: Ints, images: Ints,
) -> None:  # fmt: skip
    """Fills ``bucket`` and ``images``, one entry for each row: by table, then phase, then the order of the entries.

    ``bucket_end``: from ``places``; overwritten. ``images``: before start and end, after start and end; -1 on entry.
    """
    for table in range(is_restored.size):
        if is_restored[table]:
            back, again = PHASES * table + _BACK, PHASES * table + _GONE_AGAIN
            row = bucket_end[back] - 1
            bucket[row], images[row, 2], images[row, 3] = back, kept[table, 0], kept[table, 1]
            row = bucket_end[again] - 1
            bucket[row], images[row, 0], images[row, 1] = again, kept[table, 0], kept[table, 1]
    for entry in range(left.size - 1, -1, -1):
        of, change = PHASES * entry_table[entry], left[entry]
        if change in (DELETE, SPLIT):
            bucket_end[of + _GONE] -= 1
            row = bucket_end[of + _GONE]
            bucket[row], images[row, 0], images[row, 1] = of + _GONE, before[entry, 0], before[entry, 1]
        if change == UPDATE:
            bucket_end[of + _CHANGED] -= 1
            row = bucket_end[of + _CHANGED]
            bucket[row] = of + _CHANGED
            images[row, 0], images[row, 1] = before[entry, 0], before[entry, 1]
            images[row, 2], images[row, 3] = now[entry, 0], now[entry, 1]
        if change in (INSERT, SPLIT):
            bucket_end[of + _COME] -= 1
            row = bucket_end[of + _COME]
            bucket[row], images[row, 2], images[row, 3] = of + _COME, now[entry, 0], now[entry, 1]
