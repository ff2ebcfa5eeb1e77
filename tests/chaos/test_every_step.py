"""kill -9 of the steps around the lanes, at every statement they send and every change they make to a folder.

Extraction, filter, precheck, adoption of the plan, the watermark's move, retention. Each fault is followed by one more
run: the same data, one more window, and one folder. Invariants 4, 7 and 10.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.servers import PrivateServer
from lab.traffic import Mix
from tests.chaos.faults import Fault, When
from tests.chaos.rounds import some, survived
from tests.chaos.worker import run_steps, was_killed
from tests.integration.window.conftest import Channel, fresh_channel

pytestmark = pytest.mark.trial

MIX = Mix(cross_database=0.1, reference=0.1, ddl=0.1, accounts=0.0, statements=0.1)


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    source: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    target: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    made = fresh_channel(source, target, tmp_path, clean_servers)
    # retention, too, has a folder to remove in each window
    made.write_channel("[work]\nkeep_windows = 1\n")
    made.traffic(20, tenants=2, mix=MIX, creates=True)
    made.run()
    return made


@pytest.mark.parametrize("in_files", [False, True], ids=["statements", "files"])
def test_kill_9_of_the_steps_around_the_lanes(
    channel: Channel, tmp_path: Path, request: pytest.FixtureRequest, in_files: bool
) -> None:
    channel.traffic(12, tenants=2, seed=1000, mix=MIX, creates=True)
    counted = tmp_path / "seen"
    assert not was_killed(run_steps, channel.config, channel.endpoints, Fault(), in_files, counted)
    calls = counted.read_text().splitlines()
    points = [Fault(at, when) for at in range(1, len(calls) + 1) for when in When]
    kind = "a folder's change" if in_files else "a statement"
    for number, fault in enumerate(some(points, request.node.name, sample=3, share=0.03)):
        where = f"{fault} of {len(calls)}: {calls[fault.at - 1]}"
        before = channel.status.channel
        channel.traffic(12, tenants=2, seed=number, mix=MIX, creates=True)
        # no window is quite like another: the last points can be behind this one's end
        if was_killed(run_steps, channel.config, channel.endpoints, fault, in_files, None):
            survived[f"step around the lanes killed by SIGKILL at {kind}, {channel.target.name}"] += 1
        channel.run()
        channel.assert_equal()
        status = channel.status
        assert (status.window, status.channel.windows, list(status.errors)) == (None, before.windows + 1, []), where
        # one that was killed while it removed the last window's folder leaves that to the next run, window or none
        assert len(list(channel.work.iterdir())) == 1, where
    channel.traffic(12, tenants=2, seed=2000, mix=MIX, creates=True)
    channel.run()
    assert len(list(channel.work.iterdir())) == 1
