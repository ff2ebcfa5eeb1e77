"""Routines, triggers and views that do as the lane's account what their caller could not do on the source."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from binlane.binlog.wire import EventType
from binlane.errors import BinlaneError
from binlane.model import LogPosition
from binlane.source.stream import ServerSource
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

ASKING = {
    "user": "IF USER() NOT LIKE 'test_u@%' THEN DELETE FROM other.victim; END IF",
    "behind-from": "IF TRIM('x' FROM USER()) NOT LIKE 'test_u@%' THEN DELETE FROM other.victim; END IF",
    "server-id": "IF @@global.server_id > 0 THEN SET @x = 1; END IF",
    "lock": "IF GET_LOCK('x', 0) = 0 THEN SET @x = 1; END IF",
    "handler": "BEGIN DECLARE CONTINUE HANDLER FOR 1142 BEGIN END; DELETE FROM other.victim; END",
}
FILTER = '[filter]\ninclude_databases = ["app"]\n'
CALLS = ("INSERT INTO app.t VALUES (app.f())", "SELECT app.f()", "DO app.f()")
KEPT = (
    ("mariadb", "INSERT INTO mysql.global_priv VALUES ('%', 'test_evil', '{}')"),
    ("mariadb", "UPDATE binlane.channels SET windows = 99"),
    ("mariadb", "SET GLOBAL init_connect = 'SET @evil = 1'"),
    ("mariadb", "UPDATE `#mysql50#binlane`.channels SET windows = 99"),
    ("mariadb", "INSERT INTO app.u SELECT 1 FROM /* the */ `MYSQL` . `global_priv`"),
    ("mysql", "UPDATE mysql.user SET host = 'evil' WHERE user = 'test_u'"),
    ("mysql", "UPDATE `binlane` . `channels` SET windows = 99"),
    # to information_schema, code inside of a literal
    ("mariadb", "SET @x = 'a\\\\'; UPDATE binlane.channels SET windows = 99; SET @y = ' OR 1 #'\n"),
    ("mysql", "SET @x = 'a\\\\'; UPDATE binlane.channels SET windows = 99; SET @y = ' OR 1 #'\n"),
    ("mysql", "SET @x = 'a''b'; UPDATE binlane.channels SET windows = 99; SET @y = 'c''d'"),
)
"""Tables of the target's accounts and of the channel's state, which nobody but the lane's account may change."""
ALIKE = "BEGIN DECLARE done INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; SET @x = done; END"


def prepared(channel: Channel) -> None:
    """Tables that the filter takes and leaves out, and a user of the first ones, as both servers have them from before:
    what no window has to bring."""
    channel.on_both(
        "CREATE DATABASE other",
        "CREATE TABLE other.victim (n INT)",
        "INSERT INTO other.victim VALUES (42)",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT)",
        "CREATE TABLE app.u (n INT)",
        "CREATE USER test_u@'%' IDENTIFIED BY 'p'",
        "GRANT ALL ON app.* TO test_u@'%'",
        "SET GLOBAL log_bin_trust_function_creators = ON",
    )


def made(channel: Channel, body: str) -> None:
    """The same, under the filter, and in the log a function of the body, which nobody has called."""
    prepared(channel)
    channel.write_channel(FILTER)
    as_user(
        channel,
        f"CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN {body}; RETURN 1; END",
    )


def a_window(channel: Channel) -> None:
    """A channel's first window looks at the functions that it finds, too, and would refuse one that names no table for
    another reason than its call."""
    run_on(channel.source, "INSERT INTO app.u VALUES (0)")
    assert channel.run() is not None


def as_user(channel: Channel, *statements: str) -> None:
    """Statements of a user who has rights on ``app`` alone, in statement format."""
    run_on(channel.source, "SET GLOBAL binlog_format = STATEMENT")
    try:
        connection = pymysql.connect(
            host="127.0.0.1", port=channel.source.port, user="test_u", password="p", autocommit=True
        )
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        run_on(channel.source, "SET GLOBAL binlog_format = ROW")


