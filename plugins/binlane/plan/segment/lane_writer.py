"""Writes the transactions of one lane into blocks for the lane's file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from binlane.model import BlockHeader, DealtItem, Item, ItemKind, RowCounts
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.builder import BlockBuilder, FinishedBlock, LoggedEvent
from binlane.plan.block.computed_modes import ModeRules, Session
from binlane.plan.row_accounting import Tally
from binlane.plan.transaction.decode import MapPart, Part, RowsPart, StatementPart
from binlane.plan.transaction.event_format import Translation
from binlane.plan.transaction.parts import FilteredPart
from binlane.plan.window_plan import LaneFile

_AGAINST = re.compile(rb"\bAGAINST\b", re.IGNORECASE)
_FILE_PIECE = 1 << 20
"""Most bytes of a LOAD DATA's file in one item."""


class LaneSink(Protocol):
    """Takes the blocks of one segment and lane, in order."""

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        """Take a block, or more items of the last one. The items may be larger than memory: iterate over them once, in
        order."""
        ...

    def close(self) -> LaneFile:
        """Finish the lane file; returns its entry for the plan."""
        ...


class LaneWriter:
    """Passes one lane's transactions to its builder, and the builder's blocks to the sink; or those of several lanes,
    whose builder deals, to their sinks: each lane gets a share of each block."""

    def __init__(
        self,
        sinks: Mapping[int, LaneSink],
        builder: BlockBuilder,
        edges: LaneEdges,
        translate: Translation | None = None,
        modes: ModeRules | None = None,
    ) -> None:
        """``sinks``, by lane: one, or one for each lane that the builder's reducer deals to. ``modes``: the tables
        whose rows go with their session's modes; None: no table."""
        self._sinks = sinks
        self._translate, self._modes = translate, modes
        self._builder = builder
        self._edges = edges
        self._stretch: int | None = None
        self._written = dict.fromkeys(sinks, RowCounts())

    def add(self, header: BlockHeader, parts: Sequence[Part], lane: int) -> None:
        """Take one transaction, whose statements ``lane`` gets. A transaction that commits implicitly on the target
        gets a block of its own; one that asks a FULLTEXT index begins one."""
        alone = commits_itself(parts)
        self._enter(self._edges.stretch(header.first_seqno))
        self._write(self._builder.end_before(header.commit_time))
        if alone or _reads_committed(parts):
            self._write(self._builder.finish())
        sees = self._modes is not None and sees_modes(parts, self._modes)
        bits = self._modes.bits if sees and self._modes is not None else None
        logged = _logged(parts, alone, f"{header.source}: ", bits)
        if len(self._sinks) > 1:
            logged = (DealtItem.of(part, lane) if isinstance(part, Item) else part for part in logged)
        if self._builder.is_large(_size(parts)):
            self._write(self._builder.stream(header, logged))
            return
        for part in logged:
            if isinstance(part, Item):
                self._builder.add_statement(part)
            else:
                self._builder.add_event(part.event, part.counts, part.where, part.mode)
        self._write(self._builder.end_transaction(header))
        if alone:
            self._write(self._builder.finish())

    def _enter(self, stretch: int) -> None:
        """End the block if a barrier's edge lies between it and ``stretch``."""
        if stretch != self._stretch:
            self._write(self._builder.finish())
        self._stretch = stretch

    def close(self, tally: Tally) -> dict[int, LaneFile]:
        """Write the last block and finish the files; add the lanes' row changes to ``tally``."""
        self._write(self._builder.finish())
        for lane, written in self._written.items():
            tally.add_lane(lane, written)
        for key, counts in self._builder.saved.items():
            tally.add_saved(key, counts)
        return {lane: sink.close() for lane, sink in self._sinks.items()}

    def _write(self, blocks: Iterator[FinishedBlock]) -> None:
        for block in blocks:
            if len(self._sinks) > 1:
                self._deal(block)
                continue
            for lane, sink in self._sinks.items():
                sink.add(block.header, self._counted(lane, block.items))

    def _deal(self, block: FinishedBlock) -> None:
        """Give each lane its share, which may be empty: all lanes have the same blocks."""
        left = dict(self._sinks)
        for item in block.items:
            assert isinstance(item, DealtItem), "a builder for several lanes has a reducer that deals"
            self._sinks[item.lane].add(block.header, self._counted(item.lane, (item,)))
            left.pop(item.lane, None)
        for sink in left.values():
            sink.add(block.header, ())

    def _counted(self, lane: int, items: Iterable[Item]) -> Iterator[Item]:
        """The items in the target's event format; their rows are added to the lane's count."""
        for item in items:
            self._written[lane] += item.rows
            if self._translate is None or item.kind is not ItemKind.ROWS:
                yield item
            else:
                yield replace(item, payload=self._translate(item.payload))


def _reads_committed(parts: Iterable[Part]) -> bool:
    """Whether a statement asks a FULLTEXT index. InnoDB's has no row of a transaction before it commits, so the rows of
    earlier transactions, which the source has found, must not be in the same one on the target."""
    return any(isinstance(part, StatementPart) and _AGAINST.search(part.sql) is not None for part in parts)


def sees_modes(parts: Iterable[Part], modes: ModeRules) -> bool:
    """Whether a transaction has rows of which the target computes a column or key in the session's modes."""
    keys = {part.table.key for part in parts if isinstance(part, RowsPart)}
    return any(map(modes.sees, keys))


def _logged(parts: Iterable[Part], alone: bool, where: str, bits: int | None) -> Iterator[LoggedEvent | Item]:
    """``bits``: the modes that the rows see; None: they see none."""
    for part in parts:
        match part:
            case MapPart():
                yield LoggedEvent(part.event, None, where, _mode(part, bits))
            case RowsPart():
                yield LoggedEvent(part.event, part.counts, where, _mode(part.table, bits))
            case StatementPart():
                kind = ItemKind.DDL if alone else ItemKind.STATEMENT if part.file is None else ItemKind.LOAD
                yield Item(kind, part.sql, context=part.context)
                for piece in part.file or ():
                    for at in range(0, len(piece), _FILE_PIECE):
                        yield Item(ItemKind.FILE, bytes(piece[at : at + _FILE_PIECE]))


def _mode(part: MapPart, bits: int | None) -> int | None:
    if bits is None or part.sql_mode is None:
        return None
    return Session(part.sql_mode, part.time_zone, part.lc_time_names).seen(bits)


def _size(parts: Sequence[Part]) -> int:
    """Bytes of a transaction, as the limits of a block count them."""
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


def commits_itself(parts: Sequence[Part]) -> bool:
    """Whether the transaction begins with a statement that commits implicitly, such as CREATE TABLE ... SELECT."""
    return bool(parts) and isinstance(parts[0], StatementPart) and parts[0].facts.commits_implicitly
