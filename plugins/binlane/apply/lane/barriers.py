"""One attempt of a lane's run: its lease, its barriers, and lanes without a holder, which it adopts.

At a barrier a lane waits for other lanes. A lane without a holder is adopted: moved up to the barrier (across its
earlier barriers, recursively) and released. Barriers are totally ordered by seqno and each wait is for an earlier
position, so fewer processes than lanes, down to one, cannot deadlock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import field, replace

from binlane.apply.block import Applied, record_standing
from binlane.apply.lane.blocks import LaneBlocks
from binlane.apply.lane.run_state import AttemptState, RunState
from binlane.apply.lane.together import FIRST_PAUSE, Adoption
from binlane.apply.lane.ways.table import CLASSES, following
from binlane.apply.lane.ways.task import BlockTask, Stream
from binlane.errors import BarrierTimeoutError, PlanError, StopRequestedError
from binlane.lazy_dataclass import dataclass
from binlane.model import Barrier, Epoch
from binlane.state.leases import lease_name, release, take
from binlane.state.migrations.check import require_version
from binlane.state.orders.orders import Orders

_log = logging.getLogger(__name__)
_UNFINISHED = -1
"""In place of a seqno: the temporary tables are restored in part."""


@dataclass(slots=True)
class LaneAttempt:
    """One attempt of a run, on connections of its own.

    What moves lanes returns False if only a new connection can move them further: the next attempt goes on.
    """

    state: RunState
    attempt: AttemptState
    blocks: LaneBlocks = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = LaneBlocks(self.state, self.attempt, self._adopt_one)

    def run(self) -> bool:
        """Take the lane's lease and move it to its goal, unless the previous holder has moved it there."""
        return not self._take_own_lease() or self._advance(self.state.lane, self.state.plan.last_seqno)

    def _take_own_lease(self) -> bool:
        """Wait for the lane's lease; returns False if its holder has moved the lane to the goal."""
        state, attempt = self.state, self.attempt
        while not take(attempt.session.cursor, lease_name(state.channel_uuid, state.lane)):
            attempt.positions = attempt.peers.positions()
            if attempt.positions[state.lane] >= state.goal:
                return False
            self.blocks.check_stop(state.lane)
            attempt.peers.is_abandoned(state.lane, attempt.positions[state.lane])
            time.sleep(state.options.poll_interval)
        require_version(attempt.session.cursor)
        self._hold(state.lane)
        return True

    def _hold(self, lane: int) -> None:
        attempt = self.attempt
        attempt.heartbeat.held = {**attempt.heartbeat.held, lane: attempt.session.connection_id}
        # another runner may have moved the lane since its position was read
        attempt.positions = attempt.peers.positions()
        attempt.forget_stream(lane)
        attempt.notes.read()

    def _advance(self, lane: int, goal: int) -> bool:
        """Move a held lane to ``goal``, across the barriers on its way, but not beyond a stop."""
        for barrier in self.state.plan.barriers_of(lane):
            if barrier.first > min(goal, self.state.goal):
                break
            if self.attempt.positions[lane] < barrier.last and not self._pass(barrier, lane):
                return False
        return self.blocks.up_to(lane, goal, (lane,))

    def _pass(self, barrier: Barrier, lane: int) -> bool:
        """Move the lane up to a barrier and across it."""
        epoch = self.state.epochs.get(barrier.first - 1)
        if epoch is not None and lane == barrier.owner and not self._meet(barrier, epoch):
            return False
        return self.blocks.up_to(lane, barrier.first - 1, (lane,)) and self._cross(barrier, lane)

    def _meet(self, barrier: Barrier, epoch: Epoch) -> bool:
        """Bring the barrier's owner to the end of the epoch before it, as the last of all lanes.

        The transaction that brings it records the epoch, so the lanes stand there only together with the record.
        """
        lane, attempt = barrier.owner, self.attempt
        if attempt.positions[lane] > epoch.seqno:
            return True
        attempt.readers.hold()
        others = [other for other in barrier.participants if other != lane]
        can_go_on = self._wait(
            lane, barrier, epoch.seqno,
            lambda at: [other for other in others if at[other] < min(epoch.seqno, self.state.goal)],
        )  # fmt: skip
        if can_go_on and attempt.positions[lane] < epoch.seqno:
            can_go_on = self.blocks.up_to(lane, epoch.seqno, (lane,), is_last=True)
        elif can_go_on and attempt.positions[lane] == epoch.seqno:
            # the barrier before ends here and has recorded the epoch, unless the lane was stopped here
            record_standing(attempt.session, self.blocks.place(lane, (lane,), records=True))
        if can_go_on and attempt.positions[lane] == epoch.seqno:
            attempt.readers.let_in()
        return can_go_on

    def _cross(self, barrier: Barrier, lane: int) -> bool:
        # a stop may arrive while the lane waits: then no lane moves beyond it
        self._check_stop_inside(barrier, lane)
        if lane != barrier.owner:
            return self._wait(
                lane, barrier, barrier.last,
                lambda at: [barrier.owner] if at[lane] < min(barrier.last, self.state.goal) else [],
            )  # fmt: skip
        arrived = barrier.first - 1
        if not self._wait(
            lane, barrier, arrived,
            lambda at: [other for other in barrier.participants if at[other] < min(arrived, self.state.goal)],
        ):  # fmt: skip
            return False
        if barrier.is_indivisible:
            return self._apply_atomically(lane, barrier)
        is_ahead = self.attempt.positions[lane] < min(barrier.last, self.state.goal)
        if is_ahead and barrier.temporary is not None and not self._bring_back(barrier):
            return False
        return self.blocks.up_to(lane, barrier.last, barrier.participants)

    def _wait(self, lane: int, barrier: Barrier, goal: int, missing: Callable[[dict[int, int]], list[int]]) -> bool:
        """Wait until no lane is ``missing``. A missing lane without a holder is adopted and moved to ``goal``."""
        attempt, options = self.attempt, self.state.options
        since, before = time.monotonic(), attempt.positions
        # most waits are short: read positions often at first, but leases only once a poll interval
        pause, look_at = FIRST_PAUSE, since + options.poll_interval
        while True:
            attempt.positions = attempt.peers.positions()
            self.blocks.check_stop(lane)
            absent = missing(attempt.positions)
            if not absent:
                return True
            if attempt.positions != before:
                since, before = time.monotonic(), attempt.positions
            if time.monotonic() < look_at:
                time.sleep(pause)
                pause = min(pause * 1.5, options.poll_interval)
                continue
            look_at = time.monotonic() + options.poll_interval
            adoption = self._adopt_one(absent, goal)
            if adoption is Adoption.RECONNECT:
                return False
            if adoption is Adoption.MOVED:
                continue
            # one statement of a lane that lives may take longer: an ALTER of a large table
            if time.monotonic() - max(since, attempt.peers.last_sign(absent)) > options.barrier_timeout:
                who = "; ".join(attempt.peers.describe(other) for other in absent)
                raise BarrierTimeoutError(
                    f"{self.state.where(lane)}: waited {options.barrier_timeout:.0f} s at the barrier "
                    f"{barrier.first}..{barrier.last} while no lane moved, for lanes without a heartbeat since: "
                    f"{who}; check the tasks of these lanes, then run this one again"
                )

    def _adopt_one(self, absent: list[int], goal: int) -> Adoption:
        state, attempt = self.state, self.attempt
        for other in absent:
            name = lease_name(state.channel_uuid, other)
            if attempt.peers.is_abandoned(other, attempt.positions[other]) and take(attempt.session.cursor, name):
                _log.info("%s: applies lane %s, which has no holder, up to seqno %s", state.where(), other, goal)
                state.adopted.add(other)
                self._hold(other)
                if not self._advance(other, goal):
                    return Adoption.RECONNECT
                attempt.heartbeat.held = {
                    lane: number for lane, number in attempt.heartbeat.held.items() if lane != other
                }
                release(attempt.session.cursor, name)
                self.blocks.together.leave(other)
                return Adoption.MOVED
        return Adoption.NONE

    def _apply_atomically(self, lane: int, barrier: Barrier) -> bool:
        """Apply all blocks of a barrier in one transaction."""
        state, attempt, blocks = self.state, self.attempt, self.blocks
        self._check_stop_inside(barrier, lane)
        if attempt.positions[lane] >= barrier.last or state.goal < barrier.first:
            return True
        if not self._bring_back(barrier):
            return False
        if lane not in attempt.streams:
            attempt.streams[lane] = Stream(state.source.blocks(lane, attempt.positions[lane]))
        stream = attempt.streams[lane]
        block = stream.peek()
        if block is None or block.header.first_seqno > barrier.last:
            raise PlanError(
                f"{state.where(lane)}: no block of seqnos {barrier.first}..{barrier.last} in the plan's files"
            )
        blocks.check_range(block.header, lane, barrier.first - 1, barrier.last)
        place = replace(blocks.place(lane, barrier.participants, records=True), expected=barrier.first - 1)
        state.current = (lane, block.header, place.expected)
        task = blocks.on_its_way(BlockTask.of(blocks.lane, place, block, stream, barrier.last, barrier))
        outcome = CLASSES[task.way].apply(task)
        state.current = None
        if (then := following(task, outcome)) is not None:
            # the connection was closed: its temporary tables were changed
            state.ways[task.key] = then
            _log.info("%s: seqnos %s..%s: %s", state.where(lane), barrier.first, barrier.last, then.value)
            return False
        if isinstance(outcome, Orders):
            attempt.forget_stream(lane)
            blocks.obey(outcome, lane)
            self._check_stop_inside(barrier, lane)
            return True
        applied = outcome if isinstance(outcome, Applied) else None
        blocks.moved(place, None if applied is None else applied.seqno, barrier.last)
        if applied is not None:
            state.count(lane, applied)
            if barrier.temporary is not None and barrier.temporary.kept is not None:
                attempt.temporary = barrier.last if barrier.temporary.kept else None
        return True

    def _bring_back(self, barrier: Barrier) -> bool:
        """Make the temporary tables that are open before the barrier, on this connection; False if it has others: only
        a new connection drops them all."""
        attempt = self.attempt
        since = None if barrier.temporary is None else barrier.temporary.since
        if attempt.temporary == since:
            return True
        if attempt.temporary is not None:
            _log.info(
                "%s: the connection's temporary tables are those of seqno %s, not of %s", self.state.where(),
                attempt.temporary, since,
            )  # fmt: skip
            return False
        assert since is not None
        attempt.temporary = _UNFINISHED
        self.blocks.lane.keeper.bring_back(attempt.session, attempt.writer.context, since)
        attempt.temporary = since
        return True

    def _check_stop_inside(self, barrier: Barrier, lane: int) -> None:
        """Raises StopRequestedError if the stop is inside a barrier of open temporary tables."""
        goal = self.state.goal
        if barrier.together and barrier.first <= goal < barrier.last:
            raise StopRequestedError(
                f"{self.state.where(lane)}: a stop was requested at seqno {goal}, but seqnos "
                f"{barrier.first}..{barrier.last}, where temporary tables are open, are one transaction on the "
                f"target; cancel the request (`binlane resume CHANNEL`), and stop at {barrier.first - 1} or "
                f"{barrier.last}"
            )