@pytest.mark.parametrize(
    ("family", "body", "call"),
    [
        pytest.param("mariadb", ASKING["server-id"], CALLS[0], id="mariadb-server-id"),
        *(
            pytest.param("mysql", body, CALLS[0], id=f"mysql-{name}", marks=requires_mysql)
            for name, body in ASKING.items()
        ),
        *(
            pytest.param("mysql", ASKING["server-id"], call, id=f"mysql-{call}", marks=requires_mysql)
            for call in CALLS[1:]
        ),
    ],
)
def test_a_routine_that_asks_who_runs_it_is_refused_under_a_filter(
    family: str, body: str, call: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    # what changes nothing is not logged
    made(channel, body if call.endswith("t VALUES (app.f())") else f"{body}; INSERT INTO app.u VALUES (1)")
    assert channel.run() is not None
    as_user(channel, call)

    with pytest.raises(BinlaneError, match=r"function app\.f|calls a routine|other, which it leaves out"):
        channel.run()

    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]


@pytest.mark.parametrize("more", ["", "allow_unsafe = true\n"])
def test_a_routine_that_names_what_the_filter_leaves_out_is_not_made_on_mariadb(
    more: str, channel_of: ChannelOf
) -> None:
    """Whoever looks at a view that has it calls it: verify, as the channel's account, without a call in the log."""
    channel = channel_of("mariadb", "mariadb")
    made(channel, ASKING["user"])
    channel.write_channel(f"{more}{FILTER}")

    with pytest.raises(BinlaneError, match=r"(?s)CREATE .*`app`\.`f`.*found a table of other.*\[account-programs\]"):
        channel.run()

    assert (
        channel.target.query("SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'app'") == []
    )
    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]


@requires_mysql
def test_the_same_of_a_routine_of_the_window_and_of_a_trigger(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    made(channel, "IF USER() LIKE 'root%' THEN SET @y = 1; END IF")
    as_user(channel, "CREATE TRIGGER app.r BEFORE INSERT ON app.t FOR EACH ROW SET @x = app.f()")
    as_user(channel, "INSERT INTO app.t VALUES (1)")

    with pytest.raises(BinlaneError, match=r"(?s)app\.f.*USER\(\)"):
        channel.run()

    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]


