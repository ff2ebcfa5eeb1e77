"""Bodies and statements that would end, or hold up, the session of a lane, or change the target's server.

Attacker: whoever may write a trigger or a function of one database of the source. A body more is an attack more.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from binlane.errors import BinlaneError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.unit.sql.parse.test_statements import NOT_READ

ON_TARGET: Final = "IF @@server_id <> {server_id} THEN {body}; END IF"
BODIES: Final = (
    ("RELEASE_ALL_LOCKS()", "SET @x = RELEASE_ALL_LOCKS()"),
    ("KILL", "KILL CONNECTION_ID()"),
    ("SET GLOBAL", "SET GLOBAL max_connections = 77"),
    ("SET GLOBAL", "SET @@global.`max_connections` = 77"),
    ("SET sql_select_limit", "SET @x = 1, sql_select_limit = 0"),
    ("SET SESSION group_concat_max_len", "SET SESSION group_concat_max_len = 4"),
    ("SET @@session.", "SET @@session.`lock_wait_timeout` = 1"),
    ("SET ROLE", "SET ROLE NONE"),
    ("SET CHAR", "SET CHAR SET latin1"),
    ("SET NAMES", "SET @x = 1, NAMES latin1"),
    ("SET CHARACTER", "SET @x = (SELECT 1), CHARACTER SET latin1"),
    ("CREATE TABLE", "CALL app.makes()"),
    ("SET PASSWORD", "CALL app.sets()"),
    ("GRANT", "CALL app.gives()"),
    # to information_schema, code inside of a literal
    ("KILL", "SET @x = 'a\\\\'; KILL CONNECTION_ID(); SET @y = ' OR 1 #'\n"),
    ("SET GLOBAL", "SET @x = 'a''b'; SET GLOBAL max_connections = 77; SET @y = 'c''d'"),
)
"""What is found in a body, and the body."""
OF_FAMILY: Final = {
    "mariadb": (
        ("SET ROLE", "SET @x = 1, ROLE NONE"),
        ("CREATE SERVER", "CREATE OR REPLACE SERVER evil FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'evil')"),
    ),
    "mysql": (
        ("CLONE LOCAL", "CLONE LOCAL DATA DIRECTORY = '/nowhere/evil'"),
        ("IMPORT TABLE", "IMPORT TABLE FROM 'x.sdi'"),
    ),
}
UNREAD: Final = "BEGIN DECLARE `\ufffd` INT; KILL CONNECTION_ID(); END"
HARMLESS: Final = (
    "SET @@session.max_sp_recursion_depth = 5, sql_mode = '', time_zone = '+01:00', @y = CONCAT('a', CHAR(65))"
)
"""Lanes set the second and the third anew for each statement."""
FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_body_runs_in_a_lane_that_ends_its_session_or_changes_the_server(family: str, channel_of: ChannelOf) -> None:
    """Also where the channel allows what is unsafe; the trigger runs as its definer, who may do all of it."""
    channel = channel_of(family, family)
    ((server_id,),) = channel.source.query("SELECT @@server_id")
    bodies = (*BODIES, *OF_FAMILY[family], ("", HARMLESS))
    tables = [f"CREATE TABLE app.t{number} (n INT PRIMARY KEY)" for number in range(len(bodies))]
    run_on(channel.source, "CREATE DATABASE app", *tables)
    run_on(channel.source, "CREATE PROCEDURE app.makes() BEGIN CREATE TABLE app.made (n INT); END")
    run_on(channel.source, "CREATE PROCEDURE app.sets() SQL SECURITY INVOKER SET PASSWORD FOR test_evil = ''")
    run_on(channel.source, "CREATE PROCEDURE app.gives() SQL SECURITY INVOKER GRANT SELECT ON app.* TO test_evil")
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    for number, (_, body) in enumerate(bodies):
        text = ON_TARGET.format(server_id=server_id, body=body)
        run_on(channel.source, f"CREATE TRIGGER app.x{number} BEFORE INSERT ON app.t{number} FOR EACH ROW {text}")
    # both servers have it from a copy, and no log has its text
    unread = f"CREATE TRIGGER app.unread BEFORE INSERT ON app.t{len(bodies) - 1} FOR EACH ROW"
    unread = f"{unread} {ON_TARGET.format(server_id=server_id, body=UNREAD)}"
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    for server in (channel.source, channel.target):
        run_on(server, "SET NAMES utf8mb4", unread, log=False)
    before = channel.target.query("SELECT @@global.max_connections")
    for number in range(len(bodies)):
        run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.t{number} VALUES ({number})")

    with pytest.raises(BinlaneError, match="unsafe-bodies") as refused:
        channel.run()

    for number, (what, body) in enumerate(bodies):
        called = re.fullmatch(r"CALL (app\.\w+)\(\)", body)
        program = f"trigger app.x{number}" if called is None else f"procedure {called[1]}"
        expected = rf"found {re.escape(what)} of {program};" if what else rf"app\.x{number}\b"
        assert (re.search(expected, str(refused.value)) is not None) is (what != ""), what
        assert "found a text that cannot be split into words of trigger app.unread" in str(refused.value)
        assert channel.target.query(f"SELECT n FROM app.t{number}") == []
    assert channel.target.query("SELECT @@global.max_connections") == before


@pytest.mark.parametrize("way", ["function", "trigger"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_such_body_runs_by_another_body(family: str, way: str, channel_of: ChannelOf) -> None:
    """The statement has no word of the event that fires it."""
    channel = channel_of(family, family)
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    update = "UPDATE app.t SET n = n + 1"
    by = {
        "function": f"CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA BEGIN {update}; RETURN 1; END",
        "trigger": f"CREATE TRIGGER app.plain AFTER INSERT ON app.l FOR EACH ROW {update}",
    }
    run_on(
        channel.source,
        *("CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)", "CREATE TABLE app.l (n INT)"),
        "CREATE TRIGGER app.evil BEFORE UPDATE ON app.t FOR EACH ROW SET SESSION sql_select_limit = 1",
        *("INSERT INTO app.t VALUES (1)", by[way]),
    )
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    value = {"function": "app.f()", "trigger": "1"}[way]
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.l VALUES ({value})")

    with pytest.raises(BinlaneError, match=r"found SET SESSION sql_select_limit of trigger app\.evil.*unsafe-bodies"):
        channel.run()

    assert channel.source.query("SELECT n FROM app.t") == [(2,)]
    assert channel.target.query("SELECT n FROM app.t") == [(1,)]


@pytest.mark.parametrize("word", ["where", "order", "limit"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_such_body_runs_by_a_table_behind_a_column_that_is_called_as_a_clause(
    family: str, word: str, channel_of: ChannelOf
) -> None:
    """Behind a dot each word is a name, which ends no list of tables."""
    channel = channel_of(family, family)
    run_on(
        channel.source,
        *("CREATE DATABASE app", f"CREATE TABLE app.x (`{word}` INT PRIMARY KEY)", "CREATE TABLE app.y (z INT)"),
        *("CREATE TABLE app.b (n INT PRIMARY KEY)", "INSERT INTO app.x VALUES (1)", "INSERT INTO app.y VALUES (1)"),
        *("INSERT INTO app.b VALUES (1)",),
        "CREATE TRIGGER app.evil BEFORE DELETE ON app.b FOR EACH ROW SET SESSION sql_select_limit = 1",
    )
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    run_on(
        channel.source,
        *("SET SESSION binlog_format = STATEMENT", "USE app"),
        f"DELETE b FROM app.x a JOIN app.y y ON a.{word} = y.z JOIN app.b b ON 1",
    )

    with pytest.raises(BinlaneError, match=r"found SET SESSION sql_select_limit of trigger app\.evil.*unsafe-bodies"):
        channel.run()

    assert channel.source.query("SELECT n FROM app.b") == []
    assert channel.target.query("SELECT n FROM app.b") == [(1,)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO app.t SELECT release_all_locks/* x */()",
        f"CREATE TABLE app.u SELECT {NOT_READ} AS a, RELEASE_ALL_LOCKS() AS b",
        "INSERT INTO app.t SELECT TRIM('x' FROM RELEASE_ALL_LOCKS())",
    ],
    ids=["plain", "not-read", "behind-from"],
)
def test_no_statement_gives_up_a_lane_s_lease(statement: str, family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement)

    with pytest.raises(BinlaneError, match="a statement that releases all locks of its session"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("mariadb_schema.release_all_locks()", "a statement that releases all locks of its session"),
        ("oracle_schema.sleep(0)", r"found SLEEP\(\)"),
        ("mariadb_schema.`uuid_short`() % 7", r"found UUID_SHORT\(\)"),
    ],
)
def test_no_function_behind_a_name_of_mariadb_s_own_is_unseen(value: str, found: str, channel: Channel) -> None:
    """There is no database of that name."""
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    assert channel.run() is not None
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.t SELECT {value}")

    with pytest.raises(BinlaneError, match=found):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []


@pytest.mark.parametrize("name", ["e", "do", "comment"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_schedule_of_an_event_gives_up_a_lane_s_lease(family: str, name: str, channel_of: ChannelOf) -> None:
    """A server evaluates it when the event is made. Behind a dot each word is a name."""
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    run_on(
        channel.source,
        f"CREATE EVENT app.{name} ON SCHEDULE AT NOW() + INTERVAL 1 + 0*RELEASE_ALL_LOCKS() DAY DO SELECT 1",
    )

    with pytest.raises(BinlaneError, match=r"an event whose schedule has RELEASE_ALL_LOCKS\(\)"):
        channel.run()


INTERVALS: Final = ("1 + 0*RELEASE_ALL_LOCKS()", "1 + 0*SLEEP(0)", "1 + 0*GET_LOCK('x', 0)")
"""A line more is an attack more."""


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("verb", ["CREATE", "ALTER"])
def test_no_text_of_a_table_gives_up_a_lane_s_lease(verb: str, interval: str, channel: Channel) -> None:
    """MariaDB computes the interval of a table's history while it parses the text."""
    partitions = f"PARTITION BY SYSTEM_TIME INTERVAL {interval} DAY PARTITIONS 2"
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT) WITH SYSTEM VERSIONING")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    made = f"CREATE TABLE app.v (n INT) WITH SYSTEM VERSIONING {partitions}"
    run_on(channel.source, made if verb == "CREATE" else f"ALTER TABLE app.t {partitions}")

    with pytest.raises(BinlaneError, match=r"releases all locks of its session|in the INTERVAL of PARTITION BY"):
        channel.run()

    assert channel.target.query("SHOW TABLES FROM app") == [("t",)]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_setting_of_one_user_s_function_decides_on_another_user_s_rows(family: str, channel_of: ChannelOf) -> None:
    """On the source each user has a session of his own."""
    channel = channel_of(family, family)
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    body = "BEGIN SET SESSION group_concat_max_len = 4; SET SESSION sql_select_limit = 1; RETURN 1; END"
    channel.on_both(
        *("CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)", "CREATE DATABASE shop"),
        *("CREATE TABLE shop.a (n INT PRIMARY KEY)", "INSERT INTO shop.a VALUES (11), (12), (13)"),
        "CREATE TABLE shop.b (v VARCHAR(99))",
        f"CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA {body}",
    )
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t VALUES (app.f())")
    joined = "INSERT INTO shop.b SELECT GROUP_CONCAT(n ORDER BY n) FROM shop.a"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", joined)

    with pytest.raises(BinlaneError, match=r"found SET SESSION group_concat_max_len of .*\[unsafe-bodies\]"):
        channel.run()

    assert channel.source.query("SELECT v FROM shop.b") == [("11,12,13",)]
    assert channel.target.query("SELECT v FROM shop.b") == []


