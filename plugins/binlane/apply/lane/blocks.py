"""A lane's blocks, one after another, up to the next barrier, a stop or the window's end: each by the way it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

import pymysql

from binlane.apply.block import Applied, BlockPlace, move_only
from binlane.apply.lane.conflict_policies import CONFLICT_POLICIES
from binlane.apply.lane.together import Adoption, Together, Turn
from binlane.apply.lane.ways.pieces import Pieces
from binlane.apply.lane.ways.shares import SharesAlone
from binlane.apply.lane.ways.table import CLASSES, Ending, Read, following
from binlane.apply.lane.ways.task import BlockTask, Lane, Stream
from binlane.apply.lane.ways.way import Way
from binlane.apply.temporary_copies import CopyKeeper
from binlane.errors import DriftError, PlanError, PositionError, StopRequestedError
from binlane.lazy_dataclass import dataclass
from binlane.state.epochs import record_epoch
from binlane.state.orders.orders import NOW, Orders

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.apply.lane.run_state import AttemptState, RunState
    from binlane.model import BlockHeader

_PIECES = Pieces()
_ROW_BY_ROW = (Way.ROW_BY_ROW, Way.ROW_BY_ROW_NULL_NOW)


def lane_of(state: RunState, attempt: AttemptState) -> Lane:
    """What the ways to apply a block have of a lane."""
    options, policy = state.options, CONFLICT_POLICIES[state.options.on_conflict]
    return Lane(
        session=attempt.session,
        writer=attempt.writer,
        source=state.source,
        keeper=CopyKeeper(state.engine, options.limits, state.plan.channel),
        ddl_lock_wait_timeout=options.ddl_lock_wait_timeout,
        allows_nontransactional=options.allow_nontransactional,
        rewrites=policy.rewrites,
        rewrite=partial(policy.rewrite, state, attempt),
        has_note=attempt.notes.has_note,
        watched=attempt.notes.watched,
        may_change=attempt.notes.tables.may_change,
        needs_pieces=state.needs_pieces,
        begins=state.begins,
        where=state.where,
    )


@dataclass(slots=True)
class LaneBlocks:
    """The blocks of the lanes that one attempt moves."""

    state: RunState
    attempt: AttemptState
    adopt: Callable[[list[int], int], Adoption]
    """Moves one of these lanes to a seqno if it has no holder."""
    lane: Lane = field(init=False)
    together: Together = field(init=False)
    alone: SharesAlone = field(init=False)

    def __post_init__(self) -> None:
        self.lane = lane_of(self.state, self.attempt)
        self.together = Together(self.state, self.attempt, self.check_stop, self.adopt)
        self.alone = SharesAlone(self.lane, self.attempt.forget_stream)

    def up_to(self, lane: int, limit: int, lanes: tuple[int, ...], *, is_last: bool = False) -> bool:
        """Apply the lane's blocks up to ``limit``, or to a stop before it, and move ``lanes``, which all stand at the
        same seqno, there; False if only a new connection can do so.

        ``is_last``: all other lanes stand at ``limit`` already, and readers wait for this one: it gives way to nobody.
        """
        attempt, state = self.attempt, self.state
        while attempt.positions[lane] < min(limit, state.goal):
            self.check_stop(lane)
            place = self.place(lane, lanes, records=is_last or len(lanes) == len(state.plan.all_lanes))
            task = self._next(place, limit)
            if task is None:
                self._arrive(place, min(limit, state.goal))
            elif not is_last and self._has_given_way(place):
                # a stop may have come meanwhile
                continue
            elif not self.together.concerns(place):
                task.stream.take()
                self.apply(task)
            elif not self._apply_share(task):
                return False
        return True

    def _has_given_way(self, place: BlockPlace) -> bool:
        """Wait while the target is busy, if the channel asks for it; whether the lane has waited."""
        gives_way, is_share = self.state.options.gives_way, self.together.concerns(place)
        if gives_way is None or (is_share and not self.together.may_give_way(place)):
            return False

        def meanwhile() -> None:
            self.check_stop(place.lane)
            if is_share:
                self.together.gives_way(place.lane)

        return gives_way(meanwhile)

    def place(self, lane: int, lanes: tuple[int, ...], *, records: bool) -> BlockPlace:
        """Where the lane stands, with the ``lanes`` that move with it. ``records``: they are the last to arrive."""
        state = self.state
        record = self._record if records else None
        return BlockPlace(state.key, state.channel_uuid, lane, lanes, self.attempt.positions[lane], record)

    def on_its_way(self, task: BlockTask) -> BlockTask:
        """A block that was read, or a barrier, with the way that it takes."""
        before = replace(task, way=self.state.ways.get(task.key, Way.NEW))
        then = following(before, Read.BLOCK)
        return before if then is None else replace(before, way=then)

    def apply(self, task: BlockTask) -> None:
        """Apply a block that was taken, way after way until one is the last. Its lanes have moved behind it then, or
        are read again: it is their next one still, or another runner has moved them."""
        header, place = task.block.header, task.place
        self.lane.begins(place.lane, header, place.expected)
        while True:
            ending = self._ending(task)
            then = following(task, ending)
            if then is None:
                break
            if then in _ROW_BY_ROW and isinstance(ending, Exception):
                # it takes the rest of the items
                task = replace(task, way=then, cause=ending)
                continue
            self.state.ways[task.key] = then
            if not task.is_piece:
                # its items are consumed
                self._read_again(place.lane)
                if isinstance(ending, Orders):
                    self.obey(ending, place.lane)
                return
            task = task.anew(then)
        if isinstance(ending, Exception):
            raise ending
        if isinstance(ending, Orders):
            self._read_again(place.lane)
            self.obey(ending, place.lane)
            return
        applied = ending if isinstance(ending, Applied) else None
        # lanes that commit together may be moved into the block by one that applies it piece by piece
        wanted = place.expected + 1 if self.together.concerns(place) else header.last_seqno
        self.moved(place, None if applied is None else applied.seqno, wanted)
        self.state.current = None
        if applied is not None:
            self.state.count(place.lane, applied)

    def _ending(self, task: BlockTask) -> Ending:
        try:
            return CLASSES[task.way].apply(task)
        except (pymysql.err.MySQLError, DriftError) as exc:
            return exc

    def _next(self, place: BlockPlace, limit: int) -> BlockTask | None:
        """The lane's next block up to ``limit`` or a stop, None if there is none; a piece of it, if it cannot be
        applied as planned. Its stream still has it."""
        state, attempt, lane = self.state, self.attempt, place.lane
        while True:
            stream = attempt.streams.get(lane)
            if stream is None:
                stream = attempt.streams[lane] = Stream(state.source.blocks(lane, place.expected))
            block = stream.peek()
            if block is None or block.header.first_seqno > min(limit, state.goal):
                return None
            self.check_range(block.header, lane, place.expected, limit)
            task = self.on_its_way(BlockTask.of(self.lane, place, block, stream, limit))
            if task.way is not Way.PIECES:
                return task
            pieces = _PIECES.stream(task)
            attempt.forget_stream(lane)
            attempt.streams[lane] = pieces

    def _apply_share(self, task: BlockTask) -> bool:
        """Apply the lane's share of a block, or of a piece, when it is its turn (``together``); False if only a new
        connection can go on."""
        turn = self.together.turn(task.place, task.block)
        if turn is Turn.AGAIN:
            self.attempt.forget_stream(task.place.lane)
        elif turn is Turn.ALONE:
            self._apply_alone(task)
            self.together.end_alone()
        elif turn is not Turn.RECONNECT:
            task.stream.take()
            agrees = turn is Turn.TOGETHER
            self.apply(replace(task, place=self.together.agreeing(task.place, task.block)) if agrees else task)
        return turn is not Turn.RECONNECT

    def _apply_alone(self, task: BlockTask) -> None:
        """Apply the shares of all lanes in one transaction."""
        header, limit = task.block.header, task.limit
        lanes = replace(task.place, lanes=tuple(range(self.state.plan.lanes)))
        outcome = self.alone.apply(lanes, header, lambda at: self._next(at, limit))
        if isinstance(outcome, BlockTask):
            # a DDL, which is a block of its lane
            outcome.stream.take()
            self.apply(outcome)
            return
        if isinstance(outcome, Orders):
            self._read_again(task.place.lane)
            if (then := following(replace(task, way=Way.SHARES_ALONE), outcome)) is not None:
                self.state.ways[task.key] = then
            self.obey(outcome, task.place.lane)
            return
        # another lane may have been alone with a piece of the block
        seqno = None if outcome is None else next(iter(outcome.values())).seqno
        self.moved(lanes, seqno, task.place.expected + 1)
        self.state.current = None
        for lane, applied in (outcome or {}).items():
            self.state.count(lane, applied)

    def _arrive(self, place: BlockPlace, goal: int) -> None:
        done = move_only(self.attempt.session, place, goal)
        if isinstance(done, Orders):
            self.obey(done, place.lane)
        else:
            self.moved(place, goal if done else None, goal)

    def _record(self, cursor: Cursor, seqno: int) -> None:
        epoch = self.state.epochs.get(seqno)
        if epoch is not None:
            record_epoch(cursor, self.state.key, self.state.plan.source, epoch)

    def _read_again(self, lane: int) -> None:
        """The block under work was not applied: it is read again."""
        self.state.current = None
        self.attempt.forget_stream(lane)

    def obey(self, orders: Orders, lane: int) -> None:
        """Follow an order that a block has read before the heartbeat."""
        if orders.stop_at is not None:
            self.attempt.heartbeat.stop_at = orders.stop_at
        self.check_stop(lane)

    def moved(self, place: BlockPlace, seqno: int | None, wanted: int) -> None:
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

    def check_range(self, header: BlockHeader, lane: int, position: int, limit: int) -> None:
        """Raises PlanError for a block that does not follow the lane's position."""
        if not position < header.last_seqno <= limit or header.first_seqno > header.last_seqno:
            raise PlanError(
                f"{self.state.where(lane)}: a block of seqnos {header.first_seqno}..{header.last_seqno} does not fit "
                f"between the position {position} and {limit}, the next barrier or the window's end; the state or "
                "the plan's files were changed by hand"
            )

    def check_stop(self, lane: int) -> None:
        """At a block's boundary, and in each round of a wait: follow another lane's error, a signal and a stop, as last
        read by the heartbeat."""
        self.attempt.session.is_at_work()
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
        # None, too: the stop may have been cancelled
        self.state.stopped_at = stop_at
