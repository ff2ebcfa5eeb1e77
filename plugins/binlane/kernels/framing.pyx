"""Framing, checksums and table numbers of whole segments.

Whatever the bytes, these kernels never index outside their buffers if they get the arrays that ``binlog.vector.frames``
passes. They return an error code and an offset, which ``frames`` turns into errors. ``binlog.reader`` and
``binlog.rows`` do the same in plain Python, and tests compare the results.

Arrays: ``data``, the segment; one entry an event in ``offset``, ``kind``, ``size``, ``time`` and ``flags``. ``tail`` is
the checksum's length.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp

from binlane.kernels.memory cimport AHEAD, FLAGS_AT, HEADER, SIZE_AT, prefetch, u32, unsigned

from os import urandom

from binlane.binlog import rows as plain
from binlane.binlog.wire import IN_USE, EventType

cdef extern from "isa-l/crc.h" nogil:
    uint32_t crc32_gzip_refl(uint32_t crc, const uint8_t *data, uint64_t length)

cdef enum:
    NO_TABLE = -1
    # bytes of a processor's cache that are fetched at once
    LINE = 64
    FRAMED_AHEAD = 4096
    ID_BYTES = 6
    # the classes of event types that are distinguished here
    OTHER_ROLE = 0
    MAP_ROLE = 1
    ROWS_ROLE = 2
    REFUSED_ROLE = 3

# odd, and another one in each process: who makes a log cannot choose ids and definitions that share a slot. No result
# depends on it
cdef uint64_t MIX = int.from_bytes(urandom(8), "little") | 1
cdef uint8_t FORMAT_DESCRIPTION = EventType.FORMAT_DESCRIPTION
cdef uint8_t NOT_IN_USE = 0xFF & ~IN_USE
cdef uint8_t[256] ROLES


def _fill():
    ROLES[<int>EventType.TABLE_MAP] = MAP_ROLE
    for code in plain.ROWS_KINDS:
        ROLES[<int>code] = ROWS_ROLE
    for code in plain.REFUSED_ROWS:
        ROLES[<int>code] = REFUSED_ROLE


_fill()


def frame(
    const uint8_t[::1] data, int64_t start, int64_t header_len, int64_t tail, int64_t[::1] offset, uint8_t[::1] kind,
    uint32_t[::1] size, uint32_t[::1] time, uint16_t[::1] flags,
):
    """Fills the arrays, which have room for events of minimum size; returns (events, code, offset where it stopped)."""
    cdef int64_t at = start, count = 0, end = data.shape[0], fetched = start, length
    cdef int code = OK
    cdef const uint8_t *event = &data[0]
    with nogil:
        while at < end:
            # not the rest of a large event, which is not read here
            fetched = max(fetched, at)
            while fetched < at + FRAMED_AHEAD:
                prefetch(event, fetched)
                fetched += LINE
            if end - at < header_len:
                code = SHORT_HEADER
                break
            length = u32(event, at + SIZE_AT)
            if length < header_len + tail:
                code = SMALL_SIZE
                break
            if length > end - at:
                code = SHORT_EVENT
                break
            offset[count] = at
            kind[count] = event[at + 4]
            size[count] = <uint32_t>length
            time[count] = u32(event, at)
            flags[count] = <uint16_t>(event[at + FLAGS_AT] | event[at + FLAGS_AT + 1] << 8)
            count += 1
            at += length
    return count, code, at


def whole_events(const uint8_t[::1] data, int64_t least):
    """Bytes of whole events at the beginning of ``data``, and OK, or SMALL_SIZE for an event_size below ``least``."""
    cdef int64_t at = 0, end = data.shape[0], length
    cdef const uint8_t *event = &data[0]
    while end - at >= HEADER:
        length = u32(event, at + SIZE_AT)
        if length < least:
            return at, SMALL_SIZE
        if length > end - at:
            break
        at += length
    return at, OK


def first_bad_crc(const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size):
    """The first event with a wrong CRC32; the number of events if there is none."""
    cdef int64_t event, events = offset.shape[0]
    cdef const uint8_t *begin
    cdef uint32_t length, crc
    cdef uint8_t cleared
    with nogil:
        for event in range(events):
            begin = &data[offset[event]]
            length = size[event] - 4
            if kind[event] == FORMAT_DESCRIPTION:
                # its checksum is that of a closed file
                cleared = begin[FLAGS_AT] & NOT_IN_USE
                crc = crc32_gzip_refl(crc32_gzip_refl(0, begin, FLAGS_AT), &cleared, 1)
                crc = crc32_gzip_refl(crc, begin + FLAGS_AT + 1, length - FLAGS_AT - 1)
            else:
                crc = crc32_gzip_refl(0, begin, length)
            if crc != u32(begin, length):
                break
        else:
            event = events
    return event


cdef inline uint64_t _hash(const uint8_t *data, int64_t at, int64_t end) noexcept nogil:
    cdef uint64_t value = <uint64_t>(end - at) * MIX
    while end - at >= 8:
        value = (value ^ unsigned(data, at, 8)) * MIX
        value ^= value >> 32
        at += 8
    while at < end:
        value = (value ^ data[at]) * MIX
        value ^= value >> 32
        at += 1
    # a difference in the last bytes alone comes into the lower bits, too
    value *= MIX
    return value ^ (value >> 32)


cdef int64_t _number_of_definition(
    const uint8_t *data, int64_t at, int64_t end, int64_t count, int32_t *slots, int64_t mask, uint64_t *hashes,
    int64_t *bodies,
) noexcept nogil:
    """The number of the definition [at, end), a TABLE_MAP's body behind the table id. Table ids do not identify a
    definition: a server assigns a new one whenever it opens the table. ``count``: numbers so far; a new definition gets
    the next one."""
    cdef uint64_t value = _hash(data, at, end)
    cdef int64_t slot = <int64_t>value & mask, number, length
    while slots[slot] >= 0:
        number = slots[slot]
        length = bodies[2 * number + 1] - bodies[2 * number]
        # equal hashes almost always mean equal bodies; they are compared, because a wrong table would lose data
        if (
            hashes[number] == value
            and length == end - at
            and memcmp(data + at, data + bodies[2 * number], <size_t>length) == 0
        ):
            return number
        slot = (slot + 1) & mask
    slots[slot] = <int32_t>count
    hashes[count] = value
    bodies[2 * count] = at
    bodies[2 * count + 1] = end
    return count


def index(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    int64_t header_len, int64_t tail, int32_t[::1] number, int64_t[::1] first, int32_t[::1] slots, uint64_t[::1] hashes,
    int64_t[:, ::1] bodies, int64_t[::1] ids, int32_t[::1] meant, int64_t[::1] since,
):
    """Fills ``number`` and ``first``; returns (count of numbers, code, event where it stopped).

    Room for two hash tables: ``slots`` by definition, all -1 on entry, with ``hashes`` and ``bodies`` (begin, end) of
    each number; ``ids`` by table id, all -1 on entry, with the number that each id has (``meant``) and since when.
    """
    cdef int64_t count = 0, generation = 0, event, events = offset.shape[0], at, end, table_id, slot, found, known, length
    cdef int64_t slots_mask = slots.shape[0] - 1, ids_mask = ids.shape[0] - 1
    cdef int code = OK
    cdef uint8_t role
    cdef const uint8_t *bytes_ = &data[0]
    cdef int64_t *body = &bodies[0, 0]
    with nogil:
        for event in range(events):
            number[event] = NO_TABLE
            prefetch(bytes_, offset[min(event + AHEAD, events - 1)] + header_len)
            role = ROLES[kind[event]]
            if role == OTHER_ROLE:
                generation += kind[event] == FORMAT_DESCRIPTION
                continue
            if role == REFUSED_ROLE:
                code = REFUSED
                break
            at = offset[event] + header_len
            end = offset[event] + size[event] - tail
            if end - at < 8:
                code = SHORT_BODY
                break
            table_id = <int64_t>unsigned(bytes_, at, ID_BYTES)
            # the slot of the id, or the free slot for it
            slot = <int64_t>((<uint64_t>table_id * MIX) >> 32) & ids_mask
            while ids[slot] >= 0 and ids[slot] != table_id:
                slot = (slot + 1) & ids_mask
            if role == MAP_ROLE:
                found = -1
                if ids[slot] >= 0:
                    # mostly the id's last definition; the bodies are compared, because a wrong table would lose data
                    known = meant[slot]
                    length = body[2 * known + 1] - body[2 * known]
                    if length == end - at - ID_BYTES and (
                        memcmp(bytes_ + at + ID_BYTES, bytes_ + body[2 * known], <size_t>length) == 0
                    ):
                        found = known
                if found < 0:
                    found = _number_of_definition(
                        bytes_, at + ID_BYTES, end, count, &slots[0], slots_mask, &hashes[0], body
                    )
                if found == count:
                    first[count] = event
                    count += 1
                ids[slot] = table_id
                meant[slot] = <int32_t>found
                since[slot] = generation
                number[event] = <int32_t>found
                continue
            if ids[slot] < 0 or since[slot] != generation:
                code = UNMAPPED
                break
            number[event] = meant[slot]
            generation += bytes_[at + 6] & 1
        else:
            event = events
    return count, code, event


def appearances(const int32_t[::1] number, int32_t[::1] seen, int64_t[::1] used, int64_t[::1] first):
    """Fills ``used`` with the numbers from 0 up in the order of their first events, and ``first`` with these events.

    ``seen``: one entry for each number, all -1. Returns the count of numbers used.
    """
    cdef int64_t count = 0, event
    with nogil:
        for event in range(number.shape[0]):
            if number[event] >= 0 and seen[number[event]] < 0:
                seen[number[event]] = <int32_t>count
                used[count] = number[event]
                first[count] = event
                count += 1
    return count
