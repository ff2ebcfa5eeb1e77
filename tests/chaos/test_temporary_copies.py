"""kill -9 at the statements of a window in which temporary tables live on through commits: the copies make them again.

Each attempt is killed one statement further on than the one before it, counted from where that one left off: so a few
dozen kills strike in every stretch, in the copying, between a commit and the next stretch, and in the making again.
Invariants 2, 5 and 8.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer, private_server
from tests.chaos.faults import Act, Fault, When
from tests.chaos.rounds import EVERYTHING, SECONDS, survived
from tests.chaos.worker import apply_lanes, was_killed
from tests.integration.window.conftest import Channel, fresh_channel
from tests.integration.window.statements.test_temporary_commits import lay, lives_with_commits, renames_of_both

pytestmark = pytest.mark.trial

MORE = 1 if EVERYTHING or SECONDS else 20
"""Statements by which each attempt comes further than the one before."""


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    source: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    target: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    made = fresh_channel(source, target, tmp_path, clean_servers)
    lay(made)
    return made


def test_kill_9_of_lanes_whose_temporary_tables_live_on(channel: Channel) -> None:
    lives_with_commits(channel, "killed")
    apply_with_kills(channel, MORE)


@pytest.mark.parametrize("log_bin", [True, False], ids=["by-gtid", "by-intent"])
def test_kill_9_of_lanes_that_rename_temporary_tables_and_others(
    mariadb_source: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    log_bin: bool,
) -> None:
    """The others are renamed once, the temporary ones on each new connection."""
    with private_server(tmp_path / "target", name="target", log_bin=log_bin) as target:
        channel = fresh_channel(mariadb_source, target, tmp_path, clean_servers)
        lay(channel)
        renames_of_both(channel, "killed")
        apply_with_kills(channel, 1)


def apply_with_kills(channel: Channel, more: int) -> None:
    """Apply a window by attempts of which each is killed ``more`` statements further on than the one before."""
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    lanes = [each["lane"] for each in adopted["lanes"]]
    for at, when in zip(count(1, more), cycle(When), strict=False):
        fault = Fault(at, when, Act.KILL)
        if not was_killed(apply_lanes, channel.config, channel.endpoints, adopted["plan"], lanes, fault):
            break
        survived[f"worker killed by SIGKILL at a statement with temporary tables, {channel.target.name}"] += 1
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()
    for table in ("temporary", "ddl"):
        assert channel.target.query(f"SELECT * FROM binlane.{table}") == []
    assert channel.run() is None
