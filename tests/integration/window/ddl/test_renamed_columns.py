"""Columns that an expression of their table names: MariaDB renames them, MySQL does not."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, clean_servers, run_on

__all__ = ["clean_servers"]

TABLES = {
    "check of a column": "a INT CHECK (a > 0), c INT",
    "check": "a INT, c INT, CONSTRAINT positive CHECK (`a` > 0)",
    "virtual": "a INT, c INT, g INT AS (a + 1) VIRTUAL",
    "stored": "a INT, c INT, g INT AS (a + 1) STORED",
    "default": "a INT, c INT, d INT DEFAULT (a + 1)",
    "partitions": "a INT, c INT, PRIMARY KEY (id, a)) PARTITION BY HASH (a) PARTITIONS 2 -- ",
}
RENAMES = ("RENAME COLUMN a TO b", "CHANGE a b BIGINT", "ADD COLUMN z INT, CHANGE COLUMN a b INT NOT NULL")


def _table(columns: str, database: str) -> str:
    key = "" if "PRIMARY KEY" in columns else " PRIMARY KEY"
    return (
        f"CREATE TABLE {database}.t (id INT{key}, {columns}\n)"
        if not columns.endswith("-- ")
        else (f"CREATE TABLE {database}.t (id INT, {columns.removesuffix('-- ')}")
    )


@requires_mysql
def test_a_column_that_mysql_does_not_rename_is_named_before_the_first_write(channel_of: ChannelOf) -> None:
    channel = channel_of(Flavor.MARIADB, Flavor.MYSQL)
    names = [f"tenant_{number}" for number in range(len(TABLES))]
    for name, columns in zip(names, TABLES.values(), strict=True):
        run_on(channel.source, f"CREATE DATABASE {name}", _table(columns, name))
    channel.run()
    for number, name in enumerate(names):
        run_on(
            channel.source,
            f"INSERT INTO {name}.t (id, a, c) VALUES (1, 2, 3)",
            f"ALTER TABLE {name}.t RENAME COLUMN c TO e",
            f"ALTER TABLE {name}.t {RENAMES[number % len(RENAMES)]}",
        )
    # and one of a table that the window makes
    run_on(channel.source, "CREATE DATABASE tenant_new", _table(TABLES["check"], "tenant_new"))
    run_on(channel.source, "ALTER TABLE tenant_new.t RENAME COLUMN a TO b")
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    said = str(raised.value)
    for name in (*names, "tenant_new"):
        assert f"column a of {name}.t: expected a column that no expression names" in said
    assert "[renamed-columns]" in said
    assert "column c of" not in said
    assert channel.target.query("SELECT COUNT(*) FROM tenant_0.t") == [(0,)]


@requires_mysql
def test_a_column_is_renamed_whose_check_is_dropped(channel_of: ChannelOf) -> None:
    """By the same statement, or on the target, which is the way on."""
    channel = channel_of(Flavor.MARIADB, Flavor.MYSQL)
    run_on(channel.source, "CREATE DATABASE tenant_0", _table(TABLES["check"], "tenant_0"))
    run_on(channel.source, "CREATE TABLE tenant_0.u LIKE tenant_0.t")
    channel.run()
    run_on(
        channel.source,
        "ALTER TABLE tenant_0.t DROP CONSTRAINT positive, RENAME COLUMN a TO b",
        "ALTER TABLE tenant_0.u RENAME COLUMN a TO b",
        "INSERT INTO tenant_0.u (id, b) VALUES (1, 7)",
    )
    [(check,)] = channel.target.query(
        "SELECT constraint_name FROM information_schema.table_constraints "
        "WHERE table_schema = 'tenant_0' AND table_name = 'u' AND constraint_type = 'CHECK'"
    )
    run_on(channel.target, f"ALTER TABLE tenant_0.u DROP CHECK {check}", log=False)
    channel.run()
    for server in (channel.source, channel.target):
        assert server.query("SELECT b FROM tenant_0.u") == [(7,)]
        assert len(server.query("SHOW COLUMNS FROM tenant_0.t LIKE 'b'")) == 1
