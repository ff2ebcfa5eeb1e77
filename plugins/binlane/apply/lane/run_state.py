"""The state of a lane's run that lasts from attempt to attempt: plan and options, work done, present position."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from binlane.apply.lane.block_writers import UNCHECKED, Checked
from binlane.apply.lane.options import ApplyOptions, LaneResult, Progress, ProgressCallback
from binlane.apply.lane.peers import Memory
from binlane.apply.lane.ways.way import Way
from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Epoch, RowCounts
from binlane.state.positions import PlanKey

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.apply.block import Applied
    from binlane.apply.lane.heartbeat import Heartbeat
    from binlane.apply.lane.note_watch import NoteWatch
    from binlane.apply.lane.peers import Peers
    from binlane.apply.lane.readers import ReaderLock
    from binlane.apply.lane.ways.task import Stream
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.plan.window_plan import LaneSource, WindowPlan


@dataclass(slots=True)
class AttemptState:
    """The connections of one attempt, and the facts read through them."""

    session: LaneSession
    writer: BlockWriter
    peers: Peers
    heartbeat: Heartbeat
    positions: dict[int, int]
    readers: ReaderLock
    notes: NoteWatch
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
    ways: dict[BlockHeader | int, Way] = field(default_factory=dict)
    """The ways of blocks, and of barriers by their last seqno, that do not take the usual one (``ways.table``)."""
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

    def needs_pieces(self, block: BlockHeader) -> bool:
        """Whether a block cannot be applied as planned: a stop is inside it, or the table of ways has said so."""
        return block.last_seqno > self.goal or self.ways.get(block) is Way.PIECES

    def begins(self, lane: int, block: BlockHeader, expected: int) -> None:
        """From now on errors are those of this block."""
        self.current = (lane, block, expected)

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
