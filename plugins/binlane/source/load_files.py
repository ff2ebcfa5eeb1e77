"""Tracks the files of LOAD DATA statements while a window is extracted: a file and its statement belong in one segment.

Usually both are in one transaction. If they are not, the segment, and the window, must not end between them: another
segment would have the statement without its file, which is refused. The hold is given up after a segment's size of log,
so that a file whose statement never comes costs no memory.
"""

from __future__ import annotations

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import EventType, RawEvent
from binlane.model import LogPosition
from binlane.plan.transaction.load_data import file_of

_BLOCKS = (EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK)


class LoadFileTracker:
    """Tracks files without a statement. Pass it every event that is not a row event, in order."""

    text = "a LOAD DATA whose file is logged and whose statement is not"
    """What is open, for a message."""
    inside = "between the two"
    """Where a window cannot end, and when it can."""
    ends = "the statement's transaction has ended"

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._since: LogPosition | None = None
        self._held_from = 0

    @property
    def open_since(self) -> LogPosition | None:
        """The position of the transaction with the first open file; None if none is open."""
        return self._since if self._open else None

    def take(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        """Take an event of the file ``name``, in a transaction that begins at ``before``."""
        file_id = file_of(event, log_format, name)
        if file_id is None:
            return
        if event.header.type_code not in _BLOCKS:
            self._open.discard(file_id)
        elif event.header.type_code == EventType.BEGIN_LOAD_QUERY:
            if not self._open:
                self._since, self._held_from = before, 0
            self._open.add(file_id)

    def segment_from(self, start: int, end: int) -> int:
        """From where to measure a segment that begins at ``start``: if files are open, from the end of the transaction
        that left the first one open. ``end``: that of the transaction that was read last."""
        if not self._open:
            return start
        self._held_from = self._held_from or end
        return max(start, self._held_from)

    def drop(self) -> None:
        """A segment has ended although files are open: their statements will be refused."""
        self._open.clear()
