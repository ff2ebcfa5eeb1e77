"""One segment as arrays with an entry for each event, so that the plan job handles many events at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.reader import LogReader
from binlane.binlog.rows import ROWS_KINDS, RowsEvent, RowsKind
from binlane.binlog.transactions import Transaction, identify, transactions
from binlane.binlog.unlogged_lengths import count_rows_of_any_length, may_have_fractions
from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import (
    Frames,
    count_events,
    count_rows,
    frame,
    index_rows,
    strip_events,
    table_layouts,
    table_maps,
)
from binlane.binlog.vector.inflated_segment import Inflated, inflated
from binlane.binlog.vector.rename_table_maps import NewNames
from binlane.binlog.vector.simple_transactions import IS_BETWEEN, of_one_database
from binlane.binlog.wire import MAGIC, Buffer, EventType
from binlane.errors import BinlogError
from binlane.kernels import framing
from binlane.lazy_dataclass import dataclass
from binlane.model import FILTERED_SHARD, BlockHeader, Flavor, LogPosition
from binlane.plan.block.builder import transaction_header
from binlane.plan.manifest import Segment
from binlane.plan.segment.filter import EventFilter, TableVerdicts, event_filter
from binlane.plan.segment.reader import segment_log
from binlane.plan.segment.rename import renamed_tables
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.decode import dissect

_TIMED: Final = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED)
"""Events whose body may hold a commit time, besides the timestamp in their header."""
NONE, MAP, INSERT, UPDATE, DELETE = range(5)
"""Roles of events."""
ROLES: Final = np.zeros(256, np.uint8)
"""Role by event type."""
ROLES[EventType.TABLE_MAP] = MAP
for _code, _kind in ROWS_KINDS.items():
    ROLES[_code] = {RowsKind.INSERT: INSERT, RowsKind.UPDATE: UPDATE, RowsKind.DELETE: DELETE}[_kind]


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive simple transactions, each over one database; arrays have an entry for each transaction."""

    seqno: int
    """Seqno of the first transaction."""
    first: Ints
    """The first event of each transaction."""
    end: Ints
    """One past the last event of each transaction."""
    database: NDArray[np.int32]
    """The number of each transaction's database."""

    @property
    def size(self) -> int:
        """Number of transactions."""
        return self.first.size


@dataclass(frozen=True, slots=True)
class Single:
    """A transaction that is not simple, or that the filter must decode part by part."""

    seqno: int
    transaction: Transaction


