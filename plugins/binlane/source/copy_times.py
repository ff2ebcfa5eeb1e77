"""Whether the time of a copy fits the place in the log that it has recorded: what is left to compare without GTIDs.

Each log of one kind of server has a place such as ``binlog.000123:157``. A dump of a replica names the replica's own
log, and a log that was reset has the same places again.
"""

from __future__ import annotations

import calendar
import contextlib
import datetime as dt
import re
import time
from typing import Final

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import Gtid
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import HEADER, EventType
from binlane.lazy_dataclass import dataclass
from binlane.source.gtid_set import gtids_in
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource, LogChunk
from binlane.source.proved import proved

_DAY: Final = 86_400.0
"""Seconds by which the clocks may differ: a copy's is that of another machine, in a time zone that it does not name."""
_LONGEST: Final = 7 * _DAY
"""Seconds that a copy takes at most if it does not tell when it was begun."""
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d) +(\d{1,2}:\d\d:\d\d)(?!\d)", re.ASCII)
_GTIDS: Final = frozenset({EventType.GTID, EventType.GTID_TAGGED, EventType.ANONYMOUS_GTID})
_OF_BEGINNING: Final = frozenset(
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.MARIADB_GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.START_ENCRYPTION,
    }
)
"""What a server writes when it begins a file, or not at the time of a transaction."""


@dataclass(frozen=True, slots=True)
class CopyTimes:
    """When a copy was begun and complete, in seconds since the epoch as if its time zone was UTC; 0: not known."""

    begun: float = 0.0
    ended: float = 0.0

    @classmethod
    def of(cls, begun: str, ended: str) -> CopyTimes:
        """Of texts with a date and a time; of any other text nothing is known."""
        return cls(_seconds(begun), _seconds(ended))


def contradiction(source: EventSource, start: Start, times: CopyTimes) -> str:
    """Why a copy of these times cannot be of the place ``start`` of this log; empty if it can be.

    The file of the place was begun before the copy was complete, and what comes behind it in the log is not older than
    the copy. Raises as ``proved``.
    """
    if not times.ended:
        return ""
    begun, behind = _around(source, start)
    file, ended = start.position.file, f"the copy was complete at {_shown(times.ended)} by its own clock"
    if begun > times.ended + _DAY:
        return f"{file} was begun at {_shown(begun)}, and {ended}"
    since = times.begun or times.ended - _LONGEST
    if behind and behind < since - _DAY:
        taken = f"the copy was begun at {_shown(times.begun)} by its own clock" if times.begun else ended
        return f"what follows in the log is of {_shown(behind)}, and {taken}"
    return ""


def _around(source: EventSource, start: Start) -> tuple[float, float]:
    """When the file of a place was begun, and when the first event behind the place was written, 0 if there is none; in
    seconds since the epoch."""
    with contextlib.closing(proved(source, start)) as chunks:
        header = next(chunks)
        begun, name = float(HEADER.unpack_from(header.data)[0]), f"{source.name}/{header.file}"
        log_format = described(header.data, name)
        for chunk in chunks:
            if chunk.offset == LOG_START:
                # the next file
                return begun, float(HEADER.unpack_from(chunk.data)[0])
            if written := _first_time(chunk, log_format, name):
                return begun, written
    return begun, 0.0


def _first_time(chunk: LogChunk, log_format: FormatDescription, name: str) -> float:
    """Of the first event that is of a transaction or ends the file; 0 if there is none."""
    frames = frame(chunk.data, 0, log_format.checksum.length)
    for index, code in enumerate(frames.type_code.tolist()):
        if code in _OF_BEGINNING:
            continue
        event = frames.raw(index, chunk.offset)
        found = gtids_in(event, log_format, name) if code in _GTIDS else None
        if isinstance(found, Gtid) and found.immediate_commit_timestamp:
            # the event's own time is that of the server that has executed it first
            return found.immediate_commit_timestamp / 1_000_000
        return float(event.header.timestamp)
    return 0.0


def _seconds(text: str) -> float:
    match = _TIME.search(text)
    if match is None:
        return 0.0
    try:
        return float(calendar.timegm(time.strptime(f"{match[1]} {match[2]}", "%Y-%m-%d %H:%M:%S")))
    except ValueError:
        return 0.0


def _shown(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M")