def test_no_such_setting_is_behind_a_call_without_call(channel: Channel) -> None:
    """The catalogue has no function that the window drops."""
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    assert channel.run() is not None
    run_on(
        channel.source,
        *("SET SESSION binlog_format = STATEMENT", "SET sql_mode = ORACLE"),
        "CREATE PROCEDURE app.p AS BEGIN SET SESSION sql_select_limit = 1; END",
        "CREATE FUNCTION app.f() RETURN INT AS BEGIN app.p; RETURN 1; END",
        *("SET sql_mode = ''", "INSERT INTO app.t VALUES (app.f())"),
        *("SET sql_mode = ORACLE", "DROP FUNCTION app.f"),
    )

    with pytest.raises(BinlaneError, match=r"found SET SESSION sql_select_limit of .*PROCEDURE .*\[unsafe-bodies\]"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []


def test_no_view_is_made_by_a_lane_that_has_such_a_function_called(channel: Channel) -> None:
    run_on(channel.source, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    run_on(channel.target, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    body = "BEGIN DO RELEASE_ALL_LOCKS(); RETURN 1; END"
    function = f"CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC {body}"
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)", function)
    assert channel.run() is not None
    view = "CREATE VIEW app.v AS SELECT ROUND(1.5, app.f()) AS x FROM app.t"
    run_on(channel.source, "ALTER TABLE app.t ADD m INT", view)

    with pytest.raises(BinlaneError, match=r"CREATE .* VIEW .*found RELEASE_ALL_LOCKS\(\) of function app\.f"):
        channel.run()

    assert channel.target.query("SELECT table_name FROM information_schema.tables WHERE table_name = 'v'") == []


def test_the_text_of_a_signal_is_no_line_of_a_log(channel: Channel) -> None:
    forged = "EVIL\n2026-01-01 ERROR [binlane] password is \x1b[31mred"
    body = f"BEGIN IF EXISTS (SELECT n FROM app.u) THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{forged}'; END IF;"
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    tables = ("CREATE TABLE app.t (n INT PRIMARY KEY)", "CREATE TABLE app.u (n INT)")
    function = f"CREATE FUNCTION app.f() RETURNS INT READS SQL DATA {body} RETURN 1; END"
    channel.on_both("CREATE DATABASE app", *tables, function)
    run_on(channel.target, "INSERT INTO app.u VALUES (1)", log=False)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t VALUES (app.f())")

    with pytest.raises(BinlaneError, match="EVIL") as stopped:
        channel.run()

    assert str(stopped.value).count("\n") == 0
    assert "\x1b" not in str(stopped.value)
