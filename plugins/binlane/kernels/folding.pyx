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

``by_key`` and ``lanes_of`` deal the same images to lanes by their primary keys.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from binlane.kernels.memory cimport AHEAD, little, prefetch, prefetch_row, unsigned

from os import urandom

cpdef enum:
    # flags of a column: in the primary key, in any unique key (the primary one included)
    PRIMARY = 1
    UNIQUE = 2
    # the order of a table's rows: deletes, insert and delete of the highest AUTO_INCREMENT value, updates, inserts
    PHASES = 5
    # so many values of a table's ``ranged`` column in a row have one lane: some pages of an index
    NEIGHBOURS = 1024

cpdef enum:
    # the net change of a key; SPLIT: a delete of the old image and an insert of the new one
    NOTHING = 0
    DELETE = 1
    UPDATE = 2
    INSERT = 3
    SPLIT = 4

cdef enum:
    GONE = 0
    BACK = 1
    GONE_AGAIN = 2
    CHANGED = 3
    COME = 4
    # kinds of a row, as in ``row_events``
    DELETED = 0
    INSERTED = 2

cdef uint64_t PRIME = 1099511628211ULL
cdef uint64_t SEED = 14695981039346656037ULL
# another one in each process: who chooses the keys of rows cannot have them share the slots of ``fold``, whose results
# do not depend on it. Lanes are the same in every process
cdef uint64_t SECRET = int.from_bytes(urandom(8), "little")


cdef struct Layout:
    # a table's columns; the rules and flags are those of its first one
    int64_t width
    int64_t key_end
    int64_t unique_end
    const uint8_t *rule
    const int64_t *param
    const uint8_t *flags


cdef inline Layout _layout(
    const int64_t *table, const uint8_t *rule, const int64_t *param, const uint8_t *flags, int64_t unique_end
) noexcept nogil:
    cdef Layout layout
    layout.width = table[1]
    layout.key_end = table[3]
    layout.unique_end = unique_end
    layout.rule = rule + table[0]
    layout.param = param + table[0]
    layout.flags = flags + table[2]
    return layout


cdef inline int64_t _column_end(const uint8_t *data, int64_t at, int64_t rule, int64_t param) noexcept nogil:
    """The end of a column's value; the image's length was checked before."""
    if rule == 0:
        return at + param
    return at + rule + little(data, at, rule)


cdef inline uint64_t _hash_of_key(const uint8_t *data, int64_t at, uint64_t table, const Layout *of) noexcept nogil:
    """Hash of the table and the primary key of a full image."""
    cdef uint64_t value = (SEED ^ table) * PRIME
    cdef int64_t nulls = at, column, end, byte
    at += (of.width + 7) >> 3
    for column in range(of.key_end):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            continue
        end = _column_end(data, at, of.rule[column], of.param[column])
        if of.flags[column] & PRIMARY:
            for byte in range(at, end):
                value = (value ^ data[byte]) * PRIME
        at = end
    return value ^ (value >> 29)


cdef inline bint _same(
    const uint8_t *data, int64_t left, int64_t right, const Layout *of, int64_t end_column, uint8_t mask
) noexcept nogil:
    """Whether two full images have the same bytes in all columns of ``mask``, all before ``end_column``.

    NULL equals NULL.
    """
    cdef int64_t left_nulls = left, right_nulls = right, left_end, right_end, column, byte
    cdef int left_null, right_null
    left += (of.width + 7) >> 3
    right += (of.width + 7) >> 3
    for column in range(end_column):
        left_null = (data[left_nulls + (column >> 3)] >> (column & 7)) & 1
        right_null = (data[right_nulls + (column >> 3)] >> (column & 7)) & 1
        left_end, right_end = left, right
        if not left_null:
            left_end = _column_end(data, left, of.rule[column], of.param[column])
        if not right_null:
            right_end = _column_end(data, right, of.rule[column], of.param[column])
        if of.flags[column] & mask:
            if left_null != right_null or left_end - left != right_end - right:
                return False
            for byte in range(left_end - left):
                if data[left + byte] != data[right + byte]:
                    return False
        left, right = left_end, right_end
    return True


