"""The filter's map in its plainest form, a transaction at a time: what ``columnar`` is held to, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from binlane.binlog.reader import LogReader
from binlane.binlog.rows import RowsEvent
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.unlogged_lengths import count_rows_of_any_length
from binlane.binlog.wire import HEADER, Buffer
from binlane.model import Barrier, Flavor
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.builder import BlockBuilder, transaction_header
from binlane.plan.block.computed_modes import ModeRules
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.row_size import RowMeter, ends_earlier
from binlane.plan.database_activity import WindowActivity
from binlane.plan.manifest import Segment
from binlane.plan.routing import Routing
from binlane.plan.row_accounting import Tally
from binlane.plan.segment.lane_writer import LaneSink, LaneWriter
from binlane.plan.segment.map import MapSummary, ScanSummary
from binlane.plan.segment.reader import segment_log
from binlane.plan.segment.row_modes import asked
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.decode import LogFormat
from binlane.plan.transaction.event_format import format_for, translation
from binlane.plan.transaction.parts import MapPart, Part, RowsPart
from binlane.plan.transaction.route_key import TransactionClass, classify
from binlane.plan.transaction.unseen_tables import without
from binlane.plan.transaction.xa import Groups, Halves, NoGroups, parts_at
from binlane.sql.requirements import UNLOGGED_LENGTH, Requirement


def scan_segment(
    data: Buffer, segment: Segment, settings: PlanSettings, is_critical: Callable[[str], bool]
) -> ScanSummary:
    """As ``columnar.scan_segment``."""
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    halves = Halves()
    log, numbered = _read(data, segment, settings)
    for seqno, transaction in numbered:
        described, is_decided = halves.classify(seqno, transaction, log, segment.name)
        if not is_decided:
            continue
        if described.plain_database is not None and not is_critical(described.plain_database):
            databases.setdefault(described.plain_database, seqno)
        else:
            members.append((seqno, numbers.setdefault(described, len(numbers))))
    beyond = (tuple(halves.prepared), tuple(halves.resolved), tuple(halves.temporary))
    return ScanSummary(databases, tuple(numbers), tuple(members), *beyond)


def map_segment(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: PlanSettings,
    open_sink: Callable[[int, bytes], LaneSink],
    reducer: Reducer | None = None,
    groups: Groups | None = None,
    modes: ModeRules | None = None,
) -> MapSummary:
    """As ``columnar.map_segment``."""
    log, numbered = _read(data, segment, settings)
    tally, activity = Tally(target=Flavor(settings.target), meter=_meter_of(settings, log)), WindowActivity()
    writers: dict[int, LaneWriter] = {}
    decoded = [(seqno, each, parts_at(seqno, each, log, groups or NoGroups())) for seqno, each in numbered]
    unlogged = {content for _, _, parts in decoded for content in with_unlogged_lengths(parts)}
    left_out = routing.unseen.by_seqno
    for seqno, transaction, parts in decoded:
        route = routing.route_of(classify(parts))
        parts = without(parts, left_out.get(seqno, ()))
        lane = lane_of(seqno, route.lane, routing.barriers)
        queue = lane if routing.division is None or lane == routing.lanes else 0
        if queue not in writers:
            lanes = (lane,) if queue == lane and routing.division is None else range(routing.lanes)
            lanes = (lane,) if lane == routing.lanes else lanes
            format_event = format_for(log.format, log.target, settings.target_version)
            dealer = reducer
            if len(lanes) > 1 and reducer is not None and routing.division is not None:
                dealer = replace(reducer, deal=routing.division.deal)
            builder, translate = BlockBuilder(settings.limits.shared_by(len(lanes)), dealer), translation(log.target)
            sinks = {each: open_sink(each, format_event) for each in lanes}
            writers[queue] = LaneWriter(sinks, builder, Cursor(routing.by_lane[lane]), translate, modes)
        header = transaction_header(seqno, log.position(transaction), transaction.gtid, transaction.commit_time)
        writers[queue].add(header, parts, lane)
        tally.add(route.shard, route.lane, parts, seqno, log.format.flavor)
        for requirement in () if modes is None else asked(parts, modes):
            tally.add_requirement(requirement, seqno)
        for part in parts:
            if isinstance(part, RowsPart) and content_of(part.table) in unlogged:
                tally.add_requirement(Requirement(UNLOGGED_LENGTH, str(part.table.key)), seqno)
        alone = route.lane if routing.division is None else None
        activity.add_transaction(route.shard, alone, parts, seqno, transaction.commit_time)
    files = {lane: file for queue in sorted(writers) for lane, file in writers[queue].close(tally).items()}
    return MapSummary(files, tally, activity)


def with_unlogged_lengths(parts: Iterable[Part]) -> Iterator[tuple[object, ...]]:
    """The contents of the TABLE_MAPs whose rows are not of the lengths that they tell."""
    for part in parts:
        if isinstance(part, RowsPart):
            rows = RowsEvent.parse(part.event[4], memoryview(part.event)[HEADER.size :])
            if not count_rows_of_any_length(rows, part.table.table)[1]:
                yield content_of(part.table)


def content_of(part: MapPart) -> tuple[object, ...]:
    """What makes two TABLE_MAPs the same."""
    table = part.table
    return part.key, table.column_types, table.metadata, table.null_bitmap


def lane_of(seqno: int, home: int, barriers: Sequence[Barrier]) -> int:
    """The lane that applies a transaction of the lane ``home``."""
    owners = (each.owner for each in barriers if each.first <= seqno <= each.last and home in each.participants)
    return next(owners, home)


class Cursor(LaneEdges):
    """As ``LaneEdges``, for seqnos that are asked about in ascending order."""

    def __init__(self, barriers: Sequence[Barrier]) -> None:
        super().__init__()
        self._barriers = barriers
        self._next = 0

    def stretch(self, seqno: int) -> int:
        while self._next < len(self._barriers) and self._barriers[self._next].last < seqno:
            self._next += 1
        inside = self._next < len(self._barriers) and self._barriers[self._next].first <= seqno
        return 2 * self._next + inside


def _read(
    data: Buffer, segment: Segment, settings: PlanSettings
) -> tuple[LogFormat, Iterator[tuple[int, Transaction]]]:
    reader = LogReader(data, segment.source_file, verify=False)
    log = segment_log(reader, segment, Flavor(settings.target), settings.rules)
    return log, enumerate(transactions(reader), segment.first_seqno)


def _meter_of(settings: PlanSettings, log: LogFormat) -> RowMeter | None:
    """What looks at the rows of a log for the target; None if there is nothing to look for."""
    earlier = ends_earlier(log.format, log.target, settings.target_version)
    if not settings.measures_rows and not earlier:
        return None
    return RowMeter(log.format.flavor, log.target, settings.packet, settings.measures_rows, earlier)
