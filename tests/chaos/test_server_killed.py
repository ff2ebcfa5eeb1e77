"""kill -9 of the target while lanes apply, at random moments: what was committed is there, with its position.

Invariants 2, 3, 4 and 10. The servers flush at every commit.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from binlane.apply.session.retry_verdicts import Verdict, judge
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.chaos.faults import plain_engine
from tests.chaos.rounds import dice, some, survived
from tests.chaos.scene import (
    PATIENT,
    Scene,
    assert_positions_tell_the_truth,
    contents,
    lay,
    record,
    run_together,
    state,
)
from tests.chaos.test_every_statement import undisturbed

pytestmark = pytest.mark.trial

KILLS = 30
"""For each family in a run of everything."""


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_kill_9_of_the_target_at_random_moments(family: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    scene = record(request.getfixturevalue(f"{family}_source"), more=12)
    with private_server(tmp_path / "data", Flavor(family), name=f"crashing_{family}", durable=True) as target:
        engine = plain_engine(target.url())
        expected = undisturbed(target, scene)[1]
        began = time.monotonic()
        lay(target, engine, scene)
        run_together(engine, scene, PATIENT)
        seconds = time.monotonic() - began
        chance = dice(request.node.name)
        for number in some(range(KILLS), request.node.name, sample=4, share=0.12):
            lay(target, engine, scene)
            _kill_while_lanes_run(target, engine, scene, chance, seconds)
            assert contents(target) == scene.contents, number
            assert state(target) == expected, number
            survived[f"{family} killed by SIGKILL while lanes applied"] += 1


def _kill_while_lanes_run(
    target: PrivateServer, engine: Engine, scene: Scene, chance: random.Random, seconds: float
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_together, engine, scene, PATIENT)
        time.sleep(chance.uniform(0.0, seconds))
        target.kill()
        target.restart()
        assert_positions_tell_the_truth(target, scene)
        try:
            running.result(timeout=240)
        except DBAPIError as exc:
            # the lanes have outlived it; the watermark's step is a task that is tried again
            if judge(exc) is not Verdict.RETRY:
                raise
            run_together(engine, scene, PATIENT)
