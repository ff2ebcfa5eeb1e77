"""Options, progress and result of a lane's run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from binlane.apply.session.connection import SessionLimits
from binlane.choices import OnConflict, RowImages, Writer
from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Times are in seconds."""

    poll_interval: float = 0.5
    """Pause between two reads of the positions of lanes that are waited for."""
    heartbeat_interval: float = 5.0
    """Pause between two heartbeats, and so between two reads of the stop flag."""
    grace: float = 5.0
    """A lane without a holder for this long is adopted by a lane that waits for it."""
    lease_time: float = 60.0
    """A holder whose heartbeat and position have not changed for this long is killed."""
    barrier_timeout: float = 3600.0
    """Longest wait of a lane without a move of any position of the channel."""
    retries: int = 10
    """Most transient errors in a row without a committed block."""
    backoff: float = 0.2
    """Wait before the first retry; doubled each time, with jitter."""
    backoff_limit: float = 30.0
    ddl_lock_wait_timeout: int = 60
    commits_together: bool = False
    """The shares of a block commit when all lanes have executed theirs."""
    reader_wait: float = 2.0
    """Longest wait, at the end of an epoch, for readers that take their snapshots."""
    allow_nontransactional: bool = False
    """The channel accepts that rows of non-transactional tables stay after a block's rollback (invariant 2)."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """The channel's ``[collations]``: source collation -> target collation."""
    allow_unsafe: bool = False
    """The channel accepts statements whose effect the log does not tell."""
    allow_triggers: frozenset[str] = frozenset()
    """Tables with triggers, as ``database.table``, whose rows may be written as statements instead of row events."""
    writer: str = Writer.BINLOG
    """The row writer, by its word in ``writers.ROW_WRITERS``."""
    on_conflict: OnConflict = OnConflict.STOP
    """What is done where rows differ from those that the log expects (``conflict_policies.CONFLICT_POLICIES``)."""
    row_images: RowImages = RowImages.AUTO
    """Whether images of wide rows are sent shorter."""
    limits: SessionLimits = field(default_factory=SessionLimits)
    interrupted: threading.Event | None = None
    """Set by a signal handler to end this run at its next block boundary."""
    gives_way: Callable[[Callable[[], None]], bool] | None = None
    """Called in front of a block: waits while the target is busy, calls its argument once a second meanwhile, and says
    whether it has waited."""

    @property
    def shortens_images(self) -> bool:
        """Whether images of wide rows are sent shorter: not where a row that has drifted shall get all its values."""
        return self.row_images is RowImages.AUTO and not self.on_conflict.overwrites


@dataclass(frozen=True, slots=True)
class Progress:
    """A lane after one more block."""

    lane: int
    seqno: int
    transactions: int
    rows: RowCounts


ProgressCallback: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class LaneResult:
    """The result of a lane's run. Includes blocks of adopted lanes; a lane that was finished before has none."""

    lane: int
    seqno: int
    blocks: int = 0
    transactions: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    adopted: tuple[int, ...] = ()
    """Other lanes that this run has moved."""
    retries: int = 0
    stopped: bool = False
    """The lane stands at a requested stop, before the window's end."""
