"""MariaDB's sequences, whose rows the log may hold in part."""

from __future__ import annotations

import pytest

from tests.integration.window.conftest import ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB", "FULL"])
@pytest.mark.parametrize("apply", ['writer = "binlog"', 'writer = "sql"', 'on_conflict = "overwrite"'])
@pytest.mark.paired
def test_their_values_arrive_however_rows_are_written(channel_of: ChannelOf, apply: str, image: str) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel(f"{apply}\n")
    run_on(
        channel.source,
        "CREATE DATABASE tenant_1",
        f"SET SESSION binlog_row_image = '{image}'",
        "CREATE SEQUENCE tenant_1.s START WITH 5 INCREMENT BY 3 MAXVALUE 12 CACHE 0 CYCLE",
        "CREATE TABLE tenant_1.t (id INT NOT NULL DEFAULT NEXTVAL(tenant_1.s), n INT)",
        "INSERT INTO tenant_1.t (n) VALUES (1), (2)",
        "INSERT INTO tenant_1.t (n) VALUES (3)",
        "SELECT NEXTVAL(tenant_1.s)",
    )
    assert channel.run() is not None
    for query in ("SELECT * FROM tenant_1.s", "SELECT * FROM tenant_1.t"):
        assert channel.target.query(query) == channel.source.query(query)
    channel.assert_equal()
