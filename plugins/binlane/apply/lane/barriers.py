"""A lane's way through its window: block after block and across barriers, adopting lanes that have no holder.

At a barrier a lane waits for other lanes. A lane without a holder is adopted: moved up to the barrier (across its
earlier barriers, recursively) and released. Barriers are totally ordered by seqno and each wait is for an earlier
position, so fewer processes than lanes, down to one, cannot deadlock.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import pymysql

from binlane.apply.block import Applied, BlockPlace, apply_block, move_only, record_standing
from binlane.apply.kept_changes import KeepsChangesError
from binlane.apply.lane.alone import AloneLane
from binlane.apply.lane.atomic_barrier import AtomicBarrier
from binlane.apply.lane.conflict_policies import CONFLICT_POLICIES, CountedItems, FailedBlock, apply_again
from binlane.apply.lane.run_state import AttemptState, RunState, Stream
from binlane.apply.lane.together import FIRST_PAUSE, SteppedBackError, Together, Turn
from binlane.apply.nontransactional import is_refused
from binlane.apply.session.unlogged_null import UnloggedNullError, nothing_stayed
from binlane.apply.temporary_copies import CopyKeeper
from binlane.errors import BarrierTimeoutError, DriftError, PlanError, PositionError, StopRequestedError
from binlane.model import Barrier, BlockHeader, Epoch, RowCounts
from binlane.state.epochs import record_epoch
from binlane.state.leases import lease_name, release, take
from binlane.state.migrations.check import require_version
from binlane.state.orders.orders import NOW, Orders
from binlane.state.splits import is_split

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.plan.window_plan import Block

_log = logging.getLogger(__name__)
_LOST = 2013
"""The client's CR_SERVER_LOST: the lane starts again on a new connection."""
_UNFINISHED = -1
"""In place of a seqno: the temporary tables are restored in part."""


