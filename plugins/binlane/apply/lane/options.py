"""What a lane's runner is told, and what it tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from binlane.apply.session.connection import SessionLimits
from binlane.model import RowCounts


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Times in seconds."""

    poll_interval: float = 0.5
    """Between two looks at the positions of lanes that are waited for."""
    heartbeat_interval: float = 5.0
    """Between two signs of life, and so between two looks at the stop flag."""
    grace: float = 5.0
    """A lane that nobody holds for this long is carried on by a lane that waits for it."""
    lease_time: float = 60.0
    """A holder whose heartbeat and position stand still for this long is killed."""
    barrier_timeout: float = 3600.0
    """How long no position of the channel may move while a lane waits."""
    retries: int = 10
    """Transient errors in a row, without a block in between, that are survived."""
    backoff: float = 0.2
    """Wait before the first retry; doubled each time, with jitter."""
    backoff_limit: float = 30.0
    ddl_lock_wait_timeout: int = 60
    allow_nontransactional: bool = False
    """The channel takes the risk that a block's rows stay after its rollback (invariant 2)."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """The channel's ``[collations]``: the source's collation -> the target's."""
    allow_triggers: frozenset[str] = frozenset()
    """Tables with triggers, as ``database.table``, that statements may write in the place of row events."""
    writer: str = "binlog"
    """Which of ``writers.ROW_WRITERS`` writes rows."""
    overwrite: bool = False
    """Rows that are not as the log expects are set right and recorded; if not, they stop the lanes."""
    limits: SessionLimits = field(default_factory=SessionLimits)
    interrupted: threading.Event | None = None
    """Set by whoever wants this run to end at its next block boundary: a signal's handler."""


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
    """What one run of a lane did. Blocks of adopted lanes count as well; a lane that was finished before has none."""

    lane: int
    seqno: int
    blocks: int = 0
    transactions: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    adopted: tuple[int, ...] = ()
    """Other lanes that this run carried on."""
    retries: int = 0
    stopped: bool = False
    """The lane stands where the channel was asked to stop, before the window's end."""