cdef inline uint64_t _integer_of(
    const uint8_t *data, int64_t at, const Layout *of, int64_t column, bint signed_
) noexcept nogil:
    """An integer column of a full image; 0 for NULL and, if it is ``signed_``, negative values."""
    cdef int64_t nulls = at, before, length
    cdef uint64_t value
    at += (of.width + 7) >> 3
    for before in range(column):
        if not (data[nulls + (before >> 3)] >> (before & 7)) & 1:
            at = _column_end(data, at, of.rule[before], of.param[before])
    if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
        return 0
    length = of.param[column]
    value = unsigned(data, at, length)
    if signed_ and (value >> (8 * length - 1)) & 1:
        return 0
    return value


cdef inline int64_t _slot(
    const uint8_t *data, int64_t image, int64_t table, const Layout *of, uint64_t value, const int32_t *slots,
    int64_t mask, const uint64_t *key_hash, const int64_t *key_image, const int64_t *entry_table,
) noexcept nogil:
    """The slot of an image's key in the hash table, used or free."""
    cdef int64_t slot = <int64_t>value & mask, entry
    while slots[slot] >= 0:
        entry = slots[slot]
        if (
            key_hash[entry] == value
            and entry_table[entry] == table
            and _same(data, key_image[entry], image, of, of.key_end, PRIMARY)
        ):
            break
        slot = (slot + 1) & mask
    return slot


def fold(
    const uint8_t[::1] data, const int64_t[:, ::1] images, const int64_t[::1] table_of, const int64_t[:, ::1] tables,
    const uint8_t[::1] rule, const int64_t[::1] param, const uint8_t[::1] flags, const int64_t[:, ::1] counters,
    int32_t[::1] slots, uint64_t[::1] key_hash, int64_t[::1] key_image, int64_t[::1] entry_table,
    int64_t[:, ::1] before, int64_t[:, ::1] now, int64_t[:, ::1] kept, uint64_t[:, ::1] highest,
    uint8_t[::1] was_absent, uint8_t[::1] misfit,
):
    """Fold all rows; returns the number of entries.

    ``tables``, per table: its first rule, width and first flag, number of columns up to the primary key's last, and up
    to the last of any other unique key (0: no such key); ``counters``, per table: (column or -1, signed). Fills, per
    key: ``entry_table``, ``before`` and ``now`` (image [start, end), -1: no row), ``was_absent`` (its row or its unique
    values were deleted at some time); per table: ``highest`` (highest AUTO_INCREMENT value among the first images of
    all keys, and among all later ones), ``kept`` (image and entry of the latter), ``misfit`` (its results are void).
    """
    cdef int64_t count = 0, row, rows = images.shape[0], table, counter, old, new, image, slot, entry
    cdef int64_t mask = slots.shape[0] - 1
    cdef int half
    cdef bint signed_, both, moves, differs, takes, gives
    cdef uint64_t value, number
    cdef Layout of
    cdef const uint8_t *begin = &data[0]
    cdef const int64_t *all_images = &images[0, 0]
    cdef const int64_t *one
    with nogil:
        for row in range(rows):
            prefetch_row(begin, all_images, rows, row)
            one = all_images + 4 * row
            table = table_of[row]
            of = _layout(&tables[table, 0], &rule[0], &param[0], &flags[0], tables[table, 4])
            counter, signed_ = counters[table, 0], counters[table, 1]
            old, new = one[0], one[2]
            both = old >= 0 and new >= 0
            moves = both and not _same(begin, old, new, &of, of.key_end, PRIMARY)
            differs = moves or (both and not _same(begin, old, new, &of, of.unique_end, UNIQUE))
            for half in range(2 if moves else 1):
                # a change of the primary key: delete of the old key, then insert of the new one
                takes, gives = old >= 0 and half == 0, new >= 0 and (half == 1 or not moves)
                image = old if takes else new
                value = _hash_of_key(begin, image, SECRET ^ <uint64_t>table, &of)
                slot = _slot(
                    begin, image, table, &of, value, &slots[0], mask, &key_hash[0], &key_image[0], &entry_table[0]
                )
                entry = slots[slot]
                if entry < 0:
                    entry = count
                    slots[slot] = <int32_t>count
                    key_hash[entry] = value
                    key_image[entry] = image
                    entry_table[entry] = table
                    before[entry, 0] = before[entry, 1] = -1
                    was_absent[entry] = 0
                    count += 1
                    if takes:
                        before[entry, 0] = one[0]
                        before[entry, 1] = one[1]
                        if counter >= 0:
                            number = _integer_of(begin, old, &of, counter, signed_)
                            highest[table, 0] = max(highest[table, 0], number)
                elif (now[entry, 0] >= 0) != takes:
                    misfit[table] = 1
                now[entry, 0] = now[entry, 1] = -1
                if gives:
                    now[entry, 0] = one[2]
                    now[entry, 1] = one[3]
                    if differs or not takes:
                        was_absent[entry] = 1
                    if counter >= 0:
                        number = _integer_of(begin, new, &of, counter, signed_)
                        if number > highest[table, 1]:
                            highest[table, 1] = number
                            kept[table, 0] = one[2]
                            kept[table, 1] = one[3]
                            kept[table, 2] = entry
    return count


