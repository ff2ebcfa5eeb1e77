"""The other lanes, as a waiting lane sees them: their positions, their holders, and whether a holder still lives.

All reads use an AUTOCOMMIT connection of their own. Time is measured by this process's monotonic clock, from one change
of a value to the next; clocks of different machines are never compared.
"""

from __future__ import annotations

import logging
import time
from dataclasses import field
from typing import TYPE_CHECKING, Final

from binlane.apply.session.retry_verdicts import error_code
from binlane.lazy_dataclass import dataclass
from binlane.state.leases import holder, kill, lease_name, read_heartbeats
from binlane.state.positions import lane_seqnos

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from binlane.apply.lane.options import ApplyOptions
    from binlane.state.positions import PlanKey

_log = logging.getLogger(__name__)
_NO_SUCH_THREAD = 1094
_MOST_PATIENCE: Final = 8


class PositionsGoneError(Exception):
    """The plan's lanes have no positions any more: another runner has finished the window, and the next one may have
    been placed with other lanes. The run looks at the window again."""


@dataclass(slots=True)
class Peers:
    """The lanes of a channel as one runner sees them."""

    connection: Connection
    key: PlanKey
    channel_uuid: str
    options: ApplyOptions
    memory: Memory
    lanes: frozenset[int]
    """The plan's lanes with work."""

    def positions(self) -> dict[int, int]:
        """Seqno of each of the plan's lanes. Raises PositionsGoneError."""
        found = lane_seqnos(self.connection, self.key)
        if not self.lanes <= found.keys():
            raise PositionsGoneError
        return found

    def holder(self, lane: int) -> int | None:
        """The id of the connection that holds the lane's lease."""
        return holder(self.connection, lease_name(self.channel_uuid, lane))

    def is_abandoned(self, lane: int, position: int) -> bool:
        """Whether the lane has had no holder for the grace. A holder that stands still for the lease time is killed."""
        now = time.monotonic()
        held_by = self.holder(lane)
        if held_by is None:
            return now - self.memory.free_since.setdefault(lane, now) >= self.options.grace
        self.memory.free_since.pop(lane, None)
        self._kill_if_still(lane, position, held_by, now)
        return False

    def last_sign(self, lanes: Iterable[int]) -> float:
        """When the last sign of life of these lanes was seen: a heartbeat, a block, or another holder."""
        return max((self.memory.watched[lane].since for lane in lanes if lane in self.memory.watched), default=0.0)

    def describe(self, lane: int) -> str:
        """The lane, its position and its holder, for messages."""
        beats = read_heartbeats(self.connection, self.key.channel)
        held_by = self.holder(lane)
        seqno = self.positions().get(lane)
        who = "nobody" if held_by is None else f"connection {held_by}"
        last = f", last heartbeat {beats[lane].beat_at} UTC of {beats[lane].holder}" if lane in beats else ""
        return f"lane {lane} at seqno {seqno}, held by {who}{last}"

    def _kill_if_still(self, lane: int, position: int, held_by: int, now: float) -> None:
        sign = read_heartbeats(self.connection, self.key.channel).get(lane)
        state = LaneState(held_by, None if sign is None else sign.beat_at, position)
        watch = self.memory.watched.get(lane)
        if watch is None or watch.state != state:
            self.memory.watched[lane] = Watch(state, now) if watch is None else watch.after(state, now)
            return
        if now - watch.since < self.options.lease_time * watch.patience:
            return
        _log.warning(
            "channel %s: killing connection %s: %s, unchanged for %.0f s",
            self.key.channel, held_by, self.describe(lane), now - watch.since,
        )  # fmt: skip
        try:
            kill(self.connection, held_by)
        except Exception as exc:
            if error_code(exc) != _NO_SUCH_THREAD:
                raise
        self.memory.watched[lane] = Watch(state, now, watch.patience)
        # the holder had the lease time: no further grace
        self.memory.free_since[lane] = now - self.options.grace


@dataclass(frozen=True, slots=True)
class LaneState:
    """A held lane, as a heartbeat or a block changes it."""

    held_by: int
    beat_at: str | None
    position: int


@dataclass(frozen=True, slots=True)
class Watch:
    """A held lane as it was seen last."""

    state: LaneState
    since: float
    """Since when the state is unchanged."""
    patience: int = 1
    """The number of lease times that the holder has. It doubles with each holder that takes the lane where the one
    before has left it: on a busy machine a holder that lives would be killed again and again, and no block applied."""

    def after(self, state: LaneState, now: float) -> Watch:
        """The watch of the lane's next state."""
        if state.position != self.state.position:
            return Watch(state, now)
        is_new = state.held_by != self.state.held_by
        return Watch(state, now, min(self.patience * 2, _MOST_PATIENCE) if is_new else self.patience)


@dataclass(slots=True)
class Memory:
    """Observations that outlive a reconnect of the runner."""

    free_since: dict[int, float] = field(default_factory=dict)
    """Since when each lane has had no holder."""
    watched: dict[int, Watch] = field(default_factory=dict)
    """Each lane as its last holder left it."""
