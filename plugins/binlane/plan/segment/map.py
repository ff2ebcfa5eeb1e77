"""The plan job's two pure functions over one segment; their Python runs once a block, not once an event.

``scan_segment`` finds the facts that other segments need; ``merge`` makes the window's routes of all scans;
``map_segment`` builds the segment's blocks. Simple transactions (``binlog.vector.simple_transactions``) are handled as
arrays, many at once; all others are decoded one by one. Tests compare the bytes with a map that decodes every one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.transactions import Ending
from binlane.binlog.vector.arrays import Ints, distinct
from binlane.binlog.vector.frames import first_appearances
from binlane.binlog.wire import Buffer
from binlane.choices import Divide
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.bound_statements import StatementRules
from binlane.plan.block.builder import BlockBuilder, BlockLimits
from binlane.plan.block.computed_modes import ModeRules
from binlane.plan.block.keyless_chains import ChainRules
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.row_range import FoldTables
from binlane.plan.block.row_size import RowMeter, ends_earlier
from binlane.plan.database_activity import DatabaseActivity, WindowActivity
from binlane.plan.manifest import Segment
from binlane.plan.routing import Route, Routing
from binlane.plan.row_accounting import ROWS_ONLY, Tally
from binlane.plan.segment.columns import INSERT, NONE, ROLES, Run, SegmentColumns, Single, segment_columns
from binlane.plan.segment.lane_writer import LaneSink
from binlane.plan.segment.load import Loads
from binlane.plan.segment.logged_tables import LoggedTable, hides_rows, logged_tables
from binlane.plan.segment.reader import Router
from binlane.plan.segment.rename import definition
from binlane.plan.segment.replaced_rows import ReplacedRows
from binlane.plan.segment.row_modes import RowModes, asked
from binlane.plan.segment.run_writer import RunWriter
from binlane.plan.segment.table_changes import Changes, changes_of
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.decode import LogFormat
from binlane.plan.transaction.event_format import format_for
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_tables import TemporaryStep
from binlane.plan.transaction.xa import Groups, Halves, NoGroups, XaEnd, XaPrepareScan
from binlane.plan.window_plan import LaneFile
from binlane.sql.requirements import UNLOGGED_LENGTH, Requirement


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """The facts of one segment that other segments need. Seqnos are absolute."""

    databases: Mapping[str, int]
    """Databases of plain transactions, with the seqno of the first transaction of each."""
    classes: tuple[TransactionClass, ...]
    members: tuple[tuple[int, int], ...]
    """Each transaction that is not plain: its seqno, and the index of its class in ``classes``."""
    prepared: tuple[XaPrepareScan, ...] = ()
    resolved: tuple[XaEnd, ...] = ()
    """Halves of XA transactions. An XA COMMIT is not in ``members``: the merge finds its class."""
    temporary: tuple[TemporaryStep, ...] = ()
    """Statements that depend on the state of their connection."""
    tables: Mapping[TableKey, LoggedTable] = field(default_factory=dict)
    """The tables with row events; empty unless divided shards are dealt by key."""
    hides_rows: bool = False
    """There may be more of them, in compressed transactions."""
    changes: Changes | None = None
    """None if the channel's file says how large blocks are."""
    loads: Loads | None = None
    """None unless shards are placed by load."""


@dataclass(frozen=True, slots=True)
class MapSummary:
    """Lane files and tally of one segment."""

    files: Mapping[int, LaneFile]
    tally: Tally
    activity: WindowActivity


def scan_segment(
    data: Buffer, segment: Segment, settings: PlanSettings, is_critical: Callable[[str], bool]
) -> ScanSummary:
    """The facts of one segment that the merge needs. ``is_critical``: predicate of ``critical_databases``.

    Raises BinlogError for anything in the log that cannot be applied exactly.
    """
    return scan_columns(segment_columns(data, segment, settings), settings, is_critical, settings.places_by_load)


