"""The shares of a block commit together (``lanes.commit = "together"``): when a lane executes, commits, steps back.

All parallel lanes have the same blocks. Each executes its share in its own transaction, says so by a named lock of that
connection (``state.meetings``), and commits when all others have said so. Then

- a lane whose position is behind its block has committed, so all had agreed: whoever stands before the block applies
  its share without asking. So after a crash between two commits the rest follows from the positions;
- before that, nobody has committed, and each may roll back. After a deadlock or a lock wait, which a lane that holds
  its executed share may cause without the server seeing it, and for a lane without a process, one lane applies all
  shares in one transaction, and the others wait.

A lane that gives way to a busy target (``ApplyOptions.gives_way``) does so in front of a share that no lane has begun:
each lane asks first, and says only then that it is on its way, and no share is executed before all have said so.

Signals only decide when a share commits. That it is applied once is the compare-and-set's business, as ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from binlane.apply.lane.ways.way import Way
from binlane.errors import BarrierTimeoutError
from binlane.lazy_dataclass import dataclass
from binlane.state.meetings import Signals

if TYPE_CHECKING:
    from binlane.apply.block import BlockPlace
    from binlane.apply.lane.run_state import AttemptState, RunState
    from binlane.plan.window_plan import Block

FIRST_PAUSE: Final = 0.003
"""First pause between two looks at what is missing, in seconds."""
_SHARE_OF_WAIT: Final = 0.05
"""A long wait may become longer by this share."""
_PATIENCE: Final = 1.0
"""Longest wait of an executed share, with its locks, for a lane that does not work on its own, or that stands still
behind an agreement; seconds."""
_LOCK_WAIT: Final = 1
"""Seconds that a share waits for a lock. The lane that has it may wait for this one, which no server sees."""


class Turn(Enum):
    """What a lane does with its next share."""

    TOGETHER = "execute it, and commit with the others"
    BEHIND = "apply it: another lane has committed its own"
    ALONE = "apply the shares of all lanes in one transaction"
    AGAIN = "look again: the lane's position or an order has changed"
    RECONNECT = "nothing: only a new connection can go on"


class Adoption(Enum):
    """What became of lanes without a holder."""

    NONE = "no lane was moved"
    MOVED = "a lane was moved, and released"
    RECONNECT = "a lane could be moved only by a new connection"


@dataclass(slots=True)
class Together:
    """The meetings of one attempt, for all lanes that it moves."""

    state: RunState
    attempt: AttemptState
    check_stop: Callable[[int], None]
    """Raises StopRequestedError for a lane that must stop."""
    adopt: Callable[[list[int], int], Adoption]
    """Moves one of these lanes to a seqno if it has no holder."""
    signals: Signals = field(init=False)
    _all_here: bool = False
    """At the last block all lanes were ready."""
    _was_alone: bool = False
    """The last block was applied alone: lanes that were missing are looked for at once."""

    def __post_init__(self) -> None:
        session, lanes = self.attempt.session, range(self.state.plan.lanes)
        self.signals = Signals(session.cursor, session.connection_id, self.state.channel_uuid, lanes)

    def concerns(self, place: BlockPlace) -> bool:
        """Whether the block at a place has shares that commit together."""
        lanes = self.signals.lanes
        return self.state.options.commits_together and len(lanes) > 1 and place.lane in lanes and len(place.lanes) == 1

    def turn(self, place: BlockPlace, block: Block) -> Turn:
        """Decide what the lane does with its share, and wait until it can. After ALONE call ``end_alone``.

        Raises StopRequestedError and BarrierTimeoutError.
        """
        has_met_lock = self.state.ways.get(block.header) is Way.SHARES_ALONE
        if has_met_lock:
            self._all_here = False
        is_whole = block.planned is None and not has_met_lock
        self.signals.arrive(place.lane, place.expected)
        is_known = self._all_here and is_whole and not self._asks_first
        turn = Turn.TOGETHER if is_known else self._wait(place, block, is_whole=is_whole)
        limits = self.state.options.limits
        if turn is Turn.TOGETHER:
            limits = replace(limits, lock_wait_timeout=_LOCK_WAIT, innodb_lock_wait_timeout=_LOCK_WAIT)
        self.attempt.session.set_limits(limits)
        return turn

    def agreeing(self, place: BlockPlace, block: Block) -> BlockPlace:
        """The place of a share that commits when all others are executed.

        Its transaction is rolled back if they do not come. It raises StopRequestedError, BarrierTimeoutError, and the
        driver's errors.
        """

        return replace(place, agree=partial(self._agree, place, block))

    def may_give_way(self, place: BlockPlace) -> bool:
        """Whether no lane has committed its share yet: once one has, readers see a part of the block until all have."""
        self.attempt.positions = self.attempt.peers.positions()
        return not self._is_decided(place)

    def gives_way(self, lane: int) -> None:
        """The lane waits for a busy target: the others begin no share until it goes on."""
        self.signals.give_way(lane)

    @property
    def _asks_first(self) -> bool:
        """Whether a lane may give way in front of each of its shares."""
        return self.state.options.gives_way is not None

    def end_alone(self) -> None:
        """The block is applied: the others may go on."""
        self._was_alone = True
        self.signals.end_alone()

    def leave(self, lane: int) -> None:
        """The lane was adopted, and is released."""
        self.signals.leave(lane)

    def _wait(self, place: BlockPlace, block: Block, *, is_whole: bool) -> Turn:
        state, attempt, lane = self.state, self.attempt, place.lane
        waits = _Waits(state.options.poll_interval)
        since, before = time.monotonic(), attempt.positions
        while True:
            self.signals.arrive(lane, place.expected)
            attempt.positions = at = attempt.peers.positions()
            self.check_stop(lane)
            if at[lane] != place.expected or state.needs_pieces(block.header):
                return Turn.AGAIN
            if self._is_decided(place):
                return Turn.BEHIND
            late = [other for other in self.signals.lanes if at[other] < place.expected]
            seen = self.signals.look(lane, place.expected)
            absent = [other for other in self.signals.lanes if other != lane and other not in seen.ready | seen.working]
            may_begin = not late and not seen.is_alone and not seen.gives_way
            if may_begin:
                if not is_whole and self.signals.begin_alone(lane):
                    return Turn.ALONE
                if is_whole and not absent:
                    self._was_alone = False
                    return Turn.TOGETHER
            if at != before or seen.gives_way:
                since, before = time.monotonic(), at
            if not self._was_alone and not waits.looks_closer():
                continue
            self._was_alone = False
            attempt.heartbeat.listen(attempt.peers.connection)
            self.check_stop(lane)
            adoption = self.adopt(late, place.expected)
            if adoption is Adoption.RECONNECT:
                return Turn.RECONNECT
            if adoption is Adoption.MOVED:
                continue
            gone = [other for other in absent if attempt.peers.is_abandoned(other, at[other])]
            if gone and may_begin and self.signals.begin_alone(lane):
                return Turn.ALONE
            self._check_time(place, block, since, late or absent)

    def _check_time(self, place: BlockPlace, block: Block, since: float, missing: list[int]) -> None:
        longest = self.state.options.barrier_timeout
        if time.monotonic() - since > longest:
            who = "; ".join(self.attempt.peers.describe(other) for other in missing)
            raise BarrierTimeoutError(
                f"{self.state.where(place.lane)}: waited {longest:.0f} s at seqno {place.expected} while no lane "
                f"moved, to commit the shares of {block.header.first_seqno}..{block.header.last_seqno} together with: "
                f"{who}; check the tasks of these lanes, then run this one again"
            )

    def _agree(self, place: BlockPlace, block: Block, following: int) -> bool:
        """Wait until all other lanes have executed their shares; returns whether this one may commit."""
        lane, at = place.lane, place.expected
        seen = self.signals.report(lane, at, None if self._asks_first else following)
        waits, idle_since = _Waits(self.state.options.poll_interval), None
        since, before = time.monotonic(), self.attempt.positions
        while True:
            awaited = [other for other in self.signals.lanes if other != lane and other not in seen.ready]
            if not awaited:
                self._all_here = True
                return True
            self.attempt.positions = self.attempt.peers.positions()
            if self._is_decided(place):
                self._all_here = False
                return True
            self.check_stop(lane)
            if self.attempt.positions != before:
                since, before = time.monotonic(), self.attempt.positions
            idle = not seen.working.issuperset(awaited)
            # who has not committed the block before yet says already that it works
            is_late = any(self.attempt.positions[other] < at for other in awaited)
            idle_since = (idle_since or time.monotonic()) if idle or is_late else None
            if (
                seen.is_alone
                or seen.gives_way
                or (idle_since is not None and time.monotonic() - idle_since > _PATIENCE)
            ):
                break
            if waits.looks_closer(sleeps=idle):
                for other in awaited:
                    # one whose process stands still is killed, and is not ready then
                    self.attempt.peers.is_abandoned(other, self.attempt.positions[other])
                self._check_time(place, block, since, awaited)
            seen = self.signals.wait(lane, at, awaited)
        # first: who looks from now on does not commit
        self.signals.withdraw(lane, at)
        self.attempt.positions = self.attempt.peers.positions()
        may_commit = self._is_decided(place)
        self._all_here = self._all_here and may_commit
        return may_commit

    def _is_decided(self, place: BlockPlace) -> bool:
        """Whether a lane has committed its share, by the positions that were read last."""
        return any(self.attempt.positions[other] > place.expected for other in self.signals.lanes)


@dataclass(slots=True)
class _Waits:
    """Pauses that grow to a tenth of an interval: most waits are short, and until all have come each lane stands still.
    In a long wait, for a lane that has died, they grow to a whole one. Leases are looked at once an interval only."""

    interval: float
    _pause: float = FIRST_PAUSE
    _began: float = field(init=False)
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self._since = time.monotonic()

    def looks_closer(self, *, sleeps: bool = True) -> bool:
        """Pause; returns whether an interval has passed since the last time it did."""
        if sleeps:
            time.sleep(self._pause)
            longest = max(self.interval / 10, (time.monotonic() - self._began) * _SHARE_OF_WAIT)
            self._pause = min(self._pause * 1.5, longest, self.interval)
        if time.monotonic() - self._since < self.interval:
            return False
        self._since = time.monotonic()
        return True
