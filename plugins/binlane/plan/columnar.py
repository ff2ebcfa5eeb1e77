"""``scan_segment`` and ``map_segment`` over arrays: Python runs once a block, not once an event.

Plain transactions (``binlog.grouping``) go through here; every other one goes through the plain version's own code, so
its rules stand in one place. Both versions give the same bytes; tests hold them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.frames import count_rows, frame, index_rows, strip_events, table_maps
from binlane.binlog.grouping import PlainGrouping, PlainRun
from binlane.binlog.reader import LogReader
from binlane.binlog.renaming import NewNames
from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsKind
from binlane.binlog.transactions import Transaction, identify, transactions
from binlane.binlog.wire import HEADER, MAGIC, Buffer, EventHeader, EventType, RawEvent
from binlane.errors import BinlogError
from binlane.model import FILTERED_SHARD, BlockHeader, Flavor, LogPosition, RowCounts, TableKey
from binlane.plan.barrier_arrays import BarrierArrays
from binlane.plan.blocks import BlockBuilder, LoggedEvent
from binlane.plan.classes import TransactionClass, classify
from binlane.plan.dissect import LogFormat
from binlane.plan.filter_columns import EventFilter, TableVerdicts, event_filter, pick
from binlane.plan.inflated import Inflated, inflated
from binlane.plan.manifest import Segment
from binlane.plan.prepared import Groups, Halves, NoGroups, parts_at
from binlane.plan.reduce import Reducer
from binlane.plan.renamed_columns import definition, renamed_tables
from binlane.plan.routing import LaneCursor, Route, Routing
from binlane.plan.segment_map import LaneSink, LaneWriter, MapSummary, ScanSummary, commits_itself, meter_of
from binlane.plan.settings import FilterSettings
from binlane.plan.tally import ROWS_ONLY, Tally
from binlane.plan.translate import format_for, translation

Ints = NDArray[np.int64]

_PIECE: Final = 4 << 20
"""Bytes of events that are taken from the segment at once."""
_FLAGS_AT: Final = 6
"""In a rows event's body, behind its table id."""
_TIMED: Final = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED)
"""Events that may hold a commit time besides the one in their header."""
_NONE, _MAP, _INSERT, _UPDATE, _DELETE = range(5)
_ROLES: Final = np.zeros(256, np.uint8)
_ROLES[EventType.TABLE_MAP] = _MAP
for _code, _kind in ROWS_KINDS.items():
    _ROLES[_code] = {RowsKind.INSERT: _INSERT, RowsKind.UPDATE: _UPDATE, RowsKind.DELETE: _DELETE}[_kind]


@dataclass(frozen=True, slots=True)
class Run:
    """Plain transactions that follow each other, with the seqno of the first."""

    seqno: int
    plain: PlainRun

    @property
    def size(self) -> int:
        """How many transactions."""
        return self.plain.first.size


@dataclass(frozen=True, slots=True)
class Single:
    """A transaction that is not plain."""

    seqno: int
    transaction: Transaction


