"""What a body of a user can set of its session, and what a log has of the variables that a statement reads.

Each variable that a session of the server has is set by a function, in each spelling that the grammars have: what is
another one behind the call would decide on another user's statements in a lane, so lanes set it anew or refuse the body
(``sql.programs.of_server.never_in_lane``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final

import pymysql
import pytest

from binlane.model import Flavor
from binlane.sql.parse.unsafe import _LOGGED_VARIABLES
from binlane.sql.programs.of_server import _HARMLESS, _RESTORED, never_in_lane
from binlane.sql.temporary_routines import tokens_of
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

pytestmark = pytest.mark.trial

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
VALUES: Final = (
    *("1", "0", "2", "3", "100", "4096", "65536", "200000", "1.5", "ON", "OFF", "'x'", "''", "'latin1'", "'sv_SE'"),
    *("'latin1_bin'", "'ROW'", "'STATEMENT'", "'MINIMAL'", "'READ-COMMITTED'", "'MyISAM'", "'+02:00'", "'JSON'"),
    *("'TREE'", "'CHAIN'", "'FULL'", "'aes-256-ecb'", "'OWN_GTID'", "'MULTILINE'", "'NOCOPY'", "DEFAULT"),
)
"""Of any variable."""
SPELLINGS: Final = """
SET sql_select_limit = 7
SET sql_select_limit := 7
SET `sql_select_limit` = 7
SET @@sql_select_limit := 7
SET @@`sql_select_limit` = 7
SET @@session.`sql_select_limit` = 7
SET @@`session`.sql_select_limit = 7
SET @@SESSION . sql_select_limit = 7
SET SESSION `sql_select_limit` = 7
SET SESSION/**/sql_select_limit = 7
SET LOCAL sql_select_limit = 7
SET @a = 1, SESSION sql_select_limit = 7
SET @a = 1, @@local.sql_select_limit = 7
SET @a = (SELECT 1), sql_select_limit = 7
SET @a = CASE WHEN 1 THEN 2 ELSE 3 END, sql_select_limit = 7
SET @a = REPLACE('abc', 'a', 'z'), sql_select_limit = 7
SET @a = (SELECT 1 FROM DUAL FOR UPDATE), sql_select_limit = 7
SET @a = EXISTS (SELECT 1), sql_select_limit = 7
SET sql_mode = 'ANSI_QUOTES', sql_select_limit = 7
IF 1 THEN SET @a = 1, sql_select_limit = 7; END IF
CASE WHEN 1 THEN SET @a = 1, sql_select_limit = 7; END CASE
REPEAT SET @a = 1, sql_select_limit = 7; UNTIL 1 END REPEAT
BEGIN DECLARE `update` INT; SET `update` = 1, sql_select_limit = 7; END
SET STATEMENT max_statement_time = 5 FOR SET SESSION sql_select_limit = 7
SET CHAR SET latin1
SET CHARACTER SET latin1
SET CHARSET latin1
SET NAMES latin1
SET @a = 1, NAMES latin1
SET @a = 1, NAMES 'latin1', @b = 2
SET @a = (SELECT 1), CHARACTER SET latin1
SET @a = 1, CHAR SET latin1
SET @a = 1, CHARSET latin1
SET SESSION TRANSACTION READ ONLY
SET LOCAL TRANSACTION ISOLATION LEVEL READ COMMITTED
"""
"""A line more is an attack more."""
LOGGED: Final = {
    "auto_increment_increment": "3", "auto_increment_offset": "2", "character_set_client": "'latin1'",
    "character_set_connection": "'latin1'", "character_set_server": "'latin1'", "check_constraint_checks": "0",
    "collation_connection": "'latin1_bin'", "collation_server": "'latin1_bin'",
    "default_collation_for_utf8mb4": "'utf8mb4_general_ci'", "default_table_encryption": "0", "foreign_key_checks": "0",
    "identity": "77", "last_insert_id": "79", "lc_time_names": "'sv_SE'", "pseudo_thread_id": "99",
    "sql_auto_is_null": "1", "sql_mode": "'ANSI_QUOTES'", "time_zone": "'+05:00'", "unique_checks": "0",
}  # fmt: skip
_UNKNOWN: Final = 1193
_GLOBAL: Final = 1229
_READ_ONLY: Final = 1238


def _session(server: PrivateServer) -> contextlib.closing[pymysql.connections.Connection[pymysql.cursors.Cursor]]:
    return contextlib.closing(server.connect(autocommit=True))


def _shown(cursor: pymysql.cursors.Cursor) -> dict[str, str]:
    cursor.execute("SHOW SESSION VARIABLES")
    return {name.lower(): value for name, value in cursor.fetchall()}


def _is_settable(cursor: pymysql.cursors.Cursor, name: str) -> bool:
    try:
        cursor.execute(f"SET SESSION {name} = DEFAULT")
    except pymysql.err.MySQLError as exc:
        return exc.args[0] not in (_UNKNOWN, _GLOBAL, _READ_ONLY)
    return True


def _left(server: PrivateServer, body: str) -> set[str] | None:
    """The variables that are others behind a function with this body; None if it cannot be made or run."""
    function = f"CREATE OR REPLACE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA BEGIN {body}; RETURN 1; END"
    if server.flavor is Flavor.MYSQL:
        run_on(server, "DROP FUNCTION IF EXISTS app.f", log=False)
        function = function.replace(" OR REPLACE", "", 1)
    try:
        run_on(server, function, log=False)
    except pymysql.err.MySQLError:
        return None
    with _session(server) as connection, connection.cursor() as cursor:
        before = _shown(cursor)
        # as often as it takes that what differs by itself has differed
        unsteady = {name for name, value in _shown(cursor).items() if value != before.get(name)}
        try:
            cursor.execute("SELECT app.f()")
        except pymysql.err.MySQLError:
            return None
        return {name for name, value in _shown(cursor).items() if value != before.get(name)} - unsteady


def _is_refused(body: str, flavor: Flavor) -> bool:
    tokens = tokens_of(f"BEGIN {body}; RETURN 1; END", flavor)
    assert tokens is not None, body
    return never_in_lane(tokens) is not None


def _missed(server: PrivateServer, bodies: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    for body in bodies:
        left = (_left(server, body) or set()) - _RESTORED - _HARMLESS
        if left and not _is_refused(body, server.flavor):
            yield body, left


@pytest.mark.parametrize("family", FAMILIES)
def test_no_body_leaves_a_setting_behind(family: str, request: pytest.FixtureRequest) -> None:
    server: PrivateServer = request.getfixturevalue(f"{family}_source")
    run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", "CREATE DATABASE app", log=False)
    with _session(server) as connection, connection.cursor() as cursor:
        names = sorted(_shown(cursor).keys() - _RESTORED - _HARMLESS)
        names = [name for name in names if _is_settable(cursor, name)]
    assert "sql_select_limit" in names
    passed = [name for name in names if not _is_refused(f"SET {name} = 1", server.flavor)]
    try:
        assert list(_missed(server, SPELLINGS.strip().splitlines())) == []
        assert list(_missed(server, (f"SET {name} = {value}" for name in passed for value in VALUES))) == []
    finally:
        run_on(server, "DROP DATABASE app", log=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_variable_that_a_statement_may_read_is_the_source_s(family: str, channel_of: ChannelOf) -> None:
    assert LOGGED.keys() == _LOGGED_VARIABLES
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (name VARCHAR(60), v VARCHAR(999))")
    for name, value in LOGGED.items():
        read = f"INSERT INTO app.t VALUES ('{name}', @@{name})"
        try:
            run_on(channel.source, "SET binlog_format = STATEMENT", read)
            run_on(channel.source, "SET binlog_format = STATEMENT", f"SET {name} = {value}", read)
        except pymysql.err.MySQLError as exc:
            if exc.args[0] != _UNKNOWN:
                raise
    assert channel.run() is not None
    rows = "SELECT name, v FROM app.t ORDER BY name, v"
    assert channel.target.query(rows) == channel.source.query(rows) != []