def scan_columns(
    columns: SegmentColumns, settings: PlanSettings, is_critical: Callable[[str], bool], measures_load: bool
) -> ScanSummary:
    """As ``scan_segment``, of a segment that is framed already. ``measures_load``: with ``ScanSummary.loads``."""
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    halves, loads = Halves(), Loads() if measures_load else None
    critical = np.array([is_critical(name) for name in columns.databases], np.bool_)
    for step in columns.walk():
        if isinstance(step, Single):
            described, is_decided = halves.classify(step.seqno, step.transaction, columns.log, columns.segment.name)
            if is_decided:
                _note(described, step.seqno, is_critical, databases, (numbers, members))
            if loads is not None:
                is_first_half = step.transaction.ending is Ending.XA_PREPARE
                loads.add(columns, halves.prepared[-1].described if is_first_half else described, step.transaction)
            continue
        if loads is not None:
            loads.add_run(columns, step)
        _scan_run(columns, step, critical, databases, (numbers, members))
    beyond = (tuple(halves.prepared), tuple(halves.resolved), tuple(halves.temporary))
    by_key = settings.divide == Divide.KEY
    logged = (logged_tables(columns), hides_rows(columns)) if by_key else ({}, False)
    changes = changes_of(columns, settings.lanes) if settings.chooses_size else None
    return ScanSummary(databases, tuple(numbers), tuple(members), *beyond, *logged, changes, loads)


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
    found, first = np.unique(run.database, return_index=True)
    for place in np.argsort(first).tolist():
        database = int(found[place])
        if not critical[database]:
            databases.setdefault(columns.databases[database], run.seqno + int(first[place]))
    numbers, members = classes
    for place in np.flatnonzero(critical[run.database]).tolist():
        described = TransactionClass(frozenset({columns.databases[run.database[place]]}), ())
        members.append((run.seqno + place, numbers.setdefault(described, len(numbers))))


def map_segment(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: PlanSettings,
    open_sink: Callable[[int, bytes], LaneSink],
    reducer: Reducer | None = None,
    groups: Groups | None = None,
    modes: ModeRules | None = None,
    bound: StatementRules | None = None,
    chains: ChainRules | None = None,
) -> MapSummary:
    """Write the segment's blocks, lane by lane, to the sinks that ``open_sink`` (lane, FORMAT_DESCRIPTION event) opens.

    ``groups`` gives the changes of the segment's XA COMMITs; ``modes``: the tables whose rows go with their session's
    modes; ``bound``: those whose statements keep their ends; ``chains``: those
    without a key. Raises BinlogError for anything that is not exact.
    """
    columns, limits = segment_columns(data, segment, settings), replace(settings.limits, bound=bound, chains=chains)
    return _Map(columns, routing, settings, limits, open_sink, reducer, groups or NoGroups(), modes).run()