class SegmentColumns:
    """One segment as arrays, an entry an event."""

    def __init__(
        self, data: Buffer, segment: Segment, settings: FilterSettings, laid_out: Inflated | None = None
    ) -> None:
        """Raises BinlogError for a segment that cannot be framed or whose row events do not fit their tables.

        ``laid_out``: what ``data`` is of, if its compressed transactions were opened.
        """
        self.segment = segment
        self.reader = LogReader(data, segment.source_file, verify=False)
        offset = segment.start_offset - segment.header_length
        target, selection = Flavor(settings.target), settings.selection
        renaming = settings.renaming
        self.log = LogFormat(self.reader.format, segment.source_file, offset, target, selection, renaming, laid_out)
        self.frames = frame(data, len(MAGIC), self.reader.format.checksum.length, self.reader.format.header_length)
        self.frames.check(segment.name)
        self.role = _ROLES[self.frames.type_code]
        self.index = index_rows(self.frames, segment.name)
        self.number = self.index.number
        logged = table_maps(self.frames, self.index, segment.name, self.log.format.flavor)
        self.verdicts = TableVerdicts(selection, logged)
        self.tables = renamed_tables(self.log, self.frames, self.index, logged, self.verdicts)
        names = sorted({table.database for table in self.tables})
        self.databases = (*names, FILTERED_SHARD) if selection.looks_at_rows else tuple(names)
        places = {name: place for place, name in enumerate(names)}
        self.database_of_table = np.array([places[table.database] for table in self.tables], np.int32)
        self.filter = self._filter() if selection.looks_at_rows else None
        if self.filter is not None:
            self.role = np.where(self.filter.is_out, _NONE, self.role).astype(np.uint8)
        changed = [new is not old for new, old in zip(self.tables, logged, strict=True)]
        maps = np.where(self.role == _MAP, self.number, -1)
        self.new_names = NewNames(self.frames, self.tables, changed, maps) if any(changed) else None

    def _filter(self) -> EventFilter:
        is_rows, is_delete = self.role >= _INSERT, self.role == _DELETE
        kinds = (self.role == _MAP, is_rows, is_delete)
        return event_filter(self.frames.type_code, *kinds, self.ends_statement, self.number, self.verdicts)

    @cached_property
    def rows(self) -> Ints:
        """Rows that each event changes."""
        return count_rows(self.frames, self.index, self.tables, self.segment.name)

    @cached_property
    def stripped(self) -> Ints:
        """Bytes of each event in a BINLOG statement; 0 for those that go into none."""
        surplus = self.frames.header_length - HEADER.size + self.frames.checksum_length
        size = self.frames.size.astype(np.int64) - surplus
        if self.new_names is not None:
            size += self.new_names.longer
        return np.where(self.role != _NONE, size, 0)

    def events(self, wanted: Ints) -> bytes:
        """Those events, as a BINLOG payload."""
        return strip_events(self.frames, wanted) if self.new_names is None else self.new_names.strip(wanted)

    @cached_property
    def ends_statement(self) -> NDArray[np.bool_]:
        """Rows events that carry STMT_END_F."""
        events = np.flatnonzero(self.role >= _INSERT)
        ends = np.zeros(self.role.size, np.bool_)
        ends[events] = self.frames.data[self.frames.offset[events] + self.frames.header_length + _FLAGS_AT] & 1
        return ends

    def walk(self) -> Iterator[Run | Single]:
        """All transactions in order."""
        grouping = PlainGrouping(self.frames, self.index, self.database_of_table, self.reader.format)
        event, seqno, offset = 0, self.segment.first_seqno, self.frames.offset
        while event < offset.size:
            plain = grouping.run(event)
            if plain.first.size:
                yield from self._taken(Run(seqno, plain))
                seqno += plain.first.size
            event = plain.stopped_at
            if event == offset.size:
                return
            transaction = next(transactions(self.reader, start=int(offset[event])), None)
            if transaction is None:
                return
            yield Single(seqno, transaction)
            seqno += 1
            event = int(np.searchsorted(offset, transaction.end))

    def _taken(self, run: Run) -> Iterator[Run | Single]:
        """A run as the filter leaves it: those of its transactions apart that it has to take apart."""
        if self.filter is None:
            yield run
            return
        awkward, empty = self.filter.split(run.plain)
        at = 0
        for stop in (*np.flatnonzero(awkward).tolist(), run.size):
            if at < stop:
                yield Run(run.seqno + at, pick(run.plain, at, stop, empty, len(self.databases) - 1))
            if stop < run.size:
                start = int(self.frames.offset[run.plain.first[stop]])
                yield Single(run.seqno + stop, next(transactions(self.reader, start=start)))
            at = stop + 1

    def header(self, seqno: int, event: int) -> BlockHeader:
        """The header of the plain transaction that begins with ``event``."""
        frames = self.frames
        at = int(frames.offset[event])
        head = EventHeader._make(HEADER.unpack_from(frames.data.data, at))
        identity = identify(RawEvent(at, head, frames.body(event)), self.reader)
        place = LogPosition(self.log.name, self.log.source_offset(at))
        return BlockHeader(seqno, seqno, 1, place, identity.gtid, identity.commit_time)

    def commit_times(self, events: Ints) -> NDArray[np.float64]:
        """When the transactions that begin with these events were committed."""
        if np.isin(self.frames.type_code[events], _TIMED).any():
            return np.array([self.header(0, event).commit_time for event in events.tolist()], np.float64)
        return self.frames.timestamp[events].astype(np.float64)


