"""A fault at every statement of a lane whose shares commit together with those of others that go on: they finish what
the lane had agreed to and do without it what it had not, and a lane that has lost a connection goes on by itself.

Invariants 2, 8 and 10. ``make test`` takes 8 deaths and 4 losses of each kind; ``make chaos`` all.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import TargetUnavailableError
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.plan.window_plan import WindowPlan
from binlane.state.leases import lease_name
from tests.chaos.faults import Act, Fault, Faults, When, killer
from tests.chaos.rounds import some, survived
from tests.chaos.worker import was_killed
from tests.integration.window.conftest import Channel, ChannelOf
from tests.integration.window.readers.test_divided import lanes_of_both, planned, start
from tests.integration.window.readers.test_together import Adopted, adopted_soon, together, watched
from tests.waiting import wait_until

pytestmark = pytest.mark.trial

__all__ = ["adopted_soon"]

TRANSACTIONS: Final = 10
STATEMENTS: Final = 60
"""At least as many as a lane sends in a window of so many transactions."""


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    """Two tables, of two lanes: each transaction changes both."""
    channel = channel_of(request.param, request.param)
    start(channel)
    together(channel)
    return channel


@pytest.mark.usefixtures("adopted_soon")
@pytest.mark.parametrize(("act", "sample"), [(Act.KILL, 8), (Act.CUT, 4), (Act.ENDED, 4)])
def test_a_fault_at_every_statement_of_one_lane(
    channel: Channel, act: Act, sample: int, request: pytest.FixtureRequest
) -> None:
    numbers = itertools.count(1)
    points = [Fault(at, when, act) for at in range(1, STATEMENTS + 1) for when in When]
    for fault in some(points, request.node.name, sample=sample, share=0.04):
        step = window(channel, numbers)
        plan = read_plan(step["plan"])
        victim, _ = lanes_of_both(plan)
        with watched(channel):
            apply(channel, step, plan, victim, fault)
        assert channel.target.query("SELECT MIN(seqno), MAX(seqno) FROM binlane.positions") == [
            (plan.last_seqno, plan.last_seqno)
        ], fault
        steps.advance(channel.config, channel.endpoints, step["plan"])
        channel.assert_equal()
        survived[f"{act.value} at a statement of a share, {channel.target.name}"] += 1


def test_a_target_that_ends_idle_connections_after_a_second(channel: Channel) -> None:
    """Those of a lane that say nothing while a block waits for a row."""
    channel.target.query("SET GLOBAL wait_timeout = 1")
    try:
        write(channel, itertools.count(1))
        adopted = Adopted.of(channel)
        with channel.target.connect() as other, other.cursor() as cursor:
            cursor.execute("SET SESSION wait_timeout = 600")
            cursor.execute("INSERT INTO shop.plain VALUES (2, 0, 'not for good')")
            with adopted.applying() as errors:
                # longer than all attempts of a lane whose connections are ended
                time.sleep(8)
                other.rollback()
        assert errors == []
    finally:
        channel.target.query("SET GLOBAL wait_timeout = 28800")
    adopted.finish()


def window(channel: Channel, numbers: Iterator[int]) -> dict[str, Any]:
    write(channel, numbers)
    return planned(channel)


def write(channel: Channel, numbers: Iterator[int]) -> None:
    with channel.source.connect() as connection, connection.cursor() as cursor:
        for number in itertools.islice(numbers, TRANSACTIONS):
            cursor.execute(f"INSERT INTO shop.plain VALUES ({number}, 1, 'n')")
            cursor.execute(f"INSERT INTO shop.times VALUES ('2026-01-01' + INTERVAL {number} HOUR, 1)")
            connection.commit()


def apply(channel: Channel, step: dict[str, Any], plan: WindowPlan, victim: int, fault: Fault) -> None:
    """All lanes at once, one of them in a process of its own."""
    others = [lane for lane in plan.all_lanes if lane != victim]
    lease = lease_name(channel.status.channel.uuid, victim)

    def apply_one(lane: int) -> None:
        steps.apply_lane(channel.config, channel.endpoints, step["plan"], lane)

    with ThreadPoolExecutor(len(others) + 1) as pool:
        faulty = pool.submit(was_killed, faulty_lane, channel.config, channel.endpoints, step["plan"], victim, fault)
        wait_until(
            lambda: faulty.done()
            or channel.target.query("SELECT IS_USED_LOCK(%s) IS NOT NULL", (lease,)) == [(1,)],
            pause=0.01,
        )  # fmt: skip
        applied = [pool.submit(apply_one, lane) for lane in others]
        faulty.result()
        for each in applied:
            each.result()


def faulty_lane(config: ChannelConfig, endpoints: Endpoints, plan: str, lane: int, fault: Fault) -> None:
    faults = Faults(fault, kill=killer(endpoints.target.sqlalchemy_url()))
    setattr(steps, "engine_of", lambda endpoint, **_: faults.engine(endpoint.sqlalchemy_url()))  # noqa: B010
    try:
        steps.apply_lane(config, endpoints, plan, lane)
    except TargetUnavailableError:
        # before the lane has begun, which has attempts of its own: the task is tried again
        steps.apply_lane(config, endpoints, plan, lane)
