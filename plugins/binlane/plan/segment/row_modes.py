"""Modes of MySQL's sessions under which generated columns of their rows were computed.

The BEGIN of a transaction of rows holds the session's ``sql_mode``, and a replica computes the generated columns of
its rows under it. Lanes do not: their blocks have rows of many sessions. So the modes that change a value are noted,
and the precheck looks for such columns (``precheck.generated_columns``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import Ints
from binlane.binlog.wire import EventType
from binlane.model import Flavor
from binlane.plan.segment.columns import INSERT, Run, SegmentColumns, Single
from binlane.sql.requirements import ROW_MODE, Requirement
from binlane.sql.sql_modes import EVALUATED

_POST_HEADER: Final = 13
"""Bytes of QUERY's post-header since MySQL 5.0; before, there are no status variables."""
_FLAGS2, _SQL_MODE = 0, 1
_HEAD: Final = 6
"""Bytes of the status variables before the value of sql_mode: the code and 4 bytes of flags2, the code of sql_mode."""


class RowModes:
    """The transactions of a segment with such a mode."""

    def __init__(self, columns: SegmentColumns) -> None:
        self._offset, self._role = columns.frames.offset, columns.role
        self._events, self._bits = _found(columns)

    def of(self, step: Run | Single) -> Iterator[tuple[Requirement, int]]:
        """What the rows of the step ask for, each with its first seqno. Statements run in their own mode."""
        if self._events.size == 0:
            return
        if isinstance(step, Single):
            first, end = np.searchsorted(self._offset, [step.transaction.start, step.transaction.end])
            if not (self._role[first:end] >= INSERT).any():
                return
        else:
            first, end = step.first[0], step.end[-1]
        there = slice(*np.searchsorted(self._events, [first, end]))
        for bit, name in EVALUATED.items():
            events = self._events[there][(self._bits[there] & bit) != 0]
            if events.size:
                before = 0 if isinstance(step, Single) else int(np.searchsorted(step.first, events[0], "right")) - 1
                yield Requirement(ROW_MODE, "session", name), step.seqno + before


def _found(columns: SegmentColumns) -> tuple[Ints, Ints]:
    """The QUERY events with such a mode, ascending, and the bits of each."""
    frames, nothing = columns.frames, np.empty(0, np.int64)
    head = columns.reader.format.post_header_length(EventType.QUERY)
    if columns.log.format.flavor is not Flavor.MYSQL or head < _POST_HEADER:
        return nothing, nothing
    events = np.flatnonzero(frames.type_code == EventType.QUERY)
    at = frames.offset[events] + frames.header_length + head
    fits = at + _HEAD + 8 <= frames.offset[events] + frames.size[events]
    events, at = events[fits], at[fits]
    data = frames.data
    leads = (data[at] == _FLAGS2) & (data[at + _HEAD - 1] == _SQL_MODE)
    events, at = events[leads], at[leads]
    bits = np.zeros(events.size, np.int64)
    for place in range(5):
        bits |= data[at + _HEAD + place].astype(np.int64) << (8 * place)
    bits &= sum(EVALUATED)
    odd = bits != 0
    return events[odd], bits[odd]
