"""Views whose tables are missing for a while: what the precheck has seen of them is still what a lane finds."""

from __future__ import annotations

from typing import Final

import pytest

from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_view_that_the_window_makes_whole_is_no_other_one(family: str, channel_of: ChannelOf) -> None:
    """MariaDB shows no query of it before, MySQL not the names of its columns."""
    channel = channel_of(family, family)
    # of a text that the account may not read the precheck knows nothing
    channel.write_channel("allow_unsafe = true\n")
    table = "CREATE TABLE app.b (x INT PRIMARY KEY, y INT)"
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY)",
        table,
        "CREATE VIEW app.v (a, c) AS SELECT x, y FROM app.b",
        "DROP TABLE app.b",
    )
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        table,
        "INSERT INTO app.b VALUES (1, 2)",
        "INSERT INTO app.t SELECT c FROM app.v",
    )
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM app.t") == [(2,)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_view_that_the_window_breaks_stands_in_no_other_statement_s_way(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    # the source's view is broken when the two are compared
    channel.write_channel("allow_unsafe = true\n")
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY)",
        "CREATE TABLE app.b (x INT PRIMARY KEY, y INT)",
        "CREATE VIEW app.v (a, c) AS SELECT x, y FROM app.b",
        "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    )
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO app.t SELECT 7 FROM DUAL WHERE NOT EXISTS (SELECT * FROM app.v)",
        "ALTER TABLE app.b DROP COLUMN y",
        "INSERT INTO app.t VALUES (app.f())",
    )
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (7,)]
