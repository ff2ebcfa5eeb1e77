"""Single transactions of a block: built again from the source's events as blocks of their own, or described as text.

A block commits all its transactions at once. To stop inside it, to skip a transaction or to find the failing one, its
transactions are built again from the log, not folded: applied one after another they have the block's effect
(docs/invariants.md, 1). In the row counts the sum over them replaces the block (5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, transactions
from binlane.binlog.wire import Buffer
from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Flavor, Item, plural
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.bound_statements import EveryStatement
from binlane.plan.block.builder import BlockBuilder, BlockLimits, transaction_header
from binlane.plan.block.computed_modes import AllTables, ModeRules
from binlane.plan.block.keyless_chains import AnyTable
from binlane.plan.block.reduce import Reducer
from binlane.plan.segment.lane_writer import LaneWriter
from binlane.plan.segment.reader import changed_rows
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.decode import LogFormat, Part, StatementPart, dissect
from binlane.plan.transaction.event_format import format_for, translation
from binlane.plan.window_plan import Block, LaneFile

NOTHING = "nothing"
"""Summary of a transaction without changes, such as an XA PREPARE."""
_XA = (Ending.XA_PREPARE, Ending.XA_COMMIT, Ending.XA_ROLLBACK)
_STATEMENT = 1000
"""Bytes of a statement shown in a summary."""


@dataclass(slots=True)
class _BlockList:
    """A sink that keeps the blocks in memory."""

    blocks: list[tuple[BlockHeader, tuple[Item, ...]]] = field(default_factory=list)

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        earlier = self.blocks.pop()[1] if self.blocks and self.blocks[-1][0] == header else ()
        self.blocks.append((header, (*earlier, *items)))

    def close(self) -> LaneFile:
        raise AssertionError("kept blocks have no file")


@dataclass(frozen=True, slots=True)
class Share:
    """A lane's part of a transaction whose changes are dealt to several lanes."""

    lane: int
    lanes: Sequence[int]
    """All lanes that have a part."""
    home: int
    """The lane of the transaction's statements."""
    dealer: Reducer | None
    """Deals the changes, in order; None: there is one lane."""


def piece(
    header: BlockHeader,
    parts: Sequence[Part],
    log: LogFormat,
    limits: BlockLimits,
    version: str,
    of: BlockHeader | None = None,
    share: Share | None = None,
    modes: ModeRules | None = None,
) -> Block:
    """A transaction as a block of its own for a target of ``version``; ``of``: the planned block that holds it.

    ``share``: the part of it that the block gets; None: all. ``modes`` as in ``LaneWriter``.
    """
    if share is None:
        share = Share(0, (0,), 0, None)
    [(header, items)] = _dealt(header, parts, log, limits, share, modes)[share.lane].blocks
    return Block(header, format_for(log.format, log.target, version), items, of)


def lanes_with_changes(
    header: BlockHeader, parts: Sequence[Part], log: LogFormat, limits: BlockLimits, share: Share
) -> tuple[int, ...]:
    """The lanes of ``share.lanes`` that get changes of a transaction, ascending."""
    dealt = _dealt(header, parts, log, limits, share)
    return tuple(sorted(lane for lane, kept in dealt.items() if any(items for _, items in kept.blocks)))


def _dealt(
    header: BlockHeader,
    parts: Sequence[Part],
    log: LogFormat,
    limits: BlockLimits,
    share: Share,
    modes: ModeRules | None = None,
) -> dict[int, _BlockList]:
    """The transaction as a block of its own in each lane."""
    sinks = {lane: _BlockList() for lane in share.lanes}
    builder = BlockBuilder(replace(limits, transactions=1), share.dealer)
    LaneWriter(sinks, builder, LaneEdges(), translation(log.target), modes).add(header, parts, share.home)
    return sinks


def alone(
    data: Buffer,
    name: str,
    target: Flavor,
    version: str,
    limits: BlockLimits,
    rules: ChannelRules = AS_LOGGED,
) -> Block:
    """The only transaction of a small binlog file as a block, filtered and renamed by ``rules``.

    Raises PlanError if the file holds none or several, or an XA transaction.
    """
    reader = LogReader(data, name)
    found = list(transactions(reader))
    if len(found) != 1:
        raise PlanError(f"{name}: expected one transaction, found {len(found)}")
    if found[0].ending in _XA:
        raise PlanError(f"{name}: an XA COMMIT does not contain its changes; apply those of its XA PREPARE by hand")
    log = LogFormat(reader.format, name, 0, target, rules)
    header = transaction_header(1, log.position(found[0]), found[0].gtid, found[0].commit_time)
    limits = replace(limits, bound=EveryStatement(), chains=AnyTable(log.format.flavor))
    return piece(header, dissect(found[0], log), log, limits, version, modes=AllTables())


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transaction of a window, described as text."""

    seqno: int
    lane: int
    """The lane that applies the transaction."""
    summary: str


def summary(parts: Sequence[Part]) -> str:
    """A transaction's statements as logged, and its row changes by table."""
    said = [
        part.sql[:_STATEMENT].decode("utf-8", "backslashreplace") for part in parts if isinstance(part, StatementPart)
    ]
    for key, counts in changed_rows(parts).items():
        kinds = ((counts.inserts, "insert"), (counts.updates, "update"), (counts.deletes, "delete"))
        said.append(f"{key}: {', '.join(plural(count, kind) for count, kind in kinds if count)}")
    return "; ".join(said) or NOTHING