def segment_columns(data: Buffer, segment: Segment, settings: FilterSettings) -> SegmentColumns:
    """The segment, its compressed transactions opened where they are plain. Raises BinlogError."""
    columns = SegmentColumns(data, segment, settings)
    laid_out = inflated(columns.frames)
    if laid_out is None:
        return columns
    try:
        opened = SegmentColumns(laid_out.data, segment, settings, laid_out)
        # counted here: what is wrong with a row is named where it stands in the log if its payload stays closed
        return opened if opened.rows.size else columns
    except BinlogError:
        return columns


def scan_segment(
    data: Buffer, segment: Segment, settings: FilterSettings, is_critical: Callable[[str], bool]
) -> ScanSummary:
    """As ``segment_map.scan_segment``."""
    columns = segment_columns(data, segment, settings)
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    epochs: dict[int, int] = {}
    halves = Halves()
    critical = np.array([is_critical(name) for name in columns.databases], np.bool_)
    for step in columns.walk():
        if isinstance(step, Single):
            commit_time = step.transaction.commit_time
            if settings.consistency == "epoch":
                epochs.setdefault(int(commit_time // settings.epoch_seconds), step.seqno)
            described, is_decided = halves.classify(step.seqno, step.transaction, columns.log, segment.name)
            if is_decided:
                _note(described, step.seqno, is_critical, databases, (numbers, members))
            continue
        if settings.consistency == "epoch":
            for place, event in enumerate(step.plain.first.tolist()):
                header = columns.header(step.seqno + place, event)
                epochs.setdefault(int(header.commit_time // settings.epoch_seconds), header.first_seqno)
        _scan_run(columns, step, critical, databases, (numbers, members))
    beyond = (tuple(halves.prepared), tuple(halves.resolved), tuple(halves.temporary))
    return ScanSummary(databases, tuple(numbers), tuple(members), tuple(epochs.items()), *beyond)


Classes = tuple[dict[TransactionClass, int], list[tuple[int, int]]]


def _note(
    described: TransactionClass,
    seqno: int,
    is_critical: Callable[[str], bool],
    databases: dict[str, int],
    classes: Classes,
) -> None:
    plain = described.plain_database
    if plain is not None and not is_critical(plain):
        databases.setdefault(plain, seqno)
        return
    numbers, members = classes
    members.append((seqno, numbers.setdefault(described, len(numbers))))


def _scan_run(
    columns: SegmentColumns, run: Run, critical: NDArray[np.bool_], databases: dict[str, int], classes: Classes
) -> None:
    found, first = np.unique(run.plain.database, return_index=True)
    for place in np.argsort(first).tolist():
        database = int(found[place])
        if not critical[database]:
            databases.setdefault(columns.databases[database], run.seqno + int(first[place]))
    numbers, members = classes
    for place in np.flatnonzero(critical[run.plain.database]).tolist():
        described = TransactionClass(frozenset({columns.databases[run.plain.database[place]]}), ())
        members.append((run.seqno + place, numbers.setdefault(described, len(numbers))))


def map_segment(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: FilterSettings,
    open_sink: Callable[[int, bytes], LaneSink],
    reducer: Reducer | None = None,
    groups: Groups | None = None,
) -> MapSummary:
    """As ``segment_map.map_segment``."""
    columns = segment_columns(data, segment, settings)
    return _Map(columns, routing, settings, open_sink, reducer, groups or NoGroups()).run()


class _Map:
    def __init__(
        self,
        columns: SegmentColumns,
        routing: Routing,
        settings: FilterSettings,
        open_sink: Callable[[int, bytes], LaneSink],
        reducer: Reducer | None,
        groups: Groups,
    ) -> None:
        self._columns = columns
        self._groups = groups
        self._routing = routing
        self._settings = settings
        self._open_sink = open_sink
        self._reducer = reducer
        meter = meter_of(settings, columns.log)
        self._tally = Tally(meter=meter)
        self._measured_from = (
            None if meter is None else np.array([meter.limit(table) for table in columns.tables] or [0], np.int64)
        )
        self._writers: dict[int, RunWriter] = {}
        self._barriers = BarrierArrays(routing)
        self._routes: dict[int, Route] = {}

    def run(self) -> MapSummary:
        for step in self._columns.walk():
            if isinstance(step, Single):
                self._single(step)
            else:
                self._run(step)
        files = {lane: self._writers[lane].close(lane, self._tally) for lane in sorted(self._writers)}
        return MapSummary(files, self._tally)

    def _writer(self, lane: int) -> RunWriter:
        if lane not in self._writers:
            log = self._columns.log
            sink = self._open_sink(lane, format_for(log.format, log.target, self._settings.target_version))
            cursor = LaneCursor(self._routing.by_lane[lane])
            self._writers[lane] = RunWriter(
                sink, BlockBuilder(self._settings.limits, self._reducer), cursor, self._columns
            )
        return self._writers[lane]

    def _single(self, step: Single) -> None:
        transaction, log = step.transaction, self._columns.log
        parts = parts_at(step.seqno, transaction, log, self._groups)
        route = self._routing.route_of(classify(parts))
        lane = int(self._barriers.lanes(np.array([step.seqno]), np.array([route.lane]))[0])
        header = BlockHeader(
            step.seqno, step.seqno, 1, log.position(transaction), transaction.gtid, transaction.commit_time
        )
        self._writer(lane).add(header, parts, commits_itself(parts), log.name)
        self._tally.add(route.shard, route.lane, parts, step.seqno, log.format.flavor)

    def _run(self, run: Run) -> None:
        plain = run.plain
        home = np.array([self._route(int(number)).lane for number in range(len(self._columns.databases))], np.int64)
        seqnos = run.seqno + np.arange(run.size, dtype=np.int64)
        lanes = self._barriers.lanes(seqnos, home[plain.database])
        for lane in np.unique(lanes).tolist():
            chosen = np.flatnonzero(lanes == lane)
            stretches = self._barriers.stretches(lane, seqnos[chosen])
            edges = np.flatnonzero(np.diff(stretches)) + 1
            for part in np.split(np.arange(chosen.size), edges):
                self._writer(lane).add_run(run, chosen[part], int(stretches[part[0]]))
        self._count(run)

    def _route(self, database: int) -> Route:
        if database not in self._routes:
            described = TransactionClass(frozenset({self._columns.databases[database]}), ())
            # a database of other transactions alone has no route of its own, and is asked for none
            self._routes[database] = self._routing.find(described) or Route("", 0)
        return self._routes[database]

    def _count(self, run: Run) -> None:
        """The tally of a run, table by table."""
        columns, plain, tally = self._columns, run.plain, self._tally
        events = np.arange(int(plain.first[0]), int(plain.end[-1]))
        self._count_filtered(events)
        events = events[columns.role[events] != _NONE]
        numbers, places = np.unique(columns.number[events], return_index=True)
        seqnos = run.seqno + np.searchsorted(plain.first, events[places], "right") - 1
        for one, seqno in zip(numbers.tolist(), seqnos.tolist(), strict=True):
            table = columns.tables[one]
            body = definition(columns.frames, int(columns.index.first[one]), table)
            tally.add_map(TableKey(table.database, table.table), body, seqno)
        events = events[columns.role[events] >= _INSERT]
        kind, rows = columns.role[events].astype(np.int64) - _INSERT, columns.rows[events]
        number = columns.number[events].astype(np.int64)
        for at, counts in _sums(number * 3 + kind, rows):
            table = columns.tables[at]
            tally.add_table(TableKey(table.database, table.table), counts)
        self._measure(run, events, number)
        changed = np.bincount(columns.database_of_table[number], rows, minlength=len(columns.databases))
        for database, count in enumerate(np.bincount(plain.database, minlength=len(columns.databases)).tolist()):
            if count:
                route = self._route(database)
                tally.add_shard(route.shard, route.lane, count, int(changed[database]))
        filtered = 0 if columns.filter is None else int((plain.database == len(columns.databases) - 1).sum())
        if run.size > filtered:
            tally.kinds[ROWS_ONLY] += run.size - filtered

    def _measure(self, run: Run, events: Ints, number: Ints) -> None:
        """Rows events of the tables ``number`` that may be too long for the target."""
        if self._measured_from is None:
            return
        frames = self._columns.frames
        long = frames.size[events] > self._measured_from[number]
        chosen = events[long | np.isin(frames.type_code[events], list(COMPRESSED_ROWS))]
        seqnos = run.seqno + np.searchsorted(run.plain.first, chosen, "right") - 1
        for event, seqno in zip(chosen.tolist(), seqnos.tolist(), strict=True):
            table = self._columns.tables[self._columns.number[event]]
            self._tally.add_rows(table, int(frames.type_code[event]), frames.body(event), seqno)

    def _count_filtered(self, events: Ints) -> None:
        columns = self._columns
        if columns.filter is None:
            return
        events = events[columns.filter.is_counted[events]]
        kind = _ROLES[columns.frames.type_code[events]].astype(np.int64) - _INSERT
        for at, counts in _sums(columns.number[events].astype(np.int64) * 3 + kind, columns.rows[events]):
            table = columns.tables[at]
            self._tally.add_filtered(columns.verdicts.rule(at), TableKey(table.database, table.table), counts)


def _sums(keys: Ints, rows: Ints) -> Iterator[tuple[int, RowCounts]]:
    """Rows by ``keys``, each 3 * a number + the kind of change; numbers with the sums of their three kinds."""
    if keys.size == 0:
        return
    numbers = int(keys.max()) // 3 + 1
    by_number = np.bincount(keys, rows, minlength=3 * numbers).astype(np.int64).reshape(-1, 3)
    for number in np.unique(keys // 3).tolist():
        yield number, RowCounts(*by_number[number].tolist())


class RunWriter(LaneWriter):
    """A lane's writer that takes plain transactions by the run, too."""

    def __init__(self, sink: LaneSink, builder: BlockBuilder, cursor: LaneCursor, columns: SegmentColumns) -> None:
        super().__init__(sink, builder, cursor, translation(columns.log.format.flavor, columns.log.target))
        self._columns = columns
        # a window with many barriers has many short runs: the whole segment must not be summed up for each
        self._before: Ints = np.concatenate(([0], np.cumsum(columns.stripped)))
        """Bytes that the events before each one take, stripped."""

    def add_run(self, run: Run, chosen: Ints, stretch: int) -> None:
        """Take the ``chosen`` transactions of a run, between two edges of barriers."""
        self._enter(stretch)
        columns, builder = self._columns, self._builder
        first, end = run.plain.first[chosen], run.plain.end[chosen]
        size = np.concatenate(([0], np.cumsum(self._before[end] - self._before[first])))
        large = np.flatnonzero([builder.is_large(each) for each in np.diff(size).tolist()])
        times = columns.commit_times(first) if builder.limits.seconds else None
        at = 0
        while at < chosen.size:
            head = columns.header(run.seqno + int(chosen[at]), int(first[at]))
            self._write(builder.end_before(head.commit_time))
            following = int(np.searchsorted(large, at))
            barred = int(large[following]) if following < large.size else chosen.size
            if barred == at:
                self._write(builder.stream(head, self._logged(self._events(first[at : at + 1], end[at : at + 1]))))
                at += 1
                continue
            transactions_left, bytes_left = builder.room()
            full = int(np.searchsorted(size, size[at] + bytes_left))
            after = min(max(full, at + 1), at + transactions_left, barred)
            if times is not None:
                late = np.flatnonzero(times[at:after] > builder.deadline(head.commit_time))
                after = at + int(late[0]) if late.size else after
            self._take(self._events(first[at:after], end[at:after]))
            last = columns.header(run.seqno + int(chosen[after - 1]), int(first[after - 1]))
            self._write(builder.end_transactions(head, last, after - at))
            at = after

    def _events(self, first: Ints, end: Ints) -> Ints:
        """The TABLE_MAP and rows events of some transactions."""
        events = _ranges(first, end)
        wanted: Ints = events[self._columns.role[events] != _NONE]
        return wanted

    def _take(self, events: Ints) -> None:
        """Give the builder events of whole statements: whole where they fit its BINLOG statement, else one by one."""
        columns, builder = self._columns, self._builder
        size = np.cumsum(columns.stripped[events])
        ends = np.flatnonzero(columns.ends_statement[events])
        at = 0
        while at < events.size:
            done = int(size[at - 1]) if at else 0
            fit = int(np.searchsorted(size[ends], done + builder.payload_room, "right"))
            after = int(ends[fit - 1]) + 1 if fit else 0
            if after > at and self._add_whole(events[at:after]):
                at = after
            if at < events.size:
                after = int(ends[np.searchsorted(ends, at)]) + 1
                for part in self._logged(events[at:after]):
                    builder.add_event(part.event, part.counts, part.where)
                at = after

    def _add_whole(self, events: Ints) -> bool:
        columns = self._columns
        changes = events[columns.role[events] >= _INSERT]
        kind = columns.role[changes].astype(np.int64) - _INSERT
        counts = RowCounts(*np.bincount(kind, columns.rows[changes], minlength=3).astype(np.int64).tolist())
        largest = int(columns.stripped[events].max())
        return self._builder.add_whole(columns.events(events), largest, counts)

    def _logged(self, events: Ints) -> Iterator[LoggedEvent]:
        """Events one by one, some megabytes of them in memory at once."""
        columns = self._columns
        size = np.concatenate(([0], np.cumsum(columns.stripped[events])))
        at = 0
        while at < events.size:
            after = max(at + 1, int(np.searchsorted(size, size[at] + _PIECE, "right")) - 1)
            data = columns.events(events[at:after])
            edges = (size[at : after + 1] - size[at]).tolist()
            for event, (start, end) in zip(events[at:after].tolist(), pairwise(edges), strict=True):
                yield LoggedEvent(data[start:end], self._counts_of(event), self._where(event))
            at = after

    def _counts_of(self, event: int) -> RowCounts | None:
        role, rows = int(self._columns.role[event]), int(self._columns.rows[event])
        if role == _MAP:
            return None
        return RowCounts(*(rows if role == kind else 0 for kind in (_INSERT, _UPDATE, _DELETE)))

    def _where(self, event: int) -> str:
        columns = self._columns
        return f"{columns.log.name}:{columns.log.source_offset(int(columns.frames.offset[event]))}: "


def _ranges(first: Ints, end: Ints) -> Ints:
    """All numbers of all ranges [first, end), one range behind the other."""
    length = end - first
    start = np.concatenate(([0], np.cumsum(length)[:-1]))
    return np.arange(int(length.sum()), dtype=np.int64) + np.repeat(first - start, length)
