"""Copies whole events, and ranges of bytes."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from binlane.kernels.memory cimport FLAGS_AT, HEADER, LOG_POS_AT, SIZE_AT, little, put, put_little

from binlane.binlog.wire import ARTIFICIAL

cdef enum:
    PACKET_HEAD = 4
    WHOLE_PACKET = 0xFFFFFF
    LEAST_PACKET = 1 + HEADER
    # offset of the length of the database's name in a TABLE_MAP's body, behind table id and flags; one byte
    NAME_AT = 8

cdef int64_t IS_ARTIFICIAL = ARTIFICIAL


def gather(const uint8_t[::1] data, const int64_t[::1] offsets, const int64_t[::1] lengths, uint8_t[::1] out):
    """Bytes written, or (-1 - index) of the first range that is outside ``data`` or does not fit into ``out``."""
    cdef int64_t used = 0, index, at, length
    with nogil:
        for index in range(offsets.shape[0]):
            at, length = offsets[index], lengths[index]
            if at < 0 or length < 0 or length > data.shape[0] - at or length > out.shape[0] - used:
                used = -1 - index
                break
            used = put(&data[0], at, at + length, &out[0], used)
    return used


cdef inline int64_t _put_head(
    const uint8_t *data, int64_t at, int64_t length, uint8_t *out, int64_t used
) noexcept nogil:
    """Writes an event's header, with its ``length`` and log_pos 0; returns its end."""
    put(data, at, at + SIZE_AT, out, used)
    put_little(length, 4, out, used + SIZE_AT)
    put_little(0, 4, out, used + LOG_POS_AT)
    return put(data, at + FLAGS_AT, at + FLAGS_AT + 2, out, used + FLAGS_AT)


def strip(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint32_t[::1] size, const int64_t[::1] wanted,
    int64_t header_len, int64_t tail, uint8_t[::1] out,
):
    """Bytes written. ``out`` has room for all ``wanted`` events, which are numbers into ``offset``."""
    cdef int64_t used = 0, index, at, body
    cdef const uint8_t *begin = &data[0]
    cdef uint8_t *into = &out[0]
    with nogil:
        for index in range(wanted.shape[0]):
            at = offset[wanted[index]]
            body = size[wanted[index]] - header_len - tail
            used = _put_head(begin, at, body + HEADER, into, used)
            used = put(begin, at + header_len, at + header_len + body, into, used)
    return used


def strip_renamed(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint32_t[::1] size, const int64_t[::1] wanted,
    int64_t header_len, int64_t tail, const int64_t[::1] which, const uint8_t[::1] names, const int64_t[::1] edges,
    uint8_t[::1] out,
):
    """As ``strip``, with new database names: ``which`` is each event's index in ``edges``, or -1."""
    cdef int64_t used = 0, index, event, at, body, begin, name, old, new
    cdef const uint8_t *segment = &data[0]
    cdef uint8_t *into = &out[0]
    with nogil:
        for index in range(wanted.shape[0]):
            event = wanted[index]
            at, name = offset[event], which[event]
            body = size[event] - header_len - tail
            begin = at + header_len
            if name < 0:
                used = _put_head(segment, at, body + HEADER, into, used)
                used = put(segment, begin, begin + body, into, used)
                continue
            old, new = segment[begin + NAME_AT], edges[name + 1] - edges[name]
            used = _put_head(segment, at, body + HEADER + new - old, into, used)
            used = put(segment, begin, begin + NAME_AT, into, used)
            used = put_little(new, 1, into, used)
            used = put(&names[0], edges[name], edges[name + 1], into, used)
            used = put(segment, begin + NAME_AT + 1 + old, begin + body, into, used)
    return used


def take(
    const uint8_t[::1] data, int64_t at, int64_t filled, const uint8_t[::1] special, uint8_t[::1] events, int64_t taken,
    int64_t last,
):
    """Copy the events of whole packets of a dump in data[at:filled] behind the ``taken`` bytes of ``events``.

    A packet: length u24, number u8, then a byte 0 and the event. ``events`` is as long as ``data``. Stops before a
    packet that is incomplete or continues in the next one, is no event, declares a different size, is ARTIFICIAL, or
    has a type in ``special`` (256 booleans). Returns the offset in ``data`` where it stopped, the number of bytes in
    ``events``, and the offset of the last event in them.
    """
    cdef int64_t length, event, end
    cdef const uint8_t *begin = &data[0]
    with nogil:
        while filled - at >= PACKET_HEAD:
            length = little(begin, at, 3)
            event, end = at + PACKET_HEAD + 1, at + PACKET_HEAD + length
            if end > filled or length < LEAST_PACKET or length == WHOLE_PACKET or begin[at + PACKET_HEAD] != 0:
                break
            if little(begin, event + SIZE_AT, 4) != length - 1:
                break
            if special[begin[event + 4]] or begin[event + FLAGS_AT] & IS_ARTIFICIAL:
                break
            last, taken, at = taken, put(begin, event, end, &events[0], taken), end
    return at, taken, last
