"""Builds rows events from row images; ``binlog.vector.row_events`` says how they are divided."""

from libc.stdint cimport int64_t, uint8_t

from binlane.kernels.memory cimport CODE_AT, HEADER, LOG_POS_AT, SIZE_AT, prefetch_row, put, put_little

cdef enum:
    STMT_END = 1
    # the length of version 2's extra data, which counts itself
    NO_EXTRA = 2
    # numbers of columns below this are one byte
    PACKED_IN_ONE = 251
    PACKED_IN_TWO = 252
    ID_BYTES = 6


def cut(
    const int64_t[::1] table, const int64_t[::1] kind, const int64_t[::1] length, int64_t limit, int64_t[::1] first
):
    """Fills the first row of each event; returns the number of events."""
    cdef int64_t count = 0, used = 0, row
    with nogil:
        for row in range(table.shape[0]):
            if row == 0 or table[row] != table[row - 1] or kind[row] != kind[row - 1] or used + length[row] > limit:
                first[count] = row
                count += 1
                used = 0
            used += length[row]
    return count


def pack(
    const int64_t[::1] table, const int64_t[::1] size, const int64_t[::1] map_size, int64_t limit, int64_t[::1] payload,
    uint8_t[::1] has_map,
):
    """Fills, per event: its payload's number, and whether a TABLE_MAP precedes it."""
    cdef int64_t number = 0, used = 0, event, needed
    cdef bint is_full
    with nogil:
        for event in range(table.shape[0]):
            needed = map_size[table[event]] + size[event]
            is_full = used > 0 and used + needed > limit
            if is_full:
                number += 1
                used = 0
            payload[event] = number
            has_map[event] = event == 0 or is_full or table[event] != table[event - 1]
            used += needed if has_map[event] else size[event]


cdef inline int64_t _head(
    const uint8_t *maps, int64_t begin, uint8_t code, int64_t size, int64_t flags, int64_t width, bint is_v2,
    uint8_t *out, int64_t at,
) noexcept nogil:
    """Writes a rows event up to its bitmaps; log_pos and the header's flags are 0. ``begin``: of its TABLE_MAP."""
    put(maps, begin, begin + HEADER, out, at)
    out[at + CODE_AT] = code
    put_little(size, 4, out, at + SIZE_AT)
    put_little(0, HEADER - LOG_POS_AT, out, at + LOG_POS_AT)
    put(maps, begin + HEADER, begin + HEADER + ID_BYTES, out, at + HEADER)
    at = put_little(flags, 2, out, at + HEADER + ID_BYTES)
    if is_v2:
        at = put_little(NO_EXTRA, NO_EXTRA, out, at)
    if width < PACKED_IN_ONE:
        return put_little(width, 1, out, at)
    return put_little(width, 2, out, put_little(PACKED_IN_TWO, 1, out, at))


def write(
    const uint8_t[::1] data, const int64_t[:, ::1] images, const int64_t[::1] first, const int64_t[::1] table,
    const uint8_t[::1] code, const int64_t[::1] size, const uint8_t[::1] has_map, const uint8_t[::1] is_last,
    const int64_t[::1] group, const uint8_t[::1] maps, const int64_t[::1] map_at, const int64_t[::1] map_size,
    const int64_t[::1] width, const uint8_t[::1] is_v2, uint8_t[::1] out,
):
    """Writes all events; ``first`` has one entry more than the number of events.

    ``group``: -1, then the last event of each group; a group begins with the TABLE_MAPs of its events.
    """
    cdef int64_t at = 0, place = 0, event, other, start, number, flags, column, left, row, half, image
    cdef bint both
    cdef const uint8_t *begin = &data[0]
    cdef const uint8_t *heads = &maps[0]
    cdef const int64_t *all_images = &images[0, 0]
    cdef uint8_t *written = &out[0]
    with nogil:
        for event in range(table.shape[0]):
            if event == group[place] + 1:
                place += 1
                for other in range(event, group[place] + 1):
                    if has_map[other]:
                        start = map_at[table[other]]
                        at = put(heads, start, start + map_size[table[other]], written, at)
            number = table[event]
            flags = STMT_END if is_last[event] else 0
            at = _head(
                heads, map_at[number], code[event], size[event], flags, width[number], is_v2[number], written, at
            )
            both = images[first[event], 0] >= 0 and images[first[event], 2] >= 0
            for half in range(2 if both else 1):
                for column in range(0, width[number], 8):
                    left = width[number] - column
                    written[at] = 255 if left >= 8 else (1 << left) - 1
                    at += 1
            for row in range(first[event], first[event + 1]):
                prefetch_row(begin, all_images, images.shape[0], row)
                for half in range(2):
                    image = 4 * row + 2 * half
                    if all_images[image] >= 0:
                        at = put(begin, all_images[image], all_images[image + 1], written, at)
