"""A view that binlane makes on a MariaDB target calls no function that changes the server, as binlane's account.

Attacker: whoever may write functions of one database of the target, or of the source. A body more is an attack more.
"""

from __future__ import annotations

import contextlib
from typing import Final

import pytest

from binlane.bootstrap.definition_copy import Definition, make
from binlane.bootstrap.sessions import write_session
from binlane.errors import TargetError
from binlane.restore.definers import OWN_ACCOUNT
from binlane.restore.dump_load import DumpLoad
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

BODIES: Final = (
    "SET GLOBAL max_connections = 77",
    "KILL 4711",
    "INSERT INTO mysql.servers VALUES ('a', '', '', '', '', 0, '', '', '')",
    "UPDATE /* x */ `binlane` . channels SET windows = 99",
    "CALL app.p()",
    "DELETE FROM other.victim",
    "UPDATE app.t SET n = n + 1",
    "INSERT /* x */ INTO t VALUES (9)",
    "REPLACE t VALUES (9)",
    "SET @x = NEXT VALUE FOR other.s",
    "DO SETVAL(other.s, 77)",
    # to information_schema, code inside of a literal
    "SET @x = 'a\\\\'; SET GLOBAL max_connections = 77; SET @y = ' OR 1 #'\n",
)


def _made(server: PrivateServer, body: str) -> None:
    head = "CREATE FUNCTION app.éVil() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER"
    run_on(
        server,
        "SET NAMES utf8mb4",
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY)",
        "CREATE DATABASE IF NOT EXISTS other",
        "CREATE TABLE IF NOT EXISTS other.victim (n INT)",
        "INSERT INTO other.victim VALUES (1)",
        "CREATE SEQUENCE IF NOT EXISTS other.s",
        "CREATE PROCEDURE app.p() SQL SECURITY INVOKER SET GLOBAL max_connections = 77",
        f"{head} BEGIN {body}; RETURN 1; END",
        log=False,
    )


@pytest.mark.parametrize("body", BODIES)
def test_no_view_is_made_that_has_such_a_function_called(channel: Channel, body: str) -> None:
    server = channel.target
    _made(server, body)
    before = server.query("SELECT @@global.max_connections")
    view = (
        b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`v` AS SELECT ROUND(1.5, app.evil()) AS x FROM app.t"
    )
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        with pytest.raises(TargetError, match=r"view app\.v: MariaDB may call app\.\w+ as this account"):
            make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
        run_on(server, "DROP FUNCTION app.éVil", "CREATE FUNCTION app.evil() RETURNS INT SQL SECURITY INVOKER RETURN 1")
        make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
    assert server.query("SELECT @@global.max_connections") == before
    assert server.query("SELECT x FROM app.v") == []
    assert server.query("SELECT n FROM other.victim") == [(1,)]
    assert server.query("SELECT next_not_cached_value FROM other.s") == [(1,)]


HARMLESS: Final = (
    "SET @x = REPLACE(INSERT('a', 1, 1, 'b'), 'b', 'c')",
    "SET @x = (SELECT MAX(n) FROM app.t)",
    "SELECT MAX(n) INTO @x FROM other.victim FOR UPDATE",
    "CALL app.q()",
)
"""Of functions that change nothing."""


@pytest.mark.parametrize("body", HARMLESS)
def test_a_view_of_a_function_that_changes_nothing_is_made(channel: Channel, body: str) -> None:
    _made(channel.target, body)
    # a view calls no procedure, so this one may have the name of its column
    other = "CREATE PROCEDURE app.x() SQL SECURITY INVOKER SET GLOBAL max_connections = 77"
    run_on(channel.target, "CREATE PROCEDURE app.q() SQL SECURITY INVOKER SET @x = 1", other, log=False)
    view = (
        b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`v` AS SELECT ROUND(1.5, app.evil()) AS x FROM app.t"
    )
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
    assert channel.target.query("SELECT x FROM app.v") == []


