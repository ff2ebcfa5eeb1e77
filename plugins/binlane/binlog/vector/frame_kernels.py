"""Compiled kernels for the hot path over whole segments: framing, checksums, table numbers, copying.

Whatever the bytes, these kernels never index outside their buffers if they get the arrays that ``frames`` passes. They
return an error code and an offset, which ``frames`` turns into errors. Call them only through ``frames``;
``row_kernels`` reads rows events. ``reader`` and ``rows`` do the same in plain Python, and tests compare the results.

Arrays: ``data`` uint8, the segment; one entry an event in ``offset`` int64, ``kind`` uint8, ``size`` uint32, ``time``
uint32, ``flags`` uint16. ``tail`` is the checksum's length. Numba compiles at the first call and caches on disk.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog import rows as plain
from binlane.binlog.vector.arrays import Bytes, Halves, Ints, Numbers, Sizes, Words
from binlane.binlog.vector.compiled import AHEAD, inlined, kernel, prefetch
from binlane.binlog.wire import FLAGS_AT, HEADER, IN_USE, EventType

OK: Final = 0
SHORT_HEADER: Final = 1
SMALL_SIZE: Final = 2
SHORT_EVENT: Final = 3
SHORT_BODY: Final = 4
UNMAPPED: Final = 5
REFUSED: Final = 6
BAD_EXTRA: Final = 7
BAD_WIDTH: Final = 8
OVERRUN: Final = 9
NO_IMAGES: Final = 10
NO_COLUMNS: Final = 11
UNKNOWN_LENGTH: Final = 12
BAD_OPTIONS: Final = 13

NO_TABLE: Final = -1
_LINE: Final = 64
"""Bytes of a processor's cache that are fetched at once."""
_FRAMED_AHEAD: Final = 4096
_FDE: Final = int(EventType.FORMAT_DESCRIPTION)
_TABLE_MAP: Final = int(EventType.TABLE_MAP)
HEADER_LENGTH: Final = HEADER.size
_SIZE_AT, _LOG_POS_AT = 9, 13
_ID_BYTES: Final = 6

# the classes of event types that the kernels distinguish, as one lookup table
_OTHER, _MAP, ROWS, _REFUSED = 0, 1, 2, 3
ROLES: Final = np.zeros(256, np.uint8)
ROLES[_TABLE_MAP] = _MAP
ROLES[list(plain.ROWS_KINDS)] = ROWS
ROLES[list(plain.REFUSED_ROWS)] = _REFUSED

_REFLECTED_POLYNOMIAL: Final = 0xEDB88320
_CRC_BYTES: Final = 16
_WORD: Final = 4


