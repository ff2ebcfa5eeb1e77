"""What all kernels do with bytes: parts of kernels, compiled into each of them."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define BINLANE_PREFETCH(place) __builtin_prefetch((const void *)(place))
    #else
    #define BINLANE_PREFETCH(place) ((void)0)
    #endif
    """
    void BINLANE_PREFETCH(uintptr_t place) noexcept nogil

cdef enum:
    # how many events, or rows, before its turn the bytes of one are fetched from memory
    AHEAD = 16
    # the length of an event's header, and where its fields are
    HEADER = 19
    CODE_AT = 4
    SERVER_ID_AT = 5
    SIZE_AT = 9
    LOG_POS_AT = 13
    FLAGS_AT = 17


cdef inline void prefetch(const uint8_t *data, int64_t at) noexcept nogil:
    """The processor fetches the bytes around data[at] while the kernel goes on. An offset outside the array does no
    harm.

    Events and rows have no fixed length, so a processor does not guess where the next one begins, and waits for memory
    at each: ``index`` took 62 ns an event of a segment of 64 MiB, and 15 with this.
    """
    BINLANE_PREFETCH(<uintptr_t>data + <uintptr_t>at)


cdef inline void prefetch_row(const uint8_t *data, const int64_t *images, int64_t rows, int64_t row) noexcept nogil:
    """Fetch the images of a later row; ``images``: a row's before start, before end, after start and after end."""
    cdef int64_t later = min(row + AHEAD, rows - 1)
    prefetch(data, images[4 * later])
    prefetch(data, images[4 * later + 2])


cdef inline int64_t u16(const uint8_t *data, int64_t at) noexcept nogil:
    return <int64_t>data[at] | <int64_t>data[at + 1] << 8


cdef inline uint32_t u32(const uint8_t *data, int64_t at) noexcept nogil:
    return (
        <uint32_t>data[at] | <uint32_t>data[at + 1] << 8 | <uint32_t>data[at + 2] << 16 | <uint32_t>data[at + 3] << 24
    )


cdef inline uint64_t unsigned(const uint8_t *data, int64_t at, int64_t length) noexcept nogil:
    """A little-endian unsigned integer of up to eight bytes."""
    cdef uint64_t value = 0
    cdef int64_t index
    for index in range(length):
        value |= <uint64_t>data[at + index] << (8 * index)
    return value


cdef inline int64_t little(const uint8_t *data, int64_t at, int64_t length) noexcept nogil:
    """The same of up to seven bytes; of eight it may be negative."""
    return <int64_t>unsigned(data, at, length)


cdef inline int64_t put(const uint8_t *data, int64_t start, int64_t end, uint8_t *out, int64_t at) noexcept nogil:
    """Copies [start, end) to ``at``; returns the end of the copy."""
    memcpy(out + at, data + start, <size_t>(end - start))
    return at + end - start


cdef inline int64_t put_little(uint64_t value, int64_t length, uint8_t *out, int64_t at) noexcept nogil:
    """Writes a little-endian integer; returns its end."""
    cdef int64_t byte
    for byte in range(length):
        out[at + byte] = <uint8_t>(value >> (8 * byte))
    return at + length


cdef inline (int64_t, int64_t) packed(const uint8_t *data, int64_t at, int64_t end, int64_t longest) noexcept nogil:
    """A length-encoded integer of up to ``longest`` bytes (3, or 8 below 2**63) and the offset behind it; (-1, at) if
    it is invalid."""
    cdef int64_t head, length
    if at >= end:
        return -1, at
    head = data[at]
    if head < 251:
        return head, at + 1
    length = 8 if head == 254 else head - 250
    if head == 251 or head == 255 or length > longest or end - at <= length:
        return -1, at
    return max(little(data, at + 1, length), -1), at + 1 + length
