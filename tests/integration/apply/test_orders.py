"""Orders that come while lanes run: no block commits behind a stop, and what is to be skipped is not applied
(invariant 11). The heartbeat is too slow to tell of them: only the block's own look at them does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from binlane.apply.lane.options import Progress
from binlane.apply.lane.runner import run_lane
from binlane.errors import PositionError, StopRequestedError
from binlane.model import LogPosition
from binlane.state import windows as window_rows
from binlane.state.orders.skips import SkipRequest, read_skips, request_skips
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.state.records.journal import read_status
from binlane.state.windows import finish_window
from tests.integration.apply.capture import Window
from tests.integration.apply.conftest import QUICK, Pair, positions, start_window
from tests.integration.apply.test_lane import counters

DEAF = replace(QUICK, heartbeat_interval=3600.0)


def blocks_of_three(pair: Pair, blocks: int = 5) -> Window:
    window, work = counters(pair)
    for number in range(blocks):
        window.add(0, *(work(f"0{number}{letter}") for letter in "abc"))
    return window


def skip_request(seqno: int) -> SkipRequest:
    place = LogPosition("binlog.000001", 4)
    return SkipRequest(seqno, 0, f"0-1-{seqno}", place, 1.0, "a row", b"events" * 200_000, (0,), is_shared=False)


def test_a_stop_that_a_running_lane_has_not_heard_of_is_not_passed(pair: Pair) -> None:
    window = blocks_of_three(pair)
    plan = window.plan
    start_window(pair.engine, plan)

    def order(done: Progress) -> None:
        if done.seqno == 6:
            assert request_stop(pair.engine, "orders", at=8).seqno == 8

    result = run_lane(pair.engine, plan, 0, window.source, DEAF, order)
    assert (result.seqno, result.stopped) == (8, True)
    assert positions(pair)[0] == 8
    assert len(pair.rows("SELECT * FROM shop.journal")) == 8
    clear_stop(pair.engine, "orders")
    for lane in plan.all_lanes:
        run_lane(pair.engine, plan, lane, window.source, QUICK)
    pair.assert_equal("journal", "totals")
    finish_window(pair.engine, "orders", "w1", "d1")


def test_stop_now_is_met_by_the_very_next_block(mariadb_pair: Pair) -> None:
    window = blocks_of_three(mariadb_pair)
    start_window(mariadb_pair.engine, window.plan)

    def order(done: Progress) -> None:
        request_stop(mariadb_pair.engine, "orders", now=True)

    with pytest.raises(StopRequestedError, match="`binlane resume orders`"):
        run_lane(mariadb_pair.engine, window.plan, 0, window.source, DEAF, order)
    assert positions(mariadb_pair)[0] == 3


def test_a_transaction_that_is_skipped_while_its_lane_runs_is_left_out(pair: Pair) -> None:
    window = blocks_of_three(pair)
    plan = window.plan
    start_window(pair.engine, plan)

    def order(done: Progress) -> None:
        if done.seqno == 6:
            opened = read_status(pair.engine, "orders").window
            assert opened is not None
            for seqno in (4, 6):
                with pytest.raises(PositionError, match="it is applied already"):
                    request_skips(pair.engine, opened, [skip_request(seqno)], reason="late", by="carol")
            assert request_skips(pair.engine, opened, [skip_request(8)], reason="why", by="carol") == (8,)
            assert request_skips(pair.engine, opened, [skip_request(8)], reason="again", by="dave") == ()

    for lane in plan.all_lanes:
        run_lane(pair.engine, plan, lane, window.source, DEAF, order)
    notes = {str(note) for (note,) in pair.rows("SELECT note FROM shop.journal")}
    assert len(notes) == 14
    assert "02b" not in notes
    with pair.engine.connect() as connection:
        [skip] = read_skips(connection, "orders")
    assert (skip.seqno, skip.state, skip.by, skip.reason) == (8, "skipped", "carol", "why")
    finish_window(pair.engine, "orders", "w1", "d1")


def behind_a_begun_ddl(pair: Pair, give: Callable[[window_rows.Window], int]) -> int:
    """What comes of an order that waits for the first lane's row, while the other lane says that its DDL runs."""
    window, work = counters(pair)
    for lane in (0, 1):
        window.add(lane, *(work(f"{lane}{letter}") for letter in "abc"))
    start_window(pair.engine, window.plan)
    opened = read_status(pair.engine, "orders").window
    assert opened is not None
    waiting = "SELECT 1 FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND info LIKE '%FOR UPDATE%'"
    with ThreadPoolExecutor(1) as pool, pair.engine.connect() as block, pair.engine.connect() as ddl:
        block.execute(text("SELECT seqno FROM binlane.positions WHERE channel = 'orders' AND lane = 0 FOR UPDATE"))
        order = pool.submit(give, opened)
        while not pair.rows(waiting):
            assert not order.done()
            time.sleep(0.05)
        ddl.execute(text("UPDATE binlane.positions SET begun = 4 WHERE channel = 'orders' AND lane = 1"))
        ddl.commit()
        block.rollback()
        return order.result()


def test_a_ddl_that_begins_while_an_order_to_skip_it_waits_is_not_skipped(pair: Pair) -> None:
    asked = replace(skip_request(4), lane=1, lanes=(1,))
    with pytest.raises(PositionError, match="it is a DDL that runs now"):
        behind_a_begun_ddl(pair, lambda opened: request_skips(pair.engine, opened, [asked], reason="", by="carol")[0])
    with pair.engine.connect() as connection:
        assert read_skips(connection, "orders") == ()


def test_a_ddl_that_begins_while_a_stop_waits_is_in_front_of_it(pair: Pair) -> None:
    assert behind_a_begun_ddl(pair, lambda opened: request_stop(pair.engine, "orders").seqno) == 4


def test_a_lane_that_is_told_to_end_stops_at_a_block_s_boundary_and_leaves_no_error(mariadb_pair: Pair) -> None:
    window = blocks_of_three(mariadb_pair)
    start_window(mariadb_pair.engine, window.plan)
    told = threading.Event()
    options = replace(DEAF, interrupted=told)
    with pytest.raises(StopRequestedError, match="its process was asked to end"):
        run_lane(mariadb_pair.engine, window.plan, 0, window.source, options, lambda done: told.set())
    assert positions(mariadb_pair)[0] == 3
    assert read_status(mariadb_pair.engine, "orders").errors == ()
    told.clear()
    assert run_lane(mariadb_pair.engine, window.plan, 0, window.source, options).seqno == 15
