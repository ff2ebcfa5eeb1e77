"""Shortens rows events; ``binlog.vector.narrow_rows`` says how, and ``tests/unit/binlog/narrowed_plainly.py`` does the
same in plain Python."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from binlane.kernels.memory cimport HEADER, SIZE_AT, little, put, put_little, u16

from binlane.binlog.rows import RowsFlag
from binlane.binlog.wire import EventType

cpdef enum:
    # the largest number of columns that stands in one byte: events of wider tables are copied
    MOST_COLUMNS = 250

cdef enum:
    FLAGS_IN_EVENT = HEADER + 6
    POST_HEADER = 8
    # bytes of images that cost a server as much as one more event, besides its own bytes (MariaDB 10.11)
    EVENT_COST = 160
    NOT_WHOLE = -1
    NULL_VALUE = -1
    # the shape of an event's body; 0: it is copied
    IS_UPDATE = 1
    IS_DELETE = 2
    HAS_EXTRA = 4

cdef uint8_t INCOMPLETE = 0xFF & ~int(RowsFlag.COMPLETE_ROWS)
cdef uint8_t UNENDED = 0xFF & ~int(RowsFlag.STMT_END)
cdef uint8_t[256] SHAPES
SHAPES[<int>EventType.UPDATE_ROWS_V1] = IS_UPDATE
SHAPES[<int>EventType.UPDATE_ROWS_V2] = IS_UPDATE | HAS_EXTRA
SHAPES[<int>EventType.DELETE_ROWS_V1] = IS_DELETE
SHAPES[<int>EventType.DELETE_ROWS_V2] = IS_DELETE | HAS_EXTRA


cdef struct Columns:
    # a table's columns: the rules are those of its first one
    int64_t width
    const uint8_t *rule
    const int64_t *param
    # those of its primary key
    const int64_t *key
    int64_t keys


cdef int64_t _images_at(const uint8_t *data, int64_t start, int64_t end, int shape, int64_t width) noexcept nogil:
    """Offset of an event's row images if they have all columns; else -1."""
    cdef int64_t at = start + HEADER + POST_HEADER, extra, length = (width + 7) >> 3, byte, left
    cdef int64_t halves = 2 if shape & IS_UPDATE else 1
    cdef int wanted
    if shape & HAS_EXTRA:
        if end - at < 2:
            return NOT_WHOLE
        extra = u16(data, at)
        if extra < 2 or extra > end - at:
            return NOT_WHOLE
        at += extra
    if not 0 < width <= MOST_COLUMNS or end - at <= 1 + halves * length or data[at] != width:
        return NOT_WHOLE
    at += 1
    for byte in range(halves * length):
        left = width - ((byte % length) << 3)
        wanted = 255 if left >= 8 else (1 << left) - 1
        if data[at + byte] & wanted != wanted:
            return NOT_WHOLE
    return at + halves * length


cdef int64_t _columns(const uint8_t *data, int64_t at, int64_t end, const Columns *of, int64_t *found) noexcept nogil:
    """The end of an image with all columns, -1 if it is not within ``end``. Fills ``found`` with begin and end of each
    value, with its length; -1 for NULL."""
    cdef int64_t nulls = at, column, prefix
    at += (of.width + 7) >> 3
    if at > end:
        return NOT_WHOLE
    for column in range(of.width):
        if (data[nulls + (column >> 3)] >> (column & 7)) & 1:
            found[2 * column] = found[2 * column + 1] = NULL_VALUE
            continue
        found[2 * column] = at
        prefix = of.rule[column]
        if prefix == 0:
            at += of.param[column]
        else:
            if prefix > 4 or prefix > end - at:
                return NOT_WHOLE
            at += prefix + little(data, at, prefix)
        if at > end:
            return NOT_WHOLE
        found[2 * column + 1] = at
    return at


cdef inline int64_t _length(const int64_t *found, int64_t column) noexcept nogil:
    return found[2 * column + 1] - found[2 * column]


cdef int64_t _read_update(
    const uint8_t *data, int64_t at, int64_t end, const Columns *of, int64_t *before, int64_t *after,
    uint8_t *is_changed,
) noexcept nogil:
    """The end of an update's two images, or -1. Marks the columns that it changes, and no others."""
    cdef int64_t column, old, new, length
    at = _columns(data, at, end, of, before)
    if at < 0:
        return NOT_WHOLE
    at = _columns(data, at, end, of, after)
    if at < 0:
        return NOT_WHOLE
    for column in range(of.width):
        old, new, length = before[2 * column], after[2 * column], _length(before, column)
        is_changed[column] = (
            (old < 0) != (new < 0)
            or length != _length(after, column)
            or memcmp(data + max(old, 0), data + max(new, 0), <size_t>length) != 0
        )
    return at


