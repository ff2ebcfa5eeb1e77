"""One transaction as a block of its own, built anew from the source's events, and in words.

A block commits what it holds at once. To end inside one (a stop), to leave a transaction out (a skip) or to find the
one that fails, its transactions are built anew from the log, not folded: their effect, one after another, is the
block's (docs/invariants.md, 1). Sums over the pieces take the place of the block in the accounts (5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, transactions
from binlane.binlog.wire import Buffer
from binlane.errors import PlanError
from binlane.model import BlockHeader, Flavor, Item, plural
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.builder import BlockBuilder, BlockLimits, transaction_header
from binlane.plan.segment.lane_writer import LaneWriter
from binlane.plan.segment.reader import changed_rows
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.decode import LogFormat, Part, StatementPart, dissect
from binlane.plan.transaction.event_format import format_for, translation
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
        raise AssertionError("a block is no file")


def piece(
    header: BlockHeader,
    parts: Sequence[Part],
    log: LogFormat,
    limits: BlockLimits,
    version: str,
    of: BlockHeader | None = None,
) -> Block:
    """A transaction as a block of its own for a target of that ``version``; ``of``: the block that holds it."""
    sink = _Kept()
    builder = BlockBuilder(replace(limits, transactions=1))
    LaneWriter(sink, builder, LaneEdges(), translation(log.target)).add(header, parts)
    [(header, items)] = sink.blocks
    return Block(header, format_for(log.format, log.target, version), items, of)


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
    if found[0].ending in _XA:
        raise PlanError(f"{name}: an XA COMMIT holds none of the changes it commits; apply its XA PREPARE's by hand")
    log = LogFormat(reader.format, name, 0, target, rules)
    header = transaction_header(1, log.position(found[0]), found[0].gtid, found[0].commit_time)
    return piece(header, dissect(found[0], log), log, limits, version)


@dataclass(frozen=True, slots=True)
class Described:
    """A transaction of a window, in words."""

    seqno: int
    lane: int
    """Who applies it."""
    summary: str


def summary(parts: Sequence[Part]) -> str:
    """What a transaction changes: statements as they are, rows by table."""
    said = [
        part.sql[:_STATEMENT].decode("utf-8", "backslashreplace") for part in parts if isinstance(part, StatementPart)
    ]
    for key, counts in changed_rows(parts).items():
        kinds = ((counts.inserts, "insert"), (counts.updates, "update"), (counts.deletes, "delete"))
        said.append(f"{key}: {', '.join(plural(count, kind) for count, kind in kinds if count)}")
    return "; ".join(said) or NOTHING
