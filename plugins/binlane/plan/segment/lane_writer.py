"""The filter job's two pure functions over one segment, and the fold between them.

``scan_segment`` tells what other segments must know; ``fold`` makes the window's routes of all scans; ``map_segment``
builds the segment's blocks. This is the plain version, one transaction after the other; ``map`` gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.wire import Buffer
from binlane.model import BlockHeader, Flavor, Item, ItemKind, RowCounts
from binlane.plan.barriers import BarrierMap
from binlane.plan.block.builder import BlockBuilder, FinishedBlock, LoggedEvent, transaction_header
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.row_size import RowMeter, ends_earlier
from binlane.plan.manifest import Segment
from binlane.plan.routing import LaneCursor, Routing
from binlane.plan.row_accounting import Tally
from binlane.plan.settings import FilterSettings
from binlane.plan.transaction.decode import LogFormat, MapPart, Part, RowsPart, StatementPart
from binlane.plan.transaction.event_format import Translation, format_for, translation
from binlane.plan.transaction.parts import FilteredPart
from binlane.plan.transaction.route_key import TransactionClass, classify
from binlane.plan.transaction.temporary_tables import TemporaryStep
from binlane.plan.transaction.xa import Groups, Halves, NoGroups, Prepared, Resolved, parts_at
from binlane.plan.window_plan import LaneFile

_FILE_PIECE = 1 << 20
"""Bytes of a LOAD DATA's file in one item, at most."""


class LaneSink(Protocol):
    """Takes the blocks of one segment and lane, in order."""

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        """Take a block. Its items may be larger than memory: they are there once, in order."""
        ...

    def close(self) -> LaneFile:
        """Finish; gives the lane file's entry for the plan."""
        ...


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """What one segment tells the window. Seqnos are absolute."""

    databases: Mapping[str, int]
    """Databases of plain transactions, with the seqno they first appear at."""
    classes: tuple[TransactionClass, ...]
    members: tuple[tuple[int, int], ...]
    """Every transaction that is not plain: its seqno and its class's place in ``classes``."""
    epochs: tuple[tuple[int, int], ...]
    """Epochs of source time with the seqno of the first transaction in each; empty unless the channel has epochs."""
    prepared: tuple[Prepared, ...] = ()
    resolved: tuple[Resolved, ...] = ()
    """The halves of XA transactions. An XA COMMIT is no member: the fold knows its class."""
    temporary: tuple[TemporaryStep, ...] = ()
    """Statements that depend on their connection."""


@dataclass(frozen=True, slots=True)
class MapSummary:
    """What one segment gave: its lane files and its tally."""

    files: Mapping[int, LaneFile]
    tally: Tally


