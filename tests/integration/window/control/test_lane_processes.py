"""Lanes' processes look at the target while their plan is checked, and leave it as it is."""

from __future__ import annotations

from binlane.orchestration.lane_processes import LaneProcesses
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.waiting import wait_until

LANES = 3


def test_each_lane_with_work_has_asked_the_target_before_it_is_told_of_a_plan_and_has_written_nothing(
    channel: Channel,
) -> None:
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    assert channel.run() is not None
    writes = "SELECT @@GLOBAL.gtid_binlog_state" if channel.target.flavor == "mariadb" else "SELECT @@gtid_executed"
    before, written = connections(channel), channel.target.query(writes)
    assert written != [("",)]
    asked = 0

    def seen() -> int:
        nonlocal asked
        # each question is a connection, too
        asked += 1
        return connections(channel) - before - asked

    with LaneProcesses() as lanes:
        lanes.begin(CHANNEL, channel.endpoints.target, 2 * LANES, LANES)
        # one for what was asked of the log before
        wait_until(lambda: seen() >= LANES + 1, 30)
    assert channel.target.query(writes) == written


def connections(channel: Channel) -> int:
    return int(channel.target.query("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1])
