"""Rows events: the number of rows, the offsets of their images, and of the values in them.

As ``framing``: the kernels never index outside their buffers, and return an error code and an offset.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from binlane.kernels.framing cimport (
    BAD_EXTRA, BAD_OPTIONS, BAD_WIDTH, NO_COLUMNS, NO_IMAGES, OK, OVERRUN, SHORT_BODY, UNKNOWN_LENGTH
)
from binlane.kernels.memory cimport AHEAD, little, packed, prefetch, u16

from binlane.binlog import rows as plain
from binlane.binlog.wire import EventType

cpdef enum:
    # the row count of a compressed event, which is not known without decompression
    COMPRESSED = -1

cdef enum:
    # the largest length-encoded number in one byte
    ONE_BYTE = 250
    # maximum bytes of a length-encoded width or of value options
    LONGEST = 3
    # the shape of an event's body; 0: no rows
    HAS_BEFORE = 1
    HAS_AFTER = 2
    HAS_EXTRA = 4
    IS_COMPRESSED = 8
    IS_PARTIAL = 16
    IS_ROWS = 32

cdef uint8_t[256] SHAPES


def _fill():
    for code, kind in plain.ROWS_KINDS.items():
        SHAPES[<int>code] = (
            IS_ROWS
            | HAS_BEFORE * (kind is not plain.RowsKind.INSERT)
            | HAS_AFTER * (kind is not plain.RowsKind.DELETE)
            | HAS_EXTRA * (code in plain.WITH_EXTRA)
            | IS_COMPRESSED * (code in plain.COMPRESSED_ROWS)
            | IS_PARTIAL * (code == EventType.PARTIAL_UPDATE_ROWS)
        )


_fill()


cdef (int64_t, int) _image_end(
    const uint8_t *data, int64_t at, int64_t end, int64_t bitmap, int64_t width, const uint8_t *rule,
    const int64_t *param,
) noexcept nogil:
    """(end of the image, code). ``bitmap``: offset of its bitmap of columns; ``rule``: of the table's first column."""
    cdef int64_t present = 0, byte, bits, nulls = at, seen = 0, column, prefix
    cdef bint null
    for byte in range((width + 7) >> 3):
        bits = data[bitmap + byte]
        if (byte + 1) << 3 > width:
            bits &= (1 << (width & 7)) - 1
        while bits:
            bits &= bits - 1
            present += 1
    at += (present + 7) >> 3
    if at > end:
        return at, OVERRUN
    for column in range(width):
        if not (data[bitmap + (column >> 3)] >> (column & 7)) & 1:
            continue
        null = (data[nulls + (seen >> 3)] >> (seen & 7)) & 1
        seen += 1
        if null:
            continue
        prefix = rule[column]
        if prefix == 0:
            at += param[column]
        elif prefix > 4:
            return at, UNKNOWN_LENGTH
        elif prefix > end - at:
            return at, OVERRUN
        else:
            at += prefix + little(data, at, prefix)
        if at > end:
            return at, OVERRUN
    return at, OK


cdef (int64_t, int) _partial_head(const uint8_t *data, int64_t at, int64_t end, int64_t json_columns) noexcept nogil:
    """(offset of the after-image behind its head, code)."""
    cdef int64_t options
    options, at = packed(data, at, end, LONGEST)
    if options < 0:
        return at, OVERRUN
    if options & ~1:
        return at, BAD_OPTIONS
    if options:
        at += (json_columns + 7) >> 3
    return at, OK


cdef (int, int64_t, int64_t) _rows_head(
    const uint8_t *data, int64_t at, int64_t end, int shape, int64_t expected
) noexcept nogil:
    """(code, offset of the first bitmap, offset of the images) of a rows body [at, end)."""
    cdef int64_t length, width, bitmaps
    at += 8
    if shape & HAS_EXTRA:
        if end - at < 2:
            return SHORT_BODY, at, at
        length = u16(data, at)
        if length < 2:
            return BAD_EXTRA, at, at
        if length > end - at:
            return SHORT_BODY, at, at
        at += length
    width, at = packed(data, at, end, LONGEST)
    if width != expected:
        return BAD_WIDTH, at, at
    bitmaps = ((width + 7) >> 3) * (2 if shape & 3 == 3 else 1)
    if bitmaps > end - at:
        return SHORT_BODY, at, at
    return OK, at, at + bitmaps


