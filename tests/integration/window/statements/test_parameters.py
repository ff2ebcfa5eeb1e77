"""Values of parameters in a log of statements: as bytes of a character set that it does not name."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

FAMILIES = ["mariadb", pytest.param("mysql", marks=requires_mysql)]
PREPARED = {
    "stored": "INSERT INTO a.u VALUES (?, 1)",
    "compared": "UPDATE a.u SET n = 2 WHERE name = ?",
}


@pytest.mark.parametrize("statement", PREPARED)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_parameter_in_another_character_set_than_the_client_s_is_refused(
    family: str, statement: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE a", "CREATE TABLE a.u (name VARCHAR(50), n INT) CHARSET utf8mb4",
        "INSERT INTO a.u VALUES ('Müller', 0)",
    )  # fmt: skip
    channel.begin()
    run_on(
        channel.source, "SET NAMES utf8mb4", "SET SESSION binlog_format = STATEMENT", "USE a",
        "SET @name = CONVERT('Müller' USING latin1)", f"PREPARE s FROM '{PREPARED[statement]}'",
        "EXECUTE s USING @name",
    )  # fmt: skip
    with pytest.raises(PrecheckError, match=r"expected literals in utf8mb4.*\[literal-characters\]"):
        channel.run()
    assert channel.target.query("SELECT name, n FROM a.u") == [("Müller", 0)]


@pytest.mark.parametrize("family", FAMILIES)
def test_bytes_of_a_binary_column_reach_the_target(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    channel.on_both("CREATE DATABASE a", "CREATE TABLE a.u (token VARBINARY(20), name VARCHAR(20)) CHARSET utf8mb4")
    channel.begin()
    run_on(
        channel.source, "SET NAMES utf8mb4", "SET SESSION binlog_format = STATEMENT", "USE a",
        "SET @token = X'FC00275C'", "PREPARE s FROM 'INSERT INTO a.u VALUES (?, 1)'", "EXECUTE s USING @token",
    )  # fmt: skip
    assert channel.run() is not None
    assert channel.target.query("SELECT HEX(token) FROM a.u") == [("FC00275C",)]
