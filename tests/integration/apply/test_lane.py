"""Whole lanes against real servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from binlane.apply.lane.heartbeat import Heartbeat
from binlane.apply.lane.options import LaneResult, Progress
from binlane.apply.lane.runner import run_lane
from binlane.errors import (
    ApplyError,
    BarrierTimeoutError,
    DriftError,
    PlanError,
    PositionError,
    StateSchemaError,
    StopRequestedError,
    TargetUnavailableError,
)
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Item, RowCounts
from binlane.plan.window_plan import Block, LaneSource
from binlane.servers.engines import engine_at
from binlane.state.leases import lease_name
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.state.positions import PlanKey
from binlane.state.records.journal import read_status
from binlane.state.tables import VERSION
from binlane.state.windows import finish_window
from tests.integration.apply.capture import Captured, Window
from tests.integration.apply.conftest import DATABASE, QUICK, Pair, positions, start_window
from tests.waiting import wait_until


def counters(pair: Pair) -> tuple[Window, Callable[[str], Captured]]:
    """Two tables that show every change applied twice or not at all: one has no key, one counts."""
    pair.both(
        "CREATE TABLE journal (lane INT, note VARCHAR(40)) ENGINE=InnoDB",
        "CREATE TABLE totals (lane INT PRIMARY KEY, amount INT NOT NULL) ENGINE=InnoDB",
        "INSERT INTO totals VALUES (0, 0), (1, 0), (2, 0), (3, 0)",
    )
    recorder = pair.recorder()

    def work(name: str) -> Captured:
        lane = int(name[0])
        return recorder.run(
            f"INSERT INTO journal VALUES ({lane}, '{name}')",
            f"UPDATE totals SET amount = amount + 1 WHERE lane = {lane}",
        )

    return Window(recorder.format), work


def meeting_window(pair: Pair, more: int = 0) -> Window:
    """Lanes 0 and 1 and the serialized lane 2, with barriers of all and of two."""
    window, work = counters(pair)
    for number in range(3):
        window.add(0, work(f"0a{number}"), work(f"0b{number}"))
        window.add(1, work(f"1a{number}"))
    window.meet(2, (0, 1, 2), work("2c"), work("2d"))
    window.add(1, work("1e"))
    window.skip(2)
    window.meet(0, (0, 1), work("0f"))
    window.add(0, work("0g"))
    window.meet(2, (0, 1, 2), work("2h"))
    window.add(1, work("1i"))
    for number in range(more):
        window.add(number % 2, work(f"{number % 2}j{number}"))
    if more:
        window.meet(2, (0, 1, 2), work("2k"))
    window.skip()
    return window


def test_lanes_side_by_side_leave_the_source_s_data_and_close_the_accounts(pair: Pair) -> None:
    window = meeting_window(pair)
    plan = window.plan
    start_window(pair.engine, plan)
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda lane: run_lane(pair.engine, plan, lane, window.source, QUICK), plan.all_lanes))
    pair.assert_equal("journal", "totals")
    assert positions(pair) == [plan.last_seqno] * 3
    assert sum((result.rows for result in results), RowCounts()) == plan.rows
    mark = finish_window(pair.engine, "orders", "w1", "d1")
    assert (mark.seqno, mark.source) == (plan.last_seqno, plan.end)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_one_process_after_another_finishes_a_window_with_barriers(mariadb_pair: Pair, order: tuple[int, ...]) -> None:
    window = meeting_window(mariadb_pair)
    start_window(mariadb_pair.engine, window.plan)
    results = [run_lane(mariadb_pair.engine, window.plan, lane, window.source, QUICK) for lane in order]
    mariadb_pair.assert_equal("journal", "totals")
    assert results[0].adopted, "the first one alone cannot cross the barriers"
    finish_window(mariadb_pair.engine, "orders", "w1", "d1")


def test_four_runners_of_one_lane_apply_it_once(pair: Pair) -> None:
    window, work = counters(pair)
    for number in range(20):
        window.add(0, work(f"0a{number}"))
    plan = window.plan
    start_window(pair.engine, plan)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run_lane(pair.engine, plan, 0, window.source, QUICK), range(4)))
    pair.assert_equal("journal", "totals")
    assert sum(result.blocks for result in results) == 20
    assert {result.seqno for result in results} == {20}


def test_a_finished_lane_and_a_finished_window_open_no_file(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    for lane in plan.all_lanes:
        run_lane(mariadb_pair.engine, plan, lane, window.source, QUICK)
    again = run_lane(mariadb_pair.engine, plan, 0, NoFiles(), QUICK)
    assert again == LaneResult(0, plan.last_seqno)
    finish_window(mariadb_pair.engine, "orders", "w1", "d1")
    mariadb_pair.target.query("DELETE FROM binlane.positions")
    assert run_lane(mariadb_pair.engine, plan, 1, NoFiles(), QUICK) == LaneResult(1, plan.last_seqno)


class NoFiles:
    """A source whose files are gone."""

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        raise AssertionError("a finished lane opened a file")

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        raise AssertionError("a finished lane opened a file")

    def makes_null_now(self, first: int, last: int) -> bool:
        raise AssertionError("a finished lane opened a file")


def test_another_plan_is_refused(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    start_window(mariadb_pair.engine, window.plan)
    with pytest.raises(PlanError, match="keeps its plan"):
        run_lane(mariadb_pair.engine, replace(window.plan, digest="d2"), 0, window.source, QUICK)
    assert positions(mariadb_pair) == [0]


def test_a_duplicate_key_leaves_nothing_of_its_block_and_stops_the_other_lanes(pair: Pair) -> None:
    window, work = counters(pair)
    pair.both("CREATE TABLE items (id INT PRIMARY KEY) ENGINE=InnoDB")
    recorder = pair.recorder()
    window.add(0, work("0a"))
    window.add(0, work("0b"), recorder.run("INSERT INTO items VALUES (1)"), work("0c"))
    window.meet(2, (0, 1, 2), work("2d"))
    plan = window.plan
    start_window(pair.engine, plan)
    pair.target.query("INSERT INTO shop.items VALUES (1)")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run_lane, pair.engine, plan, 2, window.source, replace(QUICK, grace=30.0))
        wait_until(lambda: pair.rows("SELECT 1 FROM binlane.heartbeats WHERE lane = 2") != [])
        place = (
            r"lane 0, seqno 3\.\.3, GTID 0-1-3, source binlog\S+: 1062 .*, in the rows event 1 of 1 of the "
            r"transaction: WRITE_ROWS\S* of shop\.items, row 1 of the event: shop\.items, primary key id=1: "
            r"insert id=1; "
            r".*`binlane show orders 3` shows the transaction.*Choices.*`binlane skip orders --seqno 3 "
        )
        with pytest.raises(DriftError, match=place) as caught:
            run_lane(pair.engine, plan, 0, window.source, QUICK)
        with pytest.raises(StopRequestedError, match="because lane 0 failed at seqno 3"):
            waiting.result()
    assert pair.rows("SELECT note FROM shop.journal") == [("0a",)]
    assert positions(pair) == [1, 0, 4]
    [error] = read_status(pair.engine, "orders").errors
    assert (error.lane, error.seqno, error.gtid, error.code, error.text) == (0, 3, "0-1-3", 1062, str(caught.value))
    pair.target.query("DELETE FROM shop.items")
    for lane in plan.all_lanes:
        run_lane(pair.engine, plan, lane, window.source, QUICK)
    pair.assert_equal("journal", "totals", "items")


def test_a_missing_table_is_named_with_its_place(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    start_window(mariadb_pair.engine, window.plan)
    mariadb_pair.target.query("DROP TABLE shop.journal")
    with pytest.raises(ApplyError, match=r"channel orders, window w1, lane 0, seqno 1\.\.1.*1146"):
        run_lane(mariadb_pair.engine, window.plan, 0, window.source, QUICK)


def test_a_row_lock_of_somebody_else_is_waited_out(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    start_window(mariadb_pair.engine, window.plan)
    options = replace(QUICK, limits=replace(QUICK.limits, innodb_lock_wait_timeout=1))
    with mariadb_pair.target.connect() as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT * FROM shop.totals FOR UPDATE")

        def release() -> None:
            waiting = "SELECT COUNT(*) FROM information_schema.innodb_lock_waits"
            while mariadb_pair.target.query(waiting) == [(0,)]:
                # asked more often it shows what it showed before
                time.sleep(0.3)
            # longer than the lane waits
            time.sleep(2)
            blocker.rollback()

        releasing = threading.Thread(target=release, daemon=True)
        releasing.start()
        result = run_lane(mariadb_pair.engine, window.plan, 0, window.source, options)
        releasing.join()
    assert result.retries >= 1
    mariadb_pair.assert_equal("journal", "totals")


def test_polling_lanes_see_progress_made_meanwhile(mariadb_pair: Pair) -> None:
    """A poll inside a REPEATABLE READ transaction would see the first snapshot for ever."""
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.meet(1, (0, 1), work("1b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    engine = engine_at(mariadb_pair.target.url(), isolation_level="REPEATABLE READ")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run_lane, engine, plan, 1, window.source, replace(QUICK, grace=60.0))
        wait_until(lambda: mariadb_pair.rows("SELECT 1 FROM binlane.heartbeats WHERE lane = 1") != [])
        time.sleep(0.3)
        run_lane(mariadb_pair.engine, plan, 0, window.source, replace(QUICK, grace=60.0))
        assert waiting.result(timeout=20).seqno == 2
    engine.dispose()
    mariadb_pair.assert_equal("journal", "totals")


def test_a_barrier_waits_for_every_participant_and_moves_them_together(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(1, work("1b"))
    barrier = window.meet(2, (0, 1, 2), work("2c"), work("2d"))
    window.add(0, work("0e"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    seen: list[list[int]] = []

    def look(done: Progress) -> None:
        seen.append(positions(mariadb_pair))

    with ThreadPoolExecutor(3) as pool:
        list(
            pool.map(lambda lane: run_lane(mariadb_pair.engine, plan, lane, window.source, QUICK, look), plan.all_lanes)
        )
    inside = [at for at in seen if any(barrier.first <= seqno < barrier.last for seqno in at)]
    assert inside, "somebody looked between the barrier's blocks"
    assert all(at == [barrier.first] * 3 for at in inside), "the barrier's first block moves all participants together"
    notes = [str(row[0]) for row in mariadb_pair.rows("SELECT note FROM shop.journal")]
    assert set(notes[:2]) == {"0a", "1b"}
    assert notes[2:] == ["2c", "2d", "0e"]


def test_a_barrier_times_out_and_names_the_lanes_it_waited_for(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.meet(1, (0, 1), work("1b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    uuid = str(mariadb_pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    with mariadb_pair.target.connect(autocommit=True) as other, other.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lease_name(uuid, 0),))
        held = rf"lane 0 at seqno 0, held by connection {other.thread_id()}"  # type: ignore[no-untyped-call]
        options = replace(QUICK, barrier_timeout=0.5, lease_time=60.0)
        with pytest.raises(BarrierTimeoutError, match=held):
            run_lane(mariadb_pair.engine, plan, 1, window.source, options)


def test_a_lane_that_lives_is_waited_for_as_long_as_its_statement_takes(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.meet(1, (0, 1), work("1b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    limits = replace(QUICK.limits, innodb_lock_wait_timeout=60)
    options = replace(QUICK, barrier_timeout=0.5, lease_time=60.0, limits=limits)
    waiting = "SELECT COUNT(*) FROM information_schema.innodb_lock_waits"
    with (
        mariadb_pair.target.connect() as other,
        other.cursor() as cursor,
        ThreadPoolExecutor(len(plan.all_lanes)) as pool,
    ):
        cursor.execute(f"SELECT * FROM {DATABASE}.totals WHERE lane = 0 FOR UPDATE")
        lanes = [
            pool.submit(run_lane, mariadb_pair.engine, plan, lane, window.source, options) for lane in plan.all_lanes
        ]
        wait_until(lambda: mariadb_pair.rows(waiting) == [(1,)])
        # several times the timeout
        time.sleep(3)
        other.rollback()
        for lane in lanes:
            lane.result(timeout=30)
    assert set(positions(mariadb_pair)) == {plan.last_seqno}


def test_a_lane_whose_schema_was_brought_up_while_it_waited_for_its_lease_writes_nothing(mariadb_pair: Pair) -> None:
    """A newer binlane holds all leases meanwhile: whoever gets one behind it looks again."""
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    uuid = str(mariadb_pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    with (
        mariadb_pair.target.connect(autocommit=True) as newer,
        newer.cursor() as cursor,
        ThreadPoolExecutor(1) as pool,
    ):
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lease_name(uuid, 0),))
        waiting = pool.submit(run_lane, mariadb_pair.engine, plan, 0, window.source, QUICK)
        time.sleep(0.5)
        cursor.execute("INSERT INTO binlane.migrations VALUES (%s, 'of a later binlane', NOW(6))", (VERSION + 1,))
        cursor.execute("SELECT RELEASE_LOCK(%s)", (lease_name(uuid, 0),))
        with pytest.raises(StateSchemaError, match=f"has version {VERSION + 1}"):
            waiting.result(timeout=20)
    assert set(positions(mariadb_pair)) == {0}
    assert mariadb_pair.rows(f"SELECT note FROM {DATABASE}.journal") == []


def test_a_lane_that_waits_while_the_next_window_is_placed_with_other_lanes_is_done(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(1, work("1a"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    [(uuid,)] = mariadb_pair.rows("SELECT uuid FROM binlane.channels")
    with (
        mariadb_pair.target.connect(autocommit=True) as faster,
        faster.cursor() as cursor,
        ThreadPoolExecutor(1) as pool,
    ):
        cursor.execute("SELECT GET_LOCK(%s, 0)", (lease_name(str(uuid), 0),))
        waiting = pool.submit(run_lane, mariadb_pair.engine, plan, 0, window.source, QUICK)
        time.sleep(0.5)
        cursor.execute("BEGIN")
        cursor.execute("UPDATE binlane.windows SET state = 'finished'")
        cursor.execute("DELETE FROM binlane.positions WHERE lane = 0")
        cursor.execute("UPDATE binlane.positions SET window_id = 'next', digest = 'next'")
        cursor.execute("COMMIT")
        assert waiting.result(timeout=20).blocks == 0
    assert mariadb_pair.rows(f"SELECT note FROM {DATABASE}.journal") == []


def test_a_position_of_another_lane_that_was_removed_by_hand_is_named(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(1, work("1a"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    mariadb_pair.target.query("DELETE FROM binlane.positions WHERE lane = 1")
    with pytest.raises(PositionError, match="lane 1: no position of this plan on the target"):
        run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK)


def test_a_lane_that_waits_longer_than_wait_timeout_keeps_its_connection(
    mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also longer than one may read a file: it looks round."""
    monkeypatch.setattr("binlane.apply.lane.runner._LONGEST_SILENCE", 1.0)
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.meet(1, (0, 1), work("1b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    options = replace(QUICK, grace=60.0, limits=replace(QUICK.limits, wait_timeout=3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run_lane, mariadb_pair.engine, plan, 1, window.source, options)
        time.sleep(5.0)
        run_lane(mariadb_pair.engine, plan, 0, window.source, options)
        assert waiting.result(timeout=20).retries == 0


@dataclass(frozen=True)
class SlowFiles:
    """A lane's source whose files need several times the session's ``wait_timeout`` at one place."""

    source: LaneSource
    slow: str

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        for number, block in enumerate(self.source.blocks(lane, after)):
            if self.slow == f"block {number}":
                time.sleep(5.0)
            yield replace(block, items=self._items(block)) if self.slow == "item" else block

    def _items(self, block: Block) -> Iterator[Item]:
        for item in block.items:
            time.sleep(5.0)
            yield item

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        return self.source.pieces(lane, block)

    def makes_null_now(self, first: int, last: int) -> bool:
        return False


@pytest.mark.parametrize("slow", ["block 0", "block 1", "item"])
def test_a_lane_that_waits_for_its_files_longer_than_wait_timeout_keeps_its_connection(pair: Pair, slow: str) -> None:
    """The second block is asked for in the open transaction of the first."""
    window, work = counters(pair)
    window.add(0, work("0a"))
    if slow == "block 1":
        window.add(0, work("0b"))
    plan = window.plan
    start_window(pair.engine, plan)
    options = replace(QUICK, retries=0, limits=replace(QUICK.limits, wait_timeout=3))
    run_lane(pair.engine, plan, 0, SlowFiles(window.source, slow), options)
    pair.assert_equal("journal", "totals")


def test_a_lane_whose_file_system_hangs_in_a_block_is_left_to_its_server(
    mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server rolls back what the lane has done of the block, so nobody waits for its rows."""
    monkeypatch.setattr("binlane.apply.lane.runner._LONGEST_SILENCE", 1.0)
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(0, work("0b"))
    start_window(mariadb_pair.engine, window.plan)
    options = replace(QUICK, retries=0, limits=replace(QUICK.limits, wait_timeout=2))
    with pytest.raises(TargetUnavailableError):
        run_lane(mariadb_pair.engine, window.plan, 0, SlowFiles(window.source, "block 1"), options)
    assert positions(mariadb_pair)[0] == 0


def test_stop_now_ends_at_a_block_s_boundary_and_the_next_run_goes_on(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    for number in range(30):
        window.add(0, work(f"0a{number}"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)

    def stop(done: Progress) -> None:
        if done.seqno == 5:
            assert request_stop(mariadb_pair.engine, "orders", now=True).now
        time.sleep(0.03)

    with pytest.raises(StopRequestedError, match="stopped on request"):
        run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK, stop)
    stopped = positions(mariadb_pair)[0]
    assert 5 <= stopped < 30
    assert len(mariadb_pair.rows("SELECT * FROM shop.journal")) == stopped
    with pytest.raises(StopRequestedError):
        run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK)
    assert positions(mariadb_pair)[0] == stopped
    clear_stop(mariadb_pair.engine, "orders")
    run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK)
    mariadb_pair.assert_equal("journal", "totals")


def test_a_graceful_stop_lets_every_lane_reach_the_highest_position(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    for number in range(10):
        window.add(0, work(f"0a{number}"))
        window.add(1, work(f"1a{number}"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    run_until(mariadb_pair, window, lane=0, seqno=9)
    assert request_stop(mariadb_pair.engine, "orders").seqno == 9
    results = [run_lane(mariadb_pair.engine, plan, lane, window.source, QUICK) for lane in plan.lanes_to_run]
    assert {(result.seqno, result.stopped) for result in results} == {(9, True)}
    assert positions(mariadb_pair) == [9, 9], "the serialized lane has no work and no position"
    clear_stop(mariadb_pair.engine, "orders")
    for lane in plan.all_lanes:
        run_lane(mariadb_pair.engine, plan, lane, window.source, QUICK)
    mariadb_pair.assert_equal("journal", "totals")
    finish_window(mariadb_pair.engine, "orders", "w1", "d1")


def test_blocks_that_do_not_fit_the_position_are_refused(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"), work("0b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    mariadb_pair.target.query("UPDATE binlane.positions SET seqno = 1 WHERE lane = 0")
    with pytest.raises(PlanError, match=r"a block of seqnos 1\.\.2 does not follow the position 1"):
        run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK)


def test_positions_that_were_changed_by_hand_stop_the_lane(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(0, work("0b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)

    def meddle(done: Progress) -> None:
        mariadb_pair.target.query("UPDATE binlane.positions SET seqno = 0 WHERE lane = 0")

    with pytest.raises(PositionError, match="changed by hand"):
        run_lane(mariadb_pair.engine, plan, 0, window.source, QUICK, meddle)


def run_until(pair: Pair, window: Window, lane: int, seqno: int) -> None:
    """Run a lane up to a seqno, by a progress callback that ends it."""

    class _EnoughError(Exception):
        pass

    def end(done: Progress) -> None:
        if done.seqno >= seqno:
            raise _EnoughError

    with pytest.raises(_EnoughError):
        run_lane(pair.engine, window.plan, lane, window.source, QUICK, end)


def test_a_lane_is_shown_when_it_is_taken_and_not_an_interval_later(mariadb_pair: Pair) -> None:
    with Heartbeat(mariadb_pair.engine, PlanKey("orders", "w", "d"), interval=3600.0, errors_before=0) as heartbeat:
        time.sleep(0.3)  # longer than the heartbeat's first turn, which finds no lane
        heartbeat.held = {0: 4711}
        query = "SELECT connection_id FROM binlane.heartbeats"
        wait_until(lambda: mariadb_pair.rows(query) != [])
        assert mariadb_pair.rows(query) == [(4711,)]
