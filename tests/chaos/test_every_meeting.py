"""SIGKILL at every statement of meetings at the ends of epochs: each epoch is recorded once, with its place, and lanes
never stand together there without the record. ``make test`` takes 10 of them, evenly spread; ``make chaos`` all."""

from __future__ import annotations

import pytest

from binlane.model import Epoch
from lab.servers import PrivateServer
from tests.chaos.faults import Fault, When, plain_engine
from tests.chaos.rounds import some, survived
from tests.chaos.scene import (
    CHANNEL,
    STEADY,
    Scene,
    assert_positions_tell_the_truth,
    contents,
    lay,
    record_meetings,
    run_on,
)
from tests.chaos.test_every_statement import undisturbed
from tests.chaos.worker import apply_window, was_killed

pytestmark = pytest.mark.trial

LOCK = "GET_LOCK('binlane/"


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_kill_9_at_every_statement_of_a_meeting(family: str, request: pytest.FixtureRequest) -> None:
    target: PrivateServer = request.getfixturevalue(f"{family}_target")
    scene = record_meetings(request.getfixturevalue(f"{family}_source"))
    statements, _ = undisturbed(target, scene)
    assert epochs(target) == expected(scene)
    locks = [at for at, statement in enumerate(statements, 1) if LOCK in statement]
    assert len(locks) == 1 + len(scene.plan.epochs), "the readers' lock is taken once, and passed on at each meeting"
    engine = plain_engine(target.url())
    points = [Fault(at, when) for at in range(locks[0], locks[-1] + 2) for when in When]
    for fault in some(points, request.node.name, sample=10, share=0.04):
        where = f"{fault} of {len(statements)}: {statements[fault.at - 1]}"
        lay(target, engine, scene)
        assert was_killed(apply_window, target.url(), scene, STEADY, fault), where
        assert_positions_tell_the_truth(target, scene)
        assert_recorded_where_they_stand(target, scene.plan.epochs, where)
        run_on(target, engine, scene)
        assert contents(target) == scene.contents, where
        assert epochs(target) == expected(scene), where
        survived[f"worker killed by SIGKILL in a meeting, {target.name}"] += 1


def epochs(target: PrivateServer) -> list[tuple[object, ...]]:
    columns = "number, seqno, source_file, source_offset, gtid_set, source_time"
    return target.query(f"SELECT {columns} FROM binlane.epochs ORDER BY number")


def expected(scene: Scene) -> list[tuple[object, ...]]:
    return [
        (number, each.seqno, each.end.file, each.end.offset, each.gtid_set, each.time)
        for number, each in enumerate(scene.plan.epochs, 1)
    ]


def assert_recorded_where_they_stand(target: PrivateServer, planned: tuple[Epoch, ...], where: str) -> None:
    """What a reader sees now: at an epoch's end the view knows its place."""
    stands = target.query("SELECT seqno, source_offset FROM binlane.consistent WHERE channel = %s", (CHANNEL,))
    for seqno, offset in stands:
        for each in planned:
            assert seqno != each.seqno or offset == each.end.offset, where
