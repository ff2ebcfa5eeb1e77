"""What the kernels of framing and of rows return; ``binlog.vector.frames`` has an error for each."""

cpdef enum:
    OK = 0
    SHORT_HEADER = 1
    SMALL_SIZE = 2
    SHORT_EVENT = 3
    SHORT_BODY = 4
    UNMAPPED = 5
    REFUSED = 6
    BAD_EXTRA = 7
    BAD_WIDTH = 8
    OVERRUN = 9
    NO_IMAGES = 10
    NO_COLUMNS = 11
    UNKNOWN_LENGTH = 12
    BAD_OPTIONS = 13
