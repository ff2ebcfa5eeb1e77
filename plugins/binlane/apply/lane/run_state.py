"""What one run of a lane carries from attempt to attempt: its orders, what it has done, and where it stands now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from binlane.apply.lane.options import ApplyOptions, LaneResult, Progress, ProgressCallback
from binlane.apply.lane.peers import Memory
from binlane.errors import PlanError
from binlane.model import BlockHeader, RowCounts, TableKey
from binlane.state.positions import PlanKey

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.apply.block import Applied
    from binlane.apply.lane.heartbeat import Pulse
    from binlane.apply.lane.peers import Neighbours
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.plan.window_plan import Block, LaneSource, WindowPlan
    from binlane.schema.model import Schema


@dataclass(slots=True)
class Stream:
    """A lane's blocks with one of them looked at in advance."""

    blocks: Iterator[Block]
    planned: RowCounts | None = None
    """If it begins with the pieces of a block: the row changes that the plan has for the block."""
    _next: Block | None = None
    _ended: bool = False

    def peek(self) -> Block | None:
        """The next block. Only to be asked when the items of the one before are consumed."""
        if self._next is None and not self._ended:
            self._next = next(self.blocks, None)
            self._ended = self._next is None
        return self._next

    def take(self) -> None:
        """Go on behind the block that was looked at."""
        self._next = None

    def up_to(self, seqno: int) -> Iterator[Block]:
        """Blocks that begin at or before ``seqno``, each taken when it is asked for."""
        while (block := self.peek()) is not None and block.header.first_seqno <= seqno:
            self.take()
            yield block

    def close(self) -> None:
        """Close the files behind it."""
        close = getattr(self.blocks, "close", None)
        if close is not None:
            close()


@dataclass(slots=True)
class Links:
    """The connections of one attempt, and what is known through them."""

    session: LaneSession
    writer: BlockWriter
    neighbours: Neighbours
    pulse: Pulse
    positions: dict[int, int]
    streams: dict[int, Stream] = field(default_factory=dict)
    temporary: int | None = None
    """The session's temporary tables are those of the copies made behind this seqno; None: it has none."""

    def forget_stream(self, lane: int) -> None:
        """Open the lane's blocks anew, from its position, when they are needed again."""
        stale = self.streams.pop(lane, None)
        if stale is not None:
            stale.close()


@dataclass(frozen=True, slots=True)
class Checked:
    """What the precheck has found out for the lanes."""

    definitions: Schema | None = None
    """The source's own definitions of tables that the window alters, as far as they are known."""
    partitioned: frozenset[TableKey] | None = None
    """Of the target's tables that the window writes, those that are partitioned; None if it is not known."""


_UNCHECKED: Final = Checked()


@dataclass(slots=True)
class Course:
    """One run of one lane."""

    engine: Engine
    plan: WindowPlan
    lane: int
    source: LaneSource
    options: ApplyOptions
    progress: ProgressCallback | None
    checked: Checked = _UNCHECKED
    key: PlanKey = field(init=False)
    channel_uuid: str = ""
    memory: Memory = field(default_factory=Memory)
    current: tuple[int, BlockHeader, int] | None = None
    """Lane, header and expected position of the block under work, for errors."""
    stopped_at: int | None = None
    """The seqno of a graceful stop, once this run has been told of it."""
    to_split: set[BlockHeader] = field(default_factory=set)
    """Blocks that hold transactions to skip, or some that the target takes only by themselves."""
    outside: set[BlockHeader] = field(default_factory=set)
    """Blocks of one transaction that run outside any transaction of the target (``apply.nontransactional``)."""
    moves: int = 0
    """Positions moved by this run: what a retry is measured by."""
    blocks: int = 0
    transactions: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    adopted: set[int] = field(default_factory=set)
    retries: int = 0

    def __post_init__(self) -> None:
        self.key = PlanKey(self.plan.channel, self.plan.window_id, self.plan.digest)
        if self.lane not in self.plan.all_lanes:
            raise PlanError(f"{self.where()}: the plan has lanes 0..{self.plan.lanes}")

    @property
    def goal(self) -> int:
        """Where the lanes go: the window's end, or where they were asked to stop before it."""
        return self.plan.last_seqno if self.stopped_at is None else min(self.stopped_at, self.plan.last_seqno)

    def needs_split(self, block: BlockHeader) -> bool:
        """Whether a block cannot be applied as planned: a stop stands inside it, or it holds what is to be skipped."""
        return block.last_seqno > self.goal or block in self.to_split

    def where(self, lane: int | None = None) -> str:
        """The beginning of a message."""
        return f"channel {self.plan.channel}, window {self.plan.window_id}, lane {self.lane if lane is None else lane}"

    def count(self, lane: int, applied: Applied) -> None:
        """Take note of a block, and tell who listens."""
        self.blocks += applied.counted.blocks
        self.transactions += applied.counted.transactions
        self.rows += applied.counted.rows
        if self.progress is not None:
            self.progress(Progress(lane, applied.seqno, self.transactions, self.rows))

    def result(self) -> LaneResult:
        """What the run did; to be asked when its lane stands at the goal."""
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
