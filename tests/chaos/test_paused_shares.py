"""A lane that commits its shares together with others is stopped, loses its lane to another process, and wakes up.

Behind the agreement its share stays open while the others' are committed: a reader sees parts of transactions, and
knows it by the rule. Whoever has the lane next finishes the block, and the window ends once.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pytest

from binlane.apply.lane.options import ApplyOptions
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.orchestration import steps
from binlane.orchestration.lane_options import apply_options
from binlane.plan.window_plan import WindowPlan
from binlane.state.leases import lease_name
from tests.chaos.faults import Act, Fault, When
from tests.chaos.rounds import survived
from tests.chaos.scene import state
from tests.chaos.test_paused import is_stopped
from tests.forked import process
from tests.integration.window.conftest import Channel, ChannelOf
from tests.integration.window.readers.test_together import LANES, TRANSACTIONS, Adopted, killed_lane, seen, two_tables
from tests.waiting import wait_until

pytestmark = pytest.mark.trial

BLOCK: Final = 2 * LANES
"""Transactions of a block."""
VIEW: Final = "SELECT seqno FROM binlane.consistent"


@dataclass(frozen=True, slots=True)
class Stopped:
    """A window whose lane of ``shop.plain`` is stopped, while the others run."""

    window: Adopted
    pid: int
    others: dict[int, Future[Any]]

    def take_over(self) -> None:
        """The others, and another process for the lane, go on to the window's end."""
        self._apply(self.window.plain)
        for other in self.others.values():
            other.result()

    def _apply(self, lane: int) -> None:
        steps.apply_lane(self.window.channel.config, self.window.channel.endpoints, self.window.step["plan"], lane)


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return two_tables(channel_of(request.param, request.param))


def impatient(channel: ChannelConfig, plan: WindowPlan) -> ApplyOptions:
    """Who stands still loses its lane soon; a lane without a process is waited for long enough."""
    options = apply_options(channel, plan)
    return replace(options, lease_time=1.5, heartbeat_interval=0.2, poll_interval=0.1)


def stopping_lane(config: ChannelConfig, endpoints: Endpoints, plan: str, lane: int, text: str, fault: Fault) -> None:
    """One lane in a process of its own, which stops at a statement."""
    setattr(steps, "apply_options", impatient)  # noqa: B010
    killed_lane(config, endpoints, plan, lane, text, fault)


@contextlib.contextmanager
def stopped(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, text: str, fault: Fault, *, alone: bool = False
) -> Iterator[Stopped]:
    """The window with the lane stopped at the n-th statement that begins with ``text``; ``alone``: before the others
    begin. Behind it, the lane's process has been continued and has ended well, and has changed nothing."""
    window = Adopted.of(channel)
    monkeypatch.setattr(steps, "apply_options", impatient)
    victim = (channel.config, channel.endpoints, window.step["plan"], window.plain, text, fault)
    others = [lane for lane in window.plan.all_lanes if lane != window.plain]
    lease = lease_name(channel.status.channel.uuid, window.plain)
    with process(stopping_lane, *victim) as running, ThreadPoolExecutor(len(others)) as pool:
        assert running.pid is not None
        wait_until(lambda: channel.target.query("SELECT IS_USED_LOCK(%s) IS NOT NULL", (lease,)) == [(1,)], pause=0.01)
        if alone:
            wait_until(partial(is_stopped, running.pid))
        found = Stopped(window, running.pid, {})
        found.others.update({lane: pool.submit(found._apply, lane) for lane in others})
        wait_until(partial(is_stopped, running.pid))
        yield found
        expected = state(channel.target)
        # it has ended where it was continued before
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGCONT)
        running.join(timeout=60)
        assert running.exitcode == 0
        assert state(channel.target) == expected
    channel.assert_equal()
    survived["lane of shares stopped, replaced, continued"] += 1


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("UPDATE binlane.positions", Fault(1, When.SENT, Act.PAUSE)),
        # the first one has the format
        ("BINLOG", Fault(2, When.SENT, Act.PAUSE)),
        ("COMMIT", Fault(2, When.SENT, Act.PAUSE)),
        ("COMMIT", Fault(TRANSACTIONS // BLOCK, When.BEFORE, Act.PAUSE)),
    ],
    ids=["moved", "executed", "commits", "agreed to the last block"],
)
def test_a_lane_is_stopped_and_wakes_up_when_the_window_has_ended(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, text: str, fault: Fault
) -> None:
    with stopped(channel, monkeypatch, text, fault) as scene:
        scene.take_over()
        window = scene.window
        assert seen(channel.target) == ({window.plan.last_seqno}, TRANSACTIONS, TRANSACTIONS)
        steps.advance(channel.config, channel.endpoints, window.step["plan"])
        assert channel.target.query(VIEW) == [(window.plan.last_seqno,)]
    assert channel.target.query("SELECT windows FROM binlane.channels") == [(1,)]


def test_a_lane_that_is_stopped_while_it_applies_alone_is_replaced(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(2, When.BEFORE, Act.PAUSE)
    with stopped(channel, monkeypatch, "COMMIT", fault, alone=True) as scene:
        assert seen(channel.target) == ({scene.window.begin + BLOCK}, BLOCK, BLOCK)
        scene.take_over()
        steps.advance(channel.config, channel.endpoints, scene.window.step["plan"])


def test_a_reader_sees_parts_of_transactions_while_an_agreed_share_is_open_and_knows_it(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped(channel, monkeypatch, "COMMIT", Fault(2, When.BEFORE, Act.PAUSE)) as scene:
        begin = scene.window.begin + BLOCK
        # the others have committed theirs, and no block behind it
        torn = {begin, begin + BLOCK}, BLOCK, 2 * BLOCK
        wait_until(lambda: seen(channel.target) == torn, pause=0.01)
        assert channel.target.query(VIEW) == []
        scene.take_over()
        assert seen(channel.target) == ({scene.window.plan.last_seqno}, TRANSACTIONS, TRANSACTIONS)
        steps.advance(channel.config, channel.endpoints, scene.window.step["plan"])
    assert channel.target.query("SELECT windows FROM binlane.channels") == [(1,)]


def test_a_lane_that_wakes_up_in_time_commits_what_was_agreed(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stopped(channel, monkeypatch, "COMMIT", Fault(2, When.BEFORE, Act.PAUSE)) as scene:
        begin = scene.window.begin + BLOCK
        wait_until(lambda: seen(channel.target)[0] == {begin, begin + BLOCK}, pause=0.01)
        os.kill(scene.pid, signal.SIGCONT)
        for other in scene.others.values():
            other.result()
        last = scene.window.plan.last_seqno
        wait_until(lambda: seen(channel.target) == ({last}, TRANSACTIONS, TRANSACTIONS))
        steps.advance(channel.config, channel.endpoints, scene.window.step["plan"])
    assert channel.target.query("SELECT windows FROM binlane.channels") == [(1,)]
