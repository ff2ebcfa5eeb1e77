"""A compiled kernel: rows of a text result set, as a server sends them, to the row constructors of an INSERT.

It never indexes outside its buffers, and releases Python's lock, so that several jobs use several cores. The formats:
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.vector.compiled import kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

OK: Final = -1
MORE: Final = 0
"""The next packet is not complete."""
FULL: Final = 1
"""The next row would make the text longer than the limit; it is not consumed."""
NO_ROOM: Final = 2
"""The output buffer may be too small for the next row."""
END: Final = 3
"""The next packet is the end of the result set; it is not consumed."""
ERROR: Final = 4
"""The next packet is an error; it is not consumed."""
LONG: Final = 5
"""The next row has several packets (16 MiB or more); it is not consumed."""
UNFAITHFUL: Final = 6
"""The first value of the next row is not ``1``."""
DAMAGED: Final = 7
"""The next packet has not the result set's number of values."""

ESCAPES: Final = 1
EXPONENT: Final = 2

_HEAD: Final = 4
_LONGEST: Final = 0xFF_FFFF
_NULL, _TWO, _THREE, _EIGHT, _ERR = 0xFB, 0xFC, 0xFD, 0xFE, 0xFF
_PAREN, _CLOSED, _COMMA, _QUOTE, _SLASH = 0x28, 0x29, 0x2C, 0x27, 0x5C
_E, _ZERO, _ONE = 0x65, 0x30, 0x31
_N, _U, _L = 0x4E, 0x55, 0x4C
_IS_NULL, _IS_DAMAGED = -1, -2


@kernel
def spell_rows(
    data: Bytes, at: int, end: int, around: Bytes, places: Ints, flags: Ints, checked: bool, out: Bytes, filled: int,
    pending: int, limit: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Append the rows in ``data[at:end]`` to ``out[:filled]``, which has ``pending`` rows, up to ``limit`` bytes.

    ``around``: the texts before and after the values; those of column c begin at ``places[2 * c]`` and
    ``places[2 * c + 1]``. ``checked``: each row begins with a value that is not copied and must be ``1``. Returns (end
    of the consumed bytes of ``data``, bytes of ``out``, rows, code).
    """
    rows, fixed = 0, len(around) + 5 * len(flags) + 3
    while True:
        if end - at < _HEAD:
            return at, filled, rows, MORE
        length = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        here, stop = at + _HEAD, at + _HEAD + length
        if length == _LONGEST:
            return at, filled, rows, LONG
        if stop > end:
            return at, filled, rows, MORE
        code = _special(data, here, length)
        if code == OK and filled + 2 * length + fixed > len(out):
            code = NO_ROOM
        if code == OK and checked:
            code = OK if length > 1 and data[here] == 1 and data[here + 1] == _ONE else UNFAITHFUL
            here += 2
        if code != OK:
            return at, filled, rows, code
        put = filled
        if pending + rows:
            out[put] = _COMMA
            put += 1
        put = _spell_row(data, here, stop, around, places, flags, out, put)
        if put < 0:
            return at, filled, rows, DAMAGED
        if put > limit and pending + rows:
            return at, filled, rows, FULL
        filled, at, rows = put, stop, rows + 1


@kernel
def _special(data: Bytes, here: int, length: int) -> int:
    """The code of a packet that is not a row; OK for a row."""
    if length == 0:
        return DAMAGED
    if data[here] == _ERR:
        return ERROR
    return END if data[here] == _EIGHT and length < 9 else OK


@kernel
def _spell_row(
    data: Bytes, here: int, stop: int, around: Bytes, places: Ints, flags: Ints, out: Bytes, put: int
) -> int:  # fmt: skip
    """The end of the constructor; -1: the packet is damaged."""
    out[put] = _PAREN
    put += 1
    for column in range(len(flags)):
        if column:
            out[put] = _COMMA
            put += 1
        here, size = _size(data, here, stop)
        if size == _IS_NULL:
            out[put], out[put + 1], out[put + 2], out[put + 3] = _N, _U, _L, _L
            put += 4
            continue
        if size < 0 or size > stop - here:
            return -1
        put = _copy(around, places[2 * column], places[2 * column + 1], out, put)
        put = _spell_value(data, here, here + size, flags[column], out, put)
        put = _copy(around, places[2 * column + 1], places[2 * column + 2], out, put)
        here += size
    out[put] = _CLOSED
    return put + 1 if here == stop else -1


@kernel
def _size(data: Bytes, here: int, stop: int) -> tuple[int, int]:
    """(beginning of the value, its bytes); bytes below 0: NULL, or damaged."""
    if here >= stop:
        return here, _IS_DAMAGED
    first, here = int(data[here]), here + 1
    if first < _NULL:
        return here, first
    if first == _NULL:
        return here, _IS_NULL
    wide = 2 if first == _TWO else 3 if first == _THREE else 8
    if here + wide > stop:
        return here, _IS_DAMAGED
    size = 0
    for byte in range(wide):
        size |= int(data[here + byte]) << (8 * byte)
    return here + wide, size


@kernel
def _spell_value(data: Bytes, at: int, end: int, flags: int, out: Bytes, put: int) -> int:
    if flags & ESCAPES == 0:
        has_exponent = False
        if flags & EXPONENT:
            for byte in range(at, end):
                has_exponent |= data[byte] == _E
        put = _copy(data, at, end, out, put)
        if flags & EXPONENT and not has_exponent:
            out[put], out[put + 1] = _E, _ZERO
            put += 2
        return put
    for byte in range(at, end):
        one = data[byte]
        if one in (_SLASH, _QUOTE, 0):
            out[put] = _SLASH
            put += 1
        out[put] = one if one else _ZERO
        put += 1
    return put


@kernel
def _copy(data: Bytes, at: int, end: int, out: Bytes, put: int) -> int:
    for byte in range(at, end):
        out[put] = data[byte]
        put += 1
    return put
