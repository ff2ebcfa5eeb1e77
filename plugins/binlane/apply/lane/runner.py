"""The runner of a lane: attempt after attempt on new connections, and what each error means for it.

A lane is a lease, not a process: walk.py says how it is taken, and how others are carried on.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.lane.barriers import Walk
from binlane.apply.lane.bisect import find_failing
from binlane.apply.lane.conflict_retry import watched
from binlane.apply.lane.errors import located, raised
from binlane.apply.lane.heartbeat import Pulse
from binlane.apply.lane.options import ApplyOptions, LaneResult, ProgressCallback
from binlane.apply.lane.peers import Neighbours
from binlane.apply.lane.run_state import Checked, Course, Links
from binlane.apply.rows.table_guard import TableGuard
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text, judge
from binlane.errors import ApplyError, BinlaneError, DriftError, PlanError, PositionError, TargetUnavailableError
from binlane.model import plural
from binlane.servers.catalog import TableReader, read_schema
from binlane.state.channels import read_channel
from binlane.state.orders.orders import NOW as STOP_NOW
from binlane.state.positions import lane_positions
from binlane.state.records.journal import last_error_id, record_error
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from binlane.model import BlockHeader
    from binlane.plan.window_plan import LaneSource, WindowPlan

_log = logging.getLogger(__name__)
_OF_A_ROW = frozenset({1032, 1062})
"""The row is not there, or another one with its key is."""
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
    """Move ``lane`` to the window's last seqno, or to where the channel was asked to stop, from wherever it stands.

    A finished lane or window: nothing is opened.

    Raises ApplyError, DriftError or UndecidableError, with place and choices, and records them for the other lanes;
    PlanError and PositionError if state and plan do not fit; retryable: TargetUnavailableError, BarrierTimeoutError,
    StopRequestedError.
    """
    course = Course(engine, plan, lane, source, options or ApplyOptions(), progress, checked or Checked())
    return _Runner(course).run()


@dataclass(slots=True)
class _Runner:
    course: Course
    errors_before: int = -1
    """Errors up to this id were there before this run: they concern it no more. -1 until it is known."""

    def run(self) -> LaneResult:
        """Attempt after attempt, until the lane is finished or an error is not worth another try."""
        course = self.course
        in_a_row, moves_before = 0, 0
        while True:
            try:
                return self._attempt()
            except BinlaneError as exc:
                self._record(exc, 0)
                raise
            except _SERVER_ERRORS as exc:
                self._judge(exc)
                in_a_row = 1 if course.moves > moves_before else in_a_row + 1
                moves_before = course.moves
                course.retries += 1
                if in_a_row > course.options.retries:
                    raise TargetUnavailableError(
                        f"{course.where()}: {error_code(exc)} {error_text(exc)}: {plural(in_a_row, 'attempt')} "
                        "in a row without a committed block; look at the target, then run the task again"
                    ) from exc
                self._back_off(in_a_row, exc)

    def _attempt(self) -> LaneResult:
        """One attempt on connections of its own: whatever state an error left them in is thrown away with them."""
        course = self.course
        if self._is_finished():
            return course.result()
        pulse = Pulse(course.engine, course.key, course.options.heartbeat_interval, self.errors_before)
        with pulse, self._links(pulse) as links:
            Walk(course, links).go()
            return course.result()

    @contextlib.contextmanager
    def _links(self, pulse: Pulse) -> Iterator[Links]:
        course = self.course
        with contextlib.ExitStack() as stack:
            session = LaneSession.open(course.engine, course.options.limits)
            stack.callback(session.close)
            poll = stack.enter_context(course.engine.connect()).execution_options(isolation_level="AUTOCOMMIT")
            neighbours = Neighbours(poll, course.key, course.channel_uuid, course.options, course.memory)
            writer = BlockWriter(session, ContextSetter(session), self._guard(poll), course.options.writer)
            if course.options.overwrite:
                writer = watched(course, session, writer)
            links = Links(session, writer, neighbours, pulse, neighbours.positions())
            try:
                yield links
            finally:
                for stream in links.streams.values():
                    stream.close()

    def _guard(self, poll: Connection) -> TableGuard:
        plan = self.course.plan
        return TableGuard(
            altered=plan.altered,
            source=plan.flavor,
            read=TableReader(poll).read,
            definitions=self.course.checked.definitions,
            partitioned=self.course.checked.partitioned,
            server=lambda: read_schema(poll, ()),
            last_seqno=plan.last_seqno,
            complete_images=plan.complete_images,
            allow_nontransactional=self.course.options.allow_nontransactional,
            collations=self.course.options.collations,
            allow_triggers=self.course.options.allow_triggers,
        )

    def _is_finished(self) -> bool:
        """By the window's row alone. Raises PlanError or PositionError if the target has another plan, or none."""
        course = self.course
        plan = course.plan
        with course.engine.connect() as connection:
            course.channel_uuid = read_channel(connection, plan.channel).uuid
            window = read_window(connection, plan.channel, plan.window_id)
            if window is None:
                raise PositionError(f"{course.where()}: no such window on the target; run the extract step first")
            if window.plan_digest != plan.digest:
                raise PlanError(
                    f"{course.where()}: expected the plan {window.plan_digest}, which is stored on the target, "
                    f"found {plan.digest}: a window keeps its plan until it is finished"
                )
            if window.is_finished:
                return True
            at = {lane.lane: lane.seqno for lane in lane_positions(connection, plan.channel)}
            if self.errors_before < 0:
                self.errors_before = last_error_id(connection, plan.channel)
        if course.lane not in at:
            raise PositionError(
                f"{course.where()}: no position on the target; the rows of binlane.positions were removed by hand"
            )
        # an order may have been taken back since the last attempt
        course.stopped_at = None if window.stop_at in (None, STOP_NOW) else window.stop_at
        return at[course.lane] >= course.goal

    def _judge(self, error: BaseException) -> None:
        """Return for another try. Raises what the error means, once the position has been read on a new connection."""
        course = self.course
        verdict = judge(error)
        place, course.current = course.current, None
        if verdict is Verdict.RETRY:
            return
        if place is not None:
            lane, _, expected = place
            try:
                with course.engine.connect() as connection:
                    now = {found.lane: found.seqno for found in lane_positions(connection, course.plan.channel)}
            except (SQLAlchemyError, OSError):
                return
            if now.get(lane) != expected:
                return
        course.current = place
        meaning = raised(error, verdict, course.engine)
        self._record(meaning, error_code(error))
        raise meaning from error

    def _record(self, error: BinlaneError, code: int) -> None:
        """Add the place to the error's text and store it, so that the other lanes stop at their next block."""
        course = self.course
        lane, header = (course.lane, None) if course.current is None else course.current[:2]
        if header is not None and isinstance(error, ApplyError | DriftError) and self._says_more(header, code):
            header = self._narrowed(error, header)
        if header is not None:
            error.args = (located(str(error), course.where(lane), header, course.plan.channel),)
        if error.retryable:
            return
        # the error itself matters more than its row
        with contextlib.suppress(SQLAlchemyError, OSError), course.engine.begin() as connection:
            record_error(connection, course.key, lane, header, code, str(error))

    def _says_more(self, header: BlockHeader, code: int) -> bool:
        """Whether writing the block again, transaction by transaction, says more than the error does.

        Of a single transaction only the row of a key that is there, or is not; rows that are set right have been named.
        """
        return header.transactions > 1 or (code in _OF_A_ROW and not self.course.options.overwrite)

    def _narrowed(self, error: BinlaneError, header: BlockHeader) -> BlockHeader:
        """The failing transaction's header instead of its block's, and what the target says of it in the error."""
        course = self.course
        assert course.current is not None
        lane, block, expected = course.current
        failing = find_failing(course, lane, block, expected)
        if failing is None:
            return header
        error.args = (failing.message,)
        return failing.header

    def _back_off(self, in_a_row: int, error: BaseException) -> None:
        options = self.course.options
        seconds = min(options.backoff * 2 ** (in_a_row - 1), options.backoff_limit)
        # lanes that collided shall not collide again
        seconds *= random.uniform(0.5, 1.5)
        _log.warning("%s: %s %s; again in %.1f s", self.course.where(), error_code(error), error_text(error), seconds)
        time.sleep(seconds)
