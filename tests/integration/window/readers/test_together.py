"""Shares that commit together: nobody sees one before all are executed, and whatever happens to a lane, all of a block
is there or nothing of it, but for the time of a commit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from binlane.apply.block import BlockPlace
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.together import Together
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.rollback import undo
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BarrierTimeoutError, BinlaneError, ConfigError, StopRequestedError
from binlane.orchestration import steps
from binlane.orchestration.lane_options import apply_options
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.report import plan_view
from binlane.orchestration.terminal import as_text
from binlane.plan.window_plan import Block, WindowPlan
from binlane.servers.engines import engine_of
from binlane.state.leases import lease_name
from binlane.state.meetings import Seen, Signals
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.state.positions import move_position
from lab.servers import PrivateServer
from tests.chaos.faults import Fault, Faults, When
from tests.chaos.worker import was_killed
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_ended_from_outside import WAITING
from tests.integration.window.readers.test_divided import TOGETHER, apply_all, configure, lanes_of_both, planned, start
from tests.waiting import wait_until

LANES: Final = 3
TRANSACTIONS: Final = 24
OPEN: Final = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"
READY: Final = "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'"


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return two_tables(channel_of(request.param, request.param))


def two_tables(channel: Channel) -> Channel:
    """Two tables, of two lanes: each transaction changes both."""
    start(channel)
    together(channel)
    with channel.source.connect() as connection, connection.cursor() as cursor:
        for number in range(1, TRANSACTIONS + 1):
            cursor.execute(f"INSERT INTO shop.plain VALUES ({number}, 1, 'n')")
            cursor.execute(f"INSERT INTO shop.times VALUES ('2026-01-{number:02}', 1)")
            connection.commit()
    return channel


def together(channel: Channel, blocks: str = "", more: str = "") -> None:
    """Blocks of six transactions."""
    configure(channel, LANES, blocks, TOGETHER.format("table"))
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("transactions = 20\n", "transactions = 2\n") + more)


@dataclass(frozen=True, slots=True)
class Adopted:
    """A window with a plan, and the lanes of the two tables."""

    channel: Channel
    step: dict[str, Any]
    plan: WindowPlan
    plain: int
    times: int

    @classmethod
    def of(cls, channel: Channel) -> Adopted:
        step = planned(channel)
        plan = read_plan(step["plan"])
        return cls(channel, step, plan, *lanes_of_both(plan))

    @contextlib.contextmanager
    def applying(self) -> Iterator[list[BinlaneError]]:
        """All lanes at once, in the background; behind it the errors with which lanes ended."""
        errors = list[BinlaneError]()

        def apply(lane: int) -> None:
            try:
                steps.apply_lane(self.channel.config, self.channel.endpoints, self.step["plan"], lane)
            except BinlaneError as exc:
                errors.append(exc)

        with ThreadPoolExecutor(len(self.plan.all_lanes)) as pool:
            for lane in self.plan.all_lanes:
                pool.submit(apply, lane)
            yield errors

    def finish(self) -> None:
        """Whatever is left, and both servers are equal."""
        apply_all(self.channel, self.step)
        steps.advance(self.channel.config, self.channel.endpoints, self.step["plan"])
        self.channel.assert_equal()

    @property
    def begin(self) -> int:
        return self.plan.first_seqno - 1


def seen(target: PrivateServer) -> tuple[set[int], int, int]:
    """In one snapshot: positions, and rows of both tables."""
    with target.connect() as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SELECT seqno FROM binlane.positions WHERE lane < %s", (LANES,))
        positions = {int(seqno) for (seqno,) in cursor.fetchall()}
        counts = list[int]()
        for table in ("plain", "times"):
            cursor.execute(f"SELECT COUNT(*) FROM shop.{table}")
            [(count,)] = cursor.fetchall()
            counts.append(int(count))
    return positions, counts[0], counts[1]


def polite(monkeypatch: pytest.MonkeyPatch, lane: int, block: int) -> tuple[threading.Event, threading.Event]:
    """The lane finds the target busy in front of its block of that number: says so, and goes on behind the other."""
    waits, go_on, blocks = threading.Event(), threading.Event(), list[int]()

    def busy(meanwhile: Callable[[], None]) -> bool:
        blocks.append(0)
        if len(blocks) != block:
            return False
        while not go_on.wait(0.1):
            meanwhile()
            waits.set()
        return True

    @contextlib.contextmanager
    def giving_way(
        channel: object, target: object, of: int, *_: object
    ) -> Iterator[Callable[[Callable[[], None]], bool]]:
        yield busy if of == lane else lambda meanwhile: False

    monkeypatch.setattr(steps, "_giving_way", giving_way)
    return waits, go_on


def holding(monkeypatch: pytest.MonkeyPatch, lane: int) -> threading.Event:
    """The lane says that its share is executed only when the event is set."""
    go_on = threading.Event()
    report = Signals.report

    def held(self: Signals, of: int, seqno: int, following: int | None) -> Seen:
        if of == lane:
            assert go_on.wait(120)
        return report(self, of, seqno, following)

    monkeypatch.setattr(Signals, "report", held)
    return go_on


def alone(channel: Channel) -> bool:
    """Whether a lane applies a block alone."""
    [(uuid,)] = channel.target.query("SELECT uuid FROM binlane.channels")
    name = Signals(None, 0, uuid, range(LANES)).alone  # type: ignore[arg-type]
    return channel.target.query("SELECT IS_USED_LOCK(%s) IS NOT NULL", (name,)) == [(1,)]


def test_nobody_sees_a_share_before_all_are_executed(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    window = Adopted.of(channel)
    go_on, waited, wait = holding(monkeypatch, window.times), list[int](), Signals.wait

    def counted(self: Signals, lane: int, seqno: int, others: Sequence[int]) -> Seen:
        waited.append(lane)
        return wait(self, lane, seqno, others)

    monkeypatch.setattr(Signals, "wait", counted)
    with window.applying() as errors, contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        # the other two are executed, have asked, and wait again
        wait_until(lambda: len(set(waited)) == LANES - 1, seconds=30)
        assert seen(channel.target) == ({window.begin}, 0, 0)
    assert errors == []
    window.finish()


def test_an_error_in_one_share_rolls_all_of_them_back(channel: Channel) -> None:
    run_on(channel.target, "INSERT INTO shop.plain VALUES (3, 7, 'mine')")
    window = Adopted.of(channel)
    with window.applying() as errors:
        pass
    assert len(errors) == LANES
    assert any("1062" in str(error) and f"lane {window.plain}, seqno" in str(error) for error in errors)
    assert seen(channel.target) == ({window.begin}, 1, 0)
    run_on(channel.target, "DELETE FROM shop.plain WHERE id = 3")
    window.finish()


def test_after_a_lock_wait_one_lane_applies_the_block_alone(channel: Channel) -> None:
    window = Adopted.of(channel)
    with channel.target.connect() as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO shop.plain VALUES (2, 0, 'not for good')")
        with window.applying() as errors:
            wait_until(lambda: alone(channel))
            wait_until(lambda: channel.target.query(READY) == [(0,)])
            assert seen(channel.target) == ({window.begin}, 0, 0)
            other.rollback()
    assert errors == []
    window.finish()


def test_who_rolls_a_share_back_has_said_before_that_it_is_not_ready(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another lane could still commit its own."""
    window, held = Adopted.of(channel), list[bool]()
    [(uuid,)] = channel.target.query("SELECT uuid FROM binlane.channels")
    signals = Signals(None, 0, uuid, range(LANES))  # type: ignore[arg-type]
    names = ", ".join(f"IS_USED_LOCK('{signals._name('ready', lane, window.begin)}')" for lane in range(LANES))

    def looked(session: LaneSession) -> None:
        [holders] = channel.target.query(f"SELECT {names}")
        held.append(session.connection_id in holders)
        undo(session)

    monkeypatch.setattr("binlane.apply.block.undo", looked)
    with channel.target.connect() as other, other.cursor() as cursor:
        cursor.execute("INSERT INTO shop.plain VALUES (2, 0, 'not for good')")
        with window.applying() as errors:
            wait_until(lambda: len(held) >= LANES)
            other.rollback()
    assert errors == []
    assert held[:LANES] == [False] * LANES
    window.finish()


