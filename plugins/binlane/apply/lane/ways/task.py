"""A block that a lane has read and is about to apply, and what a way has of the lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.apply.lane.ways.way import Way
from binlane.apply.nontransactional_tables import BlockItems
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.apply.block import BlockPlace
    from binlane.apply.nontransactional_tables import NontransactionalTables
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.apply.temporary_copies import CopyKeeper
    from binlane.model import Barrier, BlockHeader, Item, RowCounts
    from binlane.plan.window_plan import Block, LaneSource


@dataclass(slots=True)
class Stream:
    """A lane's blocks, with a look-ahead of one block."""

    blocks: Iterator[Block]
    planned: RowCounts | None = None
    """If the stream begins with the pieces of a block: the block's planned row changes."""
    _next: Block | None = None
    _ended: bool = False

    def peek(self) -> Block | None:
        """The next block. Call it only when the items of the block before are consumed."""
        if self._next is None and not self._ended:
            self._next = next(self.blocks, None)
            self._ended = self._next is None
        return self._next

    def take(self) -> None:
        """Move on, behind the block that ``peek`` returned."""
        self._next = None

    def up_to(self, seqno: int) -> Iterator[Block]:
        """Blocks that begin at or before ``seqno``, each taken on demand."""
        while (block := self.peek()) is not None and block.header.first_seqno <= seqno:
            self.take()
            yield block

    def end(self, block: BlockHeader, limit: int) -> int:
        """The seqno at which the lane stands behind ``block``, which was taken: for the last block up to ``limit`` that
        one. Call it when the block's items are consumed."""
        following = self.peek()
        return limit if following is None or following.header.first_seqno > limit else block.last_seqno

    def close(self) -> None:
        """Close the files that the blocks are read from."""
        close = getattr(self.blocks, "close", None)
        if close is not None:
            close()


@dataclass(frozen=True, slots=True)
class FailedBlock:
    """A block that was rolled back because of ``cause``."""

    place: BlockPlace
    block: Block
    """Its items are ``BlockItems``, of which some were taken."""
    end: Callable[[], int]
    """See ``apply_block``."""
    planned: RowCounts | None
    """Row changes that the plan counts for the block, where it does."""
    cause: Exception


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How a failed block is written again, in a new transaction."""

    writer: BlockWriter
    block: Block
    planned: RowCounts
    write: Callable[[], RowCounts]
    """Returns the row changes that it has made; they replace ``planned`` in the row counts."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What a way has of its lane, for one attempt."""

    session: LaneSession
    writer: BlockWriter
    source: LaneSource
    keeper: CopyKeeper
    ddl_lock_wait_timeout: int
    """Seconds."""
    allows_nontransactional: bool
    """The channel allows changes of tables without transactions."""
    rewrites: bool
    """The channel's conflict policy writes a block again whose rows differ."""
    rewrite: Callable[[FailedBlock], Rewrite]
    """How that policy writes the block again. Raises the block's ``cause`` if the policy does not help."""
    has_note: Callable[[int, int, int], bool]
    """Whether a transaction of a lane has a note, from a first seqno to a last one."""
    watched: Callable[[], NontransactionalTables | None]
    """The tables whose changes need a note; None if no change needs one."""
    may_change: Callable[[Item], bool]
    """Whether an item may change a table without transactions."""
    needs_pieces: Callable[[BlockHeader], bool]
    """Whether a stop is inside a block, or it was taken apart before."""
    begins: Callable[[int, BlockHeader, int], None]
    """From now on errors are those of this block of a lane, behind this seqno."""
    where: Callable[[int], str]
    """Prefix of messages about a lane."""


@dataclass(frozen=True, slots=True)
class BlockTask:
    """A block at its place, which a way applies; or the first block of a barrier that is applied as a whole."""

    lane: Lane
    place: BlockPlace
    block: Block
    stream: Stream
    """The lane's blocks; this one was taken, or is the next."""
    limit: int
    """The seqno behind which the lane does not go now."""
    items: BlockItems
    """The block's items, for a way that must end before a change that needs a note."""
    barrier: Barrier | None = None
    way: Way = Way.NEW
    cause: Exception | None = None
    """The error for which the block is applied again."""

    @classmethod
    def of(
        cls, lane: Lane, place: BlockPlace, block: Block, stream: Stream, limit: int, barrier: Barrier | None = None
    ) -> BlockTask:
        """A block that was read."""
        return cls(lane, place, block, stream, limit, BlockItems(block.items, lane.watched()), barrier)

    @property
    def is_piece(self) -> bool:
        """Whether it is a transaction of a planned block: its items are in memory, and can be taken again."""
        return self.block.planned is not None

    @property
    def key(self) -> BlockHeader | int:
        """What its way is remembered by: of a barrier its last seqno."""
        return self.block.header if self.barrier is None else self.barrier.last

    def end(self) -> int:
        """The seqno at which the lanes stand behind the block, once its items are consumed."""
        return self.stream.end(self.block.header, self.limit)

    def anew(self, way: Way) -> BlockTask:
        """The same with all items, by another way; for a piece."""
        return replace(BlockTask.of(self.lane, self.place, self.block, self.stream, self.limit), way=way)
