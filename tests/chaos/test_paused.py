"""A worker that is stopped at a statement, loses its lane to another, and wakes up: exactly one of them wrote.

Findings 3 and 8 of the design review; invariants 4, 8 and 10.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lab.servers import PrivateServer
from tests.chaos.faults import Act, Fault, When, plain_engine
from tests.chaos.rounds import some, survived
from tests.chaos.scene import PATIENT, STEADY, Scene, contents, lay, run_all, state
from tests.chaos.test_every_statement import scene_of, undisturbed
from tests.chaos.worker import apply_window
from tests.forked import process
from tests.waiting import wait_until

pytestmark = pytest.mark.trial


@pytest.fixture(params=["mariadb", "mysql"])
def stage(request: pytest.FixtureRequest) -> tuple[PrivateServer, Scene]:
    return request.getfixturevalue(f"{request.param}_target"), scene_of(request.param, request)


def test_a_worker_that_is_stopped_at_a_statement_and_wakes_up_later(
    stage: tuple[PrivateServer, Scene], request: pytest.FixtureRequest
) -> None:
    target, scene = stage
    statements, expected = undisturbed(target, scene)
    engine = plain_engine(target.url())
    # where a block's transaction is open, or a DDL under way: from the position's move to the COMMIT
    inside = [
        Fault(at, when, Act.PAUSE)
        for at in range(1, len(statements) + 1)
        for when in When
        if statements[at - 1].startswith(("BEGIN", "UPDATE", "BINLOG", "COMMIT", "RENAME", "ALTER", "TRUNCATE", "DROP"))
    ]
    for fault in some(inside, request.node.name, sample=8, share=0.06):
        where = f"{fault} of {len(statements)}: {statements[fault.at - 1]}"
        lay(target, engine, scene)
        with process(apply_window, target.url(), scene, STEADY, fault) as paused:
            pid = paused.pid
            assert pid is not None
            wait_until(partial(is_stopped, pid))
            run_all(engine, scene, replace(PATIENT, lease_time=0.3))
            assert contents(target) == scene.contents, where
            os.kill(pid, signal.SIGCONT)
            paused.join(timeout=60)
            assert paused.exitcode == 0, where
        assert contents(target) == scene.contents, where
        assert state(target) == expected, where
        survived["worker stopped, replaced, continued"] += 1


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has stopped the process."""
    # behind the program's name in brackets
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