cdef (int64_t, int) _count_event(
    const uint8_t *data, int64_t at, int64_t end, int shape, const int64_t *table, const uint8_t *rule,
    const int64_t *param, int64_t *images, int64_t room,
) noexcept nogil:
    """(rows, code) of one rows body [at, end). ``table``: index of its first rule, number of its columns, number of its
    JSON columns. ``images`` is filled as far as it has ``room``, in rows."""
    cdef int64_t width = table[1], bitmap, after_bitmap, count = 0, row, middle
    cdef int code
    cdef bint empty
    rule += table[0]
    param += table[0]
    code, bitmap, at = _rows_head(data, at, end, shape, width)
    if code != OK:
        return 0, code
    after_bitmap = bitmap + ((width + 7) >> 3) if shape & HAS_BEFORE else bitmap
    empty = at == end
    while at < end or (empty and count == 0):
        row = middle = at
        if shape & HAS_BEFORE:
            at, code = _image_end(data, at, end, bitmap, width, rule, param)
            middle = at
        if code == OK and shape & IS_PARTIAL:
            at, code = _partial_head(data, at, end, table[2])
        if code == OK and shape & HAS_AFTER:
            at, code = _image_end(data, at, end, after_bitmap, width, rule, param)
        if code != OK:
            return count, NO_IMAGES if empty else code
        if at == row and not empty:
            return count, NO_COLUMNS
        if count < room:
            images[4 * count] = row if shape & HAS_BEFORE else -1
            images[4 * count + 1] = middle if shape & HAS_BEFORE else -1
            images[4 * count + 2] = middle if shape & HAS_AFTER else -1
            images[4 * count + 3] = at if shape & HAS_AFTER else -1
        count += 1
    return count, OK


