"""The source's transactions behind a block: read again from their segment, routed again by the window's own routes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import IncompleteTail, Transaction, transactions
from binlane.binlog.wire import Buffer, BufferOffset
from binlane.model import BlockHeader, Flavor, LogPosition, RowCounts, TableKey
from binlane.plan.barriers import BarrierMap
from binlane.plan.manifest import Segment
from binlane.plan.routing import Routing
from binlane.plan.settings import FilterSettings
from binlane.plan.transaction.decode import LogFormat, Part, RowsPart, StatementPart
from binlane.plan.transaction.route_key import classify
from binlane.plan.transaction.xa import Groups, parts_at

__all__ = ["Found", "transactions_of"]


@dataclass(frozen=True, slots=True)
class Found:
    """One transaction of a lane."""

    seqno: int
    gtid: str
    source: LogPosition
    end_offset: int
    commit_time: float
    shard: str
    barrier: bool
    """Whether it stands inside a barrier."""
    tables: Mapping[TableKey, RowCounts]
    statements: tuple[tuple[str, bytes], ...]
    """Kind and text, in order."""
    parts: tuple[Part, ...]
    log: LogFormat


def transactions_of(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: FilterSettings,
    lane: int,
    block: BlockHeader,
    groups: Groups,
) -> Iterator[Found]:
    """The transactions of one of the lane's blocks that this segment holds, in order.

    ``groups`` gives what an XA COMMIT commits. Raises BinlogError for a damaged segment.
    """
    reader = LogReader(data, segment.source_file, verify=False)
    shift = segment.start_offset - segment.header_length
    target = Flavor(settings.target)
    log = LogFormat(reader.format, segment.source_file, shift, target, settings.rules)
    barriers = BarrierMap(routing.barriers)
    begins_here = segment.first_seqno <= block.first_seqno
    start = BufferOffset(block.source.offset - shift if begins_here else segment.header_length)
    first = max(segment.first_seqno, block.first_seqno)
    for seqno, transaction in enumerate(transactions(reader, _ignore, start=start), first):
        if seqno > block.last_seqno:
            return
        parts = parts_at(seqno, transaction, log, groups)
        route = routing.route_of(classify(parts))
        barrier = barriers.at(seqno)
        serialized = barrier is not None and route.lane in barrier.participants
        if (barrier.owner if barrier is not None and serialized else route.lane) == lane:
            yield _found(seqno, transaction, route.shard, serialized, parts, log)


def _ignore(_: IncompleteTail) -> None:
    """A segment ends with a whole transaction; a reader of a part of it may not."""


def _found(
    seqno: int, transaction: Transaction, shard: str, barrier: bool, parts: tuple[Part, ...], log: LogFormat
) -> Found:
    kinds: dict[TableKey, Counter[str]] = {}
    statements = []
    for part in parts:
        if isinstance(part, RowsPart):
            counted = kinds.setdefault(part.table.key, Counter())
            counted.update(inserts=part.counts.inserts, updates=part.counts.updates, deletes=part.counts.deletes)
        elif isinstance(part, StatementPart):
            statements.append((part.facts.kind.value, bytes(part.sql)))
    return Found(
        seqno=seqno,
        gtid=transaction.gtid,
        source=log.position(transaction),
        end_offset=log.source_offset(transaction.end),
        commit_time=transaction.commit_time,
        shard=shard,
        barrier=barrier,
        tables={key: RowCounts(**counted) for key, counted in kinds.items()},
        statements=tuple(statements),
        parts=parts,
        log=log,
    )