@dataclass(slots=True)
class LaneAttempt:
    """One attempt of a run, on connections of its own."""

    state: RunState
    attempt: AttemptState
    together: Together = field(init=False)
    alone: AloneLane = field(init=False)

    def __post_init__(self) -> None:
        self.alone = AloneLane(self.state, self.attempt, self._apply)
        self.together = Together(self.state, self.attempt, self._check_stop, self._adopt_one)

    def run(self) -> None:
        """Take the lane's lease and move it to its goal; do nothing if the previous holder has moved it there."""
        if self._take_own_lease():
            self._advance(self.state.lane, self.state.plan.last_seqno)

    def _take_own_lease(self) -> bool:
        """Wait for the lane's lease; returns False if its holder has moved the lane to the goal."""
        state, attempt = self.state, self.attempt
        while not take(attempt.session.cursor, lease_name(state.channel_uuid, state.lane)):
            attempt.positions = attempt.peers.positions()
            if attempt.positions[state.lane] >= state.goal:
                return False
            self._check_stop(state.lane)
            attempt.peers.is_abandoned(state.lane, attempt.positions[state.lane])
            attempt.session.keep_alive()
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
        attempt.kept.read()

    def _advance(self, lane: int, goal: int) -> None:
        """Move a held lane to ``goal``, across the barriers on its way, but not beyond a stop."""
        for barrier in self.state.plan.barriers_of(lane):
            if barrier.first > min(goal, self.state.goal):
                break
            if self.attempt.positions[lane] < barrier.last:
                epoch = self.state.epochs.get(barrier.first - 1)
                if epoch is not None and lane == barrier.owner:
                    self._meet(barrier, epoch)
                self._apply_up_to(lane, barrier.first - 1, (lane,))
                self._cross(barrier, lane)
        self._apply_up_to(lane, goal, (lane,))

    def _meet(self, barrier: Barrier, epoch: Epoch) -> None:
        """Bring the barrier's owner to the end of the epoch before it, as the last of all lanes.

        The transaction that brings it records the epoch, so the lanes stand there only together with the record.
        """
        lane, attempt = barrier.owner, self.attempt
        if attempt.positions[lane] > epoch.seqno:
            return
        attempt.readers.hold()
        others = [other for other in barrier.participants if other != lane]
        self._wait(
            lane, barrier, epoch.seqno,
            lambda at: [other for other in others if at[other] < min(epoch.seqno, self.state.goal)],
        )  # fmt: skip
        if attempt.positions[lane] < epoch.seqno:
            self._apply_up_to(lane, epoch.seqno, (lane,), is_last=True)
        elif attempt.positions[lane] == epoch.seqno:
            # the barrier before ends here and has recorded the epoch, unless the lane was stopped here
            record_standing(attempt.session, self._place(lane, (lane,), records=True))
        if attempt.positions[lane] == epoch.seqno:
            attempt.readers.let_in()

    def _record(self, cursor: Cursor, seqno: int) -> None:
        epoch = self.state.epochs.get(seqno)
        if epoch is not None:
            record_epoch(cursor, self.state.key, self.state.plan.source, epoch)

    def _cross(self, barrier: Barrier, lane: int) -> None:
        # a stop may arrive while the lane waits: then no lane moves beyond it
        self._check_stop_inside(barrier, lane)
        if lane == barrier.owner:
            arrived = barrier.first - 1
            self._wait(
                lane, barrier, arrived,
                lambda at: [other for other in barrier.participants if at[other] < min(arrived, self.state.goal)],
            )  # fmt: skip
            if barrier.is_indivisible:
                self._apply_atomically(lane, barrier)
            else:
                if barrier.temporary is not None and self.attempt.positions[lane] < min(barrier.last, self.state.goal):
                    self._bring_back(barrier)
                self._apply_up_to(lane, barrier.last, barrier.participants)
        else:
            self._wait(
                lane, barrier, barrier.last,
                lambda at: [barrier.owner] if at[lane] < min(barrier.last, self.state.goal) else [],
            )  # fmt: skip

    def _wait(self, lane: int, barrier: Barrier, goal: int, missing: Callable[[dict[int, int]], list[int]]) -> None:
        """Wait until no lane is ``missing``. A missing lane without a holder is adopted and moved to ``goal``."""
        attempt, options = self.attempt, self.state.options
        since, before = time.monotonic(), attempt.positions
        # most waits are short: read positions often at first, but leases only once a poll interval
        pause, look_at = FIRST_PAUSE, since + options.poll_interval
        while True:
            attempt.positions = attempt.peers.positions()
            self._check_stop(lane)
            absent = missing(attempt.positions)
            if not absent:
                return
            if attempt.positions != before:
                since, before = time.monotonic(), attempt.positions
            if time.monotonic() < look_at:
                time.sleep(pause)
                pause = min(pause * 1.5, options.poll_interval)
                continue
            look_at = time.monotonic() + options.poll_interval
            if not self._adopt_one(absent, goal):
                if time.monotonic() - since > options.barrier_timeout:
                    who = "; ".join(attempt.peers.describe(other) for other in absent)
                    raise BarrierTimeoutError(
                        f"{self.state.where(lane)}: waited {options.barrier_timeout:.0f} s at the barrier "
                        f"{barrier.first}..{barrier.last} while no lane moved, for: {who}; check the tasks of "
                        "these lanes, then run this one again"
                    )
                attempt.session.keep_alive()

    def _adopt_one(self, absent: list[int], goal: int) -> bool:
        state, attempt = self.state, self.attempt
        for other in absent:
            name = lease_name(state.channel_uuid, other)
            if attempt.peers.is_abandoned(other, attempt.positions[other]) and take(attempt.session.cursor, name):
                _log.info("%s: applies lane %s, which has no holder, up to seqno %s", state.where(), other, goal)
                state.adopted.add(other)
                self._hold(other)
                self._advance(other, goal)
                attempt.heartbeat.held = {
                    lane: number for lane, number in attempt.heartbeat.held.items() if lane != other
                }
                release(attempt.session.cursor, name)
                self.together.leave(other)
                return True
        return False

    def _place(self, lane: int, lanes: tuple[int, ...], *, records: bool) -> BlockPlace:
        state = self.state
        record = self._record if records else None
        return BlockPlace(state.key, state.channel_uuid, lane, lanes, self.attempt.positions[lane], record)

    def _apply_up_to(self, lane: int, limit: int, lanes: tuple[int, ...], *, is_last: bool = False) -> None:
        """Apply the lane's blocks up to ``limit``, or to a stop before it, and move ``lanes``, which all stand at the
        same seqno, there. ``is_last``: all other lanes stand at ``limit`` already."""
        attempt, state = self.attempt, self.state
        while attempt.positions[lane] < min(limit, state.goal):
            self._check_stop(lane)
            place = self._place(lane, lanes, records=is_last or len(lanes) == len(state.plan.all_lanes))
            stream, block = self._next(place, limit)
            if block is None:
                self._arrive(place, min(limit, state.goal))
            elif self.together.concerns(place):
                self._apply_share(place, block, stream, limit)
            else:
                stream.take()
                self._apply(place, block, stream, limit)

    def _next(self, place: BlockPlace, limit: int) -> tuple[Stream, Block | None]:
        """A lane's blocks, and the next one up to ``limit`` or a stop; a piece of it, if it cannot be applied as
        planned."""
        state, attempt, lane, position = self.state, self.attempt, place.lane, place.expected
        while True:
            stream = attempt.streams.get(lane)
            if stream is None:
                stream = attempt.streams[lane] = Stream(state.source.blocks(lane, position))
            block = stream.peek()
            if block is None or block.header.first_seqno > min(limit, state.goal):
                return stream, None
            self._check_range(block.header, lane, position, limit)
            if block.planned is not None or not (
                position >= block.header.first_seqno or state.needs_split(block.header)
            ):
                return stream, block
            self._split(place, block)

    def _apply_share(self, place: BlockPlace, block: Block, stream: Stream, limit: int) -> None:
        """Apply the lane's share of a block, or of a piece, when it is its turn (``together``)."""
        turn = self.together.turn(place, block)
        if turn is Turn.AGAIN:
            self.attempt.forget_stream(place.lane)
        elif turn is Turn.ALONE:
            self._apply_alone(place, block, limit)
            self.together.end_alone()
        elif turn is Turn.BEHIND:
            stream.take()
            self._apply(place, block, stream, limit)
        else:
            stream.take()
            try:
                self._apply(self.together.agreeing(place, block), block, stream, limit)
            except (SteppedBackError, pymysql.err.MySQLError) as exc:
                if not self.together.steps_back(place, exc):
                    raise
                self.state.current = None
                self.attempt.forget_stream(place.lane)

    def _apply_alone(self, place: BlockPlace, block: Block, limit: int) -> None:
        """Apply the shares of all lanes in one transaction."""
        lanes = replace(place, lanes=tuple(range(self.state.plan.lanes)))
        applied = self.alone.apply(lanes, block.header, limit, lambda at: self._next(at, limit))
        if isinstance(applied, Orders):
            self._follow(applied, place.lane, block.header)
            return
        if applied == {}:
            return
        # another lane may have been alone with a piece of the block
        self._moved(lanes, None if applied is None else next(iter(applied.values())).seqno, place.expected + 1)
        self.state.current = None
        for lane, each in (applied or {}).items():
            self.state.count(lane, each)

    def _apply_atomically(self, lane: int, barrier: Barrier) -> None:
        """Apply all blocks of a barrier in one transaction."""
        state, attempt = self.state, self.attempt
        self._check_stop_inside(barrier, lane)
        if attempt.positions[lane] >= barrier.last or state.goal < barrier.first:
            return
        self._bring_back(barrier)
        if lane not in attempt.streams:
            attempt.streams[lane] = Stream(state.source.blocks(lane, attempt.positions[lane]))
        stream = attempt.streams[lane]
        block = stream.peek()
        if block is None or block.header.first_seqno > barrier.last:
            raise PlanError(
                f"{state.where(lane)}: no block of seqnos {barrier.first}..{barrier.last} in the plan's files"
            )
        self._check_range(block.header, lane, barrier.first - 1, barrier.last)
        place = replace(self._place(lane, barrier.participants, records=True), expected=barrier.first - 1)
        state.current = (lane, block.header, place.expected)
        timeout, noted = state.options.ddl_lock_wait_timeout, state.noted_barriers
        whole = AtomicBarrier(attempt.session, attempt.writer, place, barrier, self._keeper, timeout, noted)
        applied = whole.apply(attempt.kept.over_barrier(lane, stream.up_to(barrier.last), barrier, noted))
        state.current = None
        if isinstance(applied, Orders):
            attempt.forget_stream(lane)
            self._obey(applied, lane)
            self._check_stop_inside(barrier, lane)
            return
        self._moved(place, None if applied is None else applied.seqno, barrier.last)
        if applied is not None:
            state.count(lane, applied)
            if barrier.temporary is not None and barrier.temporary.kept is not None:
                attempt.temporary = barrier.last if barrier.temporary.kept else None

    @property
    def _keeper(self) -> CopyKeeper:
        state = self.state
        return CopyKeeper(state.engine, state.options.limits, state.plan.channel)

    def _bring_back(self, barrier: Barrier) -> None:
        """Make the temporary tables that are open before the barrier, on this connection.

        Raises OperationalError, as for a lost connection, if it has others: only a new connection drops them all.
        """
        attempt = self.attempt
        since = None if barrier.temporary is None else barrier.temporary.since
        if attempt.temporary == since:
            return
        if attempt.temporary is not None:
            attempt.session.close()
            raise pymysql.err.OperationalError(
                _LOST, f"the connection's temporary tables are those of seqno {attempt.temporary}, not of {since}"
            )
        assert since is not None
        attempt.temporary = _UNFINISHED
        self._keeper.bring_back(attempt.session, attempt.writer.context, since)
        attempt.temporary = since

    def _check_stop_inside(self, barrier: Barrier, lane: int) -> None:
        """Raises StopRequestedError if the stop is inside a barrier of open temporary tables."""
        goal = self.state.goal
        if barrier.together and barrier.first <= goal < barrier.last:
            raise StopRequestedError(
                f"{self.state.where(lane)}: a stop was requested at seqno {goal}, but seqnos "
                f"{barrier.first}..{barrier.last}, where temporary tables are open, are one transaction on the "
                f"target; cancel the request (`binlane resume`), and stop at {barrier.first - 1} or "
                f"{barrier.last}"
            )

    def _arrive(self, place: BlockPlace, goal: int) -> None:
        done = move_only(self.attempt.session, place, goal)
        if isinstance(done, Orders):
            self._obey(done, place.lane)
        else:
            self._moved(place, goal if done else None, goal)

    def _apply(self, place: BlockPlace, block: Block, stream: Stream, limit: int) -> None:
        state, attempt, header = self.state, self.attempt, block.header

        def end() -> int:
            return stream.end(header, limit)

        state.current = (place.lane, header, place.expected)
        timeout, policy = state.options.ddl_lock_wait_timeout, CONFLICT_POLICIES[state.options.on_conflict]

        def apply(block: Block, *, nontransactional: bool) -> Applied | Orders | None:
            planned = stream.planned
            with attempt.writer.context.null_is_now() if header in state.null_is_now else contextlib.nullcontext():
                return apply_block(
                    attempt.session, attempt.writer, place, block, end, timeout, planned,
                    nontransactional=nontransactional, may_keep=attempt.kept.may_keep,
                )  # fmt: skip

        while True:
            is_noted = header in state.nontransactional
            given = block if is_noted else attempt.kept.over(place.lane, block)
            given = replace(given, items=CountedItems(given.items)) if policy.rewrites else given
            try:
                applied = apply(given, nontransactional=is_noted)
            except (pymysql.err.MySQLError, DriftError, KeepsChangesError) as exc:
                alone = self._alone(exc, header)
                if alone is None and is_noted:
                    # what the target has kept must not be written again
                    raise
                if alone is None:
                    applied = apply_again(state, attempt, FailedBlock(place, given, end, stream.planned, exc))
                elif block.planned is None:
                    self._take_apart(place, header, alone)
                    return
                else:
                    # the items of a piece are in memory and can be read again
                    alone.add(header)
                    continue
            break
        if isinstance(applied, Orders):
            self._follow(applied, place.lane, header)
            return
        # lanes that commit together may be moved into the block by one that applies it piece by piece
        wanted = place.expected + 1 if self.together.concerns(place) else header.last_seqno
        self._moved(place, None if applied is None else applied.seqno, wanted)
        state.current = None
        if applied is not None:
            state.count(place.lane, applied)

    def _alone(self, error: BaseException, header: BlockHeader) -> set[BlockHeader] | None:
        """The blocks of one transaction to which one of the block's has to be added, so that it is applied another way;
        None if there is none."""
        state, session = self.state, self.attempt.session
        if isinstance(error, KeepsChangesError):
            return state.nontransactional
        if header not in state.nontransactional and state.options.allow_nontransactional and is_refused(error, session):
            return state.nontransactional
        if header in state.null_is_now or not isinstance(error, UnloggedNullError) or not nothing_stayed(session):
            return None
        is_known = state.source.makes_null_now(header.first_seqno, header.last_seqno)
        return state.null_is_now if is_known else None

    def _take_apart(self, place: BlockPlace, header: BlockHeader, alone: set[BlockHeader]) -> None:
        """Read the block again: its transactions one by one, or its only one as one of ``alone``."""
        state = self.state
        state.current = None
        self.attempt.forget_stream(place.lane)
        (alone if header.transactions == 1 else state.to_split).add(header)

    def _split(self, place: BlockPlace, block: Block) -> None:
        """Continue with the block's transactions, one by one. Raises PlanError if its position was never split."""
        attempt, header = self.attempt, block.header
        if place.expected >= header.first_seqno and not is_split(attempt.session.cursor, place.key, place.lane, header):
            raise PlanError(
                f"{self.state.where(place.lane)}: a block of seqnos {header.first_seqno}..{header.last_seqno} "
                f"does not follow the position {place.expected}; the state or the plan's files were changed by "
                "hand"
            )
        planned = sum((item.rows for item in block.items), RowCounts())
        attempt.forget_stream(place.lane)
        pieces = self._behind(place, header)
        blocks = chain(pieces, self.state.source.blocks(place.lane, header.last_seqno))
        attempt.streams[place.lane] = Stream(blocks, planned)

    def _behind(self, place: BlockPlace, header: BlockHeader) -> Iterator[Block]:
        for piece in self.state.source.pieces(place.lane, header):
            if piece.header.last_seqno > place.expected:
                yield piece if piece.planned is not None else replace(piece, planned=header)

    def _follow(self, orders: Orders, lane: int, header: BlockHeader) -> None:
        """Follow the orders that keep a block from being applied as planned."""
        self.state.current = None
        self.attempt.forget_stream(lane)
        self._obey(orders, lane)
        if orders.skipped and not orders.forbids(header.last_seqno):
            self.state.to_split.add(header)

    def _obey(self, orders: Orders, lane: int) -> None:
        """Follow an order that a block has read before the heartbeat."""
        if orders.stop_at is not None:
            self.attempt.heartbeat.stop_at = orders.stop_at
        self._check_stop(lane)

    def _moved(self, place: BlockPlace, seqno: int | None, wanted: int) -> None:
        """Note a move of the lanes to ``seqno``; None if another runner moved them first, which is no error if they
        stand at ``wanted`` or beyond."""
        attempt = self.attempt
        if seqno is not None:
            self.state.moves += 1
            attempt.positions = {**attempt.positions, **dict.fromkeys(place.lanes, seqno)}
            return
        attempt.positions = attempt.peers.positions()
        attempt.forget_stream(place.lane)
        if attempt.positions[place.lane] < wanted:
            stands = {lane: attempt.positions[lane] for lane in place.lanes}
            raise PositionError(
                f"{self.state.where(place.lane)}: expected lanes {place.lanes} at seqno {place.expected} of "
                f"this window and plan, found {stands}; the state or the plan's files were changed by hand"
            )

    def _check_range(self, header: BlockHeader, lane: int, position: int, limit: int) -> None:
        if not position < header.last_seqno <= limit or header.first_seqno > header.last_seqno:
            raise PlanError(
                f"{self.state.where(lane)}: a block of seqnos {header.first_seqno}..{header.last_seqno} does not fit "
                f"between the position {position} and {limit}, the next barrier or the window's end; the state or "
                "the plan's files were changed by hand"
            )

    def _check_stop(self, lane: int) -> None:
        """At a block's boundary: follow another lane's error, a signal and a stop, as last read by the heartbeat."""
        heartbeat, position = self.attempt.heartbeat, self.attempt.positions[lane]
        failed, stop_at, interrupted = heartbeat.failed, heartbeat.stop_at, self.state.options.interrupted
        if failed is not None:
            raise StopRequestedError(
                f"{self.state.where(lane)}: stopped at seqno {position}, because lane {failed.lane} "
                f"failed at seqno {failed.seqno} ({failed.source}): {failed.text}"
            )
        if interrupted is not None and interrupted.is_set():
            raise StopRequestedError(
                f"{self.state.where(lane)}: stopped at seqno {position}, because its process was asked to end; "
                "run the window again to continue"
            )
        if stop_at == NOW:
            raise StopRequestedError(
                f"{self.state.where(lane)}: stopped on request at seqno {position}; cancel the request "
                f"(`binlane resume {self.state.plan.channel}`) and run the window again to continue"
            )
        if stop_at is not None:
            self.state.stopped_at = stop_at
