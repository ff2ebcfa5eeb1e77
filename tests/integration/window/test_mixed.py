"""A window of mixed traffic from server to server: both hold the same afterwards, whatever families they are of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, fresh_channel


def test_a_mixed_window_makes_both_servers_equal_and_running_it_again_is_a_no_op(channel: Channel) -> None:
    channel.traffic()
    done = channel.run()
    assert done is not None
    channel.assert_equal()
    before = channel.status
    assert before.channel.watermark.seqno == done["seqno"] > 150
    assert channel.run() is None
    assert channel.status == before
    channel.traffic(seed=2)
    again = channel.run()
    assert again is not None
    assert again["seqno"] > done["seqno"] + 150
    channel.assert_equal()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param("mysql", "mysql", id="mysql-to-mysql"),
        pytest.param(
            "mysql", "mariadb", id="mysql-to-mariadb",
            marks=pytest.mark.xfail(strict=True, reason="MariaDB cannot convert MySQL's binary JSON (1105)"),
        ),
        pytest.param(
            "mariadb", "mysql", id="mariadb-to-mysql",
            marks=pytest.mark.xfail(strict=True, reason="MySQL 9 takes no rows events of version 1 (1730)"),
        ),
    ],
)  # fmt: skip
@requires_mysql
def test_a_mixed_window_of_another_family_pair_makes_both_servers_hold_the_same_rows(
    source: str,
    target: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    servers: tuple[PrivateServer, PrivateServer] = (
        request.getfixturevalue(f"{source}_source"),
        request.getfixturevalue(f"{target}_target"),
    )
    channel = fresh_channel(*servers, tmp_path, clean_servers)
    channel.traffic()
    assert channel.run() is not None
    assert channel.run() is None
    if source == target:
        channel.assert_equal()
    else:
        assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
