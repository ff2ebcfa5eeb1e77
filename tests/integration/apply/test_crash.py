"""Processes that are killed or stopped in the middle of their work: the next one goes on, and nothing is applied
twice."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from binlane.apply.block import BlockPlace, apply_block
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.peers import Memory, Peers
from binlane.apply.lane.runner import run_lane
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.state.leases import lease_name, take
from binlane.state.positions import PlanKey
from binlane.state.windows import finish_window
from lab.servers import PrivateServer, private_server
from tests.forked import telling
from tests.integration.apply.capture import Window
from tests.integration.apply.conftest import QUICK, Pair, fresh_pair, positions, start_window
from tests.integration.apply.test_lane import counters, meeting_window
from tests.integration.apply.worker import run
from tests.waiting import wait_until


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that runs a lane."""

    process: ForkServerProcess
    told: Connection

    def wait_for_a_block(self) -> None:
        """Until it has applied one, or has ended."""
        with contextlib.suppress(EOFError):
            self.told.recv()

    def send(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


@contextlib.contextmanager
def worker(
    pair: Pair, window: Window, lane: int, options: ApplyOptions = QUICK, pause: float = 0.0
) -> Iterator[Worker]:
    """Killed at the end if it is still there."""
    with telling(run, pair.target.url(), window.plan, lane, window.source, options, pause) as (process, told):
        yield Worker(process, told)


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_at_any_moment_then_run_again_gives_equal_data(pair: Pair, seed: int) -> None:
    window = meeting_window(pair, more=40)
    plan = window.plan
    start_window(pair.engine, plan)
    chance = random.Random(seed)
    for _ in range(4):
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(worker(pair, window, lane, pause=0.01)) for lane in plan.all_lanes]
            workers[0].wait_for_a_block()
            time.sleep(chance.uniform(0.0, 0.25))
            for each in workers:
                each.process.kill()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda lane: run_lane(pair.engine, plan, lane, window.source, QUICK), plan.all_lanes))
    pair.assert_equal("journal", "totals")
    finish_window(pair.engine, "orders", "w1", "d1")


def test_a_killed_worker_s_lane_is_carried_on_by_its_neighbour(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    for number in range(20):
        window.add(0, work(f"0a{number}"))
    window.meet(2, (0, 1, 2), work("2b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    with worker(mariadb_pair, window, 0, pause=0.1) as holder:
        holder.wait_for_a_block()
        holder.process.kill()
        holder.process.join()
    assert positions(mariadb_pair)[0] < 20
    result = run_lane(mariadb_pair.engine, plan, 2, window.source, QUICK)
    assert 0 in result.adopted
    mariadb_pair.assert_equal("journal", "totals")


def kills(pair: Pair) -> int:
    """How many KILL statements the target has run."""
    [(_, count)] = pair.target.query("SHOW GLOBAL STATUS LIKE 'Com_kill'")
    return int(count)


def test_a_stopped_holder_is_killed_after_the_lease_time_and_fenced(pair: Pair) -> None:
    window, work = counters(pair)
    for number in range(20):
        window.add(0, work(f"0a{number}"))
    plan = window.plan
    start_window(pair.engine, plan)
    with worker(pair, window, 0, options=replace(QUICK, retries=0), pause=0.1) as holder:
        holder.wait_for_a_block()
        holder.send(signal.SIGSTOP)
        began, killed = time.monotonic(), kills(pair)
        result = run_lane(pair.engine, plan, 0, window.source, QUICK)
        assert time.monotonic() - began >= QUICK.lease_time
        # it is not the server's own wait_timeout that has ended the holder's session
        assert kills(pair) > killed
        assert result.blocks > 0
        pair.assert_equal("journal", "totals")
        holder.send(signal.SIGCONT)
        holder.process.join(timeout=60)
        assert not holder.process.is_alive()
    pair.assert_equal("journal", "totals")
    assert positions(pair)[0] == plan.last_seqno


def test_a_slow_holder_with_a_heartbeat_is_left_alone(mariadb_pair: Pair) -> None:
    window, work = counters(mariadb_pair)
    window.add(0, work("0a"))
    window.add(0, work("0b"))
    plan = window.plan
    start_window(mariadb_pair.engine, plan)
    # a heartbeat can be late by seconds where the machine is busy
    options = replace(QUICK, lease_time=3.0)
    with worker(mariadb_pair, window, 0, options=options, pause=4.0) as holder:
        holder.wait_for_a_block()
        result = run_lane(mariadb_pair.engine, plan, 0, window.source, options)
        assert result.blocks == 0
        holder.process.join(timeout=60)
        assert holder.process.exitcode == 0
    mariadb_pair.assert_equal("journal", "totals")


def test_each_holder_of_a_lane_that_stands_still_has_twice_the_time(mariadb_pair: Pair) -> None:
    lease = lease_name("u", 3)
    with mariadb_pair.engine.connect() as connection:
        polling = connection.execution_options(isolation_level="AUTOCOMMIT")
        key = PlanKey("orders", "w1", "d1")
        peers = Peers(polling, key, "u", replace(QUICK, lease_time=0.2), Memory(), frozenset())

        def seconds_until_killed(position: int) -> float:
            with mariadb_pair.target.connect(autocommit=True) as holder, holder.cursor() as cursor:
                assert take(cursor, lease)
                began = time.monotonic()
                assert not peers.is_abandoned(3, position)
                wait_until(lambda: peers.is_abandoned(3, position))
                return time.monotonic() - began

        assert [seconds_until_killed(7) >= 0.2 * factor for factor in (1, 2, 4)] == [True, True, True]
        assert peers.memory.watched[3].patience == 4
        seconds_until_killed(8)
        assert peers.memory.watched[3].patience == 1


def test_without_any_lease_the_compare_and_set_alone_lets_one_of_four_apply(pair: Pair) -> None:
    window, work = counters(pair)
    pair.both("CREATE TABLE items (id INT PRIMARY KEY) ENGINE=InnoDB")
    # a loser that wrote before it looked would meet a duplicate key
    window.add(0, work("0a"), pair.recorder().run("INSERT INTO items VALUES (1)"))
    plan = window.plan
    start_window(pair.engine, plan)
    uuid = str(pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    place = BlockPlace(PlanKey("orders", "w1", "d1"), uuid, 0, (0,), 0)

    def apply(_: int) -> bool:
        session = LaneSession.open(pair.engine, QUICK.limits)
        block = next(window.source.blocks(0, 0))
        done = apply_block(session, BlockWriter(session, ContextSetter(session)), place, block, lambda: 2)
        session.close()
        return done is not None

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(apply, range(4))) == [False, False, False, True]
    pair.assert_equal("journal", "totals")


def test_the_target_s_crash_is_survived(mariadb_source: PrivateServer, tmp_path: Path) -> None:
    with (
        private_server(tmp_path / "data", name="crashing", durable=True) as target,
        fresh_pair(mariadb_source, target) as pair,
    ):
        window, work = counters(pair)
        for number in range(60):
            window.add(0, work(f"0a{number}"))
        plan = window.plan
        start_window(pair.engine, plan)
        options = replace(QUICK, retries=30, backoff=0.2, backoff_limit=1.0)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run_lane, pair.engine, plan, 0, window.source, options, lambda _: time.sleep(0.02))
            wait_until(lambda: positions(pair)[0] > 5)
            target.kill()
            target.restart()
            assert running.result(timeout=60).retries > 0
        pair.assert_equal("journal", "totals")