@pytest.mark.parametrize("security", ["INVOKER", "DEFINER"])
@pytest.mark.parametrize("body", ["DELETE FROM other.victim", "DELETE FROM mysql.servers"])
def test_no_view_of_a_dump_is_made_that_has_a_function_called(channel: Channel, body: str, security: str) -> None:
    """Whose definer the dump has chosen."""
    server = channel.target
    _made(server, "SET @x = 1")
    dump = (
        b"USE `app`",
        f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY {security} "
        f"BEGIN {body}; RETURN 1; END".encode(),
        b"CREATE VIEW v AS SELECT ROUND(1.5, f()) AS x FROM t",
    )
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        load = DumpLoad(session, (10, 11, 6), "dump.sql", {"app": "app"}, {OWN_ACCOUNT})
        with pytest.raises(TargetError, match=r"MariaDB (may call|calls) app\.f .*to make the view.*by hand"):
            load.run(iter(dump))
        load.run(iter((b"USE `app`", b"CREATE VIEW v AS SELECT ROUND(1.5, evil()) AS x FROM t")))
    assert server.query("SELECT n FROM other.victim") == [(1,)]


@pytest.mark.parametrize(("client", "letter"), [("gbk", b"\x81`"), ("big5", b"\xa4`"), ("sjis", b"\x83`")])
def test_a_view_is_read_in_its_own_client_s_character_set(channel: Channel, client: str, letter: bytes) -> None:
    """In UTF-8 the name ends at the letter's second byte, and what follows is a comment."""
    server = channel.target
    _made(server, "DELETE FROM other.victim")
    head = b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`v` AS SELECT 1 AS `"
    view = head + letter + b" #`, ROUND(1.5, app.evil()) AS x"
    collation = {"gbk": "gbk_chinese_ci", "big5": "big5_chinese_ci", "sjis": "sjis_japanese_ci"}[client]
    refused = pytest.raises(TargetError, match=r"view app\.v: MariaDB may call app\.\w+ as this account")
    with contextlib.closing(write_session(channel.endpoints.target)) as session, refused:
        make(session, Definition("VIEW", "app", "v", view, client, collation))
    assert server.query("SELECT n FROM other.victim") == [(1,)]


@pytest.mark.parametrize(
    ("setting", "view"),
    [
        (b"SET CHARACTER_SET_RESULTS = utf16", b"SELECT ROUND(1.5, app.f()) AS x FROM t"),
        (b"SET SQL_MODE='NO_BACKSLASH_ESCAPES'", b"SELECT '\\', ROUND(1.5, app.f()) AS x,' #' AS y FROM t"),
        (b"SET SQL_MODE='ANSI_QUOTES'", b'SELECT 1, ROUND(1.5, app."f"()) AS x FROM t'),
        (b"SET NAMES gbk", b"SELECT 1 AS `\x81` #`, ROUND(1.5, app.f()) AS x FROM t"),
    ],
)
def test_a_view_of_a_dump_is_read_as_the_dump_s_session_reads_it(channel: Channel, setting: bytes, view: bytes) -> None:
    server = channel.target
    _made(server, "SET @x = 1")
    function = (
        b"CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN DELETE FROM other.victim; RETURN 1; END"
    )
    with (
        contextlib.closing(write_session(channel.endpoints.target)) as session,
        contextlib.closing(write_session(channel.endpoints.target)) as catalogue,
    ):
        load = DumpLoad(session, (10, 11, 6), "dump.sql", {"app": "app"}, {OWN_ACCOUNT}, catalogue=catalogue)
        with pytest.raises(TargetError, match=r"calls app\.f to make the view"):
            load.run(iter((b"USE `app`", function, setting, b"CREATE VIEW v AS " + view)))
    assert server.query("SELECT n FROM other.victim") == [(1,)]


BEHIND: Final = (
    b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`w` AS SELECT x FROM app.v",
    b"CREATE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW `app`.`w` AS SELECT 1 AS y FROM app.t "
    b"WHERE n IN (SELECT x FROM `app` . `v`)",
)
"""Views of a view whose function a server calls to make them."""


@pytest.mark.parametrize("statement", BEHIND)
def test_no_view_is_made_over_a_view_that_has_such_a_function_called(channel: Channel, statement: bytes) -> None:
    server = channel.target
    _made(server, "SET @x = 1")
    view = "CREATE SQL SECURITY INVOKER VIEW app.v AS SELECT ROUND(1.5, app.evil()) AS x FROM app.t"
    evil = "CREATE OR REPLACE FUNCTION app.evil() RETURNS INT SQL SECURITY INVOKER BEGIN CALL app.p(); RETURN 1; END"
    # the server's own view, whose function has another body behind
    run_on(server, view, evil, log=False)
    before = server.query("SELECT @@global.max_connections")
    definition = Definition("VIEW", "app", "w", statement, "utf8mb4", "utf8mb4_general_ci")
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        with pytest.raises(TargetError, match=r"view app\.w: .* app\.evil|behind a view that it names"):
            make(session, definition)
        # a procedure alone is called by no view
        run_on(server, "DROP FUNCTION app.evil", "CREATE FUNCTION app.evil() RETURNS INT RETURN 1", log=False)
        make(session, definition)
    assert server.query("SELECT @@global.max_connections") == before