cdef int64_t _cost_of_joining(
    const int64_t *after, int64_t width, const uint8_t *is_sent, const uint8_t *is_changed, const int64_t *held
) noexcept nogil:
    """The bytes that an event and an update get longer by if they are sent with the same columns.

    ``held``: for each column the bytes of its values after the updates that the event has.
    """
    cdef int64_t cost = 0, column
    for column in range(width):
        if is_sent[column] and not is_changed[column]:
            cost += _length(after, column)
        elif is_changed[column] and not is_sent[column]:
            cost += held[column]
    return cost


cdef int64_t _join(
    const int64_t *before, const int64_t *after, const Columns *of, uint8_t *is_sent, const uint8_t *is_changed,
    int64_t *held,
) noexcept nogil:
    """Adds an update to its event: marks its columns as sent; returns the bytes of its key."""
    cdef int64_t column, part, size = 0
    for column in range(of.width):
        held[column] += _length(after, column)
        is_sent[column] |= is_changed[column]
    for part in range(of.keys):
        size += _length(before, of.key[part])
    return size


cdef int64_t _listed(const uint8_t *wanted, int64_t width, int64_t *columns) noexcept nogil:
    """Fills ``columns`` with those that are wanted; returns their number."""
    cdef int64_t count = 0, column
    for column in range(width):
        if wanted[column]:
            columns[count] = column
            count += 1
    return count


cdef int64_t _bitmap(const int64_t *columns, int64_t count, int64_t width, uint8_t *out, int64_t at) noexcept nogil:
    cdef int64_t length = (width + 7) >> 3, number
    memset(out + at, 0, <size_t>length)
    for number in range(count):
        out[at + (columns[number] >> 3)] |= 1 << (columns[number] & 7)
    return at + length


cdef int64_t _image(
    const uint8_t *data, const int64_t *found, const int64_t *columns, int64_t count, uint8_t *out, int64_t at
) noexcept nogil:
    """Writes an image of some columns."""
    cdef int64_t nulls = at, seen, start
    at += (count + 7) >> 3
    memset(out + nulls, 0, <size_t>(at - nulls))
    for seen in range(count):
        start = found[2 * columns[seen]]
        if start < 0:
            out[nulls + (seen >> 3)] |= 1 << (seen & 7)
        else:
            at = put(data, start, found[2 * columns[seen] + 1], out, at)
    return at


cdef int64_t _write_head(const uint8_t *data, int64_t start, int64_t length, uint8_t *out, int64_t used) noexcept nogil:
    """Writes the front of an event up to its bitmaps; returns its end."""
    cdef int64_t end = put(data, start, start + length, out, used)
    out[used + FLAGS_IN_EVENT] &= INCOMPLETE
    return end


cdef int64_t _write_deletes(
    const uint8_t *data, int64_t start, int64_t at, int64_t end, const Columns *of, int64_t *before, uint8_t *out,
    int64_t used,
) noexcept nogil:
    """Writes an event of whole images, ``at`` its first one, shorter. Returns the end of what is written, or -1 if the
    images do not end with the event."""
    cdef int64_t written = _write_head(data, start, at - start - ((of.width + 7) >> 3), out, used)
    written = _bitmap(of.key, of.keys, of.width, out, written)
    while at < end:
        at = _columns(data, at, end, of, before)
        if at < 0:
            return NOT_WHOLE
        written = _image(data, before, of.key, of.keys, out, written)
    put_little(written - used, 4, out, used + SIZE_AT)
    return written


cdef int64_t _bytes_of_images(
    int64_t rows, int64_t keys, const int64_t *sent, int64_t count, const int64_t *held
) noexcept nogil:
    """The bytes of the short images of an event of updates, without the values before."""
    cdef int64_t size = rows * (((keys + 7) >> 3) + ((count + 7) >> 3)), number
    for number in range(count):
        size += held[sent[number]]
    return size


cdef int64_t _write_images(
    const uint8_t *data, int64_t at, int64_t stop, int64_t end, const Columns *of, int64_t *found, const int64_t *sent,
    int64_t count, uint8_t *out, int64_t written,
) noexcept nogil:
    """Writes the updates from ``at`` to ``stop``, which have been read before, with the same columns."""
    while at < stop:
        at = _columns(data, at, end, of, found)
        written = _image(data, found, of.key, of.keys, out, written)
        at = _columns(data, at, end, of, found)
        written = _image(data, found, sent, count, out, written)
    return written