def _crc_tables() -> Sizes:
    """CRC32 of byte values, alone and followed by 1 to 15 zero bytes: 16 bytes a step ("slicing by 16")."""
    tables = np.zeros((_CRC_BYTES, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = (crc >> np.uint32(1)) ^ np.where(crc & 1, np.uint32(_REFLECTED_POLYNOMIAL), np.uint32(0))
    tables[0] = crc
    for step in range(1, _CRC_BYTES):
        tables[step] = (tables[step - 1] >> np.uint32(8)) ^ tables[0][tables[step - 1] & 0xFF]
    return tables


_CRC: Final = _crc_tables()
_LOW, _ONES = np.uint32(0xFF), np.uint32(0xFFFFFFFF)
_8, _16, _24 = np.uint32(8), np.uint32(16), np.uint32(24)
_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)


@kernel
def little(data: Bytes, at: int, length: int) -> int:
    """A little-endian unsigned integer of up to eight bytes."""
    value = np.int64(0)
    for index in range(length):
        value |= np.int64(data[at + index]) << (8 * index)
    return int(value)


@kernel
def put(data: Bytes, start: int, end: int, out: Bytes, at: int) -> int:
    """Copies [start, end) to ``at``; returns the end of the copy. Assigning one range to another takes 5 to 25 times as
    long, and so would indexes with a sign, which numba would have to check for a place from the end."""
    place, origin = np.uint64(at), np.uint64(start)
    for byte in range(np.uint64(end - start)):
        out[place + byte] = data[origin + byte]
    return at + end - start


@kernel
def packed(data: Bytes, at: int, end: int, longest: int) -> tuple[int, int]:
    """A length-encoded integer of up to ``longest`` bytes (3, or 8 below 2**63) and the offset behind it; (-1, at) if
    it is invalid."""
    if at >= end:
        return -1, at
    head = int(np.int64(data[at]))
    if head < 251:
        return head, at + 1
    length = 8 if head == 254 else head - 250
    if head == 251 or head == 255 or length > longest or end - at <= length:
        return -1, at
    value = little(data, at + 1, length)
    return max(value, -1), at + 1 + length


@kernel
def _u32(data: Bytes, at: int) -> int:
    # an index without a sign cannot mean "from the end", so the four loads become one
    place = np.uint64(at)
    return int(
        np.int64(data[place])
        | (np.int64(data[place + _1]) << 8)
        | (np.int64(data[place + _2]) << 16)
        | (np.int64(data[place + _3]) << 24)
    )


@kernel
def frame(
    data: Bytes,
    start: int,
    header_len: int,
    tail: int,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    time: Sizes,
    flags: Halves,
) -> tuple[int, int, int]:
    """Fills the arrays, which have room for events of minimum size; returns (events, code, offset where it stopped)."""
    at, count, end, fetched = start, 0, data.size, start
    while at < end:
        # not the rest of a large event, which is not read here
        fetched = max(fetched, at)
        while fetched < at + _FRAMED_AHEAD:
            prefetch(data, fetched)
            fetched += _LINE
        if end - at < header_len:
            return count, SHORT_HEADER, at
        length = _u32(data, at + 9)
        if length < header_len + tail:
            return count, SMALL_SIZE, at
        if length > end - at:
            return count, SHORT_EVENT, at
        offset[count] = at
        kind[count] = data[at + 4]
        size[count] = length
        time[count] = _u32(data, at)
        flags[count] = np.uint16(data[at + 17]) | (np.uint16(data[at + 18]) << 8)
        count += 1
        at += length
    return count, OK, at


@kernel
def whole_events(data: Bytes, least: int) -> tuple[int, int]:
    """Bytes of whole events at the beginning of ``data``, and OK, or SMALL_SIZE for an event_size below ``least``."""
    at, end = 0, data.size
    while end - at >= HEADER_LENGTH:
        length = _u32(data, at + 9)
        if length < least:
            return at, SMALL_SIZE
        if length > end - at:
            break
        at += length
    return at, OK


@inlined
def _sliced(word: np.uint32, behind: int) -> np.uint32:
    """CRC32 of four bytes, little-endian in ``word``, that ``behind`` other bytes follow."""
    first, second = _CRC[behind + 3, word & _LOW], _CRC[behind + 2, (word >> _8) & _LOW]
    return np.uint32(first ^ second ^ _CRC[behind + 1, (word >> _16) & _LOW] ^ _CRC[behind, word >> _24])


@kernel
def _crc32(data: Bytes, at: int, end: int, cleared: int) -> np.uint32:
    """zlib.crc32 of [at, end), with bit 0 of the byte at ``cleared`` as 0 (-1: no byte)."""
    crc = _ONES
    while cleared < 0 and end - at >= _CRC_BYTES:
        crc = (
            _sliced(crc ^ np.uint32(_u32(data, at)), 12)
            ^ _sliced(np.uint32(_u32(data, at + 4)), 8)
            ^ _sliced(np.uint32(_u32(data, at + 8)), 4)
            ^ _sliced(np.uint32(_u32(data, at + 12)), 0)
        )
        at += _CRC_BYTES
    while cleared < 0 and end - at >= _WORD:
        crc = _sliced(crc ^ np.uint32(_u32(data, at)), 0)
        at += _WORD
    while at < end:
        byte = np.uint32(data[at])
        if at == cleared:
            byte &= ~np.uint32(IN_USE)
        crc = _CRC[0, (crc ^ byte) & _LOW] ^ (crc >> _8)
        at += 1
    return crc ^ _ONES


@kernel
def first_bad_crc(data: Bytes, offset: Ints, kind: Bytes, size: Sizes) -> int:
    """The first event with a wrong CRC32; the number of events if there is none."""
    for event in range(offset.size):
        at = offset[event]
        end = at + size[event] - 4
        cleared = int(at) + FLAGS_AT if kind[event] == _FDE else -1
        if np.int64(_crc32(data, at, end, cleared)) != _u32(data, end):
            return event
    return offset.size


@kernel
def _hash(data: Bytes, at: int, end: int) -> np.uint64:
    value = np.uint64(end - at) * _MIX
    while end - at >= 8:
        word = np.uint64(_u32(data, at)) | (np.uint64(_u32(data, at + 4)) << _SHIFT)
        value = (value ^ word) * _MIX
        value ^= value >> _SHIFT
        at += 8
    while at < end:
        value = (value ^ np.uint64(data[at])) * _MIX
        value ^= value >> _SHIFT
        at += 1
    return value


@kernel
def _same(data: Bytes, left: int, right: int, length: int) -> bool:
    index = 0
    while length - index >= _WORD:
        if _u32(data, left + index) != _u32(data, right + index):
            return False
        index += _WORD
    while index < length:
        if data[left + index] != data[right + index]:
            return False
        index += 1
    return True


@kernel
def _number_of_definition(
    data: Bytes, at: int, end: int, count: int, slots: Numbers, hashes: Words, bodies: Ints
) -> int:
    """The number of the definition [at, end), a TABLE_MAP's body behind the table id. Table ids do not identify a
    definition: a server assigns a new one whenever it opens the table. ``count``: numbers so far; a new definition gets
    the next one."""
    mask = slots.size - 1
    value = _hash(data, at, end)
    slot = int(np.int64(value & np.uint64(mask)))
    while slots[slot] >= 0:
        number = slots[slot]
        length = bodies[number, 1] - bodies[number, 0]
        # equal hashes almost always mean equal bodies; they are compared, because a wrong table would lose data
        if hashes[number] == value and length == end - at and _same(data, at, bodies[number, 0], length):
            return int(np.int64(number))
        slot = (slot + 1) & mask
    slots[slot] = count
    hashes[count] = value
    bodies[count, 0] = at
    bodies[count, 1] = end
    return count


@kernel
def _slot_of_id(table_id: int, ids: Ints) -> int:
    """The slot of ``table_id`` in ``ids``, or the free slot (-1) for it."""
    mask = ids.size - 1
    slot = int(np.int64((np.uint64(table_id) * _MIX) >> _SHIFT)) & mask
    while ids[slot] >= 0 and ids[slot] != table_id:
        slot = (slot + 1) & mask
    return slot


@kernel
def index(
    data: Bytes,
    offset: Ints,
    kind: Bytes,
    size: Sizes,
    header_len: int,
    tail: int,
    number: Numbers,
    first: Ints,
    slots: Numbers,
    hashes: Words,
    bodies: Ints,
    ids: Ints,
    meant: Numbers,
    since: Ints,
) -> tuple[int, int, int]:
    """Fills ``number`` and ``first``; returns (count of numbers, code, event where it stopped).

    Room for two hash tables: ``slots`` by definition, all -1 on entry, with ``hashes`` and ``bodies`` (begin, end) of
    each number; ``ids`` by table id, all -1 on entry, with the number that each id has (``meant``) and since when.
    """
    count, generation = 0, 0
    for event in range(offset.size):
        number[event] = NO_TABLE
        prefetch(data, offset[min(event + AHEAD, offset.size - 1)] + header_len)
        role = ROLES[kind[event]]
        if role == _OTHER:
            generation += kind[event] == _FDE
            continue
        if role == _REFUSED:
            return count, REFUSED, event
        at = offset[event] + header_len
        end = offset[event] + size[event] - tail
        if end - at < 8:
            return count, SHORT_BODY, event
        table_id = int(_u32(data, at) | (np.int64(data[at + 4]) << 32) | (np.int64(data[at + 5]) << 40))
        slot = _slot_of_id(table_id, ids)
        if role == _MAP:
            found = -1
            if ids[slot] >= 0:
                # mostly the id's last definition; the bodies are compared, because a wrong table would lose data
                known = int(np.int64(meant[slot]))
                length = bodies[known, 1] - bodies[known, 0]
                if length == end - at - _ID_BYTES and _same(data, at + _ID_BYTES, bodies[known, 0], length):
                    found = known
            if found < 0:
                found = _number_of_definition(data, at + _ID_BYTES, end, count, slots, hashes, bodies)
            if found == count:
                first[count] = event
                count += 1
            ids[slot] = table_id
            meant[slot] = found
            since[slot] = generation
            number[event] = found
            continue
        if ids[slot] < 0 or since[slot] != generation:
            return count, UNMAPPED, event
        number[event] = meant[slot]
        generation += data[at + 6] & 1
    return count, OK, offset.size


@kernel
def appearances(number: Numbers, seen: Numbers, used: Ints, first: Ints) -> int:
    """Fills ``used`` with the numbers from 0 up in the order of their first events, and ``first`` with these events.

    ``seen``: one entry for each number, all -1. Returns the count of numbers used.
    """
    count = 0
    for event in range(number.size):
        if number[event] >= 0 and seen[number[event]] < 0:
            seen[number[event]] = count
            used[count], first[count] = number[event], event
            count += 1
    return count


@kernel
def gather(data: Bytes, offsets: Ints, lengths: Ints, out: Bytes) -> int:
    """Bytes written, or (-1 - index) of the first range that is outside ``data`` or does not fit into ``out``."""
    used = 0
    for index in range(offsets.size):
        at, length = offsets[index], lengths[index]
        if at < 0 or length < 0 or length > data.size - at or length > out.size - used:
            return -1 - index
        used = put(data, at, at + length, out, used)
    return used


@kernel
def strip(data: Bytes, offset: Ints, size: Sizes, wanted: Ints, header_len: int, tail: int, out: Bytes) -> int:
    """Bytes written. ``out`` has room for all ``wanted`` events, which are numbers into ``offset``."""
    used = 0
    for index in range(wanted.size):
        at = offset[wanted[index]]
        body = size[wanted[index]] - header_len - tail
        length = body + HEADER_LENGTH
        put(data, at, at + _SIZE_AT, out, used)
        for byte in range(4):
            out[used + _SIZE_AT + byte] = (length >> (8 * byte)) & 0xFF
            out[used + _LOG_POS_AT + byte] = 0
        out[used + _LOG_POS_AT + 4] = data[at + _LOG_POS_AT + 4]
        out[used + _LOG_POS_AT + 5] = data[at + _LOG_POS_AT + 5]
        used = put(data, at + header_len, at + header_len + body, out, used + HEADER_LENGTH)
    return used
