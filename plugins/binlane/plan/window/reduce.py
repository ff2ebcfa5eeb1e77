"""``reduce = "window"``: a lane's changes between two barriers become their net effect, across blocks and segments.

The row events of a folded block, followed by those of the next, are row events in an order that the target's keys
allow. The algebra of ``kernels.folding`` is closed, so folding them again equals folding the source's own events.
Blocks are gathered up to ``bound`` bytes and folded; the result is kept, and the next blocks are gathered behind it. A
result of more than half of ``bound`` becomes a block. So a row that changes often needs memory for its last images
only, and memory never grows with the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from itertools import chain

from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Item, ItemKind, RowCounts, TableKey
from binlane.plan.block.builder import BlockLimits, FinishedBlock, in_mode, net_effect
from binlane.plan.block.computed_modes import LOCALE, ZONE, Session
from binlane.plan.block.reduce import Reducer
from binlane.plan.window_plan import Block, LaneFile


@dataclass(frozen=True, slots=True)
class FoldedLane:
    """A lane after folding across segments."""

    lane: int
    files: tuple[LaneFile, ...]
    """In the order of apply."""
    rows: RowCounts
    """Row changes that the lane writes."""
    saved: dict[TableKey, RowCounts]
    """``rows`` minus the row changes of the blocks before folding, by table."""


@dataclass(slots=True)
class LaneFolder:
    """Folds one lane's blocks, given in order. Equal input gives equal blocks."""

    reducer: Reducer
    limits: BlockLimits
    bound: int
    """Most bytes of events that are held and folded at once."""
    stretch: Callable[[int], int]
    """A number for each seqno; blocks with different numbers have a barrier's edge between them."""
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    _header: BlockHeader | None = None
    """The header of all gathered blocks together."""
    _place: tuple[int, bytes] = (-1, b"")
    _items: list[Item] = field(default_factory=list)
    _size: int = 0
    _is_folded: bool = True
    _mode: int | None = None
    """The modes in which the target computes columns of the gathered rows; None: they see none."""

    def fold(self, blocks: Iterable[Block]) -> Iterator[tuple[bytes, FinishedBlock]]:
        """The lane's blocks with their FORMAT_DESCRIPTION; consume each before asking for the next."""
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
            modes = _modes(taken)
            if self._mode is not None and not modes <= {self._mode}:
                yield from self._finish()
            self._mode = next(iter(modes), self._mode)
            size = _size(taken)
            if self._size + size > self.bound:
                self._fold()
                if self._size > self.bound // 2:
                    yield from self._finish()
                    self._mode = next(iter(modes), None)
            self._gather(block.header, taken, size)
        yield from self._finish()

    def _taken(self, items: Iterator[Item]) -> tuple[list[Item], bool]:
        """A block's first items; True if they are the whole block, of row events only, of one mode, and of at most half
        of ``bound``."""
        taken, size = list[Item](), 0
        for item in items:
            taken.append(item)
            size += len(item.payload)
            if item.kind is not ItemKind.ROWS or size > self.bound // 2:
                return taken, False
        return taken, len(_modes(taken)) <= 1

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
        """Replace the gathered items by their net effect. A single block is folded already."""
        if self._is_folded:
            return
        events = b"".join(item.payload for item in self._items)
        self._items = []
        self._items = list(in_mode(net_effect(events, self.reducer, self.limits, self.saved), self._mode))
        self._size, self._is_folded = _size(self._items), True

    def _finish(self) -> Iterator[tuple[bytes, FinishedBlock]]:
        """Yield the gathered blocks as one block."""
        if self._header is None:
            return
        self._fold()
        header, items = self._header, self._items
        self._header, self._items, self._size, self._mode = None, [], 0, None
        yield self._place[1], FinishedBlock(header, items)


def _modes(items: Iterable[Item]) -> set[int]:
    """The modes of rows with their time zones and locales, as ``Session.seen``, without those that see none."""
    contexts = (item.context for item in items if item.context is not None)
    found = {(each.sql_mode, each.time_zone, each.lc_time_names) for each in contexts}
    return {
        Session(mode, zone, locale).seen(mode | (ZONE if zone else 0) | (LOCALE if locale else 0))
        for mode, zone, locale in found
        if mode is not None
    }


def _size(items: Iterable[Item]) -> int:
    return sum(len(item.payload) for item in items)
