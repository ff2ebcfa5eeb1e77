"""A network between worker and target that delays, cuts and falls silent: nothing is lost, nothing is written twice.

Findings 4, 8, 20 and 25 of the design review; invariants 2, 8 and 10.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.apply.lane.heartbeat import Heartbeat
from binlane.state.positions import PlanKey
from lab.servers import PrivateServer
from tests.chaos.faults import Fault, plain_engine
from tests.chaos.proxy import Act, flaky, proxy
from tests.chaos.rounds import dice, some, survived
from tests.chaos.scene import CHANNEL, PATIENT, Scene, contents, lay, run_all, run_together, state
from tests.chaos.test_every_statement import scene_of, undisturbed
from tests.chaos.worker import apply_window
from tests.forked import process
from tests.waiting import wait_until

pytestmark = pytest.mark.trial

CUTS = [
    (token, act, skip)
    for token, skips in (
        (b"COMMIT", (0, 2, 7, 12)),
        (b"BINLOG", (1, 3, 6)),
        (b"UPDATE binlane.positions", (0, 5, 14)),
        (b"UPDATE totals", (0, 2)),
        (b"RENAME", (0,)),
        (b"ALTER", (0, 1)),
        (b"BEGIN", (1, 6)),
    )
    for act in (Act.CUT_BEFORE, Act.CUT_HALF, Act.CUT_AFTER)
    for skip in skips
]


@pytest.fixture(params=["mariadb", "mysql"])
def stage(request: pytest.FixtureRequest) -> tuple[PrivateServer, Scene]:
    return request.getfixturevalue(f"{request.param}_target"), scene_of(request.param, request)


def test_a_cut_around_a_statement_and_in_its_middle(
    stage: tuple[PrivateServer, Scene], request: pytest.FixtureRequest
) -> None:
    """A COMMIT whose answer is lost has happened or not: the position tells (finding 25)."""
    target, scene = stage
    expected = undisturbed(target, scene)[1]
    engine = plain_engine(target.url())
    for token, act, skip in some(CUTS, request.node.name, sample=10, share=0.03):
        lay(target, engine, scene)
        with proxy(target.host, target.port) as network:
            network.once(token, act, skip)
            run_all(plain_engine(network.url(target.url())), scene, PATIENT)
            assert network.struck == 1, (token, skip)
        assert contents(target) == scene.contents, (token, act, skip)
        assert state(target) == expected, (token, act, skip)
        survived[f"network {act.value}"] += 1


def test_a_flaky_network_under_all_lanes_at_once(
    stage: tuple[PrivateServer, Scene], request: pytest.FixtureRequest
) -> None:
    target, scene = stage
    expected = undisturbed(target, scene)[1]
    engine = plain_engine(target.url())
    for seed in some(range(1000), request.node.name, sample=3, share=0.03):
        lay(target, engine, scene)
        with proxy(target.host, target.port) as network:
            network.rule = flaky(dice(f"flaky {seed}"), cut=0.01, delay=0.002)
            run_together(engine, scene, replace(PATIENT, grace=0.5), plain_engine(network.url(target.url())))
        assert contents(target) == scene.contents, seed
        assert state(target) == expected, seed
        survived["flaky network under a window"] += 1


@pytest.mark.parametrize(
    ("token", "skip"), [(b"BINLOG", 1), (b"COMMIT", 2), (b"UPDATE binlane.positions", 5), (b"RENAME", 0)]
)
def test_a_partitioned_worker_is_replaced_and_writes_nothing_when_it_comes_back(
    stage: tuple[PrivateServer, Scene], token: bytes, skip: int
) -> None:
    """Finding 8: no FIN, no answer, and its lane is held. Its connection is killed after the lease time."""
    target, scene = stage
    expected = undisturbed(target, scene)[1]
    engine = plain_engine(target.url())
    lay(target, engine, scene)
    with proxy(target.host, target.port) as network:
        network.once(token, Act.SILENCE, skip)
        with process(apply_window, network.url(target.url()), scene, PATIENT, Fault()) as partitioned:
            wait_until(lambda: network.struck == 1)
            silent = network.rule
            # its heartbeat hears nothing either
            network.rule = lambda data: Act.SILENCE
            run_all(engine, scene, replace(PATIENT, lease_time=0.5))
            assert contents(target) == scene.contents
            network.rule = silent
            network.heal()
            partitioned.join(timeout=60)
            assert partitioned.exitcode == 0
    assert contents(target) == scene.contents
    assert state(target) == expected
    survived["partitioned worker replaced"] += 1


def test_a_heartbeat_whose_new_connection_is_cut_while_it_is_set_up_goes_on(
    stage: tuple[PrivateServer, Scene],
) -> None:
    """A runner without one would be killed by its neighbours, and would hear of no stop and no error."""
    target, scene = stage
    lay(target, plain_engine(target.url()), scene)
    with proxy(target.host, target.port) as network:
        network.once(b"SET autocommit = 1", Act.CUT_BEFORE)
        key = PlanKey(CHANNEL, scene.plan.window_id, scene.plan.digest)
        with Heartbeat(plain_engine(network.url(target.url())), key, 0.05, 0) as heartbeat:
            heartbeat.held = {0: 4711}
            wait_until(lambda: network.struck == 1)
            query = "SELECT connection_id FROM binlane.heartbeats"
            wait_until(lambda: target.query(query) != [])
            assert target.query(query) == [(4711,)]
