"""Runs of transactions that ``binlane inspect`` steps over, because they change rows of other tables and nothing else.

They are found over arrays, so a search of a log takes a second for what listing it takes minutes. Whatever is damaged,
or not simple in every detail, is left to who reads event by event.
"""

from __future__ import annotations

import mmap
from typing import Final

import numpy as np

from binlane.binlog.reader import LogReader
from binlane.binlog.vector.arrays import Flags, Ints
from binlane.binlog.vector.frames import Frames, frame, index_rows, table_maps, verify_checksums
from binlane.binlog.vector.simple_transactions import NumberedTransactions, numbered
from binlane.binlog.wire import Buffer, EventType
from binlane.errors import BinlogError
from binlane.model import TableKey
from binlane.orchestration.commands.inspection.searched import Searched
from binlane.orchestration.commands.inspection.sequence import FileSequence

_STRETCH: Final = 16 << 20
"""Bytes of log that are looked at together."""
_T = EventType


class PassedRuns:
    """``count``: transactions that were passed, in all files."""

    def __init__(self, searched: Searched, sequence: FileSequence) -> None:
        self.count = 0
        self._searched, self._sequence = searched, sequence
        self._data = memoryview(b"")
        self._reader: LogReader
        self._begin = self._end = 0
        """The stretch that was looked at last, in the file."""
        self._frames: Frames
        self._simple: NumberedTransactions
        self._behind: Ints
        """Offsets in the file behind each transaction of the stretch."""
        self._stops: Ints
        """Entries that are not passed."""

    def begin(self, data: Buffer | mmap.mmap, reader: LogReader) -> None:
        """A file."""
        self._data, self._reader = memoryview(data), reader
        self._begin = self._end = 0

    def behind(self, offset: int) -> int:
        """The offset behind the run that begins at one that is between transactions: the same one if none does."""
        if not self._begin <= offset < self._end:
            self._look_at(offset)
        if self._begin == self._end:
            return offset
        simple = self._simple
        first = int(np.searchsorted(self._frames.offset, offset - self._begin))
        entries = simple.run_at(first)
        next_stop = int(np.searchsorted(self._stops, entries.start))
        stop = entries.stop if next_stop == self._stops.size else min(entries.stop, int(self._stops[next_stop]))
        if stop <= entries.start:
            return offset
        self.count += stop - entries.start
        for line in simple.lines(slice(entries.start, stop)):
            one, other = (self._frames.raw(int(simple.first[entry]), self._begin) for entry in line)
            self._sequence.gtids(one, other, self._reader)
        return int(self._behind[stop - 1])

    def _look_at(self, offset: int) -> None:
        self._begin = self._end = offset
        log_format, name = self._reader.format, self._reader.name
        # none, if an event is larger than a stretch: it is read as any other
        frames = frame(self._data[offset : offset + _STRETCH], 0, log_format.checksum.length)
        try:
            if self._reader.verify:
                verify_checksums(frames, name)
            wanted = self._wanted(frames, name)
        except BinlogError:
            return
        simple = numbered(frames, log_format.post_header_length(_T.QUERY), looks_inside=False)
        sums = np.concatenate(([0], np.cumsum(wanted)))
        is_packed = frames.type_code[simple.last] == _T.TRANSACTION_PAYLOAD
        self._stops = np.flatnonzero((sums[simple.last + 1] > sums[simple.first]) | is_packed)
        self._frames, self._simple = frames, simple
        self._behind = offset + frames.offset[simple.last] + frames.size[simple.last]
        self._end = offset + frames.end

    def _wanted(self, frames: Frames, name: str) -> Flags:
        """Whether an event is of a table that was asked for."""
        index = index_rows(frames, name)
        tables = table_maps(frames, index, name, self._reader.format.flavor)
        # the last entry is that of events without a table, whose number is -1
        of_table = np.array(
            [*(self._searched.has_table(TableKey(each.database, each.table)) for each in tables), False]
        )
        wanted: Flags = of_table[index.number]
        return wanted