def judge(
    const uint8_t[::1] data, int64_t count, const int64_t[::1] entry_table, const int64_t[:, ::1] before,
    const int64_t[:, ::1] now, const int64_t[:, ::1] tables, const uint8_t[::1] rule, const int64_t[::1] param,
    const uint8_t[::1] flags, const int64_t[:, ::1] counters, const uint8_t[::1] was_absent, int64_t[::1] left,
    uint64_t[::1] written, uint8_t[::1] unsure,
):
    """Fills, per key: ``left`` (the net change); per table: ``written`` (the highest AUTO_INCREMENT value to be
    written), ``unsure`` (a remaining row did not exist all the time, so the net changes may violate a unique key)."""
    cdef int64_t entry, following, table, old, new, change, length
    cdef Layout of
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for entry in range(count):
            following = min(entry + AHEAD, count - 1)
            prefetch(begin, before[following, 0])
            prefetch(begin, now[following, 0])
            table = entry_table[entry]
            of = _layout(&tables[table, 0], &rule[0], &param[0], &flags[0], tables[table, 4])
            old, new = before[entry, 0], now[entry, 0]
            length = before[entry, 1] - old
            if old < 0 and new < 0:
                change = NOTHING
            elif new < 0:
                change = DELETE
            elif old < 0:
                change = INSERT
            elif length == now[entry, 1] - new and memcmp(begin + old, begin + new, <size_t>length) == 0:
                change = NOTHING
            elif _same(begin, old, new, &of, of.unique_end, UNIQUE):
                change = UPDATE
            else:
                change = SPLIT
            left[entry] = change
            if was_absent[entry] and old >= 0 and (change == NOTHING or change == UPDATE):
                unsure[table] = 1
            if change >= UPDATE and counters[table, 0] >= 0:
                written[table] = max(
                    written[table], _integer_of(begin, new, &of, counters[table, 0], counters[table, 1])
                )


def places(
    const int64_t[::1] left, const int64_t[::1] entry_table, const uint8_t[::1] is_restored, int64_t[::1] bucket_end
):
    """Fills ``bucket_end``, per table and phase (``PHASES``): number of rows up to its end. Returns the total."""
    cdef int64_t table, entry, bucket, change, total = 0
    with nogil:
        for table in range(is_restored.shape[0]):
            bucket_end[PHASES * table + GONE_AGAIN] = bucket_end[PHASES * table + BACK] = is_restored[table]
        for entry in range(left.shape[0]):
            bucket = PHASES * entry_table[entry]
            change = left[entry]
            bucket_end[bucket + GONE] += change == DELETE or change == SPLIT
            bucket_end[bucket + CHANGED] += change == UPDATE
            bucket_end[bucket + COME] += change == INSERT or change == SPLIT
        for bucket in range(bucket_end.shape[0]):
            total += bucket_end[bucket]
            bucket_end[bucket] = total
    return total


cdef inline void _set(int64_t *images, int64_t row, int64_t half, int64_t start, int64_t end) noexcept nogil:
    images[4 * row + 2 * half] = start
    images[4 * row + 2 * half + 1] = end


