"""Machine code for the packets of a dump: events are copied out of their packets, up to the first packet that needs
special treatment.

A packet: length u24, number u8, then a byte 0 and the event; ``stream`` knows the rest of the protocol.
"""

from __future__ import annotations

from typing import Final

from binlane.binlog.vector.arrays import Bytes, Flags
from binlane.binlog.vector.compiled import kernel
from binlane.binlog.vector.frame_kernels import put
from binlane.binlog.wire import ARTIFICIAL, FLAGS_AT, HEADER

_WHOLE_PACKET: Final = 0xFF_FFFF
_LEAST: Final = 1 + HEADER.size
_ARTIFICIAL: Final = int(ARTIFICIAL)


@kernel
def take(
    data: Bytes, at: int, filled: int, special: Flags, events: Bytes, taken: int, last: int
) -> tuple[int, int, int]:
    """Copy the events of whole packets in data[at:filled] behind the ``taken`` bytes of ``events``.

    ``events`` is as long as ``data``. Stops before a packet that is incomplete or continues in the next one, is no
    event, declares a different size, is ARTIFICIAL, or has a type in ``special`` (256 booleans). Returns the offset in
    ``data`` where it stopped, the number of bytes in ``events``, and the offset of the last event in them.
    """
    while filled - at >= 4:
        length = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        event, end = at + 5, at + 4 + length
        if end > filled or length < _LEAST or length == _WHOLE_PACKET or data[at + 4] != 0:
            break
        size = int(data[event + 9]) | int(data[event + 10]) << 8 | int(data[event + 11]) << 16
        if size != length - 1 or data[event + 12] != 0:
            break
        if special[data[event + 4]] or data[event + FLAGS_AT] & _ARTIFICIAL:
            break
        last, taken, at = taken, put(data, event, end, events, taken), end
    return at, taken, last