def test_no_view_is_made_over_one_that_has_a_package_called(channel: Channel) -> None:
    head = "app.pkg SQL SECURITY INVOKER AS FUNCTION f RETURN INT DETERMINISTIC"
    run_on(
        channel.target,
        "CREATE DATABASE app",
        "SET sql_mode = ORACLE",
        f"CREATE PACKAGE {head}; END",
        f"CREATE PACKAGE BODY {head} AS BEGIN SET GLOBAL max_connections = 77; RETURN 1; END; END",
        "USE app",
        "CREATE SQL SECURITY INVOKER VIEW v AS SELECT ROUND(1.5, pkg.f()) AS x",
        log=False,
    )
    definition = Definition(
        "VIEW", "app", "w", b"CREATE DEFINER=`a`@`%` VIEW `app`.`w` AS SELECT x FROM app.v", "utf8mb4", "utf8mb4_bin"
    )
    with (
        contextlib.closing(write_session(channel.endpoints.target)) as session,
        pytest.raises(TargetError, match=r"view app\.w: .* app\.pkg .*behind a view that it names"),
    ):
        make(session, definition)


ON_SERVER: Final = {
    "PURGE BINARY": "PURGE /* x */ BINARY LOGS BEFORE '2000-01-01'",
    "SHUTDOWN": "IF @never THEN SHUTDOWN; END IF",
    "CHANGE MASTER": "IF @never THEN CHANGE MASTER TO MASTER_HOST = 'evil'; END IF",
    "START SLAVE": "IF @never THEN START SLAVE; END IF",
    "INTO OUTFILE": "SELECT 1 INTO OUTFILE '/nowhere/evil'",
    "SET GLOBAL": "SET @y = 1, @@GLOBAL.`init_connect` = 'SET @evil = 1'",
    "KILL": "KILL USER nobody",
    "BINLOG": "BINLOG 'x'",
    "SET GLOBAL of a procedure": "CALL `app` . `P`()",
}
"""What the function has; some of it the servers refuse to accounts with the documented privileges."""