class SegmentColumns:
    """One segment as arrays with an entry for each event."""

    def __init__(
        self,
        reader: LogReader,
        frames: Frames,
        segment: Segment,
        settings: PlanSettings,
        laid_out: Inflated | None = None,
    ) -> None:
        """Raises BinlogError for a segment that cannot be framed or whose row events do not fit their tables.

        ``reader`` and ``frames`` read the same bytes. ``laid_out`` describes these bytes if compressed transactions
        were decompressed into them.
        """
        self.segment = segment
        self.reader = reader
        rules = settings.rules
        self.log = segment_log(reader, segment, Flavor(settings.target), rules, laid_out)
        self.frames = frames
        frames.check(segment.name)
        self.role = ROLES[self.frames.type_code]
        self.index = index_rows(self.frames, segment.name)
        self.number = self.index.number
        logged = table_maps(self.frames, self.index, segment.name, self.log.format.flavor)
        self.verdicts = TableVerdicts(rules.selection, logged)
        self.tables = renamed_tables(self.log, self.frames, self.index, logged, self.verdicts)
        names = sorted({table.database for table in self.tables})
        leaves_out = rules.selection.looks_at_rows or any(self.verdicts.all_rows)
        self.databases = (*names, FILTERED_SHARD) if leaves_out else tuple(names)
        places = {name: place for place, name in enumerate(names)}
        self.database_of_table = np.array([places[table.database] for table in self.tables], np.int32)
        self.filter = self._filter() if leaves_out else None
        if self.filter is not None:
            self.role = np.where(self.filter.is_out, NONE, self.role).astype(np.uint8)
        changed = [new is not old for new, old in zip(self.tables, logged, strict=True)]
        maps = np.where(self.role == MAP, self.number, -1)
        self.new_names = NewNames(self.frames, self.tables, changed, maps) if any(changed) else None

    def _filter(self) -> EventFilter:
        is_rows, is_delete = self.role >= INSERT, self.role == DELETE
        kinds = (self.role == MAP, is_rows, is_delete)
        return event_filter(self.frames.type_code, *kinds, self.ends_statement, self.number, self.verdicts)

    @property
    def rows(self) -> Ints:
        """Number of rows that each event changes."""
        return self._counted[0]

    @property
    def fractions(self) -> frozenset[int]:
        """Numbers of the tables whose rows are not of the lengths that the log tells (``binlog.unlogged_lengths``)."""
        return self._counted[1] if any(self._may_have_fractions) else frozenset()

    @cached_property
    def _counted(self) -> tuple[Ints, frozenset[int]]:
        try:
            return count_rows(self.frames, self.index, self.tables, self.segment.name), frozenset()
        except BinlogError:
            with contextlib.suppress(BinlogError):
                if any(self._may_have_fractions):
                    return self._counted_one_by_one()
            # decoded one by one, the event is named with its table and its place in the source's log
            for transaction in transactions(self.reader):
                dissect(transaction, self.log)
            raise

    @cached_property
    def _may_have_fractions(self) -> Sequence[bool]:
        """By table: whether the log does not tell the length of a column."""
        is_whole = self.log.takes_any_length
        return [is_whole and may_have_fractions(table) for table in self.tables]

    def _counted_one_by_one(self) -> tuple[Ints, frozenset[int]]:
        """``rows`` and ``fractions``, event by event for tables with such columns. Raises BinlogError."""
        frames, found = self.frames, set[int]()
        apart = np.append(self._may_have_fractions, [False])[self.number] & (ROLES[frames.type_code] >= INSERT)
        left = np.where(apart, -1, self.number).astype(np.int32)
        counts = count_events(frames, left, self.tables, table_layouts(self.tables), self.segment.name)
        for event in np.flatnonzero(apart).tolist():
            number = int(self.number[event])
            rows = RowsEvent.parse(int(frames.type_code[event]), frames.body(event))
            counts[event], is_as_logged = count_rows_of_any_length(rows, self.tables[number])
            if not is_as_logged:
                found.add(number)
        return counts, frozenset(found)

    @cached_property
    def rows_before(self) -> Ints:
        """Sum of the row changes, without those that the filter leaves out, over all events before each one; one entry
        more than there are events."""
        return np.concatenate(([0], np.cumsum(np.where(self.role >= INSERT, self.rows, 0))))

    @cached_property
    def bytes_before(self) -> Ints:
        """Sum of the bytes of all events before each one; one entry more than there are events."""
        return np.concatenate(([0], np.cumsum(self.frames.size, dtype=np.int64)))

    @cached_property
    def stripped(self) -> Ints:
        """Bytes of each event in a BINLOG statement; 0 for events that are not sent."""
        size = self.frames.size.astype(np.int64) - self.frames.checksum_length
        if self.new_names is not None:
            size += self.new_names.longer
        return np.where(self.role != NONE, size, 0)

    @cached_property
    def before(self) -> Ints:
        """Sum of ``stripped`` over all events before each one; one entry more than there are events."""
        return np.concatenate(([0], np.cumsum(self.stripped)))

    def events(self, wanted: Ints) -> bytes:
        """The ``wanted`` events as a BINLOG payload."""
        return strip_events(self.frames, wanted) if self.new_names is None else self.new_names.strip(wanted)

    @cached_property
    def ends_statement(self) -> NDArray[np.bool_]:
        """Rows events with STMT_END_F."""
        events = np.flatnonzero(self.role >= INSERT)
        ends = np.zeros(self.role.size, np.bool_)
        ends[events] = self.frames.ends_statement(events)
        return ends

    def walk(self) -> Iterator[Run | Single]:
        """All transactions in order."""
        query_head = self.reader.format.post_header_length(EventType.QUERY)
        simple = of_one_database(self.frames, query_head, self.index.number, self.database_of_table)
        event, seqno, offset = 0, self.segment.first_seqno, self.frames.offset
        while event < offset.size:
            taken = simple.run_at(event)
            if taken.start < taken.stop:
                run = Run(seqno, simple.first[taken], simple.last[taken] + 1, simple.database[taken])
                yield from self._filtered(run)
                seqno += run.size
                event = int(run.end[-1])
                continue
            if IS_BETWEEN[self.frames.type_code[event]]:
                event += 1
                continue
            transaction = next(transactions(self.reader, start=self.frames.begin(event)), None)
            if transaction is None:
                return
            yield Single(seqno, transaction)
            seqno += 1
            event = int(np.searchsorted(offset, transaction.end))

    def _filtered(self, run: Run) -> Iterator[Run | Single]:
        """The run after the filter: transactions that the filter must decode part by part become a ``Single`` each."""
        if self.filter is None:
            yield run
            return
        to_decode, empty = self.filter.split(run.first, run.end)
        database = np.where(empty, len(self.databases) - 1, run.database).astype(np.int32)
        at = 0
        for stop in (*np.flatnonzero(to_decode).tolist(), run.size):
            if at < stop:
                yield Run(run.seqno + at, run.first[at:stop], run.end[at:stop], database[at:stop])
            if stop < run.size:
                start = self.frames.begin(run.first[stop])
                yield Single(run.seqno + stop, next(transactions(self.reader, start=start)))
            at = stop + 1

    def header(self, seqno: int, event: int) -> BlockHeader:
        """The header of the simple transaction that begins with ``event``."""
        frames = self.frames
        at = frames.begin(event)
        identity = identify(frames.raw(event), self.reader)
        place = LogPosition(self.log.name, self.log.source_offset(at))
        return transaction_header(seqno, place, identity.gtid, identity.commit_time)

    def commit_times(self, events: Ints) -> NDArray[np.float64]:
        """Commit times of the transactions that begin with these events, Unix seconds."""
        if np.isin(self.frames.type_code[events], _TIMED).any():
            return np.array([self.header(0, event).commit_time for event in events.tolist()], np.float64)
        return self.frames.timestamp[events].astype(np.float64)


def segment_columns(data: Buffer, segment: Segment, settings: PlanSettings) -> SegmentColumns:
    """The segment as arrays; compressed plain transactions are decompressed first. Raises BinlogError."""
    closed = _framed(data, segment)
    laid_out = inflated(closed[1]) if closed[1].error == framing.OK else None
    if laid_out is not None:
        # rows are counted here: after an error the compressed form is read, and errors then name a log position
        with contextlib.suppress(BinlogError):
            opened = SegmentColumns(*_framed(laid_out.data, segment), segment, settings, laid_out)
            if opened.rows.size:
                return opened
    return SegmentColumns(*closed, segment, settings)


def _framed(data: Buffer, segment: Segment) -> tuple[LogReader, Frames]:
    reader = LogReader(data, segment.source_file, verify=False)
    return reader, frame(data, len(MAGIC), reader.format.checksum.length)
