"""The runner of a lane: takes its lease, walks its blocks and barriers, and carries on what nobody else holds.

A lane is a lease, not a process. At a barrier a lane waits for others; one that nobody holds is adopted, moved up to
the barrier (across earlier barriers of its own, recursively) and given back. Barriers are totally ordered by seqno and
each wait is for an earlier position, so fewer processes than lanes, down to one, cannot deadlock.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.block import Applied, BlockPlace, apply_block, move_only
from binlane.apply.context import ContextSetter
from binlane.apply.failure import located, raised
from binlane.apply.neighbours import Memory, Neighbours
from binlane.apply.options import ApplyOptions, LaneResult, Progress, ProgressCallback
from binlane.apply.pulse import Pulse
from binlane.apply.session import LaneSession
from binlane.apply.table_guard import TableGuard
from binlane.apply.transient import Verdict, error_code, error_text, judge
from binlane.apply.writers import BlockWriter
from binlane.errors import (
    BarrierTimeoutError,
    BinlaneError,
    PlanError,
    PositionError,
    StopRequestedError,
    TargetUnavailableError,
)
from binlane.model import Barrier, BlockHeader, RowCounts
from binlane.state.catalog import TableReader
from binlane.state.journal import last_error_id, record_error
from binlane.state.leases import lease_name, release, take
from binlane.state.positions import PlanKey, lane_positions
from binlane.state.windows import read_channel, read_window

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.plan.window_plan import Block, LaneSource, WindowPlan

_log = logging.getLogger(__name__)
_FIRST_PAUSE = 0.003
"""Seconds."""
_SERVER_ERRORS = (pymysql.err.MySQLError, SQLAlchemyError, OSError)


def run_lane(
    engine: Engine,
    plan: WindowPlan,
    lane: int,
    source: LaneSource,
    options: ApplyOptions | None = None,
    progress: ProgressCallback | None = None,
) -> LaneResult:
    """Move ``lane`` to the window's last seqno, from wherever it stands. A finished lane or window: nothing is opened.

    Raises ApplyError, DriftError or UndecidableError, with place and choices, and records them for the other lanes;
    PlanError and PositionError if state and plan do not fit; retryable: TargetUnavailableError, BarrierTimeoutError,
    StopRequestedError.
    """
    return _Runner(engine, plan, lane, source, options or ApplyOptions(), progress).run()


@dataclass(slots=True)
class _Stream:
    """A lane's blocks with one of them looked at in advance."""

    blocks: Iterator[Block]
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

    def close(self) -> None:
        close = getattr(self.blocks, "close", None)
        if close is not None:
            close()


@dataclass(slots=True)
class _Links:
    """The connections of one attempt, and what is known through them."""

    session: LaneSession
    writer: BlockWriter
    neighbours: Neighbours
    positions: dict[int, int]
    streams: dict[int, _Stream] = field(default_factory=dict)


