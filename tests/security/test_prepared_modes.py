"""Texts that a session prepares in one sql_mode and executes in another: the log has the second mode alone."""

from __future__ import annotations

import re

import pymysql
import pytest

from binlane.errors import BinlaneError
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

_OTHER = "d JOIN other.victim v SET v.n = 666"
ATTACKS = {
    "backslash": ("NO_BACKSLASH_ESCAPES", rf"UPDATE t, (SELECT '\' AS x) d SET t.k = 1 -- ' AS x) {_OTHER}"),
    "quotation-mark": ("ANSI_QUOTES", rf'UPDATE t, (SELECT 1 AS "\") d SET t.k = 1 -- ") {_OTHER}'),
}
"""The mode of PREPARE, by which the text names one table; EXECUTE has none."""
HARMLESS = (
    ("", r"INSERT INTO t (n, v, w) VALUES (1, 'it\'s', 'a \"b\" c\\')"),
    ("", r"""INSERT INTO t (n, v, w) VALUES (2, "o'clock", '"'), (3, 'say "it"', "\"")"""),
    ("ANSI_QUOTES", """INSERT INTO "t" ("n", "v") VALUES (4, 'a"b')"""),
    ("NO_BACKSLASH_ESCAPES", r"INSERT INTO t (n, v) VALUES (5, 'C:\dir\')"),
)
"""What applications write."""


def as_user(server: PrivateServer, *statements: str) -> None:
    """Statements of a user who has rights on ``app`` alone."""
    connection = pymysql.connect(
        host="127.0.0.1", port=server.port, user="test_p", password="p", database="app", autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_about_other_tables_in_the_mode_that_prepared_it_is_refused(
    channel_of: ChannelOf, family: str, attack: str
) -> None:
    channel = channel_of(family, family)
    run_on(
        channel.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY, v VARCHAR(20), w VARCHAR(20), k INT)",
        "INSERT INTO app.t (n) VALUES (9)",
        "CREATE DATABASE other",
        "CREATE TABLE other.victim (n INT PRIMARY KEY)",
        "INSERT INTO other.victim VALUES (42)",
        "CREATE USER test_p@'%' IDENTIFIED BY 'p'",
        "GRANT ALL ON app.* TO test_p@'%'",
        "SET GLOBAL binlog_format = STATEMENT",
    )
    try:
        assert channel.run() is not None
        as_user(channel.source, *(each for mode, text in HARMLESS for each in (f"SET sql_mode = '{mode}'", text)))
        assert channel.run() is not None
        channel.assert_equal()
        prepared, text = ATTACKS[attack]
        as_user(
            channel.source,
            "SET @text = '" + text.replace("\\", "\\\\").replace("'", "\\'") + "'",
            f"SET sql_mode = '{prepared}'",
            "PREPARE s FROM @text",
            "SET sql_mode = ''",
            "EXECUTE s",
        )
        with pytest.raises(BinlaneError, match=re.escape("[other-modes]")):
            channel.run()
    finally:
        run_on(channel.source, "SET GLOBAL binlog_format = ROW", "DROP USER test_p@'%'")
    assert channel.source.query("SELECT n FROM other.victim") == [(42,)]
    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]