def scan_segment(
    data: Buffer, segment: Segment, settings: FilterSettings, is_critical: Callable[[str], bool]
) -> ScanSummary:
    """What the fold must know of one segment. ``is_critical`` tells databases whose every transaction needs a barrier.

    Raises BinlogError for what the log holds that cannot be applied exactly.
    """
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    epochs: dict[int, int] = {}
    halves = Halves()
    log, numbered = read_segment(data, segment, settings)
    for seqno, transaction in numbered:
        if settings.consistency == "epoch":
            epochs.setdefault(int(transaction.commit_time // settings.epoch_seconds), seqno)
        described, is_decided = halves.classify(seqno, transaction, log, segment.name)
        if not is_decided:
            continue
        if described.plain_database is not None and not is_critical(described.plain_database):
            databases.setdefault(described.plain_database, seqno)
        else:
            members.append((seqno, numbers.setdefault(described, len(numbers))))
    beyond = (tuple(halves.prepared), tuple(halves.resolved), tuple(halves.temporary))
    return ScanSummary(databases, tuple(numbers), tuple(members), tuple(epochs.items()), *beyond)


def map_segment(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: FilterSettings,
    open_sink: Callable[[int, bytes], LaneSink],
    reducer: Reducer | None = None,
    groups: Groups | None = None,
) -> MapSummary:
    """Build the segment's blocks, lane by lane, into the sinks of ``open_sink`` (lane, FORMAT_DESCRIPTION event).

    ``groups`` gives what the segment's XA COMMITs commit.
    """
    log, numbered = read_segment(data, segment, settings)
    tally = Tally(meter=meter_of(settings, log))
    writers: dict[int, LaneWriter] = {}
    barriers = BarrierMap(routing.barriers)
    for seqno, transaction in numbered:
        parts = parts_at(seqno, transaction, log, groups or NoGroups())
        route = routing.route_of(classify(parts))
        barrier = barriers.at(seqno)
        lane = barrier.owner if barrier is not None and route.lane in barrier.participants else route.lane
        if lane not in writers:
            sink = open_sink(lane, format_for(log.format, log.target, settings.target_version))
            builder = BlockBuilder(settings.limits, reducer)
            translate = translation(log.target)
            writers[lane] = LaneWriter(sink, builder, LaneCursor(routing.by_lane[lane]), translate)
        header = transaction_header(seqno, log.position(transaction), transaction.gtid, transaction.commit_time)
        writers[lane].add(header, parts, commits_itself(parts), log.name)
        tally.add(route.shard, route.lane, parts, seqno, log.format.flavor)
    return MapSummary({lane: writers[lane].close(lane, tally) for lane in sorted(writers)}, tally)


class LaneWriter:
    """Feeds one lane's transactions to its builder, and the builder's blocks to the sink."""

    def __init__(
        self, sink: LaneSink, builder: BlockBuilder, cursor: LaneCursor, translate: Translation | None = None
    ) -> None:
        self._sink = sink
        self._translate = translate
        self._builder = builder
        self._cursor = cursor
        self._stretch: int | None = None
        self._written = RowCounts()

    def add(self, header: BlockHeader, parts: Sequence[Part], alone: bool, name: str) -> None:
        """Take one transaction; ``alone``: it commits by itself on the target, so nothing may share its block."""
        self._enter(self._cursor.stretch(header.first_seqno))
        self._write(self._builder.end_before(header.commit_time))
        if alone:
            self._write(self._builder.finish())
        logged = _logged(parts, alone, f"{name}:{header.source.offset}: ")
        if self._builder.is_large(_size(parts)):
            self._write(self._builder.stream(header, logged))
            return
        for part in logged:
            if isinstance(part, Item):
                self._builder.add_statement(part)
            else:
                self._builder.add_event(part.event, part.counts, part.where)
        self._write(self._builder.end_transaction(header))
        if alone:
            self._write(self._builder.finish())

    def _enter(self, stretch: int) -> None:
        """End the block if a barrier's edge lies behind it."""
        if stretch != self._stretch:
            self._write(self._builder.finish())
        self._stretch = stretch

    def close(self, lane: int, tally: Tally) -> LaneFile:
        """Write what is left and finish the file; tell the tally what the lane writes."""
        self._write(self._builder.finish())
        tally.add_lane(lane, self._written)
        for key, counts in self._builder.saved.items():
            tally.add_saved(key, counts)
        return self._sink.close()

    def _write(self, blocks: Iterator[FinishedBlock]) -> None:
        for block in blocks:
            self._sink.add(block.header, self._counted(block.items))

    def _counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items as the target takes them, and their rows in the lane's count."""
        for item in items:
            self._written += item.rows
            if self._translate is None or item.kind is not ItemKind.ROWS:
                yield item
            else:
                yield replace(item, payload=self._translate(item.payload))


def _logged(parts: Iterable[Part], alone: bool, where: str) -> Iterator[LoggedEvent | Item]:
    for part in parts:
        match part:
            case MapPart():
                yield LoggedEvent(part.event, None, where)
            case RowsPart():
                yield LoggedEvent(part.event, part.counts, where)
            case StatementPart():
                kind = ItemKind.DDL if alone else ItemKind.STATEMENT if part.file is None else ItemKind.LOAD
                yield Item(kind, part.sql, context=part.context)
                for piece in part.file or ():
                    for at in range(0, len(piece), _FILE_PIECE):
                        yield Item(ItemKind.FILE, bytes(piece[at : at + _FILE_PIECE]))


def _size(parts: Sequence[Part]) -> int:
    """Bytes that a block counts for a transaction."""
    size = 0
    for part in parts:
        match part:
            case MapPart() | RowsPart():
                size += len(part.event)
            case StatementPart():
                size += len(part.sql) + sum(map(len, part.file or ()))
            case FilteredPart():
                pass
    return size


def read_segment(
    data: Buffer, segment: Segment, settings: FilterSettings
) -> tuple[LogFormat, Iterator[tuple[int, Transaction]]]:
    """What a segment's events are read with, and its transactions with their seqnos."""
    reader = LogReader(data, segment.source_file, verify=False)
    offset = segment.start_offset - segment.header_length
    target = Flavor(settings.target)
    log = LogFormat(reader.format, segment.source_file, offset, target, settings.rules)
    return log, enumerate(transactions(reader), segment.first_seqno)


def meter_of(settings: FilterSettings, log: LogFormat) -> RowMeter | None:
    """What looks at the rows of a log for the target; None if there is nothing to look for."""
    earlier = ends_earlier(log.format, log.target, settings.target_version)
    if not settings.measures_rows and not earlier:
        return None
    return RowMeter(log.format.flavor, log.target, settings.packet, settings.measures_rows, earlier)


def commits_itself(parts: Sequence[Part]) -> bool:
    """Whether the transaction is a statement that commits by itself, or begins with one: CREATE TABLE ... SELECT."""
    return bool(parts) and isinstance(parts[0], StatementPart) and parts[0].facts.commits_implicitly
