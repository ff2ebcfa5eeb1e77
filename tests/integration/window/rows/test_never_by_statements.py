"""Rows that no statement can write (``apply.writer = "sql"``): said with their table and the way out."""

from __future__ import annotations

import pytest

from binlane.errors import TableMismatchError
from tests.integration.window.conftest import ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]


@pytest.mark.parametrize(
    ("family", "columns", "row", "why"),
    [
        ("mariadb", "p POINT NOT NULL, n INT", "(id) VALUES (1)", "a geometry that is no geometry"),
        (
            "mysql",
            "n INT, g INT AS (n + 1) STORED NOT NULL",
            "(id, n) VALUES (1, NULL)",
            r"generated column that is NOT NULL \(g\)",
        ),
    ],
)
def test_the_channel_says_so_and_writes_them_with_binlog(
    channel_of: ChannelOf, family: str, columns: str, row: str, why: str
) -> None:
    channel = channel_of(family, family)
    channel.write_channel('writer = "sql"\n')
    run_on(
        channel.source,
        "CREATE DATABASE app",
        f"CREATE TABLE app.t (id INT PRIMARY KEY, {columns})",
        "SET SESSION sql_mode = ''",
        f"INSERT IGNORE INTO app.t {row}",
    )
    with pytest.raises(TableMismatchError, match=rf"app\.t: .*{why}.*apply\.writer = .binlog."):
        channel.run()
    channel.write_channel('writer = "binlog"\n')
    assert channel.run() is not None
    channel.assert_equal()
