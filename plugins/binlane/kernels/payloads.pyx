"""The heads of compressed events, and buffers with their decompressed events; see ``binlog.vector.decompress``."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from binlane.kernels.memory cimport CODE_AT, HEADER, SIZE_AT, packed, put, put_little, u16, u32

from binlane.binlog.payload import Compression
from binlane.binlog.wire import EventType

cdef enum:
    # fields of a TRANSACTION_PAYLOAD's head
    SIZE = 1
    COMPRESSION = 2
    INFLATED = 3
    # maximum bytes of a length-encoded field in that head, and of a rows event's number of columns
    LONGEST = 8
    LONGEST_WIDTH = 3
    # a rows event's table id and flags
    ROWS_HEAD = 8

cdef uint8_t PAYLOAD = EventType.TRANSACTION_PAYLOAD
cdef int64_t ZSTD = Compression.ZSTD


cdef (int64_t, int64_t) _payload_head(const uint8_t *data, int64_t at, int64_t end) noexcept nogil:
    """(offset of the zstd stream in the body [at, end), decompressed size); (-1, -1) for an unusual head."""
    cdef int64_t size = -1, compression = -1, inflated = -1, field, length, value
    while True:
        field, at = packed(data, at, end, LONGEST)
        if field == 0:
            break
        length, at = packed(data, at, end, LONGEST)
        if field < 0 or length < 0 or length > end - at:
            return -1, -1
        if field <= INFLATED:
            value, _ = packed(data, at, at + length, LONGEST)
            if field == SIZE:
                size = value
            elif field == COMPRESSION:
                compression = value
            elif field == INFLATED:
                inflated = value
        at += length
    # zstandard raises for an empty stream
    if end == at or size != end - at or compression != ZSTD or inflated <= 0:
        return -1, -1
    return at, inflated


def payload_heads(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    int64_t header_len, int64_t tail, int64_t most, int64_t room, int64_t[:, ::1] found,
):
    """Fills ``found``: (event, offset and length of its stream, decompressed size); returns their number."""
    cdef int64_t count = 0, event, end, at, declared
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for event in range(offset.shape[0]):
            if kind[event] != PAYLOAD:
                continue
            end = offset[event] + size[event] - tail
            at, declared = _payload_head(begin, offset[event] + header_len, end)
            if at >= 0 and declared <= min(most, room):
                found[count, 0] = event
                found[count, 1] = at
                found[count, 2] = end - at
                found[count, 3] = declared
                room -= declared
                count += 1
    return count


cdef int64_t _rows_head(
    const uint8_t *data, int64_t at, int64_t end, int64_t bitmaps, bint has_extra
) noexcept nogil:
    """Offset of the compressed part in the rows body [at, end); -1 for an unusual head."""
    cdef int64_t length, width
    at += ROWS_HEAD
    if has_extra:
        if end - at < 2:
            return -1
        length = u16(data, at)
        if length < 2:
            return -1
        at += length
    width, at = packed(data, at, end, LONGEST_WIDTH)
    if width < 0:
        return -1
    at += ((width + 7) >> 3) * bitmaps
    return at if at < end else -1


def rows_heads(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    const uint8_t[::1] bitmaps, const uint8_t[::1] has_extra, int64_t tail, int64_t most, int64_t room,
    int64_t[:, ::1] found,
):
    """Fills ``found``: (event, offsets of its compressed part, its stream and its end, decompressed size of the
    stream). ``bitmaps``, by event type: of a compressed rows event, 0 for other events; ``has_extra``, by the same.

    Compressed part: 0x80 + length of the size, the size big-endian, a zlib stream.
    """
    cdef int64_t count = 0, event, end, head, length, declared, byte
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for event in range(offset.shape[0]):
            if bitmaps[kind[event]] == 0:
                continue
            end = offset[event] + size[event] - tail
            head = _rows_head(begin, offset[event] + HEADER, end, bitmaps[kind[event]], has_extra[kind[event]])
            if head < 0:
                continue
            length = <int64_t>begin[head] - 0x80
            if not 1 <= length <= 4 or end - head <= length:
                continue
            declared = 0
            for byte in range(length):
                declared = declared << 8 | begin[head + 1 + byte]
            if declared <= min(most, room):
                found[count, 0] = event
                found[count, 1] = head
                found[count, 2] = head + 1 + length
                found[count, 3] = end
                found[count, 4] = declared
                room -= declared
                count += 1
    return count


def plain_inside(
    const uint8_t[::1] data, const int64_t[::1] start, int64_t first, int64_t last, const uint8_t[::1] between,
    uint8_t[::1] is_plain,
):
    """Fills ``is_plain``: whether [start[n], start[n + 1]) consists of whole events of the allowed types."""
    cdef int64_t place, at, end, count, size
    cdef uint8_t code
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for place in range(start.shape[0] - 1):
            at, end, count = start[place], start[place + 1], 0
            while end - at >= HEADER:
                code, size = begin[at + CODE_AT], u32(begin, at + SIZE_AT)
                if size < HEADER or size > end - at:
                    break
                if at + size == end:
                    at = end if code == last else -1
                    break
                if (count == 0 and code != first) or (count > 0 and not between[code]):
                    break
                count += 1
                at += size
            is_plain[place] = count > 0 and at == end


def count_events(const uint8_t[::1] data, const int64_t[::1] start, const int64_t[::1] end):
    """The number of events in [start[n], end[n])."""
    cdef int64_t count = 0, place, at
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for place in range(start.shape[0]):
            at = start[place]
            while at < end[place]:
                at += u32(begin, at + SIZE_AT)
                count += 1
    return count


def lay_out(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint32_t[::1] size, const int64_t[::1] event,
    const uint8_t[::1] inner, const int64_t[::1] start, const int64_t[::1] end, int64_t tail, uint8_t[::1] out,
    int64_t[::1] at, int64_t[::1] source,
):
    """Fills ``out`` with ``data``, each compressed ``event`` replaced by its decompressed ones, [start[n], end[n]) of
    ``inner``, with room for a checksum each; ``at`` and ``source``: the offset of each piece there and in ``data``."""
    cdef int64_t used = 0, copied = 0, piece = 0, place, until, begin, length
    cdef const uint8_t *outer = &data[0]
    cdef const uint8_t *events = &inner[0]
    cdef uint8_t *into = &out[0]
    with nogil:
        for place in range(event.shape[0] + 1):
            until = offset[event[place]] if place < event.shape[0] else data.shape[0]
            at[piece] = used
            source[piece] = copied
            piece += 1
            used = put(outer, copied, until, into, used)
            if place == event.shape[0]:
                break
            copied = until + size[event[place]]
            begin = start[place]
            while begin < end[place]:
                length = u32(events, begin + SIZE_AT)
                at[piece] = used
                source[piece] = until
                piece += 1
                put(events, begin, begin + length, into, used)
                put_little(length + tail, 4, into, used + SIZE_AT)
                put_little(0, tail, into, used + length)
                used += length + tail
                begin += length
