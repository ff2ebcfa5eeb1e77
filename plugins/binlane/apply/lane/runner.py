"""Runs a lane: attempt after attempt on new connections, and the reaction to each error.

A lane is a lease, not a process: ``barriers`` says how it is taken, and how other lanes are adopted.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.lane.barriers import LaneAttempt
from binlane.apply.lane.bisect import find_failing
from binlane.apply.lane.block_writers import Checked, LogFacts, block_writer
from binlane.apply.lane.conflict_policies import CONFLICT_POLICIES
from binlane.apply.lane.heartbeat import Heartbeat
from binlane.apply.lane.lane_errors import at, correction, error_for, with_place
from binlane.apply.lane.note_watch import NoteWatch
from binlane.apply.lane.options import ApplyOptions, LaneResult, ProgressCallback
from binlane.apply.lane.peers import Peers, PositionsGoneError
from binlane.apply.lane.readers import ReaderLock
from binlane.apply.lane.run_state import AttemptState, RunState
from binlane.apply.refusals import space_advice, transient_advice
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.own_variables import require_own_values
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text, judge
from binlane.errors import (
    ApplyError,
    BinlaneError,
    DriftError,
    PlanError,
    PositionError,
    StateSchemaError,
    TargetUnavailableError,
    UndecidableError,
    with_channel,
)
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.state.channels import read_channel
from binlane.state.orders.orders import NOW as STOP_NOW
from binlane.state.positions import lane_positions, lane_seqnos
from binlane.state.records.journal import last_error_id, record_error
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from binlane.model import BlockHeader
    from binlane.plan.window_plan import LaneSource, WindowPlan

_log = logging.getLogger(__name__)
_SINGLE_ROW_ERRORS = frozenset({1032, 1062})
_LONGEST_SILENCE: Final = 600.0
"""Seconds for which a lane may read files and say nothing: some 60 GB of them at 100 MB/s. A file system that hangs
must not hold the rows of an open transaction for longer."""
"""Key not found and duplicate key: errors of a single row."""
_POLL_WAITS: Final = 86_400
"""Seconds."""
_SERVER_ERRORS = (pymysql.err.MySQLError, SQLAlchemyError, OSError)


def run_lane(
    engine: Engine,
    plan: WindowPlan,
    lane: int,
    source: LaneSource,
    options: ApplyOptions | None = None,
    progress: ProgressCallback | None = None,
    checked: Checked | None = None,
) -> LaneResult:
    """Move ``lane`` from its position to the window's last seqno, or to a requested stop before it.

    If the lane or the window is finished already, nothing is opened.

    Raises ApplyError, DriftError or UndecidableError, with place and choices, and records them for the other lanes;
    PlanError and PositionError if state and plan do not fit; retryable: TargetUnavailableError, BarrierTimeoutError,
    StopRequestedError.
    """
    state = RunState(engine, plan, lane, source, options or ApplyOptions(), progress, checked or Checked())
    return _Runner(state).run()


@dataclass(slots=True)
class _Runner:
    state: RunState
    errors_before: int = -1
    """Errors up to this id are older than this run and do not concern it; -1 until it is known."""

    def run(self) -> LaneResult:
        """Repeat attempts until the lane is finished or an error is not retried."""
        state = self.state
        in_a_row, moves_before = 0, 0
        while True:
            try:
                # a connection that cannot go on is followed by a new one
                while (result := self._attempt()) is None:
                    pass
                return result
            except PositionsGoneError:
                state.current = None
            except BinlaneError as exc:
                self._record(exc, 0)
                raise
            except _SERVER_ERRORS as exc:
                self._judge(exc)
                in_a_row = 1 if state.moves > moves_before else in_a_row + 1
                moves_before = state.moves
                state.retries += 1
                if in_a_row > state.options.retries:
                    way_out = transient_advice(exc) or "look at the target, then run the task again"
                    raise TargetUnavailableError(
                        f"{state.where()}: {error_code(exc)} {error_text(exc)}: {plural(in_a_row, 'attempt')} "
                        f"in a row without a committed block; {way_out}"
                    ) from exc
                self._back_off(in_a_row, exc)

    def _attempt(self) -> LaneResult | None:
        """One attempt on connections of its own: the state in which an error leaves them ends with them.

        Returns None if the lane goes on only on a new connection.
        """
        state = self.state
        if self._is_finished():
            return state.result()
        heartbeat = Heartbeat(state.engine, state.key, state.options.heartbeat_interval, self.errors_before)
        with heartbeat, self._connected(heartbeat) as attempt:
            return state.result() if LaneAttempt(state, attempt).run() else None

    @contextlib.contextmanager
    def _connected(self, heartbeat: Heartbeat) -> Iterator[AttemptState]:
        state = self.state
        with contextlib.ExitStack() as stack:
            session = LaneSession.open(state.engine, state.options.limits, _LONGEST_SILENCE)
            stack.callback(session.close)
            if not state.options.allow_unsafe:
                require_own_values(session, state.checked.variables)
            poll = stack.enter_context(state.engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
            # it says nothing while a block is applied, which may take longer than the target's own limit
            poll.exec_driver_sql(f"SET SESSION wait_timeout = {_POLL_WAITS}")
            peers = Peers(
                poll, state.key, state.channel_uuid, state.options, state.memory, frozenset(state.plan.lanes_with_work)
            )
            options = state.options
            usual = block_writer(session, poll, options, LogFacts.of(state.plan, state.checked))
            writer = CONFLICT_POLICIES[state.options.on_conflict].writer(state, session, usual)
            readers = ReaderLock(session, state.plan.channel, state.options.reader_wait)
            notes = NoteWatch.of(session, poll, state.plan.channel, state.plan.flavor, options)
            attempt = AttemptState(session, writer, peers, heartbeat, peers.positions(), readers, notes)
            try:
                yield attempt
            finally:
                for stream in attempt.streams.values():
                    stream.close()

    def _is_finished(self) -> bool:
        """Whether the window or the lane is finished. Raises PlanError or PositionError for another plan or none."""
        state = self.state
        plan = state.plan
        with state.engine.connect() as connection:
            state.channel_uuid = read_channel(connection, plan.channel).uuid
            window = read_window(connection, plan.channel, plan.window_id)
            if window is None:
                raise PositionError(f"{state.where()}: no such window on the target; run the extract step first")
            if window.plan_digest != plan.digest:
                raise PlanError(
                    f"{state.where()}: expected the plan {window.plan_digest}, which is stored on the target, "
                    f"found {plan.digest}: a window keeps its plan until it is finished"
                )
            if window.is_finished:
                return True
            stands = lane_seqnos(connection, state.key)
            if self.errors_before < 0:
                self.errors_before = last_error_id(connection, plan.channel)
        if state.lane not in stands and state.lane not in plan.lanes_with_work:
            return True
        if gone := sorted({state.lane, *plan.lanes_with_work} - stands.keys()):
            raise PositionError(
                f"{state.where(gone[0])}: no position of this plan on the target; the rows of binlane.positions were "
                "removed or changed by hand"
            )
        # a stop may have been cancelled since the last attempt
        state.stopped_at = None if window.stop_at in (None, STOP_NOW) else window.stop_at
        return stands[state.lane] >= state.goal

    def _judge(self, error: BaseException) -> None:
        """Return if the error is retried; else raise its meaning, after reading the position on a new connection."""
        state = self.state
        verdict = judge(error)
        place, state.current = state.current, None
        if verdict is Verdict.RETRY:
            return
        if place is not None:
            lane, _, expected = place
            try:
                with state.engine.connect() as connection:
                    now = {found.lane: found.seqno for found in lane_positions(connection, state.plan.channel)}
            except (SQLAlchemyError, OSError):
                return
            if now.get(lane) != expected:
                return
        state.current = place
        meaning = error_for(error, verdict, state.engine)
        self._record(meaning, error_code(error))
        raise meaning from error

    def _record(self, error: BinlaneError, code: int) -> None:
        """Add the place to the error's text and store it, so that the other lanes stop at their next block."""
        state = self.state
        lane, header = (state.lane, None) if state.current is None else state.current[:2]
        outside = space_advice(code, str(error))
        is_of_rows = isinstance(error, ApplyError | DriftError) and not outside
        if header is not None and is_of_rows and self._is_worth_bisecting(header, code):
            header = self._bisected(error, header)
        if header is not None and isinstance(error, UndecidableError):
            # it has its own choices
            error.args = (f"{at(state.where(lane), header)}: {error}",)
        elif header is not None:
            whole = state.plan.indivisible(header.first_seqno, header.last_seqno)
            may_overwrite = isinstance(error, DriftError) and not state.options.on_conflict.overwrites
            placed = with_place(
                str(error), state.where(lane), header, state.plan.channel, whole,
                may_overwrite=may_overwrite, how=correction(code, str(error), state.engine), outside=outside,
            )  # fmt: skip
            error.args = (placed,)
        error.args = (with_channel(str(error), state.plan.channel),)
        if error.retryable:
            return
        # if this fails, the error itself matters more than its record
        with contextlib.suppress(SQLAlchemyError, OSError, StateSchemaError), state.engine.begin() as connection:
            record_error(connection, state.key, lane, header, code, str(error))

    def _is_worth_bisecting(self, header: BlockHeader, code: int) -> bool:
        """Whether applying the block again, transaction by transaction, gives more detail than the error has.

        A single transaction gives only the row of a missing or duplicate key; overwritten rows have been recorded.
        """
        rewrites = CONFLICT_POLICIES[self.state.options.on_conflict].rewrites
        return header.transactions > 1 or (code in _SINGLE_ROW_ERRORS and not rewrites)

    def _bisected(self, error: BinlaneError, header: BlockHeader) -> BlockHeader:
        """The failing transaction's header instead of its block's; the target's error for it goes into ``error``."""
        state = self.state
        assert state.current is not None
        lane, block, expected = state.current
        failing = find_failing(state, lane, block, expected)
        if failing is None:
            return header
        error.args = (failing.message,)
        return failing.header

    def _back_off(self, in_a_row: int, error: BaseException) -> None:
        options = self.state.options
        seconds = min(options.backoff * 2 ** (in_a_row - 1), options.backoff_limit)
        # jitter: lanes that collided must not collide again
        seconds *= random.uniform(0.5, 1.5)
        _log.warning("%s: %s %s; again in %.1f s", self.state.where(), error_code(error), error_text(error), seconds)
        time.sleep(seconds)
