"""``reduce = "window"``: what a lane does between two barriers becomes its net effect, over blocks and segments.

A block's folded row events are row events in an order that the target's keys allow, and so are those of the next block
behind them: the algebra of ``fold_rows`` is closed, and folding them again gives what folding the source's own
events would leave. Blocks are gathered up to a number of bytes and folded; what is left stays, and the next ones are
gathered to it. Where what is left is more than half of that, it becomes a block. So rows that change all the time need
the room of their last images, however long the stretch is, and memory never grows with the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from binlane.model import BlockHeader, Item, ItemKind, RowCounts, TableKey
from binlane.plan.block.builder import BlockLimits, FinishedBlock, net_effect
from binlane.plan.block.reduce import Reducer
from binlane.plan.window_plan import Block, LaneFile


@dataclass(frozen=True, slots=True)
class FoldedLane:
    """What folding over segments made of a lane."""

    lane: int
    files: tuple[LaneFile, ...]
    """In the order of apply."""
    rows: RowCounts
    """Row changes that the lane writes."""
    saved: dict[TableKey, RowCounts]
    """Those less the ones of the blocks that were folded, by table."""


@dataclass(slots=True)
class StretchFolder:
    """Folds one lane's blocks, given in order. The same blocks give the same blocks."""

    reducer: Reducer
    limits: BlockLimits
    bound: int
    """Bytes of events that are held and folded at once."""
    stretch: Callable[[int], int]
    """A number for each seqno; blocks of different numbers have a barrier's edge between them."""
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    _header: BlockHeader | None = None
    """Of all blocks that are gathered."""
    _place: tuple[int, bytes] = (-1, b"")
    _items: list[Item] = field(default_factory=list)
    _size: int = 0
    _is_folded: bool = True

    def fold(self, blocks: Iterable[Block]) -> Iterator[tuple[bytes, FinishedBlock]]:
        """The lane's blocks with their FORMAT_DESCRIPTION; each must be consumed before the next is asked for."""
        for block in blocks:
            place = self.stretch(block.header.first_seqno), block.format
            if place != self._place:
                yield from self._finish()
            self._place = place
            items = iter(block.items)
            taken, is_whole = self._taken(items)
            if not is_whole:
                yield from self._finish()
                yield block.format, FinishedBlock(block.header, chain(taken, items))
                continue
            size = _size(taken)
            if self._size + size > self.bound:
                self._fold()
                if self._size > self.bound // 2:
                    yield from self._finish()
            self._gather(block.header, taken, size)
        yield from self._finish()

    def _taken(self, items: Iterator[Item]) -> tuple[list[Item], bool]:
        """A block's items, and whether they are all of it: row events alone, and no more than there may be room for."""
        taken, size = list[Item](), 0
        for item in items:
            taken.append(item)
            size += len(item.payload)
            if item.kind is not ItemKind.ROWS or size > self.bound // 2:
                return taken, False
        return taken, True

    def _gather(self, header: BlockHeader, items: list[Item], size: int) -> None:
        first = self._header
        if first is None:
            self._header = header
        else:
            self._header = replace(
                header,
                first_seqno=first.first_seqno,
                transactions=first.transactions + header.transactions,
                source=first.source,
            )
            self._is_folded = False
        self._items += items
        self._size += size

    def _fold(self) -> None:
        """Leave the net effect of what is gathered. A single block is folded already."""
        if self._is_folded:
            return
        events = b"".join(item.payload for item in self._items)
        self._items = []
        self._items = list(net_effect(events, self.reducer, self.limits, self.saved))
        self._size, self._is_folded = _size(self._items), True

    def _finish(self) -> Iterator[tuple[bytes, FinishedBlock]]:
        """What is gathered becomes a block."""
        if self._header is None:
            return
        self._fold()
        header, items = self._header, self._items
        self._header, self._items, self._size = None, [], 0
        yield self._place[1], FinishedBlock(header, items)


def _size(items: Iterable[Item]) -> int:
    return sum(len(item.payload) for item in items)
