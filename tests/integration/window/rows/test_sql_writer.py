"""A whole window whose rows are written by SQL."""

from __future__ import annotations

import pytest

from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, ChannelOf


def test_an_account_without_binlog_gets_its_rows_by_sql(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    capsys: pytest.CaptureFixture[str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of("mariadb", "mariadb")
    for statement in ("CREATE DATABASE tenant_a", "CREATE TABLE tenant_a.log (id INT PRIMARY KEY, said VARCHAR(9))"):
        channel.source.query(statement)
    channel.run()
    mariadb_target.query("CREATE OR REPLACE USER test_plain IDENTIFIED BY %s", (mariadb_target.password,))
    for scope in ("binlane", "tenant_a"):
        mariadb_target.query(f"GRANT ALL ON `{scope}`.* TO test_plain")
    mariadb_target.query("GRANT SELECT ON *.* TO test_plain")
    channel.connect("target_server", mariadb_target, "test_plain")
    channel.write_channel('writer = "auto"\n')
    changes = (
        "INSERT INTO tenant_a.log VALUES (0, 'none'), (1, 'one')",
        "UPDATE tenant_a.log SET said = 'two' WHERE id = 1",
    )
    for statement in (*changes, "DELETE FROM tenant_a.log WHERE id = 0"):
        channel.source.query(f"SET STATEMENT sql_mode = 'NO_AUTO_VALUE_ON_ZERO' FOR {statement}")
    capsys.readouterr()
    assert channel.cli("run", CHANNEL) == 0
    # no bar where no terminal is, and no line in its place
    assert "" not in [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert channel.rows_of(mariadb_target) == channel.rows_of(mariadb_source) == {"tenant_a.log": {(1, "two")}}


def test_rows_that_carry_others_of_their_table_along_are_deleted_one_by_one(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel('writer = "sql"\n')
    for statement in (
        "CREATE DATABASE tenant_a",
        "CREATE TABLE tenant_a.tree (id INT PRIMARY KEY, ref INT, code INT UNIQUE, "
        "FOREIGN KEY (ref) REFERENCES tenant_a.tree (id) ON DELETE CASCADE)",
        "INSERT INTO tenant_a.tree VALUES (1, NULL, 10), (2, 1, 20), (3, 2, 30), (4, 2, NULL)",
        # the log has the deletes of 4 and of 2; a statement for both would begin with 2, which carries 4 along
        "REPLACE INTO tenant_a.tree VALUES (4, NULL, 20)",
    ):
        channel.source.query(statement)
    channel.run()
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