def arrange(
    const int64_t[::1] left, const int64_t[::1] entry_table, const int64_t[:, ::1] before, const int64_t[:, ::1] now,
    const uint8_t[::1] is_restored, const int64_t[:, ::1] kept, int64_t[::1] bucket_end, int64_t[::1] bucket,
    int64_t[:, ::1] images,
):
    """Fills ``bucket`` and ``images``, one entry for each row: by table, then phase, then the order of the entries.

    ``bucket_end``: from ``places``; overwritten. ``images``: before start and end, after start and end; -1 on entry.
    """
    cdef int64_t table, entry, back, again, row, of, change
    cdef int64_t *out = &images[0, 0]
    with nogil:
        for table in range(is_restored.shape[0]):
            if is_restored[table]:
                back, again = PHASES * table + BACK, PHASES * table + GONE_AGAIN
                row = bucket_end[back] - 1
                bucket[row] = back
                _set(out, row, 1, kept[table, 0], kept[table, 1])
                row = bucket_end[again] - 1
                bucket[row] = again
                _set(out, row, 0, kept[table, 0], kept[table, 1])
        for entry in range(left.shape[0] - 1, -1, -1):
            of, change = PHASES * entry_table[entry], left[entry]
            if change == DELETE or change == SPLIT:
                bucket_end[of + GONE] -= 1
                row = bucket_end[of + GONE]
                bucket[row] = of + GONE
                _set(out, row, 0, before[entry, 0], before[entry, 1])
            if change == UPDATE:
                bucket_end[of + CHANGED] -= 1
                row = bucket_end[of + CHANGED]
                bucket[row] = of + CHANGED
                _set(out, row, 0, before[entry, 0], before[entry, 1])
                _set(out, row, 1, now[entry, 0], now[entry, 1])
            if change == INSERT or change == SPLIT:
                bucket_end[of + COME] -= 1
                row = bucket_end[of + COME]
                bucket[row] = of + COME
                _set(out, row, 1, now[entry, 0], now[entry, 1])


def lanes_of(
    const uint8_t[::1] data, const int64_t[:, ::1] images, const int64_t[::1] table, const int64_t[:, ::1] tables,
    const uint8_t[::1] rule, const int64_t[::1] param, const uint8_t[::1] flags, const int64_t[::1] ranged,
    const int64_t[::1] seeds, int64_t lanes, int64_t[::1] lane,
):
    """Fills ``lane`` with each row's lane of 0 .. ``lanes`` - 1, by a hash of its primary key: equal keys, as bytes,
    have the same lane everywhere. ``images`` and ``tables``: as for ``fold``; ``seeds``: a number for each table's
    name. An update's images have one key.

    ``ranged``: of each table, the integer column of the key whose neighbouring values go together, or -1; ``flags``
    does not have it among the columns of the key.
    """
    cdef int64_t row, one, image
    cdef uint64_t value
    cdef Layout of
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for row in range(table.shape[0]):
            one = table[row]
            image = images[row, 0] if images[row, 0] >= 0 else images[row, 2]
            of = _layout(&tables[one, 0], &rule[0], &param[0], &flags[0], 0)
            value = _hash_of_key(begin, image, seeds[one], &of)
            if ranged[one] >= 0:
                value += _integer_of(begin, image, &of, ranged[one], False) // NEIGHBOURS
            lane[row] = <int64_t>(value % <uint64_t>lanes)


def by_key(
    const uint8_t[::1] data, const int64_t[:, ::1] images, const int64_t[::1] kind, const int64_t[::1] table,
    const int64_t[:, ::1] tables, const uint8_t[::1] rule, const int64_t[::1] param, const uint8_t[::1] flags,
    int64_t[::1] out_table, int64_t[::1] out_kind, int64_t[:, ::1] out_images,
):
    """Fills the last three with the rows in order, an update of the primary key as a delete and an insert. Returns the
    number of rows."""
    cdef int64_t count = 0, row, old, new
    cdef int half, edge
    cdef bint moves
    cdef Layout of
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for row in range(table.shape[0]):
            old, new = images[row, 0], images[row, 2]
            moves = False
            if old >= 0 and new >= 0:
                of = _layout(&tables[table[row], 0], &rule[0], &param[0], &flags[0], 0)
                moves = not _same(begin, old, new, &of, of.key_end, PRIMARY)
            for half in range(2 if moves else 1):
                out_table[count] = table[row]
                out_kind[count] = kind[row]
                for edge in range(4):
                    out_images[count, edge] = images[row, edge]
                if moves and half == 0:
                    out_kind[count] = DELETED
                    out_images[count, 2] = out_images[count, 3] = -1
                if moves and half == 1:
                    out_kind[count] = INSERTED
                    out_images[count, 0] = out_images[count, 1] = -1
                count += 1
    return count