cdef inline int64_t _full_images(
    const uint8_t *data, int64_t at, int64_t end, int shape, int64_t width
) noexcept nogil:
    """Offset of the images in a rows body if they have all columns and nothing is unusual; else -1."""
    cdef int64_t extra, length = (width + 7) >> 3, bitmaps = 2 * length if shape & 3 == 3 else length, byte, left
    cdef int wanted
    at += 8
    if shape & HAS_EXTRA:
        if end - at < 2:
            return -1
        extra = u16(data, at)
        if extra < 2:
            return -1
        at += extra
    if end - at <= 1 + bitmaps or not 0 < width <= ONE_BYTE or data[at] != width or shape & IS_PARTIAL:
        return -1
    at += 1
    for byte in range(bitmaps):
        left = width - ((byte if byte < length else byte - length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[at + byte] & wanted != wanted:
            return -1
    return at + bitmaps


cdef inline int64_t _full_rows(
    const uint8_t *data, int64_t at, int64_t end, int shape, int64_t width, const uint8_t *rule, const int64_t *param,
    int64_t *images, int64_t room,
) noexcept nogil:
    """As ``_count_event``, for images of all columns, as in nearly all events; -1 for other or unusual events."""
    cdef int64_t rows = 0, nulls, column, prefix
    cdef int halves = 2 if shape & 3 == 3 else 1, before = 0 if shape & HAS_BEFORE else 2, half
    at = _full_images(data, at, end, shape, width)
    if at < 0:
        return -1
    while at < end:
        for half in range(halves):
            nulls = at
            at += (width + 7) >> 3
            if at > end:
                return -1
            for column in range(width):
                if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
                    continue
                prefix = rule[column]
                if prefix == 0:
                    at += param[column]
                elif prefix > 4 or prefix > end - at:
                    return -1
                else:
                    at += prefix + little(data, at, prefix)
                if at > end:
                    return -1
            if rows < room:
                images[4 * rows + before + 2 * half] = nulls
                images[4 * rows + before + 2 * half + 1] = at
        if rows < room and halves == 1:
            images[4 * rows + 2 - before] = images[4 * rows + 3 - before] = -1
        rows += 1
    return rows


cdef bint _lacks_columns(const uint8_t *data, int64_t at, int64_t end, int shape, int64_t width) noexcept nogil:
    """Whether the images of a rows body with a complete head lack columns."""
    cdef int64_t bitmap, images, length = (width + 7) >> 3, place, left
    cdef int wanted
    _, bitmap, images = _rows_head(data, at, end, shape, width)
    for place in range(images - bitmap):
        left = width - ((place % length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[bitmap + place] & wanted != wanted:
            return True
    return False


def find_partial(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    int64_t header_len, int64_t tail, const int32_t[::1] number, const int64_t[::1] width, uint8_t[::1] found,
):
    """Sets ``found`` of each table with an event whose images lack columns, hold differences or are compressed."""
    cdef int64_t event, events = offset.shape[0], table, at, end
    cdef int shape, code
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for event in range(events):
            prefetch(begin, offset[min(event + AHEAD, events - 1)] + header_len)
            table = number[event]
            shape = SHAPES[kind[event]]
            if table < 0 or found[table] or not shape:
                continue
            if shape & (IS_COMPRESSED | IS_PARTIAL):
                found[table] = True
                continue
            at, end = offset[event] + header_len, offset[event] + size[event] - tail
            if _full_images(begin, at, end, shape, width[table]) < 0:
                code, _, _ = _rows_head(begin, at, end, shape, width[table])
                found[table] = code != OK or _lacks_columns(begin, at, end, shape, width[table])


def count(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    int64_t header_len, int64_t tail, const int32_t[::1] number, const int64_t[:, ::1] tables, const uint8_t[::1] rule,
    const int64_t[::1] param, int64_t[::1] rows, int64_t[:, ::1] images, uint8_t[::1] lacking,
):
    """Fills ``rows``, ``images`` as far as it has room, and ``lacking``: whether the images lack columns.

    Returns (code, event where it stopped).
    """
    cdef int64_t used = 0, event, events = offset.shape[0], at, end, found, room = images.shape[0]
    cdef int shape, code = OK
    cdef const int64_t *table
    cdef const uint8_t *begin = &data[0]
    cdef const uint8_t *rules = &rule[0]
    cdef const int64_t *params = &param[0]
    cdef int64_t *image = &images[0, 0]
    with nogil:
        for event in range(events):
            rows[event] = 0
            lacking[event] = False
            prefetch(begin, offset[min(event + AHEAD, events - 1)] + header_len)
            shape = SHAPES[kind[event]]
            if number[event] < 0 or not shape:
                continue
            if shape & IS_COMPRESSED:
                rows[event] = COMPRESSED
                continue
            at = offset[event] + header_len
            end = offset[event] + size[event] - tail
            table = &tables[number[event], 0]
            found = _full_rows(
                begin, at, end, shape, table[1], rules + table[0], params + table[0], image + 4 * used, room - used
            )
            if found < 0:
                found, code = _count_event(
                    begin, at, end, shape, table, rules, params, image + 4 * used, room - used
                )
                if code != OK:
                    break
                lacking[event] = _lacks_columns(begin, at, end, shape, table[1])
            rows[event] = found
            used += found
        else:
            event = events
    return code, event


def value_ranges(
    const uint8_t[::1] data, const int64_t[::1] images, int64_t width, const uint8_t[::1] rule, const int64_t[::1] param,
    int64_t column, int64_t[:, ::1] ranges,
):
    """Fills ``ranges`` with start and end of a column's value in each full image; whether none of them is NULL.

    ``rule`` and ``param``: of all columns up to this one, without the value's length in its first bytes.
    """
    cdef int64_t row, nulls, at, start = 0, before
    cdef bint whole = True
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for row in range(images.shape[0]):
            nulls = images[row]
            at = nulls + ((width + 7) >> 3)
            for before in range(column + 1):
                if (begin[nulls + (before >> 3)] >> (before & 7)) & 1:
                    if before == column:
                        whole = False
                    continue
                start = at + rule[before]
                at = start + (param[before] if rule[before] == 0 else little(begin, at, rule[before]))
            if not whole:
                break
            ranges[row, 0] = start
            ranges[row, 1] = at
    return whole


def places(
    const uint8_t[::1] data, const int64_t[::1] images, int64_t width, const uint8_t[::1] rule,
    const int64_t[::1] length, int64_t[:, ::1] start, int64_t[:, ::1] end,
):
    """Fills ``start`` and ``end`` of the first columns' values in each full image of ``width`` columns."""
    cdef int64_t row, nulls, at, column, size
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for row in range(images.shape[0]):
            nulls = images[row]
            at = nulls + ((width + 7) >> 3)
            for column in range(start.shape[0]):
                if (begin[nulls + (column >> 3)] >> (column & 7)) & 1:
                    start[column, row] = end[column, row] = -1
                    continue
                size = length[column] | little(begin, at, rule[column])
                at += rule[column]
                start[column, row] = at
                at += size
                end[column, row] = at