class _Map:
    def __init__(
        self,
        columns: SegmentColumns,
        routing: Routing,
        settings: PlanSettings,
        limits: BlockLimits,
        open_sink: Callable[[int, bytes], LaneSink],
        reducer: Reducer | None,
        groups: Groups,
        modes: ModeRules | None,
    ) -> None:
        self._modes = None if modes is None else RowModes.of(columns, modes)
        self._columns = columns
        self._replaced = ReplacedRows.of(columns)
        self._routing = routing
        self._router = Router(columns.log, routing, groups)
        self._settings, self._limits = settings, limits
        self._open_sink = open_sink
        self._reducer = reducer
        if reducer is not None:
            # counts the rows, so that an error in a row names its log position and not the block where it is folded
            _ = columns.rows
        # renamed tables change the events' bytes, so their events are folded as a payload
        self._tables = (
            FoldTables.of(columns.frames, columns.index, tuple(columns.tables), reducer.rules)
            if reducer is not None and columns.new_names is None
            else None
        )
        meter = _meter_of(settings, columns.log)
        self._tally, self._activity = Tally(target=Flavor(settings.target), meter=meter), WindowActivity()
        self._measured_from = (
            None if meter is None else np.array([meter.limit(table) for table in columns.tables] or [0], np.int64)
        )
        self._writers: dict[int, RunWriter] = {}
        self._routes: dict[int, Route] = {}
        self._queues = np.array([routing.queue_of(lane) for lane in range(routing.lanes + 1)], np.int64)

    def run(self) -> MapSummary:
        for step in self._columns.walk():
            for requirement, seqno in self._unlogged(step):
                self._tally.add_requirement(requirement, seqno)
            self._name_replaced(step)
            if isinstance(step, Single):
                self._single(step)
            else:
                self._run(step)
        files: dict[int, LaneFile] = {}
        for _, writer in sorted(self._writers.items()):
            files |= writer.close(self._tally)
        return MapSummary(files, self._tally, self._activity)

    def _unlogged(self, step: Run | Single) -> Iterator[tuple[Requirement, int]]:
        """What rows of lengths that the log does not tell ask for, each with its first seqno."""
        columns = self._columns
        if not columns.fractions:
            return
        first, end = self._events_of(step)
        changes = first + np.flatnonzero(columns.role[first:end] >= INSERT)
        numbers, places = np.unique(columns.number[changes], return_index=True)
        for number, event in zip(numbers.tolist(), changes[places].tolist(), strict=True):
            if number in columns.fractions:
                at = 0 if isinstance(step, Single) else int(np.searchsorted(step.end, event, "right"))
                table = columns.tables[number]
                yield Requirement(UNLOGGED_LENGTH, str(TableKey(table.database, table.table))), step.seqno + at

    def _name_replaced(self, step: Run | Single) -> None:
        """Note the rows that the log does not have as the source has them."""
        if self._replaced is None:
            return
        for event in self._replaced.between(*self._events_of(step)).tolist():
            at = 0 if isinstance(step, Single) else int(np.searchsorted(step.end, event, "right"))
            self._tally.add_unsafe(self._replaced.name(event), step.seqno + at)

    def _events_of(self, step: Run | Single) -> tuple[int, int]:
        """The first of a step's events, and the one behind its last."""
        if isinstance(step, Single):
            offsets = [step.transaction.start, step.transaction.end]
            first, end = np.searchsorted(self._columns.frames.offset, offsets).tolist()
            return first, end
        return int(step.first[0]), int(step.end[-1])

    def _writer(self, queue: int) -> RunWriter:
        if queue not in self._writers:
            log = self._columns.log
            format_event = format_for(log.format, log.target, self._settings.target_version)
            lanes = self._routing.lanes_of(queue)
            edges = LaneEdges(self._routing.by_lane[queue])
            builder = BlockBuilder(self._limits.shared_by(len(lanes)), self._reducer_of(lanes))
            sinks = {lane: self._open_sink(lane, format_event) for lane in lanes}
            self._writers[queue] = RunWriter(sinks, builder, edges, self._columns, self._tables, self._modes)
        return self._writers[queue]

    def _reducer_of(self, lanes: Sequence[int]) -> Reducer | None:
        """The reducer of a queue's blocks: it deals if several lanes share the queue."""
        if self._reducer is None or self._routing.division is None or len(lanes) == 1:
            return self._reducer
        return replace(self._reducer, deal=self._routing.division.deal)

    def _single(self, step: Single) -> None:
        routed = self._router.routed(step.seqno, step.transaction)
        self._writer(self._routing.queue_of(routed.lane)).add(routed.header, routed.parts, routed.lane)
        route, flavor = routed.route, self._columns.log.format.flavor
        self._tally.add(route.shard, route.lane, routed.parts, step.seqno, flavor)
        for requirement in () if self._modes is None else asked(routed.parts, self._modes.rules):
            self._tally.add_requirement(requirement, step.seqno)
        lane = self._lane_alone(route)
        self._activity.add_transaction(route.shard, lane, routed.parts, step.seqno, step.transaction.commit_time)

    def _run(self, run: Run) -> None:
        databases: Ints
        databases, places = np.unique(run.database.astype(np.int64), return_inverse=True)
        home = np.array([self._route(number).lane for number in databases.tolist()], np.int64)
        seqnos = run.seqno + np.arange(run.size, dtype=np.int64)
        queues = self._queues[self._router.barriers.lanes(seqnos, home[places])]
        for queue in distinct(queues).tolist():
            self._writer(queue).add_run(run, np.flatnonzero(queues == queue))
        for requirement, seqno in () if self._modes is None else self._modes.asked_by(run):
            self._tally.add_requirement(requirement, seqno)
        self._count(run, databases, places)

    def _lane_alone(self, route: Route) -> int | None:
        """The lane of a database; None if its tables are divided over several."""
        return route.lane if self._routing.division is None else None

    def _route(self, database: int) -> Route:
        if database not in self._routes:
            described = TransactionClass(frozenset({self._columns.databases[database]}), ())
            # a database without plain transactions has no route; its entry here is never used
            self._routes[database] = self._routing.find(described) or Route("", 0)
        return self._routes[database]

    def _count(self, run: Run, databases: Ints, places: Ints) -> None:
        """Add a run to the tally, table by table; ``databases``: those of its transactions, ``places``: each one's
        among them. A segment may have as many runs as DDL, so a run must not cost anything for the other databases."""
        columns, tally = self._columns, self._tally
        events = np.arange(int(run.first[0]), int(run.end[-1]))
        self._count_filtered(events)
        events = events[columns.role[events] != NONE]
        numbers, earliest = first_appearances(columns.number[events], len(columns.tables))
        seqnos = run.seqno + np.searchsorted(run.first, events[earliest], "right") - 1
        for one, seqno in zip(numbers.tolist(), seqnos.tolist(), strict=True):
            table = columns.tables[one]
            body = definition(columns.frames, int(columns.index.first[one]), table)
            tally.add_map(TableKey(table.database, table.table), body, seqno)
        events = events[columns.role[events] >= INSERT]
        kind, rows = columns.role[events].astype(np.int64) - INSERT, columns.rows[events]
        number = columns.number[events].astype(np.int64)
        for at, counts in _sums(number * 3 + kind, rows):
            table = columns.tables[at]
            tally.add_table(TableKey(table.database, table.table), counts)
        self._measure(run, events, number)
        changed = np.bincount(columns.database_of_table[number], rows, minlength=len(columns.databases))[databases]
        last = np.zeros(databases.size, np.int64)
        last[places] = np.arange(run.size)
        of_each = zip(
            databases.tolist(),
            np.bincount(places).tolist(),
            changed.astype(np.int64).tolist(),
            (run.seqno + last).tolist(),
            columns.commit_times(run.first[last]).tolist(),
            strict=True,
        )
        for database, count, changes, seqno, time in of_each:
            route = self._route(database)
            tally.add_shard(route.shard, route.lane, count, changes)
            activity = DatabaseActivity(self._lane_alone(route), count, changes, seqno, time)
            self._activity.add(columns.databases[database], activity)
        filtered = 0 if columns.filter is None else int((run.database == len(columns.databases) - 1).sum())
        if run.size > filtered:
            tally.kinds[ROWS_ONLY] += run.size - filtered

    def _measure(self, run: Run, events: Ints, number: Ints) -> None:
        """Measure rows events that may be too long for the target; ``number``: the table of each of ``events``."""
        if self._measured_from is None:
            return
        frames = self._columns.frames
        long = frames.size[events] > self._measured_from[number]
        chosen = events[long | np.isin(frames.type_code[events], list(COMPRESSED_ROWS))]
        seqnos = run.seqno + np.searchsorted(run.first, chosen, "right") - 1
        for event, seqno in zip(chosen.tolist(), seqnos.tolist(), strict=True):
            table = self._columns.tables[self._columns.number[event]]
            self._tally.add_rows(table, int(frames.type_code[event]), frames.body(event), seqno)

    def _count_filtered(self, events: Ints) -> None:
        columns = self._columns
        if columns.filter is None:
            return
        events = events[columns.filter.is_counted[events]]
        kind = ROLES[columns.frames.type_code[events]].astype(np.int64) - INSERT
        for at, counts in _sums(columns.number[events].astype(np.int64) * 3 + kind, columns.rows[events]):
            table = columns.tables[at]
            self._tally.add_filtered(columns.verdicts.rule(at), TableKey(table.database, table.table), counts)


def _sums(keys: Ints, rows: Ints) -> Iterator[tuple[int, RowCounts]]:
    """Sums of ``rows`` by number and kind of change; each of ``keys`` is 3 * number + kind."""
    if keys.size == 0:
        return
    numbers = int(keys.max()) // 3 + 1
    by_number = np.bincount(keys, rows, minlength=3 * numbers).astype(np.int64).reshape(-1, 3)
    for number in distinct(keys // 3).tolist():
        yield number, RowCounts(*by_number[number].tolist())


def _meter_of(settings: PlanSettings, log: LogFormat) -> RowMeter | None:
    """The meter for the rows of a log; None if nothing needs measuring."""
    earlier = ends_earlier(log.format, log.target, settings.target_version)
    if not settings.measures_rows and not earlier:
        return None
    return RowMeter(log.format.flavor, log.target, settings.packet, settings.measures_rows, earlier)
