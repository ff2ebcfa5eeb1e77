"""Simple transactions of a whole buffer; ``binlog.vector.simple_transactions`` says what they are."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from binlane.kernels.memory cimport AHEAD, CODE_AT, HEADER, SERVER_ID_AT, SIZE_AT, prefetch, u16, u32, unsigned

from binlane.binlog.gtids import MariadbExtraFlag, MariadbGtidFlag
from binlane.binlog.wire import EventType

cdef enum:
    # instead of a database: there are several, or it is not looked at
    SEVERAL = -2
    # instead of a commit's time: nothing is known of a GTID event but that it begins a transaction
    UNKNOWN = -2
    ROWS_FLAGS_AT = 6
    STMT_END = 1
    MARIADB_HEAD = 13
    LOGICAL_CLOCK = 2
    UNCOUNTED = 0
    NUMBERED = 1
    # QUERY's post-header since MySQL 5.0; its lengths of database and status variables stand at 8 and 11
    QUERY_HEAD = 13
    BEGLENGTH = 5
    # where MySQL's GTID event has the commit's time, from 8.0.1 on
    TIMES_AT = 42

cpdef enum:
    # roles of event types; from MAP on those that stand between BEGIN and XID
    OTHER = 0
    BETWEEN = 1
    MARIADB_GTID = 2
    GTID = 3
    QUERY = 4
    XID = 5
    PAYLOAD = 6
    MAP = 7
    ROWS = 8
    COMPRESSED = 9
    NOTE = 10

cdef int64_t HAS_ORIGINAL = 1LL << 55
cdef uint8_t TAGGED = EventType.GTID_TAGGED
cdef uint8_t QUERY_CODE = EventType.QUERY
cdef uint8_t GROUP_COMMIT = MariadbGtidFlag.GROUP_COMMIT_ID
cdef uint8_t ODD_FLAGS = (
    MariadbGtidFlag.STANDALONE | MariadbGtidFlag.DDL | MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA
)
cdef uint8_t THREAD_ID = MariadbExtraFlag.THREAD_ID

cdef bint _is_begin(const uint8_t *data, int64_t at, int64_t end) noexcept nogil:
    """Whether the QUERY with its body at [at, end) says BEGIN and nothing else."""
    cdef int64_t sql
    if end - at < QUERY_HEAD:
        return False
    sql = at + QUERY_HEAD + data[at + 8] + u16(data, at + 11) + 1
    return end - sql == BEGLENGTH and memcmp(data + sql, "BEGIN", BEGLENGTH) == 0


def find_begun(const uint8_t[::1] data, const int64_t[::1] start, const int64_t[::1] event, uint8_t[::1] begun):
    """Sets ``begun`` of each ``event`` whose decompressed events, [start[n], start[n + 1]), begin with BEGIN."""
    cdef int64_t place, at, end, size
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for place in range(event.shape[0]):
            at, end = start[place], start[place + 1]
            if end - at < HEADER or begin[at + CODE_AT] != QUERY_CODE:
                continue
            size = u32(begin, at + SIZE_AT)
            begun[event[place]] = size <= end - at and _is_begin(begin, at + HEADER, at + size)


cdef bint _mariadb(const uint8_t *data, int64_t header, int64_t at, int64_t end, uint64_t *line) noexcept nogil:
    """Whether the GTID event with its body at [at, end) is of a kind that is known here; fills ``line``.

    Body: number u64, domain u32, flags u8, by a flag a group commit's id u64; since 10.5 extra flags u8 and, by one of
    them, thread u32.
    """
    cdef int64_t needed = MARIADB_HEAD + (8 if data[at + 12] & GROUP_COMMIT else 0)
    cdef uint8_t extra
    if end - at < needed:
        return False
    # the post-header is filled up with zeros to 19 bytes, which say: nothing extra
    if end - at > needed:
        extra = data[at + needed]
        if extra & ~THREAD_ID or (extra and end - at < needed + 5):
            return False
    line[0] = u32(data, at + 8)
    line[1] = u32(data, header + SERVER_ID_AT)
    line[2] = UNCOUNTED
    line[3] = unsigned(data, at, 8)
    return True


cdef int64_t _mysql(const uint8_t *data, int64_t at, int64_t end, uint64_t *line) noexcept nogil:
    """Microseconds of the commit, -1 if the GTID event does not hold them, or ``UNKNOWN``; fills ``line``.

    Body: flags u8, UUID 16, number i64, kind of clock u8, two clocks i64, commit time 7 bytes with a bit that says
    that another one follows.
    """
    cdef int64_t length = end - at, time
    if length < TIMES_AT or data[at + 25] != LOGICAL_CLOCK or data[at + 24] & 0x80:
        return UNKNOWN
    line[0] = unsigned(data, at + 1, 8)
    line[1] = unsigned(data, at + 9, 8)
    line[3] = unsigned(data, at + 17, 8)
    line[2] = NUMBERED if line[3] else UNCOUNTED
    if length == TIMES_AT:
        return -1
    if length < TIMES_AT + 7:
        return UNKNOWN
    time = <int64_t>unsigned(data, at + TIMES_AT, 7)
    if time & HAS_ORIGINAL:
        if length < TIMES_AT + 14:
            return UNKNOWN
        time &= ~HAS_ORIGINAL
    return time


cdef inline (int64_t, bint, bint) _next(
    const uint8_t *data, int role, int64_t at, int64_t end, bint knows_query, int64_t event, int64_t opened,
    bint needs_begin,
) noexcept nogil:
    """What an event with its body at [at, end) does to the simple transaction that is open, -1 if none is.

    Returns the first event of the one that is open behind it, whether that needs a BEGIN next, and whether the event
    ends the one that was open before it. The event is no payload, but one that is a whole transaction.
    """
    cdef bint follows_gtid = needs_begin and opened == event - 1
    if (role == XID and opened >= 0 and not needs_begin) or (role == PAYLOAD and follows_gtid):
        return -1, False, True
    if role == QUERY and knows_query and (follows_gtid or opened < 0) and _is_begin(data, at, end):
        # with none open: no GTIDs in this log
        return (opened if follows_gtid else event), False, False
    if role == MARIADB_GTID and end - at >= MARIADB_HEAD and not data[at + 12] & ODD_FLAGS:
        return event, False, False
    if role == GTID and knows_query:
        return event, True, False
    return -1, False, False


def find_numbered(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    const uint8_t[::1] roles, int64_t header_length, int64_t tail, bint knows_query, const uint8_t[::1] is_whole,
    int64_t[::1] first, int64_t[::1] last, int64_t[::1] time, uint64_t[:, ::1] line,
):
    """Fills the last four arrays; returns how many there are. ``is_whole``: payloads that are a transaction."""
    cdef int64_t count = 0, opened = -1, event, at, end, begun
    cdef bint needs_begin = False, is_end = False
    cdef int role
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for event in range(offset.shape[0]):
            role = roles[kind[event]]
            if role >= MAP:
                continue
            if role == PAYLOAD and not is_whole[event]:
                role = OTHER
            at, end = offset[event] + header_length, offset[event] + size[event] - tail
            begun = opened
            opened, needs_begin, is_end = _next(begin, role, at, end, knows_query, event, begun, needs_begin)
            if is_end and time[count] != UNKNOWN:
                first[count] = begun
                last[count] = event
                count += 1
            elif opened == event:
                time[count] = UNKNOWN
                if role == MARIADB_GTID and _mariadb(begin, offset[event], at, end, &line[count, 0]):
                    time[count] = -1
                elif role == GTID and kind[event] != TAGGED:
                    time[count] = _mysql(begin, at, end, &line[count, 0])
    return count


def find_of_one_database(
    const uint8_t[::1] data, const int64_t[::1] offset, const uint8_t[::1] kind, const uint32_t[::1] size,
    const uint8_t[::1] roles, int64_t tail, bint knows_query, const int32_t[::1] number, const int32_t[::1] database_of,
    int64_t[::1] first, int64_t[::1] last, int32_t[::1] database,
):
    """Fills the last three arrays; returns how many there are. The rows events are as long as their heads."""
    cdef int64_t count = 0, opened = -1, event, events = offset.shape[0], at, end, begun, rows = 0
    cdef int32_t found = -1, named
    cdef bint needs_begin = False, is_end = False, is_whole = True
    cdef int role
    cdef const uint8_t *begin = &data[0]
    with nogil:
        for event in range(events):
            prefetch(begin, offset[min(event + AHEAD, events - 1)] + HEADER)
            role = roles[kind[event]]
            if role == MAP:
                named, is_whole = database_of[number[event]], False
                if found == -1:
                    found = named
                elif found != named:
                    found = SEVERAL
            elif role == ROWS:
                rows += 1
                is_whole = begin[offset[event] + HEADER + ROWS_FLAGS_AT] & STMT_END == STMT_END
            elif role == COMPRESSED:
                found = SEVERAL
            elif role < MAP:
                if role == PAYLOAD:
                    role = OTHER
                at, end = offset[event] + HEADER, offset[event] + size[event] - tail
                begun = opened
                opened, needs_begin, is_end = _next(begin, role, at, end, knows_query, event, begun, needs_begin)
                if is_end and rows and is_whole and found >= 0:
                    first[count] = begun
                    last[count] = event
                    database[count] = found
                    count += 1
                elif opened == event:
                    found, rows, is_whole = -1, 0, True
    return count
