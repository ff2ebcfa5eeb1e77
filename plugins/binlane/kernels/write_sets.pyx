"""Which blocks of transactions in a row share a key: the keys of all row changes as hashes, of both images.

A change *writes* the keys of its row, and *reads* the keys of the rows that its foreign keys refer to. Two transactions
share a key if one of them writes a key that the other writes or reads. Only `binlane advise` uses this: what scheduling
by a graph of transactions could gain (docs/decisions/0016).
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from binlane.kernels.memory cimport little

cpdef enum:
    # kinds of a key: a unique key, all columns of a row without one, and the key of another table that a foreign key
    # reads
    KEY = 0
    WHOLE_ROW = 1
    REFERENCE = 2

cpdef enum:
    # columns of ``blocks``: the first seqno and the facts of the block that is being read, then the sums over all
    # blocks before it. CHAIN: the most transactions of the block that have to follow one another, less one
    BEGIN = 0
    UNKNOWN = 1
    IS_FULL = 2
    CHAIN = 3
    ROWS = 4
    LEFT = 5
    OPENED = 6
    ALL_ROWS = 7
    FREE = 8
    SHARED = 9
    NOT_TOLD = 10
    SUM_CHAIN = 11
    SUM_ROWS = 12
    SUM_LEFT = 13
    SUM_OPENED = 14
    SUM_ALL_ROWS = 15
    FACTS = 16

cdef enum:
    NOBODY = -1

cdef uint64_t PRIME = 1099511628211ULL


cdef struct Blocks:
    # by size: the columns above, the transactions of a block, and by place in it the longest chain before one
    int64_t *facts
    const int64_t *sizes
    int64_t count
    int64_t *depth
    int64_t longest
    # hash table of the keys of the largest block; ``who``, by slot: the last writer, the last reader, and the last
    # reader that is another transaction than this one; ``used``: the slots that are in use, their number in front
    uint64_t *slots
    int64_t mask
    int64_t *who
    int64_t *used
    int64_t room


cdef Blocks _blocks(
    int64_t[:, ::1] blocks, const int64_t[::1] sizes, int64_t[:, ::1] depth, uint64_t[::1] slots, int64_t[::1] used
) noexcept nogil:
    cdef Blocks of
    of.facts = &blocks[0, 0]
    of.sizes = &sizes[0]
    of.count = sizes.shape[0]
    of.depth = &depth[0, 0]
    of.longest = depth.shape[1]
    of.slots = &slots[0]
    of.mask = slots.shape[0] - 1
    of.who = NULL
    of.used = &used[0]
    of.room = used.shape[0] - 1
    return of


cdef inline void _columns(
    const uint8_t *data, int64_t at, int64_t width, const uint8_t *rule, const int64_t *length, int64_t *ranges
) noexcept nogil:
    """Fills ``ranges`` with begin and end of each value of a full image, without the bytes of its length; -1: NULL."""
    cdef int64_t nulls = at, column, prefix, size
    at += (width + 7) >> 3
    for column in range(width):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            ranges[2 * column] = NOBODY
            continue
        prefix = rule[column]
        size = little(data, at, prefix) if prefix else length[column]
        ranges[2 * column] = at + prefix
        at += prefix + size
        ranges[2 * column + 1] = at


cdef inline uint64_t _hash(
    const uint8_t *data, const int64_t *ranges, uint64_t seed, int64_t kind, const int64_t *place, const int64_t *cut,
    int64_t at, int64_t end,
) noexcept nogil:
    """Hash of one key of an image; 0: a column is NULL, so that no other row has the key."""
    cdef uint64_t value = seed
    cdef int64_t part, start, stop, byte
    for part in range(at, end):
        start, stop = ranges[2 * place[part]], ranges[2 * place[part] + 1]
        if start == NOBODY:
            if kind != WHOLE_ROW:
                return 0
            value = (value ^ 256) * PRIME
            continue
        if cut[part]:
            stop = min(stop, start + cut[part])
        for byte in range(start, stop):
            value = (value ^ data[byte]) * PRIME
        value = (value ^ <uint64_t>(stop - start + 257)) * PRIME
    value ^= value >> 29
    return value if value else 1


cdef void _move_to(int64_t seqno, Blocks *of) noexcept nogil:
    """End the blocks that end before ``seqno``."""
    cdef int64_t size, number
    cdef int64_t *block
    for size in range(of.count):
        block = of.facts + FACTS * size
        while seqno >= block[BEGIN] + of.sizes[size]:
            block[SHARED if block[CHAIN] else NOT_TOLD if block[UNKNOWN] else FREE] += 1
            block[SUM_CHAIN] += block[CHAIN] + 1
            if not block[IS_FULL]:
                block[SUM_ROWS] += block[ROWS]
                block[SUM_LEFT] += block[LEFT]
            block[SUM_OPENED] += block[OPENED]
            block[SUM_ALL_ROWS] += block[ALL_ROWS]
            memset(block + UNKNOWN, 0, (ALL_ROWS + 1 - UNKNOWN) * sizeof(int64_t))
            memset(of.depth + of.longest * size, 0, <size_t>of.longest * sizeof(int64_t))
            block[BEGIN] += of.sizes[size]
            if size == of.count - 1:
                for number in range(of.used[0]):
                    of.slots[of.used[1 + number]] = 0
                of.used[0] = 0


def move_to(
    int64_t seqno, int64_t[:, ::1] blocks, const int64_t[::1] sizes, int64_t[:, ::1] depth, uint64_t[::1] slots,
    int64_t[::1] used,
):
    """End the blocks that end before ``seqno``. ``used``: the slots that are in use, their number in front."""
    cdef Blocks of = _blocks(blocks, sizes, depth, slots, used)
    with nogil:
        _move_to(seqno, &of)


cdef inline int64_t _slot(uint64_t value, Blocks *of) noexcept nogil:
    """The slot of a key, made if it is new; -1 if there is no room."""
    cdef int64_t slot = <int64_t>(value >> 1) & of.mask
    while of.slots[slot] != 0 and of.slots[slot] != value:
        slot = (slot + 1) & of.mask
    if of.slots[slot] == 0:
        if of.used[0] == of.room:
            return -1
        of.used[0] += 1
        of.used[of.used[0]] = slot
        of.slots[slot] = value
        of.who[3 * slot] = of.who[3 * slot + 1] = of.who[3 * slot + 2] = NOBODY
    return slot


cdef inline int64_t _touch(int64_t *who, int64_t seqno, bint reads) noexcept nogil:
    """Note that a transaction touches a key; returns the last other one that it shares the key with."""
    cdef int64_t other = NOBODY
    if who[0] != seqno:
        other = who[0]
    if reads:
        if who[1] != seqno:
            who[2] = who[1]
            who[1] = seqno
        return other
    who[0] = seqno
    return max(other, who[2] if who[1] == seqno else who[1])


cdef inline void _follow(int64_t now, int64_t other, Blocks *of) noexcept nogil:
    """A transaction has to wait for an earlier one, if that is in its block: its chain is longer by one."""
    cdef int64_t size, begin
    cdef int64_t *depth
    for size in range(of.count):
        begin = of.facts[FACTS * size + BEGIN]
        if other >= begin:
            depth = of.depth + of.longest * size
            depth[now - begin] = max(depth[now - begin], depth[other - begin] + 1)
            of.facts[FACTS * size + CHAIN] = max(of.facts[FACTS * size + CHAIN], depth[now - begin])


cdef inline void _mark(Blocks *of, int fact) noexcept nogil:
    cdef int64_t size
    for size in range(of.count):
        of.facts[FACTS * size + fact] = 1


def count(
    const uint8_t[::1] data, const int64_t[:, ::1] images, const int64_t[::1] seqno, const int64_t[::1] number,
    const int64_t[:, ::1] tables, const uint8_t[::1] rule, const int64_t[::1] length, int64_t[:, ::1] ranges,
    const uint8_t[::1] is_told, const int64_t[::1] table_id, int64_t[:, ::1] opened, const int64_t[::1] key_at,
    const uint64_t[::1] seed, const int64_t[::1] kind, const int64_t[::1] place_at, const int64_t[::1] place,
    const int64_t[::1] cut, const int64_t[::1] unknown, int64_t[:, ::1] blocks, const int64_t[::1] sizes,
    int64_t[:, ::1] depth, uint64_t[::1] slots, int64_t[:, ::1] who, int64_t[::1] used, uint64_t[::1] own,
):
    """Count the rows of a segment into ``blocks``.

    ``seqno`` and ``number``, by row: its transaction and its table; ``tables``: first rule and width; ``is_told``: the
    table's keys are known; ``table_id``: its number in ``opened``, by size the first seqno of the last block that has
    opened it. A table's keys are those from ``key_at`` on, a key's columns those from ``place_at`` on; the first
    key identifies the row. ``unknown``: seqnos of transactions of which not all keys are known, ascending. ``depth``,
    by size and place in the block: the longest chain of transactions before one. Fills ``own`` with the hash of each
    row's first key, 0 without a key.
    """
    cdef int64_t behind = 0, row, now, one, size, key, slot, half, left
    cdef bint is_first
    cdef uint64_t value
    cdef Blocks of = _blocks(blocks, sizes, depth, slots, used)
    cdef const uint8_t *begin = &data[0]
    of.who = &who[0, 0]
    with nogil:
        for row in range(seqno.shape[0]):
            now, one = seqno[row], number[row]
            while behind < unknown.shape[0] and unknown[behind] <= now:
                _move_to(unknown[behind], &of)
                _mark(&of, UNKNOWN)
                behind += 1
            _move_to(now, &of)
            for size in range(of.count):
                blocks[size, ALL_ROWS] += 1
                if opened[size, table_id[one]] != blocks[size, BEGIN]:
                    opened[size, table_id[one]] = blocks[size, BEGIN]
                    blocks[size, OPENED] += 1
            own[row] = 0
            if not is_told[one]:
                _mark(&of, UNKNOWN)
                continue
            for size in range(of.count):
                blocks[size, ROWS] += 1
            is_first = True
            for half in range(0, 4, 2):
                if images[row, half] < 0:
                    continue
                _columns(
                    begin, images[row, half], tables[one, 1], &rule[0] + tables[one, 0], &length[0] + tables[one, 0],
                    &ranges[0, 0],
                )
                for key in range(key_at[one], key_at[one + 1]):
                    value = _hash(
                        begin, &ranges[0, 0], seed[key], kind[key], &place[0], &cut[0], place_at[key], place_at[key + 1]
                    )
                    if value == 0:
                        continue
                    slot = _slot(value, &of)
                    if slot < 0:
                        _mark(&of, UNKNOWN)
                        _mark(&of, IS_FULL)
                        continue
                    if is_first and key == key_at[one]:
                        if kind[key] == KEY:
                            own[row] = value
                        for size in range(of.count):
                            blocks[size, LEFT] += who[slot, 0] < blocks[size, BEGIN]
                    _follow(now, _touch(of.who + 3 * slot, now, kind[key] == REFERENCE), &of)
                is_first = False
        for left in range(behind, unknown.shape[0]):
            _move_to(unknown[left], &of)
            _mark(&of, UNKNOWN)
