"""Two tables whose names differ in letters' case alone, on servers that tell them apart (the default on Linux)."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

STATEMENTS = "SET SESSION binlog_format = STATEMENT"
TABLE = "CREATE TABLE app.{name} (id INT PRIMARY KEY, c VARCHAR(40) DEFAULT ({default}))"


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_the_default_that_counts_is_that_of_the_table_which_a_statement_means(
    family: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE app", TABLE.format(name="T", default="UUID()"), TABLE.format(name="t", default="'x'")
    )
    run_on(channel.source, STATEMENTS, "INSERT INTO app.t (id) VALUES (1)")
    assert channel.run() is not None
    assert channel.target.query("SELECT c FROM app.t") == [("x",)]
    run_on(channel.source, STATEMENTS, "INSERT INTO app.T (id) VALUES (1)")
    with pytest.raises(PrecheckError, match=r"as the default of app\.T\.c"):
        channel.run()
    assert channel.target.query("SELECT c FROM app.T") == []