@pytest.mark.parametrize("part", ["source", "target"])
def test_doctor_refuses_a_server_with_such_a_function(
    part: str, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    server = channel.source if part == "source" else channel.target
    _made(server, "SET @x = 1")
    functions = [
        f"CREATE FUNCTION app.f{number}() RETURNS INT SQL SECURITY INVOKER BEGIN {body}; RETURN 1; END"
        for number, body in enumerate(ON_SERVER.values())
    ]
    by_definer = "CREATE FUNCTION app.fine() RETURNS INT SQL SECURITY DEFINER BEGIN KILL USER nobody; RETURN 1; END"
    run_on(server, *functions, by_definer, log=False)

    assert channel.cli("doctor", "orders") != 0

    said = capsys.readouterr()
    for number, what in enumerate(ON_SERVER):
        assert f"{part}: function app.f{number}: " in said.out + said.err, what
    assert "app.fine" not in said.out + said.err


@pytest.mark.parametrize("family", ["mariadb", "11.8", pytest.param("mysql", marks=requires_mysql)])
def test_a_view_that_calls_stored_functions_as_a_server_shows_it_is_made(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of("mysql" if family == "mysql" else "mariadb", family)
    server = channel.target
    run_on(
        server,
        "SET NAMES utf8mb4",
        "SET GLOBAL log_bin_trust_function_creators = ON",
        *("CREATE DATABASE app", "USE app", "CREATE TABLE t (n INT, s VARCHAR(9), FULLTEXT (s))"),
        *(f"CREATE FUNCTION {name}(a INT) RETURNS INT DETERMINISTIC RETURN 1" for name in ("f", "`éf`", "`g h`")),
        "CREATE VIEW v AS SELECT f(1) AS a, éf(2) AS b, app.f(3) AS c, `g h`(4) AS d,"
        " MATCH (s) AGAINST ('x' IN BOOLEAN MODE) AS g, CAST(n AS DECIMAL(10,2)) AS h, GET_FORMAT(DATE, 'EUR') AS i,"
        " SUM(n) OVER (PARTITION BY n) AS j, n IN (SELECT 1) AS k, WEIGHT_STRING(s AS CHAR(3)) AS l FROM t",
        log=False,
    )
    ((_, shown, client, collation),) = server.query("SHOW CREATE VIEW app.v")
    run_on(server, "DROP VIEW app.v", log=False)
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        make(session, Definition("VIEW", "app", "v", str(shown).encode(), str(client), str(collation)))
        assert session.texts("SELECT DATABASE()") == [("app",)]

    assert server.query("SHOW CREATE VIEW app.v")[0][1] == shown


@requires_mysql
def test_no_view_is_made_that_calls_a_function_of_a_library(
    channel_of: ChannelOf, undone: list[tuple[Channel, tuple[str, ...]]]
) -> None:
    """It runs as the server's own account, whoever looks at the view. MariaDB has none in its packages."""
    channel = channel_of("mysql", "mysql")
    component = "COMPONENT 'file://component_query_attributes'"
    undone.append((channel, (f"UNINSTALL {component}",)))
    run_on(channel.target, f"INSTALL {component}", "CREATE DATABASE app", log=False)
    view = b"CREATE DEFINER=`a`@`%` VIEW `app`.`v` AS SELECT ROUND(1.5, `mysql_query_attribute_STRING`('x')) AS `x`"
    refused = pytest.raises(TargetError, match=r"view app\..*found mysql_query_attribute_string\(\), which the target")
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        with refused:
            make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
        load = DumpLoad(session, (8, 4, 0), "dump.sql", {"app": "app"}, {OWN_ACCOUNT})
        with refused:
            load.run(iter((b"USE `app`", view.replace(b"DEFINER=`a`@`%` ", b""))))

    assert channel.target.query("SELECT table_name FROM information_schema.views WHERE table_schema = 'app'") == []


@requires_mysql
@pytest.mark.parametrize("security", ["INVOKER", "DEFINER"])
def test_no_view_is_made_whose_functions_call_one_of_a_library(
    security: str, channel_of: ChannelOf, undone: list[tuple[Channel, tuple[str, ...]]]
) -> None:
    """Routines of a source whose server has the same library are copied; a dump brings none."""
    channel = channel_of("mysql", "mysql")
    component = "COMPONENT 'file://component_query_attributes'"
    undone.append((channel, (f"UNINSTALL {component}",)))
    head = f"RETURNS INT DETERMINISTIC SQL SECURITY {security}"
    calls = f"FUNCTION g() {head} RETURN mysql_query_attribute_string('x')"
    run_on(
        channel.target,
        f"INSTALL {component}",
        *("SET GLOBAL log_bin_trust_function_creators = ON", "CREATE DATABASE app", "USE app"),
        *(f"CREATE {calls}", f"CREATE FUNCTION h() {head} RETURN G ()", f"CREATE FUNCTION fine() {head} RETURN 1"),
        log=False,
    )
    view = b"CREATE DEFINER=`a`@`%` VIEW `app`.`v` AS SELECT ROUND(1.5, `app`.`h`()) AS `x`"
    refused = pytest.raises(
        TargetError, match=r"view app\..* found app\.g, a routine with mysql_query_attribute_string"
    )
    with contextlib.closing(write_session(channel.endpoints.target)) as session:
        with refused:
            make(session, Definition("VIEW", "app", "v", view, "utf8mb4", "utf8mb4_general_ci"))
        fine = view.replace(b"`h`", b"`fine`")
        make(session, Definition("VIEW", "app", "v", fine, "utf8mb4", "utf8mb4_general_ci"))
        load = DumpLoad(session, (8, 4, 0), "dump.sql", {"app": "app"}, {OWN_ACCOUNT})
        for kind, made in {
            "function": calls,
            "procedure": "PROCEDURE p() SELECT mysql_query_attribute_string('x')",
            "trigger": "TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @x = mysql_query_attribute_string('x')",
            "event": "EVENT e ON SCHEDULE EVERY 1 DAY DO SET @x = mysql_query_attribute_string('x')",
        }.items():
            with pytest.raises(TargetError, match=rf"^{kind} app\..*found mysql_query_attribute_string\(\).* by hand"):
                load.run(iter((b"USE `app`", f"CREATE {made}".encode())))
        with refused:
            load.run(iter((b"USE `app`", b"CREATE VIEW w AS SELECT h() AS x")))