@dataclass(slots=True)
class _Runner:
    engine: Engine
    plan: WindowPlan
    lane: int
    source: LaneSource
    options: ApplyOptions
    progress: ProgressCallback | None
    key: PlanKey = field(init=False)
    channel_uuid: str = ""
    errors_before: int = -1
    """Errors up to this id were there before this run: they concern it no more. -1 until it is known."""
    pulse: Pulse = field(init=False)
    memory: Memory = field(default_factory=Memory)
    current: tuple[int, BlockHeader, int] | None = None
    """Lane, header and expected position of the block under work, for errors."""
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
            raise PlanError(f"{self._where()}: the plan has lanes 0..{self.plan.lanes}")

    def run(self) -> LaneResult:
        """Attempt after attempt, until the lane is finished or an error is not worth another try."""
        in_a_row, moves_before = 0, 0
        while True:
            try:
                return self._attempt()
            except BinlaneError as exc:
                self._record(exc, 0)
                raise
            except _SERVER_ERRORS as exc:
                self._judge(exc)
                in_a_row = 1 if self.moves > moves_before else in_a_row + 1
                moves_before = self.moves
                self.retries += 1
                if in_a_row > self.options.retries:
                    raise TargetUnavailableError(
                        f"{self._where()}: {error_code(exc)} {error_text(exc)}: {in_a_row} attempts in a row "
                        "without a block; "
                        "look at the target, then run the task again"
                    ) from exc
                self._back_off(in_a_row, exc)

    def _attempt(self) -> LaneResult:
        """One attempt on connections of its own: whatever state an error left them in is thrown away with them."""
        if self._is_finished():
            return self._result()
        self.pulse = Pulse(self.engine, self.key, self.options.heartbeat_interval, self.errors_before)
        with self.pulse, self._links() as links:
            if self._take_own_lease(links):
                self._advance(links, self.lane, self.plan.last_seqno)
            return self._result()

    @contextlib.contextmanager
    def _links(self) -> Iterator[_Links]:
        with contextlib.ExitStack() as stack:
            session = LaneSession.open(self.engine, self.options.limits)
            stack.callback(session.close)
            poll = stack.enter_context(self.engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
            neighbours = Neighbours(poll, self.key, self.channel_uuid, self.options, self.memory)
            guard = TableGuard(self.plan.altered, self.plan.flavor, TableReader(poll).read)
            writer = BlockWriter(session, ContextSetter(session), guard)
            links = _Links(session, writer, neighbours, neighbours.positions())
            try:
                yield links
            finally:
                for stream in links.streams.values():
                    stream.close()

    def _is_finished(self) -> bool:
        """By the window's row alone. Raises PlanError or PositionError if the target has another plan, or none."""
        with self.engine.connect() as connection:
            self.channel_uuid = read_channel(connection, self.plan.channel).uuid
            window = read_window(connection, self.plan.channel, self.plan.window_id)
            if window is None:
                raise PositionError(f"{self._where()}: no such window on the target; run the extract step first")
            if window.plan_digest != self.plan.digest:
                raise PlanError(
                    f"{self._where()}: the target has the plan {window.plan_digest}, this is {self.plan.digest}: "
                    "a window keeps its plan until it is finished"
                )
            if window.is_finished:
                return True
            at = {lane.lane: lane.seqno for lane in lane_positions(connection, self.plan.channel)}
            if self.errors_before < 0:
                self.errors_before = last_error_id(connection, self.plan.channel)
        if self.lane not in at:
            raise PositionError(f"{self._where()}: no position on the target; its rows were removed by hand")
        return at[self.lane] >= self.plan.last_seqno

    def _take_own_lease(self, links: _Links) -> bool:
        """Wait for the lane's lease; False if whoever held it has finished the lane."""
        while not take(links.session.cursor, lease_name(self.channel_uuid, self.lane)):
            links.positions = links.neighbours.positions()
            if links.positions[self.lane] >= self.plan.last_seqno:
                return False
            self._check_stop(links, self.lane)
            links.neighbours.is_abandoned(self.lane, links.positions[self.lane])
            self._pause(links)
        self._hold(links, self.lane)
        return True

    def _hold(self, links: _Links, lane: int) -> None:
        self.pulse.held = {**self.pulse.held, lane: links.session.connection_id}
        # somebody else may have moved it, since it was last looked at
        links.positions = links.neighbours.positions()
        stale = links.streams.pop(lane, None)
        if stale is not None:
            stale.close()

    def _advance(self, links: _Links, lane: int, goal: int) -> None:
        """Move a lane that is held to ``goal``, across the barriers on its way."""
        for barrier in self.plan.barriers_of(lane):
            if barrier.first > goal:
                break
            if links.positions[lane] < barrier.last:
                self._apply_up_to(links, lane, barrier.first - 1, (lane,))
                self._cross(links, barrier, lane)
        self._apply_up_to(links, lane, goal, (lane,))

    def _cross(self, links: _Links, barrier: Barrier, lane: int) -> None:
        # DDL stands in barriers, so a table may be another behind one
        if lane == barrier.owner:
            arrived = barrier.first - 1
            self._wait(
                links, lane, barrier, arrived,
                lambda at: [other for other in barrier.participants if at[other] < arrived],
            )  # fmt: skip
            self._apply_up_to(links, lane, barrier.last, barrier.participants)
        else:
            self._wait(
                links, lane, barrier, barrier.last,
                lambda at: [barrier.owner] if at[lane] < barrier.last else [],
            )  # fmt: skip
        links.writer.context.forget_database()

    def _wait(
        self, links: _Links, lane: int, barrier: Barrier, goal: int, missing: Callable[[dict[int, int]], list[int]]
    ) -> None:
        """Wait until nobody is missing. A missing lane that nobody holds is adopted and moved to ``goal``."""
        since, before = time.monotonic(), links.positions
        # most waits are short: look often at first, and for who holds what only once a poll interval
        pause, look_at = _FIRST_PAUSE, since + self.options.poll_interval
        while True:
            links.positions = links.neighbours.positions()
            absent = missing(links.positions)
            if not absent:
                return
            self._check_stop(links, lane)
            if links.positions != before:
                since, before = time.monotonic(), links.positions
            if time.monotonic() < look_at:
                time.sleep(pause)
                pause = min(pause * 1.5, self.options.poll_interval)
                continue
            look_at = time.monotonic() + self.options.poll_interval
            if not self._adopt_one(links, absent, goal):
                if time.monotonic() - since > self.options.barrier_timeout:
                    who = "; ".join(links.neighbours.describe(other) for other in absent)
                    raise BarrierTimeoutError(
                        f"{self._where(lane)}: waited {self.options.barrier_timeout:.0f} s at the barrier "
                        f"{barrier.first}..{barrier.last} "
                        f"without a move of any lane, for: {who}; see to their tasks, then run this one again"
                    )
                links.session.keep_alive()

    def _adopt_one(self, links: _Links, absent: list[int], goal: int) -> bool:
        for other in absent:
            name = lease_name(self.channel_uuid, other)
            if links.neighbours.is_abandoned(other, links.positions[other]) and take(links.session.cursor, name):
                _log.info("%s: carries on lane %s up to seqno %s", self._where(), other, goal)
                self.adopted.add(other)
                self._hold(links, other)
                self._advance(links, other, goal)
                self.pulse.held = {lane: number for lane, number in self.pulse.held.items() if lane != other}
                release(links.session.cursor, name)
                return True
        return False

    def _apply_up_to(self, links: _Links, lane: int, limit: int, lanes: tuple[int, ...]) -> None:
        """Apply the lane's blocks up to ``limit`` and leave ``lanes``, which all stand together, there."""
        while links.positions[lane] < limit:
            self._check_stop(links, lane)
            position = links.positions[lane]
            place = BlockPlace(self.key, self.channel_uuid, lane, lanes, position)
            stream = links.streams.get(lane)
            if stream is None:
                stream = links.streams[lane] = _Stream(self.source.blocks(lane, position))
            block = stream.peek()
            if block is None or block.header.first_seqno > limit:
                done = move_only(links.session, place, limit)
                self._moved(links, place, limit if done else None, limit)
                continue
            self._check_range(block.header, lane, position, limit)
            stream.take()
            self._apply(links, place, block, stream, limit)

    def _apply(self, links: _Links, place: BlockPlace, block: Block, stream: _Stream, limit: int) -> None:
        header = block.header

        def end() -> int:
            following = stream.peek()
            is_last = following is None or following.header.first_seqno > limit
            return limit if is_last else header.last_seqno

        self.current = (place.lane, header, place.expected)
        applied = apply_block(links.session, links.writer, place, block, end, self.options.ddl_lock_wait_timeout)
        self._moved(links, place, None if applied is None else applied.seqno, header.last_seqno)
        self.current = None
        if applied is not None:
            self._count(place.lane, applied)

    def _moved(self, links: _Links, place: BlockPlace, seqno: int | None, wanted: int) -> None:
        """Take note of a move; None: somebody else was there first, which is as good if the lane stands where it was
        to go."""
        if seqno is not None:
            self.moves += 1
            links.positions = {**links.positions, **dict.fromkeys(place.lanes, seqno)}
            return
        links.positions = links.neighbours.positions()
        links.streams.pop(place.lane).close()
        if links.positions[place.lane] < wanted:
            stands = {lane: links.positions[lane] for lane in place.lanes}
            raise PositionError(
                f"{self._where(place.lane)}: expected lanes {place.lanes} at seqno {place.expected} of this "
                "window and plan, they "
                f"stand at {stands}; state was changed by hand, or the plan's files were"
            )

    def _count(self, lane: int, applied: Applied) -> None:
        self.blocks += applied.counted.blocks
        self.transactions += applied.counted.transactions
        self.rows += applied.counted.rows
        if self.progress is not None:
            self.progress(Progress(lane, applied.seqno, self.transactions, self.rows))

    def _check_range(self, header: BlockHeader, lane: int, position: int, limit: int) -> None:
        if not position < header.first_seqno <= header.last_seqno <= limit:
            raise PlanError(
                f"{self._where(lane)}: a block of seqnos {header.first_seqno}..{header.last_seqno} does not fit "
                "between the "
                f"position {position} and {limit}, the next barrier or the window's end"
            )

    def _check_stop(self, links: _Links, lane: int) -> None:
        """At a block's boundary: another lane's error and the stop flag, as the heartbeat has last read them."""
        failed, stop_at = self.pulse.failed, self.pulse.stop_at
        if failed is not None:
            raise StopRequestedError(
                f"{self._where(lane)}: stopped at seqno {links.positions[lane]}, because lane {failed.lane} "
                "failed at seqno "
                f"{failed.seqno} ({failed.source}): {failed.text}"
            )
        if stop_at is not None and links.positions[lane] >= stop_at:
            raise StopRequestedError(
                f"{self._where(lane)}: stopped on request at seqno {links.positions[lane]}; take the request back "
                "and run "
                "the window again to go on from here"
            )

    def _pause(self, links: _Links) -> None:
        links.session.keep_alive()
        time.sleep(self.options.poll_interval)

    def _judge(self, error: BaseException) -> None:
        """Return for another try. Raises what the error means, once the position has been read on a new connection."""
        verdict = judge(error)
        place, self.current = self.current, None
        if verdict is Verdict.RETRY:
            return
        if place is not None:
            lane, _, expected = place
            try:
                with self.engine.connect() as connection:
                    now = {found.lane: found.seqno for found in lane_positions(connection, self.plan.channel)}
            except (SQLAlchemyError, OSError):
                return
            if now.get(lane) != expected:
                return
        self.current = place
        meaning = raised(error, verdict, self.engine)
        self._record(meaning, error_code(error))
        raise meaning from error

    def _record(self, error: BinlaneError, code: int) -> None:
        """Add the place to the error's text and store it, so that the other lanes stop at their next block."""
        lane, header = (self.lane, None) if self.current is None else self.current[:2]
        if header is not None:
            error.args = (located(str(error), self._where(lane), header),)
        if error.retryable:
            return
        # the error itself matters more than its row
        with contextlib.suppress(SQLAlchemyError, OSError), self.engine.begin() as connection:
            record_error(connection, self.key, lane, header, code, str(error))

    def _back_off(self, in_a_row: int, error: BaseException) -> None:
        seconds = min(self.options.backoff * 2 ** (in_a_row - 1), self.options.backoff_limit)
        # lanes that collided shall not collide again
        seconds *= random.uniform(0.5, 1.5)
        _log.warning("%s: %s %s; again in %.1f s", self._where(), error_code(error), error_text(error), seconds)
        time.sleep(seconds)

    def _result(self) -> LaneResult:
        return LaneResult(
            self.lane,
            self.plan.last_seqno,
            self.blocks,
            self.transactions,
            self.rows,
            tuple(sorted(self.adopted)),
            self.retries,
        )

    def _where(self, lane: int | None = None) -> str:
        return f"channel {self.plan.channel}, window {self.plan.window_id}, lane {self.lane if lane is None else lane}"
