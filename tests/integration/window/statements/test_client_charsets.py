"""Statements of clients with character sets in which a byte of a character looks like a backslash or a quote."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

CHARACTERS = {
    "sjis": (b"\x83\x5c", b"\x83\x60"),
    "cp932": (b"\x83\x5c", b"\xfa\x60"),
    "big5": (b"\xb3\x5c", b"\xa4\x60"),
    "gbk": (b"\xd5\x5c", b"\x81\x60"),
    "ujis": (b"\xa5\xbd", b"\x8f\xb0\xa1"),
    "swe7": (b"}", b"{"),
}


@pytest.mark.parametrize(("charset", "characters"), CHARACTERS.items())
def test_statements_in_that_character_set_reach_the_target(
    charset: str, characters: tuple[bytes, bytes], channel: Channel, tmp_path: Path
) -> None:
    one, two = characters
    name = b"" if charset == "swe7" else one
    with channel.source.connect(autocommit=True) as connection:
        for sql in (
            b"CREATE DATABASE tenant_1",
            b"CREATE DATABASE tenant_2",
            b"CREATE TABLE tenant_2.t (id INT PRIMARY KEY, s VARCHAR(80) CHARACTER SET utf8mb4)",
            b"SET NAMES " + charset.encode(),
            b"SET SESSION binlog_format = STATEMENT",
            b"CREATE TABLE tenant_1.`n" + name + b"` (id INT PRIMARY KEY, s VARCHAR(80) CHARACTER SET utf8mb4)",
        ):
            connection.query(sql)
        assert channel.run() is not None
        for sql in (
            # a lexer that takes the second byte for a backslash sees a table of tenant_1 in neither
            b"INSERT INTO tenant_2.t VALUES (1, '" + one + b"'), (2, ' FROM tenant_9.a -- ')",
            b"INSERT INTO tenant_1.`n" + name + b"` VALUES (1, '" + two + one + b"')",
            b"UPDATE tenant_2.t SET s = '" + one + b"' WHERE id = 2 AND s <> ', '",
        ):
            connection.query(sql)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    shards = run_plan_job(WorkFolder(window["work"]), InProcess()).shards
    assert set(shards) == {"tenant_1", "tenant_2"}
    channel.go_on(window)
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert channel.target.query("SELECT COUNT(*) FROM tenant_2.t") == [(2,)]


@requires_mysql
@pytest.mark.parametrize(("charset", "name"), [("latin1", "größe"), ("gbk", "名")])
@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_what_a_server_writes_itself_is_read_in_the_character_set_of_servers(
    family: str, charset: str, name: str, channel_of: ChannelOf
) -> None:
    """MariaDB's DROP TEMPORARY TABLE, SAVEPOINT, and the call of a function: in UTF-8, in a text whose client
    has another character set."""
    channel = channel_of(family, family)
    channel.on_both("SET GLOBAL log_bin_trust_function_creators = ON")
    function = f"CREATE FUNCTION app.`{name}_f`() RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
    run_on(
        channel.source,
        "SET NAMES utf8mb4",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
        "CREATE TABLE app.u (n INT)",
        f"{function} BEGIN INSERT INTO app.u VALUES (4); RETURN 1; END",
    )
    assert channel.run() is not None
    temporary = (
        f"CREATE TEMPORARY TABLE `{name}` (n INT)",
        f"INSERT INTO `{name}` VALUES (1)",
        f"INSERT INTO t (n) SELECT n FROM `{name}`",
        f"DROP TEMPORARY TABLE `{name}`",
    )
    with channel.source.connect(autocommit=True, database="app") as connection:
        for sql in (
            f"SET NAMES {charset}",
            "SET SESSION binlog_format = MIXED",
            *(temporary * 2 if family == "mariadb" else ()),
            "BEGIN",
            "INSERT INTO t (n) VALUES (2)",
            f"SAVEPOINT `{name}`",
            "INSERT INTO t (n) VALUES (3)",
            "COMMIT",
            "SET SESSION binlog_format = STATEMENT",
            f"SELECT `{name}_f`() AS x",
        ):
            connection.query(sql.encode(charset))
        # the connection that has made the temporary table lives on
        assert channel.run() is not None
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert channel.target.query("SELECT n FROM app.u") == [(4,)]
