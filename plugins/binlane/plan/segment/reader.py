"""Reads a window's segment again: each transaction with its parts, its route and the lane that applies it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.vector.inflated_segment import Inflated
from binlane.binlog.wire import LOG_BEGIN, Buffer, BufferOffset
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Flavor, RowCounts, TableKey
from binlane.plan.barriers import BarrierMap
from binlane.plan.block.builder import transaction_header
from binlane.plan.manifest import Segment
from binlane.plan.routing import Route, Routing
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import LogFormat, Part, RowsPart
from binlane.plan.transaction.load_data import LaterLoads
from binlane.plan.transaction.route_key import classify
from binlane.plan.transaction.unseen_tables import without
from binlane.plan.transaction.xa import Groups, parts_at


@dataclass(frozen=True, slots=True)
class RoutedTransaction:
    """A transaction with the lane that applies it."""

    seqno: int
    transaction: Transaction
    parts: tuple[Part, ...]
    """The changes to apply at this seqno: at an XA COMMIT, those that its XA PREPARE logged."""
    route: Route
    lane: int
    """The lane of its route or, inside a barrier that this lane takes part in, the barrier's owner."""
    in_barrier: bool
    log: LogFormat

    @property
    def header(self) -> BlockHeader:
        """The header of a block of this transaction alone."""
        one = self.transaction
        return transaction_header(self.seqno, self.log.position(one), one.gtid, one.commit_time)

    @property
    def end_offset(self) -> int:
        """Offset of the first byte behind the transaction in the source's log."""
        return self.log.source_offset(self.transaction.end)


class Router:
    """Gives the transactions of one segment their lanes, by the window's routes."""

    def __init__(self, log: LogFormat, routing: Routing, groups: Groups) -> None:
        """``groups`` gives the changes of the segment's XA COMMITs."""
        self._log, self._routing, self._groups = log, routing, groups
        self.barriers = BarrierMap(routing.barriers, routing.lanes)
        self._left_out = routing.unseen.by_seqno

    def routed(self, seqno: int, transaction: Transaction) -> RoutedTransaction:
        """The transaction with its route. Raises PlanError if the scan did not see its class, and as ``dissect``."""
        parts = parts_at(seqno, transaction, self._log, self._groups)
        route = self._routing.route_of(classify(parts))
        if seqno in self._left_out:
            parts = without(parts, self._left_out[seqno])
        barrier = self.barriers.at(seqno, route.lane)
        lane = route.lane if barrier is None else barrier.owner
        return RoutedTransaction(seqno, transaction, parts, route, lane, barrier is not None, self._log)


class SegmentReader:
    """Reads one segment's transactions one by one. ``map_segment`` takes plain ones many at once instead."""

    def __init__(
        self, data: Buffer, segment: Segment, routing: Routing, settings: PlanSettings, groups: Groups
    ) -> None:
        """``groups`` gives the changes of the segment's XA COMMITs."""
        self._reader = LogReader(data, segment.source_file, verify=False)
        self._segment = segment
        self.log = segment_log(self._reader, segment, Flavor(settings.target), settings.rules)
        self._router = Router(self.log, routing, groups)

    def read(self, first: int, last: int, block: BlockHeader | None = None) -> Iterator[RoutedTransaction]:
        """The segment's transactions with seqnos ``first`` to ``last``.

        ``block`` begins at ``first`` or before it: if it begins in this segment, reading starts there. Raises
        BinlogError for a damaged segment, and as ``Router.routed``.
        """
        seqno, start = self._segment.first_seqno, LOG_BEGIN
        if block is not None and seqno <= block.first_seqno:
            seqno, start = block.first_seqno, BufferOffset(block.source.offset - self.log.offset)
        for number, transaction in enumerate(transactions(self._reader, start=start), seqno):
            if number > last:
                return
            if number >= first:
                yield self._router.routed(number, transaction)


def segment_log(
    reader: LogReader,
    segment: Segment,
    target: Flavor,
    rules: ChannelRules,
    laid_out: Inflated | None = None,
) -> LogFormat:
    """How to read the segment's events; ``laid_out``: the segment after decompression, if ``reader`` reads that."""
    offset = segment.start_offset - segment.header_length
    return LogFormat(reader.format, segment.source_file, offset, target, rules, laid_out, LaterLoads(reader))


def changed_rows(parts: Sequence[Part]) -> dict[TableKey, RowCounts]:
    """The row changes of a transaction by table."""
    rows: dict[TableKey, RowCounts] = {}
    for part in parts:
        if isinstance(part, RowsPart):
            rows[part.table.key] = rows.get(part.table.key, RowCounts()) + part.counts
    return rows