def test_an_order_that_waits_for_a_share_and_lets_another_wait_is_obeyed(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It locks the positions one after another: no server sees that the lanes wait for each other, too."""
    window, engine = Adopted.of(channel), engine_of(channel.endpoints.target)
    first, go_on = 0, threading.Event()

    def late(cursor: Any, key: Any, lanes: tuple[int, ...], *rest: int) -> bool:
        if lanes == (first,):
            assert go_on.wait(120)
        return move_position(cursor, key, lanes, *rest)

    monkeypatch.setattr("binlane.apply.block.move_position", late)
    with ThreadPoolExecutor(1) as orders, window.applying():
        wait_until(lambda: channel.target.query(READY) == [(LANES - 1,)])
        order = orders.submit(request_stop, engine, CHANNEL, now=True)
        wait_until(lambda: channel.target.query(WAITING) != [(0,)])
        go_on.set()
        assert order.result().now
    assert seen(channel.target) == ({window.begin}, 0, 0)
    clear_stop(engine, CHANNEL)
    window.finish()


def test_one_process_after_another_applies_whole_blocks(channel: Channel) -> None:
    window = Adopted.of(channel)
    with watched(channel):
        steps.apply_lane(channel.config, channel.endpoints, window.step["plan"], 1)
    assert seen(channel.target) == ({window.plan.last_seqno}, TRANSACTIONS, TRANSACTIONS)
    window.finish()


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after another"])
def test_rows_that_have_drifted_are_overwritten(channel: Channel, at_once: bool) -> None:
    together(channel, more='on_conflict = "overwrite"\n')
    run_on(channel.target, "INSERT INTO shop.plain VALUES (3, 7, 'mine')")
    run_on(channel.target, "INSERT INTO shop.times VALUES ('2026-01-03', 7)")
    window = Adopted.of(channel)
    apply_all(channel, window.step, None if at_once else (0, 1, 2, 3))
    conflicts = channel.target.query("SELECT lane, table_name, kind FROM binlane.conflicts ORDER BY table_name")
    assert conflicts == [(window.plain, "plain", "overwritten"), (window.times, "times", "overwritten")]
    window.finish()


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after another"])
def test_a_transaction_is_skipped_by_all_lanes(channel: Channel, at_once: bool) -> None:
    window = Adopted.of(channel)
    assert channel.cli("skip", CHANNEL, "--seqno", str(window.plan.first_seqno + 2), "--reason", "not this") == 0
    apply_all(channel, window.step, None if at_once else (0, 1, 2, 3))
    steps.advance(channel.config, channel.endpoints, window.step["plan"])
    assert seen(channel.target) == ({window.plan.last_seqno}, TRANSACTIONS - 1, TRANSACTIONS - 1)
    assert channel.target.query("SELECT COUNT(*) FROM shop.plain WHERE id = 3") == [(0,)]
    assert channel.target.query("SELECT state FROM binlane.skips") == [("skipped",)]


def test_rows_of_several_shards_and_of_critical_ones_are_dealt(channel: Channel) -> None:
    """They are in the blocks of all lanes, in the source's order; a transaction of many rows is, too."""
    channel.write_shard_list("(divided)=shop\n(critical)=other, crm_1\n")
    configured = channel.channels / f"{CHANNEL}.toml"
    configured.write_text(configured.read_text().replace('divide = "table"', 'divide = "key"'))
    with channel.source.connect() as connection, connection.cursor() as cursor:
        for number in range(20):
            cursor.execute(f"INSERT INTO other.plain VALUES ({number}, 1, 'n')")
            if number % 2:
                cursor.execute(f"UPDATE shop.plain SET v = v + 1 WHERE id = {number}")
            connection.commit()
        values = ", ".join(f"({number}, 1, '{'x' * 40}')" for number in range(1000, 6000))
        cursor.execute(f"INSERT INTO shop.plain VALUES {values}")
        cursor.execute("UPDATE other.plain SET v = 7")
        connection.commit()
    step = planned(channel)
    plan = read_plan(step["plan"])
    assert plan.barriers == ()
    assert "commit together (lanes.commit" in " ".join(as_text(plan_view(plan)).split())
    # rows by key are in each lane
    assert all(rows.inserts > 1000 for rows in plan.lane_rows[:LANES])
    apply_all(channel, step)
    steps.advance(channel.config, channel.endpoints, step["plan"])
    channel.assert_equal()


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after another"])
def test_statements_of_another_database_are_in_one_lane(channel: Channel, at_once: bool) -> None:
    """A block of theirs is a DDL, with empty shares beside it, or has them beside the rows of other lanes."""
    with channel.source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE other.made (id INT PRIMARY KEY, v INT)")
        cursor.execute("INSERT INTO other.made VALUES (1, 1)")
        connection.commit()
        cursor.execute("INSERT INTO shop.plain VALUES (100, 1, 'n')")
        connection.commit()
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("UPDATE other.made SET v = v + 1")
        connection.commit()
    window = Adopted.of(channel)
    assert window.plan.barriers == ()
    apply_all(channel, window.step, None if at_once else (0, 1, 2, 3))
    window.finish()


@pytest.mark.parametrize("offset", [2, 8], ids=["first block", "second block"])
def test_lanes_stop_inside_a_block(channel: Channel, offset: int) -> None:
    window, engine = Adopted.of(channel), engine_of(channel.endpoints.target)
    at = window.begin + offset
    request_stop(engine, CHANNEL, at=at)
    with window.applying() as errors:
        pass
    assert all(isinstance(error, StopRequestedError) for error in errors)
    assert seen(channel.target) == ({at}, offset, offset)
    clear_stop(engine, CHANNEL)
    window.finish()


class AtText(Faults):
    """Strikes at the n-th statement that begins with a text."""

    def __init__(self, text: str, fault: Fault) -> None:
        super().__init__(fault)
        self._text, self._is_it = text, False

    def strikes(self, when: When, statement: str) -> bool:
        with self._lock:
            if when is When.BEFORE:
                self._is_it = statement.startswith(self._text)
                self.count += self._is_it
            return self._is_it and self.fault.when is when and self.count == self.fault.at


def killed_lane(config: ChannelConfig, endpoints: Endpoints, plan: str, lane: int, text: str, fault: Fault) -> None:
    """One lane in a process of its own, which dies at a statement."""
    faults = AtText(text, fault)
    setattr(steps, "engine_of", lambda endpoint, **_: faults.engine(endpoint.sqlalchemy_url()))  # noqa: B010
    steps.apply_lane(config, endpoints, plan, lane)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        # chaos/test_every_share.py kills at each statement
        pytest.param("UPDATE binlane.positions", Fault(1, When.SENT), id="moved", marks=pytest.mark.trial),
        # the first one has the format
        pytest.param("BINLOG", Fault(2, When.SENT), id="executed", marks=pytest.mark.trial),
        pytest.param("COMMIT", Fault(1, When.BEFORE), id="before its commit"),
        pytest.param("COMMIT", Fault(1, When.SENT), id="behind its commit"),
    ],
)
@pytest.mark.usefixtures("adopted_soon")
def test_a_lane_that_is_killed_leaves_whole_blocks(channel: Channel, text: str, fault: Fault) -> None:
    """The others go on: they finish what the lane had agreed to, and do without it what it had not."""
    window = Adopted.of(channel)
    victim = (channel.config, channel.endpoints, window.step["plan"], window.plain, text, fault)
    others = [lane for lane in window.plan.all_lanes if lane != window.plain]

    def apply(lane: int) -> None:
        steps.apply_lane(channel.config, channel.endpoints, window.step["plan"], lane)

    lease = lease_name(channel.status.channel.uuid, window.plain)
    with watched(channel), ThreadPoolExecutor(len(others) + 1) as pool:
        killed = pool.submit(was_killed, killed_lane, *victim)
        # it may take its lane and die between two looks
        wait_until(
            lambda: killed.done()
            or channel.target.query("SELECT IS_USED_LOCK(%s) IS NOT NULL", (lease,)) == [(1,)],
            pause=0.01,
        )  # fmt: skip
        applied = [pool.submit(apply, lane) for lane in others]
        assert killed.result()
        for each in applied:
            each.result()
    assert seen(channel.target) == ({window.plan.last_seqno}, TRANSACTIONS, TRANSACTIONS)
    window.finish()


