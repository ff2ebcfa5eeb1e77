"""Leases and heartbeats: who holds a lane, for as long as its connection lives."""

from __future__ import annotations

import time

from pymysql.cursors import Cursor
from sqlalchemy import Connection, Engine, text

from binlane.state.leases import beat, holder, kill, lease_name, read_heartbeats, release, take
from tests.integration.state.conftest import cursor_of


def test_a_lease_s_name_fits_mysql_and_differs_by_channel_and_lane() -> None:
    names = {lease_name(channel, lane) for channel in ("a", "A", "b") for lane in range(3)}
    assert len({name.lower() for name in names}) == 9
    assert {len(name) for name in names} == {48}


def test_a_lease_is_held_by_one_connection_and_goes_with_it(engine: Engine) -> None:
    name = lease_name("u", 0)
    with engine.connect() as poll:
        poll = poll.execution_options(isolation_level="AUTOCOMMIT")
        with cursor_of(engine) as first, cursor_of(engine) as second:
            assert take(first, name)
            assert not take(second, name)
            assert holder(poll, name) == connection_id(first)
            release(first, name)
            assert holder(poll, name) is None
            assert take(second, name)
            kill(poll, connection_id(second))
            end = time.monotonic() + 10
            while not take(first, name):
                assert time.monotonic() < end, "KILL did not free the lease"
        assert wait_for_none(poll, name) is None


def test_a_heartbeat_is_written_over(engine: Engine) -> None:
    with engine.connect() as poll:
        poll = poll.execution_options(isolation_level="AUTOCOMMIT")
        beat(poll, "c", 0, "host pid 1", 7)
        first = read_heartbeats(poll, "c")[0]
        beat(poll, "c", 0, "host pid 2", 8)
        second = read_heartbeats(poll, "c")[0]
    assert (second.holder, second.connection_id) == ("host pid 2", 8)
    assert second.beat_at > first.beat_at
    with engine.connect() as connection:
        age = connection.execute(text("SELECT TIMESTAMPDIFF(SECOND, beat_at, UTC_TIMESTAMP()) FROM binlane.heartbeats"))
        assert abs(age.scalar_one()) < 30


def connection_id(cursor: Cursor) -> int:
    cursor.execute("SELECT CONNECTION_ID()")
    row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def wait_for_none(poll: Connection, name: str) -> int | None:
    """The server may notice a closed connection a moment later."""
    end = time.monotonic() + 10
    while (found := holder(poll, name)) is not None and time.monotonic() < end:
        time.sleep(0.05)
    return found
