"""A window of mixed traffic from server to server: both hold the same afterwards, whatever families they are of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import MIXED, Channel, ChannelOf


def test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op(channel: Channel) -> None:
    channel.traffic(creates=True)
    done = channel.run()
    assert done is not None
    channel.assert_equal()
    before = channel.status
    assert before.channel.watermark.seqno == done["seqno"] > 150
    assert channel.run() is None
    assert channel.status == before
    channel.traffic(seed=2, creates=True)
    again = channel.run()
    assert again is not None
    assert again["seqno"] > done["seqno"] + 150
    channel.assert_equal()


@requires_mysql
def test_a_mixed_window_from_mysql_to_mysql_makes_both_servers_equal(
    mysql_source: PrivateServer, mysql_target: PrivateServer, channel_of: ChannelOf
) -> None:
    channel = channel_of("mysql", "mysql")
    # as a connection is that says nothing of it: MySQL's own certificate is taken
    channel.connect("source_server", mysql_source, tls="preferred")
    channel.connect("target_server", mysql_target, tls="preferred")
    channel.traffic(creates=True)
    assert channel.run() is not None
    assert channel.run() is None
    channel.assert_equal()


@pytest.mark.parametrize(("source", "target"), [("mysql", "mariadb"), ("mariadb", "mysql")])
@requires_mysql
def test_a_mixed_window_from_family_to_family_makes_both_servers_hold_the_same_rows(
    source: str, target: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(source, target)
    # accounts are not the same on both: test_families.py
    for number in range(1, 5):
        name = f"tenant_{number:03}"
        channel.source.query(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    channel.traffic(mix=replace(MIXED, accounts=0), creates=True)
    assert channel.run() is not None
    assert channel.run() is None
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)


@pytest.mark.parametrize(("source", "target"), [("mysql", "mariadb"), ("mariadb", "mysql")])
@pytest.mark.parametrize("reduce", ["off", "block"])
@requires_mysql
def test_rows_of_types_that_both_families_have_go_from_one_to_the_other(
    source: str, target: str, reduce: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(source, target)
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    definition = (
        "CREATE TABLE tenant_1.t (id INT UNSIGNED PRIMARY KEY, n BIGINT, d DECIMAL(12,3), f DOUBLE, at DATETIME(6), "
        "s VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, b BLOB, e ENUM('x','y'), UNIQUE (n))"
    )
    channel.source.query("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    channel.source.query(definition)
    # a window of its own: a table that the window creates is not folded
    assert channel.run() is not None
    for number in range(40):
        channel.source.query(
            "INSERT INTO tenant_1.t VALUES (%s, %s, %s, %s, '2026-01-02 03:04:05.678901', 'Ää', x'00ff', 'y')",
            (number, -number, number / 8, number / 3),
        )
    channel.source.query("UPDATE tenant_1.t SET n = n - 1000, e = 'x' WHERE id % 3 = 0")
    channel.source.query("DELETE FROM tenant_1.t WHERE id % 5 = 0")
    assert channel.run() is not None
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(32,)]