@pytest.fixture
def adopted_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane that was killed is adopted after half a second, not after five."""
    monkeypatch.setattr(steps, "apply_options", lambda *given: replace(apply_options(*given), grace=0.5))


@contextlib.contextmanager
def watched(channel: Channel) -> Iterator[None]:
    """Meanwhile no snapshot has lanes that are further apart than a block, nor equal positions without equal counts."""
    ended, broken = threading.Event(), list[object]()

    def look() -> None:
        while not ended.is_set():
            positions, plain, times = seen(channel.target)
            is_whole = len(positions) > 1 or plain == times
            if not is_whole or max(positions) - min(positions) > LANES * 2:
                broken.append((positions, plain, times))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert broken == []


def test_blocks_that_lanes_do_not_share_are_refused(channel: Channel) -> None:
    together(channel, 'reduce = "window"\n')
    with pytest.raises(ConfigError, match=r'expected blocks\.reduce "auto" or "block"'):
        planned(channel)


def patient(**more: Any) -> Callable[..., ApplyOptions]:
    """Lanes whose options differ."""

    def options(config: ChannelConfig, plan: WindowPlan) -> ApplyOptions:
        return replace(apply_options(config, plan), poll_interval=0.1, **more)

    return options


def open_share(lane: int, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The lane agrees, and its process lives; but it commits only when the event is set."""
    go_on, agree, commit, of = threading.Event(), Together._agree, LaneSession.commit, threading.local()

    def agreed(self: Together, place: BlockPlace, block: Block, following: int) -> bool:
        may_commit = agree(self, place, block, following)
        of.is_agreed = place.lane == lane
        return may_commit

    def late(self: LaneSession) -> None:
        if getattr(of, "is_agreed", False):
            assert go_on.wait(120)
        commit(self)

    monkeypatch.setattr(Together, "_agree", agreed)
    monkeypatch.setattr(LaneSession, "commit", late)
    return go_on


