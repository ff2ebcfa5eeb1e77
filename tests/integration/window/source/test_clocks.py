"""Clocks of servers and of this machine that are a month apart: what one of them says of the future proves nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

import pytest

from binlane.errors import WindowOpenError
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.records.history import clock_of
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

MONTH: Final = 30 * 86_400.0
FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


def begun(channel: Channel) -> None:
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    assert channel.run() is not None


def until(moment: float) -> WindowRequest:
    return WindowRequest(datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds"))


@FAMILIES
def test_rows_of_a_source_whose_clock_is_ahead_belong_to_a_window_up_to_now(
    channel_of: ChannelOf, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - MONTH)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1)")
    assert channel.run(until(time.time() - 1)) is not None
    channel.assert_equal()
    with pytest.raises(WindowOpenError, match=r"the source's and this machine's clock .*--until now"):
        channel.run(until(right() - 1))
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2)")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.run() is None
    with engine_of(channel.endpoints.target).connect() as connection:
        through = connection.exec_driver_sql("SELECT complete_through FROM binlane.channels").scalar_one()
    assert through < time.time() + MONTH / 2


@FAMILIES
def test_rows_of_the_future_do_not_move_the_target_s_clock(channel_of: ChannelOf, family: str) -> None:
    """MariaDB's threads stay in the future that BINLOG has taken them to, and later connections use them."""
    channel = channel_of(family, family)
    begun(channel)
    run_on(
        channel.source,
        f"SET SESSION timestamp = {time.time() + MONTH:.0f}",
        *(f"INSERT INTO tenant_1.t VALUES ({number})" for number in range(8)),
    )
    assert channel.run() is not None
    channel.assert_equal()
    for _ in range(12):
        with engine_of(channel.endpoints.target).connect() as connection:
            assert abs(clock_of(connection) - time.time()) < MONTH / 2
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (100)")
    time.sleep(2)
    assert channel.run(until(time.time())) is not None
    channel.assert_equal()


@FAMILIES
def test_the_state_s_own_times_are_not_those_of_the_rows(channel_of: ChannelOf, family: str) -> None:
    """Each time that binlane stores of its own work, behind rows that take the servers' threads into the future."""
    channel = channel_of(family, family)
    begun(channel)
    for turn in range(3):
        run_on(
            channel.source,
            f"SET SESSION timestamp = {time.time() + MONTH:.0f}",
            *(f"INSERT INTO tenant_1.t VALUES ({10 * turn + number})" for number in range(8)),
        )
        assert channel.run() is not None
        assert channel.cli("verify", CHANNEL, "--full") == 0
    run_on(channel.target, "DELETE FROM tenant_1.t WHERE id IN (3, 11)")
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.t", "--yes") == 0
    assert ahead(channel) == []


def ahead(channel: Channel) -> list[tuple[str, str]]:
    """The columns of the state with a time that is more than a day ahead."""
    columns = channel.target.query(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'binlane' AND data_type = 'datetime'"
    )
    assert len(columns) > 15
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    return [
        (table, column)
        for table, column in columns
        if channel.target.query(f"SELECT 1 FROM binlane.{table} WHERE {column} > '{tomorrow}' LIMIT 1")
    ]
