"""A fault at every statement that a window's apply tasks send, on every kind of target: run again, and all is equal.

``make test`` takes 14 deaths and 7 losses of each kind on each target, evenly spread over the window; ``make chaos``
takes all.

Findings 2 to 5, 16, 19 and 20 of the design review; invariants 2, 4, 5, 7, 8 and 10.
"""

from __future__ import annotations

import pytest
from sqlalchemy.exc import OperationalError

from binlane.errors import BinlaneError, UndecidableError
from lab.servers import PrivateServer
from tests.chaos.faults import Act, Fault, Faults, When, killer, plain_engine
from tests.chaos.rounds import some, survived
from tests.chaos.scene import PATIENT, STEADY, Scene, contents, lay, record, run_all, run_on, state
from tests.chaos.worker import apply_window, was_killed

pytestmark = pytest.mark.trial

TARGETS = [
    pytest.param(("mariadb", "mariadb_target"), id="mariadb-gtids"),
    pytest.param(("mariadb", "mariadb_without_binlog"), id="mariadb-no-binlog"),
    pytest.param(("mysql", "mysql_target"), id="mysql-gtids"),
    pytest.param(("mysql", "mysql_without_gtids"), id="mysql-no-gtids"),
    pytest.param(("mysql", "mysql_without_binlog"), id="mysql-no-binlog"),
]
_scenes: dict[str, Scene] = {}


@pytest.fixture(params=TARGETS)
def stage(request: pytest.FixtureRequest) -> tuple[PrivateServer, Scene]:
    """A target, and the window of a source of its family."""
    family, name = request.param
    return request.getfixturevalue(name), scene_of(family, request)


def scene_of(family: str, request: pytest.FixtureRequest) -> Scene:
    if family not in _scenes:
        _scenes[family] = record(request.getfixturevalue(f"{family}_source"))
    return _scenes[family]


def test_kill_9_at_every_statement_then_run_again(
    stage: tuple[PrivateServer, Scene], request: pytest.FixtureRequest
) -> None:
    target, scene = stage
    statements, expected = undisturbed(target, scene)
    engine = plain_engine(target.url())
    points = [Fault(at, when) for at in range(1, len(statements) + 1) for when in When]
    for fault in some(points, request.node.name, sample=14, share=0.08):
        where = f"{fault} of {len(statements)}: {statements[fault.at - 1]}"
        lay(target, engine, scene)
        assert was_killed(apply_window, target.url(), scene, STEADY, fault), where
        asked = run_on(target, engine, scene)
        assert contents(target) == scene.contents, where
        assert state(target, errors=asked == 0) == expected, where
        survived[f"worker killed by SIGKILL at a statement, {target.name}"] += 1


@pytest.mark.parametrize("act", [Act.CUT, Act.ENDED])
def test_a_connection_lost_at_every_statement_is_made_anew(
    stage: tuple[PrivateServer, Scene], request: pytest.FixtureRequest, act: Act
) -> None:
    """The lane itself tries again; a step around it is run again."""
    target, scene = stage
    statements, expected = undisturbed(target, scene)
    engine = plain_engine(target.url())
    points = [Fault(at, when, act) for at in range(1, len(statements) + 1) for when in When]
    for fault in some(points, request.node.name, sample=7, share=0.04):
        where = f"{fault} of {len(statements)}: {statements[fault.at - 1]}"
        lay(target, engine, scene)
        asked = 0
        try:
            run_all(Faults(fault, kill=killer(target.url())).engine(target.url()), scene, PATIENT)
        except UndecidableError:
            asked = 1 + run_on(target, engine, scene)
        except (BinlaneError, OperationalError):
            asked = run_on(target, engine, scene)
        assert contents(target) == scene.contents, where
        assert state(target, errors=asked == 0) == expected, where
        survived[f"{act.value} at a statement, {target.name}"] += 1


def undisturbed(target: PrivateServer, scene: Scene) -> tuple[list[str], dict[str, object]]:
    """The statements of a run without a fault, and the state behind it."""
    faults = Faults()
    engine = plain_engine(target.url())
    lay(target, engine, scene)
    run_all(faults.engine(target.url()), scene, STEADY)
    assert contents(target) == scene.contents
    return faults.seen, state(target)