cdef struct Room:
    # values of two rows before and after an update, marks of what is sent and of what changes, the bytes of an event's
    # values, and the columns that are sent
    int64_t[2][500] before
    int64_t[2][500] after
    uint8_t[250] is_sent
    uint8_t[250] is_changed
    int64_t[250] held
    int64_t[250] sent


cdef int64_t _write_updates(
    const uint8_t *data, int64_t start, int64_t at, int64_t end, const Columns *of, Room *room, uint8_t *out,
    int64_t used,
) noexcept nogil:
    """Writes an event of whole images, ``at`` its first one, as one shorter event or several. Returns the end of what
    is written, or -1 if the images do not end with the event, or what is written would be longer than the event."""
    cdef int64_t front = at - start, limit = used + end - start, begun = at, rows, stop, key_bytes, count, written
    cdef int now = 0, other
    cdef const int64_t *sent
    at = _read_update(data, at, end, of, room.before[now], room.after[now], room.is_changed)
    if at < 0:
        return NOT_WHOLE
    while begun < end:
        rows, stop = 1, at
        memset(room.is_sent, 0, sizeof(room.is_sent))
        memset(room.held, 0, <size_t>of.width * sizeof(int64_t))
        key_bytes = _join(room.before[now], room.after[now], of, room.is_sent, room.is_changed, room.held)
        while at < end:
            # the update read last is kept as long as it may be its event's only one
            other = 1 - now if rows == 1 else now
            at = _read_update(data, at, end, of, room.before[other], room.after[other], room.is_changed)
            if at < 0:
                return NOT_WHOLE
            if (
                _cost_of_joining(room.after[other], of.width, room.is_sent, room.is_changed, room.held)
                > front + EVENT_COST
            ):
                break
            key_bytes += _join(room.before[other], room.after[other], of, room.is_sent, room.is_changed, room.held)
            rows, stop, now = rows + 1, at, other
        # rows that an update leaves as they were: an image of no columns is no row for a server
        count, sent = _listed(room.is_sent, of.width, room.sent), room.sent
        if count == 0:
            count, sent = of.keys, of.key
        if used + front + key_bytes + _bytes_of_images(rows, of.keys, sent, count, room.held) > limit:
            return NOT_WHOLE
        written = _write_head(data, start, front - 2 * ((of.width + 7) >> 3), out, used)
        if stop < end:
            out[used + FLAGS_IN_EVENT] &= UNENDED
        written = _bitmap(of.key, of.keys, of.width, out, written)
        written = _bitmap(sent, count, of.width, out, written)
        if rows == 1:
            written = _image(data, room.before[now], of.key, of.keys, out, written)
            written = _image(data, room.after[now], sent, count, out, written)
            now = 1 - now
        else:
            written = _write_images(data, begun, stop, end, of, room.before[1 - now], sent, count, out, written)
        put_little(written - used, 4, out, used + SIZE_AT)
        used, begun = written, stop
    return used


def narrow(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    const int32_t[::1] number, const int64_t[:, ::1] tables, const uint8_t[::1] rule, const int64_t[::1] param,
    const int64_t[::1] key_from, const int64_t[::1] key_columns, uint8_t[::1] out,
):
    """Fills ``out``; returns the bytes used. ``tables``: index of its first rule and width of each table;
    ``key_from``: of each table, and at the end, the first of its key's columns in ``key_columns``."""
    cdef int64_t used = 0, event, start, end, images, written
    cdef int32_t table
    cdef int shape
    cdef Columns of
    cdef Room room
    cdef const uint8_t *begin = &data[0]
    cdef uint8_t *into = &out[0]
    with nogil:
        for event in range(offset.shape[0]):
            start, shape, table = offset[event], SHAPES[kind[event]], number[event]
            end = start + size[event]
            images, written = NOT_WHOLE, NOT_WHOLE
            if shape and table >= 0 and key_from[table] < key_from[table + 1]:
                images = _images_at(begin, start, end, shape, tables[table, 1])
            if images >= 0:
                of.width = tables[table, 1]
                of.rule = &rule[0] + tables[table, 0]
                of.param = &param[0] + tables[table, 0]
                of.key = &key_columns[0] + key_from[table]
                of.keys = key_from[table + 1] - key_from[table]
                if shape & IS_UPDATE:
                    written = _write_updates(begin, start, images, end, &of, &room, into, used)
                else:
                    written = _write_deletes(begin, start, images, end, &of, room.before[0], into, used)
            if written < 0:
                written = put(begin, start, end, into, used)
            used = written
    return used
