"""Rows of a text result set, as a server sends them, to the row constructors of an INSERT.

The kernel never indexes outside its buffers. The formats:
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memcpy

from binlane.kernels.memory cimport little, put, unsigned

cpdef enum:
    OK = -1
    # the next packet is not complete
    MORE = 0
    # the next row would make the text longer than the limit; it is not consumed
    FULL = 1
    # the output buffer may be too small for the next row
    NO_ROOM = 2
    # the next packet is the end of the result set; it is not consumed
    END = 3
    # the next packet is an error; it is not consumed
    ERROR = 4
    # the next row has several packets (16 MiB or more); it is not consumed
    LONG = 5
    # the first value of the next row is not ``1``
    UNFAITHFUL = 6
    # the next packet has not the result set's number of values, or no number where one is expected
    DAMAGED = 7

cpdef enum:
    # flags of a column; without ESCAPES its values are numbers
    ESCAPES = 1
    EXPONENT = 2

cdef enum:
    HEAD = 4
    LONGEST = 0xFFFFFF
    NULL_MARK = 0xFB
    TWO_MARK = 0xFC
    THREE_MARK = 0xFD
    EIGHT_MARK = 0xFE
    ERROR_MARK = 0xFF
    IS_NULL = -1
    IS_DAMAGED = -2


cdef inline int _special(const uint8_t *data, int64_t here, int64_t length) noexcept nogil:
    """The code of a packet that is not a row; OK for a row."""
    if length == 0:
        return DAMAGED
    if data[here] == ERROR_MARK:
        return ERROR
    return END if data[here] == EIGHT_MARK and length < 9 else OK


cdef inline (int64_t, int64_t) _size(const uint8_t *data, int64_t here, int64_t stop) noexcept nogil:
    """(beginning of the value, its bytes); bytes below 0: NULL, or damaged."""
    cdef int64_t first, wide
    if here >= stop:
        return here, IS_DAMAGED
    first, here = data[here], here + 1
    if first < NULL_MARK:
        return here, first
    if first == NULL_MARK:
        return here, IS_NULL
    wide = 2 if first == TWO_MARK else 3 if first == THREE_MARK else 8
    if here + wide > stop:
        return here, IS_DAMAGED
    return here + wide, <int64_t>unsigned(data, here, wide)


cdef inline bint _is_number(const uint8_t *data, int64_t at, int64_t end) noexcept nogil:
    """Whether these bytes are nothing else in a statement: what a server says is input."""
    cdef int64_t byte
    cdef uint8_t one
    for byte in range(at, end):
        one = data[byte]
        if not (c'0' <= one <= c'9' or one == c'-' or one == c'.' or one == c'+' or one == c'e' or one == c'E'):
            return False
    return True


cdef inline int64_t _spell_value(
    const uint8_t *data, int64_t at, int64_t end, int64_t flags, uint8_t *out, int64_t place
) noexcept nogil:
    """The end of the value; -1: no number, where one is expected."""
    cdef int64_t byte
    cdef uint8_t one
    if not flags & ESCAPES:
        if not _is_number(data, at, end):
            return -1
        place = put(data, at, end, out, place)
        if flags & EXPONENT and memchr(data + at, c'e', <size_t>(end - at)) == NULL:
            out[place] = c'e'
            out[place + 1] = c'0'
            place += 2
        return place
    for byte in range(at, end):
        one = data[byte]
        if one == c'\\' or one == c'\'' or one == 0:
            out[place] = c'\\'
            place += 1
        out[place] = one if one else c'0'
        place += 1
    return place


cdef int64_t _spell_row(
    const uint8_t *data, int64_t here, int64_t stop, const uint8_t *around, const int64_t *places,
    const int64_t *flags, int64_t columns, uint8_t *out, int64_t place,
) noexcept nogil:
    """The end of the constructor; -1: the packet is damaged."""
    cdef int64_t column, size
    out[place] = c'('
    place += 1
    for column in range(columns):
        if column:
            out[place] = c','
            place += 1
        here, size = _size(data, here, stop)
        if size == IS_NULL:
            memcpy(out + place, b"NULL", 4)
            place += 4
            continue
        if size < 0 or size > stop - here:
            return -1
        place = put(around, places[2 * column], places[2 * column + 1], out, place)
        place = _spell_value(data, here, here + size, flags[column], out, place)
        if place < 0:
            return -1
        place = put(around, places[2 * column + 1], places[2 * column + 2], out, place)
        here += size
    out[place] = c')'
    return place + 1 if here == stop else -1


def spell_rows(
    const uint8_t[::1] data, int64_t at, int64_t end, const uint8_t[::1] around, const int64_t[::1] places,
    const int64_t[::1] flags, bint checked, uint8_t[::1] out, int64_t filled, int64_t pending, int64_t limit,
):
    """Append the rows in ``data[at:end]`` to ``out[:filled]``, which has ``pending`` rows, up to ``limit`` bytes.

    ``around``: the texts before and after the values; those of column c begin at ``places[2 * c]`` and
    ``places[2 * c + 1]``. ``checked``: each row begins with a value that is not copied and must be ``1``. Returns (end
    of the consumed bytes of ``data``, bytes of ``out``, rows, code).
    """
    cdef int64_t rows = 0, columns = flags.shape[0], fixed = around.shape[0] + 5 * columns + 3
    cdef int64_t length, here, stop, place
    cdef int code
    cdef const uint8_t *packets = &data[0]
    cdef uint8_t *into = &out[0]
    with nogil:
        while True:
            if end - at < HEAD:
                code = MORE
                break
            length = little(packets, at, 3)
            here, stop = at + HEAD, at + HEAD + length
            if length == LONGEST:
                code = LONG
                break
            if stop > end:
                code = MORE
                break
            code = _special(packets, here, length)
            if code == OK and filled + 2 * length + fixed > out.shape[0]:
                code = NO_ROOM
            if code == OK and checked:
                code = OK if length > 1 and packets[here] == 1 and packets[here + 1] == c'1' else UNFAITHFUL
                here += 2
            if code != OK:
                break
            place = filled
            if pending + rows:
                into[place] = c','
                place += 1
            place = _spell_row(packets, here, stop, &around[0], &places[0], &flags[0], columns, into, place)
            if place < 0:
                code = DAMAGED
                break
            if place > limit and pending + rows:
                code = FULL
                break
            filled, at, rows = place, stop, rows + 1
    return at, filled, rows, code