@requires_mysql
def test_a_routine_that_is_alike_for_everybody_runs(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    made(channel, ALIKE)
    as_user(channel, "INSERT INTO app.t VALUES (app.f())")

    assert channel.run() is not None

    assert channel.target.query("SELECT n FROM app.t") == [(1,)]


@pytest.mark.paired
@pytest.mark.parametrize("security", ["SQL SECURITY INVOKER", "SQL SECURITY DEFINER"])
@pytest.mark.parametrize(
    ("family", "body"),
    [pytest.param(family, body, marks=requires_mysql if family == "mysql" else ()) for family, body in KEPT],
)
def test_a_routine_changes_neither_accounts_nor_the_state_without_a_filter_too(
    family: str, body: str, security: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    prepared(channel)
    if body.startswith("SET GLOBAL"):
        a_window(channel)
    # both servers have it from a copy, and no log has its text
    function = f"CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA {security} BEGIN"
    function += (
        f" IF @@server_id <> {channel.source.query('SELECT @@server_id')[0][0]} THEN {body}; END IF; RETURN 1; END"
    )
    for server in (channel.source, channel.target):
        run_on(server, "GRANT EXECUTE ON app.* TO test_u@'%'", function, log=False)
    if security.endswith("DEFINER"):
        # in front of its call, and back behind it
        clause = "SET STATEMENT max_sort_length = 5 FOR " if family == "mariadb" else ""
        run_on(channel.source, f"{clause}ALTER FUNCTION app.g SQL SECURITY INVOKER")
    as_user(channel, "INSERT INTO app.t VALUES (app.g())")
    if security.endswith("DEFINER"):
        run_on(channel.source, "ALTER FUNCTION app.g SQL SECURITY DEFINER")
    before = _accounts_and_state(channel)

    with pytest.raises(BinlaneError, match=r"function app\.g: expected no table of the target's accounts"):
        channel.run()

    assert _accounts_and_state(channel) == before


@pytest.mark.parametrize("name", ["g", "view"])
def test_a_routine_that_a_view_calls_gets_its_invoker_s_privileges_by_no_window(
    name: str, channel_of: ChannelOf
) -> None:
    channel = channel_of("mariadb", "mariadb")
    prepared(channel)
    a_window(channel)
    function = f"CREATE DEFINER=test_u@'%' FUNCTION app.{name}() RETURNS INT DETERMINISTIC"
    for server in (channel.source, channel.target):
        # a view is made with a function that does nothing
        run_on(server, f"{function} RETURN 1", f"CREATE VIEW app.v AS SELECT ROUND(1.5, app.{name}()) AS x", log=False)
        run_on(server, f"DROP FUNCTION app.{name}", log=False)
        run_on(server, f"{function} BEGIN SET GLOBAL init_connect = 'DO 1'; RETURN 1; END", log=False)
    run_on(channel.source, f"ALTER FUNCTION app.{name} SQL SECURITY INVOKER")

    with pytest.raises(BinlaneError, match=rf"FUNCTION app\.{name} SQL .* found SET GLOBAL; a view can have it"):
        channel.run()

    assert channel.target.query("SELECT @@GLOBAL.init_connect") == [("",)]


def _accounts_and_state(channel: Channel) -> tuple[object, ...]:
    accounts = channel.target.query("SELECT user, host FROM mysql.user ORDER BY 1, 2")
    state = channel.target.query("SELECT channel FROM binlane.channels WHERE windows = 99")
    return accounts, state, channel.target.query("SELECT @@GLOBAL.init_connect")


def _payload(server: PrivateServer) -> str:
    """The rows of an INSERT into a table of ``mysql``, for a BINLOG statement; the server's table is as before."""
    ((file, offset, *_),) = server.query(
        "SHOW MASTER STATUS" if server.flavor == "mariadb" else "SHOW BINARY LOG STATUS"
    )
    run_on(server, "SET SESSION binlog_format = ROW", "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('Y')")
    run_on(server, "DELETE FROM mysql.time_zone", log=False)
    arguments = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    source = ServerSource("target", {**arguments, "get_server_public_key": True}, 4711, "test")
    events = list[bytes]()
    for chunk in source.read_log(LogPosition(str(file), int(offset))):
        rest = chunk.data
        while rest:
            size = int.from_bytes(rest[9:13], "little")
            if rest[4] in ROWS:
                events.append(rest[:size])
            rest = rest[size:]
    return base64.b64encode(b"".join(events)).decode()


ROWS = (EventType.FORMAT_DESCRIPTION, EventType.TABLE_MAP, EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS_V2)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_routine_changes_no_unnamed_table_by_binlog(family: str, channel_of: ChannelOf) -> None:
    """Servers take BINLOG in the body of a function, and check no privilege on the tables of its rows."""
    channel = channel_of(family, family)
    payload = _payload(channel.target)
    prepared(channel)
    a_window(channel)
    function = "CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN"
    # on the source its caller lacks the privilege, and catches the error
    function += f" DECLARE CONTINUE HANDLER FOR 1227 BEGIN END; BINLOG '{payload}'; RETURN 1; END"
    for server in (channel.source, channel.target):
        run_on(server, function, log=False)
    as_user(channel, "INSERT INTO app.t VALUES (app.g())")

    with pytest.raises(BinlaneError, match=r"function app\.g: expected no table .*, found BINLOG"):
        channel.run()

    assert channel.target.query("SELECT COUNT(*) FROM mysql.time_zone") == [(0,)]


SPELLINGS = (
    ("mariadb", "app.\u0121()"),
    ("mysql", "app.\u0121()"),
    ("mysql", "app . `\u1e20` ()"),
)
"""Servers compare names of routines by utf8mb3_general_ci, in which accents do not count."""


@pytest.mark.parametrize(
    ("family", "call"),
    [pytest.param(family, call, marks=requires_mysql if family == "mysql" else ()) for family, call in SPELLINGS],
)
def test_a_routine_is_the_same_by_each_spelling_of_its_name(family: str, call: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    prepared(channel)
    kept = "INSERT INTO mysql.global_priv VALUES ('%', 'test_evil', '{}')"
    if family == "mysql":
        kept = "UPDATE mysql.user SET host = 'evil' WHERE user = 'test_u'"
    function = "CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN"
    function += f" IF @@server_id <> {channel.source.query('SELECT @@server_id')[0][0]} THEN {kept}; END IF;"
    for server in (channel.source, channel.target):
        run_on(server, "GRANT EXECUTE ON *.* TO test_u@'%'", f"{function} RETURN 1; END", log=False)
    as_user(channel, f"INSERT INTO app.t VALUES ({call})")
    before = _accounts_and_state(channel)

    with pytest.raises(BinlaneError, match=r"function app\.g: expected no table of the target's accounts"):
        channel.run()

    assert _accounts_and_state(channel) == before


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_letter_of_swe7_calls_no_routine_unseen(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    prepared(channel)
    function = "CREATE FUNCTION app.avil() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN"
    function += f" IF @@server_id <> {channel.source.query('SELECT @@server_id')[0][0]} THEN"
    function += " DELETE FROM other.victim; END IF; RETURN 1; END"
    for server in (channel.source, channel.target):
        run_on(server, "GRANT EXECUTE ON *.* TO test_u@'%'", function, log=False)
    as_user(channel, "SET NAMES swe7", "INSERT INTO app.t VALUES (app.`{vil`())")
    before = channel.target.query("SELECT * FROM other.victim")

    with pytest.raises(BinlaneError, match="a client character set that is not read"):
        channel.run()

    assert channel.source.query("SELECT n FROM app.t") == [(1,)]
    assert channel.target.query("SELECT * FROM other.victim") == before


@requires_mysql
def test_a_function_with_a_quoted_name_asks_all_the_same(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    made(channel, "IF `is_free_lock`('x') THEN SET @y = 1; END IF")
    as_user(channel, "INSERT INTO app.t VALUES (app.f())")

    with pytest.raises(BinlaneError, match=r"(?s)app\.f.*IS_FREE_LOCK\(\)"):
        channel.run()


VIEW = "CREATE SQL SECURITY INVOKER VIEW app.v AS SELECT ROUND(1.5, app.f()) AS x FROM app.t"


@pytest.mark.parametrize("later", [(), ("INSERT INTO app.t VALUES (1)", "ANALYZE TABLE app.v")])
def test_no_function_runs_because_a_view_is_made_or_looked_at(later: tuple[str, ...], channel: Channel) -> None:
    body = "IF IS_FREE_LOCK('binlane_test') THEN DELETE FROM other.victim; END IF"
    made(channel, "SET @x = 1" if later else body)
    with channel.source.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('binlane_test', 1)")
        if later:
            # from a copy, whose function and view the source's own user has made
            assert channel.run() is not None
            function = "CREATE OR REPLACE FUNCTION app.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
            function += f" SQL SECURITY INVOKER BEGIN {body}; RETURN 1; END"
            run_on(channel.source, function, VIEW, log=False)
            run_on(channel.target, function, "SELECT GET_LOCK('binlane_test', 1)", VIEW, log=False)
            as_user(channel, *later)
        else:
            as_user(channel, VIEW)

        with pytest.raises(BinlaneError, match=r"function app\.f: expected no table .*, found a table of other"):
            channel.run()

    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]


PARTLY = (
    ('[filter]\nexclude_tables = ["other.victim"]\n', "DELETE FROM other.victim"),
    ('[filter]\ninclude_tables = ["app.*", "other.pub*"]\n', "DELETE FROM `OTHER` . `victim`"),
    ('[filter]\nexclude_tables = ["*.victim"]\n', "UPDATE app.t JOIN other.victim AS t SET t.n = 0"),
    ('[filter]\nexclude_tables = ["other.victim", "app.u"]\n', "DELETE FROM u"),
)
"""Filters that leave single tables out, and what a function does to one of them."""


@pytest.mark.parametrize(("rules", "body"), PARTLY)
def test_no_function_changes_a_single_table_that_the_filter_leaves_out(rules: str, body: str, channel: Channel) -> None:
    made(channel, "SET @x = 1")
    run_on(channel.target, "INSERT INTO app.u VALUES (42)", log=False)
    channel.write_channel(rules)
    body = f"BEGIN IF IS_FREE_LOCK('binlane_test') THEN {body}; END IF; RETURN 1; END"
    with channel.source.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('binlane_test', 1)")
        function = "CREATE OR REPLACE FUNCTION app.f() RETURNS INT DETERMINISTIC SQL SECURITY INVOKER"
        as_user(channel, f"{function} {body}", VIEW)

        with pytest.raises(BinlaneError, match=r"function app\.f: expected no table .*, found a table of (other|app)"):
            channel.run()

    assert channel.target.query("SELECT n FROM other.victim UNION ALL SELECT n FROM app.u") == [(42,), (42,)]


def test_a_function_is_refused_where_a_later_look_at_a_view_would_call_it(channel: Channel) -> None:
    made(channel, "SET @x = 1")
    as_user(channel, VIEW)
    assert channel.run() is not None
    body = "BEGIN IF IS_FREE_LOCK('binlane_test') THEN DELETE FROM other.victim; END IF; RETURN 1; END"
    as_user(channel, f"CREATE OR REPLACE FUNCTION app.f() RETURNS INT DETERMINISTIC SQL SECURITY INVOKER {body}")

    with pytest.raises(BinlaneError, match=r"expected no table .*, found a table of other"):
        channel.run()

    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]


def test_no_function_runs_because_a_first_copy_makes_a_view(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    for server in (mariadb_source, mariadb_target):
        clean_servers(server)
        other = ("CREATE DATABASE other", "CREATE TABLE other.victim (n INT)", "INSERT INTO other.victim VALUES (42)")
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", *other, log=False)
    channel = Channel(mariadb_source, mariadb_target, tmp_path)
    with mariadb_source.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('binlane_test', 1)")
        function = (
            "CREATE FUNCTION app.f() RETURNS INT DETERMINISTIC SQL SECURITY INVOKER BEGIN "
            "IF IS_FREE_LOCK('binlane_test') THEN DELETE FROM other.victim; END IF; RETURN 1; END"
        )
        # a view that is made while the lock is free would do it on the source
        cursor.execute("CREATE DATABASE app")
        for statement in ("CREATE TABLE app.t (n INT)", function, VIEW):
            cursor.execute(statement)

        assert channel.cli("bootstrap", "orders", "--databases", "app") != 0

        assert mariadb_target.query("SELECT n FROM other.victim") == [(42,)]


@requires_mysql
def test_no_routine_of_another_language_runs_in_a_lane(channel_of: ChannelOf) -> None:
    """JavaScript runs SQL that stands in no text. The source need not have the language: there nothing calls it."""
    channel = channel_of("mysql", "mysql")
    ((source_id,),) = channel.source.query("SELECT @@server_id")
    body = "BEGIN IF @@server_id <> {1} THEN RETURN app.js{0}(); END IF; RETURN 1; END"
    calls = f"CREATE FUNCTION app.f{{0}}() RETURNS INT {body}"
    javascript = (
        "CREATE FUNCTION app.js{}() RETURNS INT LANGUAGE JAVASCRIPT DETERMINISTIC SQL SECURITY INVOKER AS "
        "$$ session.sql('SET GLOBAL max_connections = 77'); return 1; $$"
    )
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    channel.on_both("CREATE DATABASE app", "CREATE TABLE app.t (n INT)", javascript.format(0))
    run_on(channel.source, *(calls.format(number, source_id) for number in (0, 1)), javascript.format(1))
    insert = "INSERT INTO app.t VALUES (app.f0() + app.f1())"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", insert)
    channel.write_channel("allow_unsafe = true\n")

    with pytest.raises(BinlaneError, match="unsafe-bodies") as refused:
        channel.run()

    for number in (0, 1):
        assert f"found a text that cannot be split into words of function app.js{number};" in str(refused.value)
    assert channel.target.query("SELECT n FROM app.t") == []


@requires_mysql
@pytest.mark.parametrize("head", ["DETERMINISTIC SQL SECURITY INVOKER", "DETERMINISTIC NO SQL", ""])
def test_no_such_routine_runs_that_a_window_makes_and_drops(head: str, channel_of: ChannelOf) -> None:
    """No catalogue shows it, so its head is all there is; a server takes what a head has in any order."""
    channel = channel_of("mysql", "mysql")
    ((source_id,),) = channel.source.query("SELECT @@server_id")
    run_on(channel.source, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    channel.on_both("CREATE DATABASE app", "CREATE TABLE app.t (n INT)")
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        f"CREATE FUNCTION app.js() RETURNS INT LANGUAGE JAVASCRIPT {head} AS $$ return 1; $$",
        f"CREATE FUNCTION app.f() RETURNS INT BEGIN IF @@server_id <> {source_id} THEN RETURN app.js(); END IF; "
        "RETURN 1; END",
        "INSERT INTO app.t VALUES (app.f())",
        "DROP FUNCTION app.f",
        "DROP FUNCTION app.js",
    )
    channel.write_channel("allow_unsafe = true\n")

    with pytest.raises(BinlaneError, match=r"found LANGUAGE JAVASCRIPT of .*\[unsafe-bodies\]"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []


OVER = {
    "mariadb": ("mysql.global_priv", "INSERT INTO app.v (Host, User, Priv) VALUES ('%', 'test_evil', '{}')"),
    "mysql": ("mysql.user", "UPDATE app.v SET host = 'evil' WHERE user = 'test_u'"),
}
"""A table of the target's accounts, and what changes it by a view over it."""
INVOKER_VIEW = "CREATE SQL SECURITY INVOKER VIEW app.v AS SELECT * FROM "
VIEWS = {
    "both-have-it": ((INVOKER_VIEW + "{table}",), ()),
    "in-the-window": ((), (INVOKER_VIEW + "{table}",)),
    "unqualified": ((), ("USE mysql", INVOKER_VIEW + "{name}")),
    "over-another": (("CREATE SQL SECURITY INVOKER VIEW app.w AS SELECT * FROM {table}", INVOKER_VIEW + "app.w"), ()),
    "renamed": (("CREATE SQL SECURITY INVOKER VIEW app.w AS SELECT * FROM {table}",), ("RENAME TABLE app.w TO app.v",)),
}
"""What both servers have from before, and what the window begins with."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("case", VIEWS)
@pytest.mark.parametrize("by", ["a routine", "a statement"])
def test_no_account_is_changed_through_a_view(family: str, case: str, by: str, channel_of: ChannelOf) -> None:
    """A view has its invoker's privileges: on the target those of the channel's account."""
    channel = channel_of(family, family)
    prepared(channel)
    table, change = OVER[family]
    name = table.partition(".")[2]
    before, made = ([each.format(table=table, name=name) for each in part] for part in VIEWS[case])
    handler = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END"
    function = "CREATE FUNCTION app.g() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN"
    function += f" {handler}; {change}; RETURN 1; END"
    for server in (channel.source, channel.target):
        run_on(server, "GRANT EXECUTE ON app.* TO test_u@'%'", log=False)
        run_on(server, *before, function, log=False)
    # what differs, another check names
    channel.write_channel("allow_unsafe = true\n")
    a_window(channel)
    run_on(channel.source, *made)
    if by == "a routine":
        # its caller lacks the privilege there, and catches the error
        as_user(channel, "INSERT INTO app.t VALUES (app.g())")
    else:
        run_on(channel.source, "SET binlog_format = STATEMENT", "DELETE FROM app.v WHERE user = 'nobody'")
    if case == "renamed":
        run_on(channel.source, "RENAME TABLE app.v TO app.w")
    accounts = _accounts_and_state(channel)

    what = r"function app\.g: .*found a table of mysql" if by == "a routine" else r"found one through app\.v"
    with pytest.raises(BinlaneError, match=rf"(?s){what}.*\[account-programs\]"):
        channel.run()

    assert _accounts_and_state(channel) == accounts


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_view_over_accounts_is_read(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    prepared(channel)
    view = INVOKER_VIEW + OVER[family][0]
    function = "CREATE FUNCTION app.g() RETURNS INT READS SQL DATA SQL SECURITY INVOKER RETURN (SELECT 1 FROM app.v "
    for server in (channel.source, channel.target):
        run_on(server, view, f"{function} LIMIT 1)", log=False)
    channel.write_channel("allow_unsafe = true\n")
    reads = (
        "INSERT INTO app.t SELECT COUNT(*) > 0 FROM app.v",
        "INSERT INTO app.t VALUES (app.g())",
        # makes a table of what it reads, and changes that one alone
        "CREATE TABLE app.made AS SELECT COUNT(*) > 0 AS found FROM app.v",
    )
    run_on(channel.source, "SET binlog_format = STATEMENT", *reads)

    assert channel.run() is not None

    assert channel.target.query("SELECT n FROM app.t") == [(1,), (1,)]
    assert channel.target.query("SELECT found FROM app.made") == [(1,)]


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_variable_s_name_is_no_statement_on_the_target(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    prepared(channel)
    a_window(channel)
    name = "`x',1) AS y) AS d, other.victim SET other.victim.n = 0 -- `"
    as_user(
        channel,
        f"CREATE PROCEDURE app.p() BEGIN DECLARE {name} INT DEFAULT 5; "
        f"UPDATE (SELECT {name} AS y) AS d, app.t SET app.t.n = d.y; END",
        "INSERT INTO app.t VALUES (1)",
        "CALL app.p()",
    )
    with pytest.raises(BinlaneError, match=r"program with local variables over other: .*allow_statements"):
        channel.run()
    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]
    channel.write_channel('[filter]\nallow_statements = ["NAME_CONST"]\n')
    channel.run()
    # what the text says, and the source has not done
    assert channel.target.query("SELECT n FROM other.victim") == [(0,)]


@requires_mysql
@pytest.mark.parametrize("name", ["AUDIT", "audít"])
def test_a_trigger_of_another_spelling_is_dropped_by_nobody_without_a_privilege(
    name: str, channel_of: ChannelOf
) -> None:
    """MariaDB finds none of that name and asks for no privilege; to MySQL it is the name of the one that is there."""
    channel = channel_of("mariadb", "mysql")
    channel.on_both(
        "SET NAMES utf8mb4",
        "CREATE DATABASE other",
        "CREATE TABLE other.t (n INT PRIMARY KEY)",
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE TRIGGER other.audit BEFORE INSERT ON other.t FOR EACH ROW SET @x = 1",
        "CREATE TRIGGER other.known BEFORE INSERT ON other.t FOR EACH ROW SET @x = 1",
        "CREATE USER test_u@'%' IDENTIFIED BY 'p'",
    )
    as_user(channel, "SET NAMES utf8mb4", f"DROP TRIGGER IF EXISTS other.{name}")
    run_on(channel.source, "DROP TRIGGER IF EXISTS other.known")
    channel.run()
    triggers = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'other'"
    assert channel.target.query(triggers) == [("audit",)]


@requires_mysql
@pytest.mark.parametrize("families", [("mysql", "mysql"), ("mysql", "mariadb")])
def test_a_trigger_that_only_the_target_has_is_dropped_by_nobody_without_a_privilege(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    """MySQL asks for no privilege where it finds no trigger, and logs the statement without the trigger's database."""
    channel = channel_of(*families)
    channel.on_both(
        "CREATE DATABASE other",
        "CREATE TABLE other.t (n INT PRIMARY KEY)",
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE TRIGGER other.known BEFORE INSERT ON other.t FOR EACH ROW SET @x = 1",
        "CREATE USER test_u@'%' IDENTIFIED BY 'p'",
    )
    channel.target.query("CREATE TRIGGER other.audit BEFORE INSERT ON other.t FOR EACH ROW SET @x = 1")
    as_user(channel, "DROP TRIGGER IF EXISTS other.audit")
    run_on(channel.source, "DROP TRIGGER IF EXISTS other.known")
    channel.run()
    triggers = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'other'"
    assert channel.target.query(triggers) == [("audit",)]