def test_a_lane_that_stays_behind_is_waited_for_without_locks_and_then_named(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Adopted.of(channel)
    monkeypatch.setattr(steps, "apply_options", patient(barrier_timeout=3.0, lease_time=60.0))
    go_on, named = open_share(window.plain, monkeypatch), list[BinlaneError]()
    with window.applying() as errors, contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        # their shares of the next block, which they had begun, are rolled back
        wait_until(lambda: seen(channel.target)[0] == {window.begin, window.begin + 6}, pause=0.01)
        wait_until(lambda: channel.target.query(OPEN) == [(1,)])
        wait_until(lambda: len(errors) == LANES - 1)
        assert channel.target.query(OPEN) == [(1,)]
        named += errors
    assert {type(error) for error in named} == {BarrierTimeoutError}
    waited = f"while no lane moved, to commit the shares of {window.begin + 7}..{window.begin + 12} together with: "
    assert all(waited in str(error) and behind(window.plain, window) in str(error) for error in named)
    monkeypatch.undo()
    window.finish()


def test_while_a_lane_gives_way_nobody_holds_rows_and_all_wait_as_long_as_it_takes(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Adopted.of(channel)
    monkeypatch.setattr(steps, "apply_options", patient(barrier_timeout=0.5, lease_time=60.0))
    waits, go_on = polite(monkeypatch, window.times, block=2)
    with window.applying() as errors, contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        assert waits.wait(60)
        # the others have committed the block before, and begin none
        wait_until(lambda: seen(channel.target)[0] == {window.begin + 6}, pause=0.01)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert channel.target.query(OPEN) == [(0,)]
        assert seen(channel.target) == ({window.begin + 6}, 6, 6)
    assert errors == []
    window.finish()


def test_a_limit_below_the_number_of_lanes_lets_them_go_on(channel: Channel) -> None:
    together(channel, more="max_threads_running = 1\n")
    window = Adopted.of(channel)
    with window.applying() as errors:
        pass
    assert errors == []
    window.finish()


def behind(lane: int, window: Adopted) -> str:
    """What is said of a lane that stands where the window begins, and lives."""
    return f"lane {lane} at seqno {window.begin}, held by connection"


def test_a_lane_that_does_not_end_its_share_is_named(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process lives, and it says that it works: an executed share does not wait for ever."""
    window = Adopted.of(channel)
    monkeypatch.setattr(steps, "apply_options", patient(barrier_timeout=1.0, lease_time=60.0))
    go_on, named = holding(monkeypatch, window.times), list[BinlaneError]()
    with window.applying() as errors, contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        wait_until(lambda: len(errors) == LANES - 1)
        assert seen(channel.target) == ({window.begin}, 0, 0)
        named += errors
    assert all(behind(window.times, window) in str(error) for error in named)
    monkeypatch.undo()
    window.finish()
