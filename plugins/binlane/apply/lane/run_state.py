"""The state of a lane's run that lasts from attempt to attempt: plan and options, work done, present position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from binlane.apply.lane.block_writers import UNCHECKED, Checked
from binlane.apply.lane.options import ApplyOptions, LaneResult, Progress, ProgressCallback
from binlane.apply.lane.peers import Memory
from binlane.errors import PlanError
from binlane.model import BlockHeader, Epoch, RowCounts
from binlane.state.positions import PlanKey

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.apply.block import Applied
    from binlane.apply.lane.heartbeat import Heartbeat
    from binlane.apply.lane.kept_watch import KeptWatch
    from binlane.apply.lane.peers import Peers
    from binlane.apply.lane.readers import ReaderLock
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.plan.window_plan import Block, LaneSource, WindowPlan


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


@dataclass(slots=True)
class AttemptState:
    """The connections of one attempt, and the facts read through them."""

    session: LaneSession
    writer: BlockWriter
    peers: Peers
    heartbeat: Heartbeat
    positions: dict[int, int]
    readers: ReaderLock
    kept: KeptWatch
    streams: dict[int, Stream] = field(default_factory=dict)
    temporary: int | None = None
    """The seqno whose copies the session's temporary tables were made from; None without such tables."""

    def forget_stream(self, lane: int) -> None:
        """Read the lane's blocks anew, from its position, when they are needed again."""
        stale = self.streams.pop(lane, None)
        if stale is not None:
            stale.close()


@dataclass(slots=True)
class RunState:
    """One run of one lane."""

    engine: Engine
    plan: WindowPlan
    lane: int
    source: LaneSource
    options: ApplyOptions
    progress: ProgressCallback | None
    checked: Checked = UNCHECKED
    key: PlanKey = field(init=False)
    epochs: dict[int, Epoch] = field(init=False)
    """The plan's epochs by seqno."""
    channel_uuid: str = ""
    memory: Memory = field(default_factory=Memory)
    current: tuple[int, BlockHeader, int] | None = None
    """Lane, header and expected position of the block under work, for errors."""
    stopped_at: int | None = None
    """The seqno of a graceful stop, once the run has read it."""
    to_split: set[BlockHeader] = field(default_factory=set)
    """Blocks with transactions to skip, or with transactions that the target takes only by themselves."""
    nontransactional: set[BlockHeader] = field(default_factory=set)
    """Blocks of one transaction that run outside any transaction of the target, or behind a note
    (``apply.nontransactional``, ``apply.kept_changes``)."""
    noted_barriers: set[int] = field(default_factory=set)
    """Last seqnos of barriers that one transaction passes, behind a note."""
    null_is_now: set[BlockHeader] = field(default_factory=set)
    """Blocks of one transaction whose session had ``explicit_defaults_for_timestamp = OFF``
    (``apply.session.unlogged_null``)."""
    moves: int = 0
    """Moves of positions by this run: after a move, the count of retries begins anew."""
    blocks: int = 0
    transactions: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    adopted: set[int] = field(default_factory=set)
    retries: int = 0

    def __post_init__(self) -> None:
        self.epochs = {epoch.seqno: epoch for epoch in self.plan.epochs}
        self.key = PlanKey(self.plan.channel, self.plan.window_id, self.plan.digest)
        if self.lane not in self.plan.all_lanes:
            raise PlanError(f"{self.where()}: the plan has lanes 0..{self.plan.lanes}")

    @property
    def goal(self) -> int:
        """The seqno to which the lanes move: the window's end, or a requested stop before it."""
        return self.plan.last_seqno if self.stopped_at is None else min(self.stopped_at, self.plan.last_seqno)

    def needs_split(self, block: BlockHeader) -> bool:
        """Whether a block cannot be applied as planned: a stop is inside it, or it is in ``to_split``."""
        return block.last_seqno > self.goal or block in self.to_split

    def where(self, lane: int | None = None) -> str:
        """Prefix of messages."""
        return f"channel {self.plan.channel}, window {self.plan.window_id}, lane {self.lane if lane is None else lane}"

    def count(self, lane: int, applied: Applied) -> None:
        """Count a block and report the progress."""
        self.blocks += applied.counted.blocks
        self.transactions += applied.counted.transactions
        self.rows += applied.counted.rows
        if self.progress is not None:
            self.progress(Progress(lane, applied.seqno, self.transactions, self.rows))

    def result(self) -> LaneResult:
        """The run's result; valid once its lane stands at the goal."""
        return LaneResult(
            self.lane,
            self.goal,
            self.blocks,
            self.transactions,
            self.rows,
            tuple(sorted(self.adopted)),
            self.retries,
            self.goal < self.plan.last_seqno,
        )
