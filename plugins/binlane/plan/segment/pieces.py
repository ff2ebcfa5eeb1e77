"""A block taken apart again: its source transactions, each a block of its own, built anew from the window's segment.

A block commits what it holds at once. To end inside one (a stop), to leave a transaction out (a skip) or to find the
one that fails, its transactions are built anew from the log, not folded: their effect, one after another, is the
block's (docs/invariants.md, 1). Sums over the pieces take the place of the block in the accounts (5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, transactions
from binlane.binlog.wire import Buffer
from binlane.errors import PlanError
from binlane.model import BlockHeader, Flavor, Item, RowCounts, TableKey, plural
from binlane.plan.barriers import BarrierMap
from binlane.plan.block.builder import BlockBuilder, BlockLimits, transaction_header
from binlane.plan.manifest import Segment
from binlane.plan.routing import LaneCursor, Routing
from binlane.plan.segment.lane_writer import LaneWriter, commits_itself, read_segment
from binlane.plan.settings import FilterSettings
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.decode import LogFormat, MapPart, Part, RowsPart, StatementPart, dissect
from binlane.plan.transaction.event_format import format_for, translation
from binlane.plan.transaction.route_key import classify
from binlane.plan.transaction.xa import Groups, parts_at
from binlane.plan.window_plan import Block, LaneFile

NOTHING = "nothing"
"""The summary of a transaction that changes nothing, as an XA PREPARE."""
_XA = (Ending.XA_PREPARE, Ending.XA_COMMIT, Ending.XA_ROLLBACK)
_STATEMENT = 1000
"""Bytes of a statement that a summary shows."""


@dataclass(slots=True)
class _Kept:
    """A sink that keeps what it is given."""

    blocks: list[tuple[BlockHeader, tuple[Item, ...]]] = field(default_factory=list)

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        self.blocks.append((header, tuple(items)))

    def close(self) -> LaneFile:
        raise AssertionError("pieces are no file")

    def taken(self) -> list[tuple[BlockHeader, tuple[Item, ...]]]:
        blocks, self.blocks = self.blocks, []
        return blocks


def pieces(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: FilterSettings,
    groups: Groups,
    lane: int,
    block: BlockHeader,
) -> Iterator[Block]:
    """The transactions of ``block``, which ``lane`` has in this segment, each a block, in order.

    ``groups`` gives what the segment's XA COMMITs commit.
    """
    log, numbered = read_segment(data, segment, settings)
    sink = _Kept()
    builder = BlockBuilder(replace(settings.limits, transactions=1))
    writer = LaneWriter(sink, builder, LaneCursor(routing.by_lane[lane]), translation(log.target))
    format_event = format_for(log.format, log.target, settings.target_version)
    barriers = BarrierMap(routing.barriers)
    for seqno, transaction in numbered:
        if seqno > block.last_seqno:
            return
        if seqno < block.first_seqno:
            continue
        parts = parts_at(seqno, transaction, log, groups)
        if lane_of(seqno, routing.route_of(classify(parts)).lane, barriers) != lane:
            continue
        header = transaction_header(seqno, log.position(transaction), transaction.gtid, transaction.commit_time)
        writer.add(header, parts, commits_itself(parts), log.name)
        for found, items in sink.taken():
            yield Block(found, format_event, items, block)


@dataclass(frozen=True, slots=True)
class Described:
    """A transaction of a segment, in words."""

    seqno: int
    lane: int
    summary: str


def describe(
    data: Buffer,
    segment: Segment,
    routing: Routing,
    settings: FilterSettings,
    groups: Groups,
    first: int,
    last: int,
) -> Iterator[Described]:
    """The transactions ``first`` to ``last`` of the segment: who applies them, and what they change."""
    log, numbered = read_segment(data, segment, settings)
    barriers = BarrierMap(routing.barriers)
    for seqno, transaction in numbered:
        if first <= seqno <= last:
            parts = parts_at(seqno, transaction, log, groups)
            lane = lane_of(seqno, routing.route_of(classify(parts)).lane, barriers)
            yield Described(seqno, lane, summary(parts))


def summary(parts: Sequence[Part]) -> str:
    """What a transaction changes: rows by table, statements as they are."""
    rows: dict[TableKey, RowCounts] = {}
    said = []
    for part in parts:
        match part:
            case RowsPart():
                rows[part.table.key] = rows.get(part.table.key, RowCounts()) + part.counts
            case StatementPart():
                said.append(part.sql[:_STATEMENT].decode("utf-8", "backslashreplace"))
            case MapPart():
                pass
    for key, counts in rows.items():
        kinds = ((counts.inserts, "insert"), (counts.updates, "update"), (counts.deletes, "delete"))
        said.append(f"{key}: {', '.join(plural(count, kind) for count, kind in kinds if count)}")
    return "; ".join(said) or NOTHING


def lane_of(seqno: int, home: int, barriers: BarrierMap) -> int:
    """The lane that applies a transaction whose own lane is ``home``: inside a barrier, its owner."""
    barrier = barriers.at(seqno)
    return barrier.owner if barrier is not None and home in barrier.participants else home


def alone(
    data: Buffer,
    name: str,
    target: Flavor,
    version: str,
    limits: BlockLimits,
    rules: ChannelRules = AS_LOGGED,
) -> Block:
    """What ``rules`` take of the one transaction of a small binlog file, as a block.

    Raises PlanError if the file holds another number of transactions.
    """
    reader = LogReader(data, name)
    found = list(transactions(reader))
    if len(found) != 1:
        raise PlanError(f"{name}: expected one transaction, found {len(found)}")
    log = LogFormat(reader.format, name, 0, target, rules)
    sink = _Kept()
    writer = LaneWriter(sink, BlockBuilder(replace(limits, transactions=1)), LaneCursor(()), translation(target))
    if found[0].ending in _XA:
        raise PlanError(f"{name}: an XA COMMIT holds none of the changes it commits; apply its XA PREPARE's by hand")
    parts = dissect(found[0], log)
    header = transaction_header(1, log.position(found[0]), found[0].gtid, found[0].commit_time)
    writer.add(header, parts, commits_itself(parts), name)
    [(header, items)] = sink.taken()
    return Block(header, format_for(log.format, target, version), items)
