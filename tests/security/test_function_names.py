"""Functions that a user of the source names as one that only the target has built in, or the other way round.

Attacker: whoever may make functions in one database of the source. A line more is an attack more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest

from binlane.errors import BinlaneError
from binlane.precheck.situation import situation
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

FILTER: Final = '[filter]\ninclude_databases = ["app"]\n'
UNSAFE: Final = "allow_unsafe = true\n"


class Attack(NamedTuple):
    """A function, and statements that have another one called on the target."""

    servers: tuple[str, str]
    function: str
    statements: Sequence[str]
    binlog_format: str = "STATEMENT"
    rules: str = UNSAFE


_TO_MARIADB: Final = ("mysql", "mariadb")
_TO_MYSQL: Final = ("mariadb", "mysql")
_PREPARED: Final = ("SET sql_mode = ''", "PREPARE p FROM 'INSERT INTO t (n) SELECT count (7)'")
ATTACKS: Final = {
    "sequence-of-another-database": Attack(
        _TO_MARIADB, "setval(a INT, b INT)", ("UPDATE o AS other SET n = setval(other.seq, 1000)",), rules=FILTER
    ),
    "value": Attack(_TO_MARIADB, "nvl2(a INT, b INT, c INT)", ("INSERT INTO t (n) VALUES (nvl2(1, 2, 3))",)),
    "quoted": Attack(_TO_MARIADB, "nvl(a INT, b INT)", ("INSERT INTO t (n) VALUES (`nvl` /* x */ (1, 2))",)),
    "trigger": Attack(
        _TO_MARIADB,
        "nvl(a INT, b INT)",
        ("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.n = nvl(1, 2)", "INSERT INTO t (n) VALUES (1)"),
    ),
    "view": Attack(_TO_MARIADB, "nvl(a INT, b INT)", ("CREATE VIEW v AS SELECT nvl(1, 2) AS x",), "ROW"),
    "view-of-a-default": Attack(
        _TO_MARIADB,
        "nvl(a INT, b INT)",
        ("CREATE VIEW v AS SELECT nvl(1, 2) AS x FROM t WHERE DEFAULT(n) IS NULL",),
        "ROW",
    ),
    "table-of-a-query": Attack(_TO_MARIADB, "nvl(a INT, b INT)", ("CREATE TABLE u SELECT nvl(1, 2) AS x",)),
    "stored-on-the-target-alone": Attack(_TO_MYSQL, "nvl(a INT, b INT)", ("INSERT INTO t (n) VALUES (NVL(1, 2))",)),
    "newer-version": Attack(("mariadb", "11.8"), "kdf(a INT, b INT)", ("INSERT INTO t (n) VALUES (kdf(1, 2))",)),
    "prepared-without-ignore-space": Attack(
        ("mariadb", "mariadb"), "`count`(a INT)", (*_PREPARED, "SET sql_mode = 'IGNORE_SPACE'", "EXECUTE p")
    ),
}


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=name, marks=requires_mysql if "mysql" in attack.servers else ())
        for name, attack in ATTACKS.items()
    ],
)
def test_no_call_means_another_function_on_the_target(attack: Attack, channel_of: ChannelOf) -> None:
    channel = channel_of(*attack.servers)
    _made(channel.source, channel.target, attack.function)
    channel.write_channel(attack.rules)
    assert channel.run() is not None
    run_on(channel.source, f"SET binlog_format = {attack.binlog_format}", "USE app", *attack.statements)

    with pytest.raises(BinlaneError, match=r"(?s)expected calls that mean the same function .*\[function-names\]"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []
    assert channel.target.query("SELECT n FROM app.o") == [(1,)]


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_call_of_a_stored_function_by_its_name_alone_runs(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    _made(channel.source, channel.target, "éf(a INT)")
    run_on(channel.source, "SET binlog_format = STATEMENT", "USE app", "INSERT INTO t (n) VALUES (`éf` (1) + abs(-1))")

    assert channel.run() is not None

    assert channel.target.query("SELECT n FROM app.t") == [(43,)]


def _made(source: PrivateServer, target: PrivateServer, function: str) -> None:
    for server in (source, target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    run_on(
        source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
        "CREATE TABLE app.o (seq INT PRIMARY KEY, n INT)",
        "INSERT INTO app.o VALUES (1, 1)",
        "USE app",
        f"CREATE FUNCTION {function} RETURNS INT DETERMINISTIC RETURN 42",
    )


_LOADED: Final = {
    "mariadb": ("11.8", (), "kdf('x', 'y', 10)"),
    "mysql": ("mysql", ("INSTALL COMPONENT 'file://component_query_attributes'",), "mysql_query_attribute_string('x')"),
}
"""A source and a target that has one function more: of a newer version, or of a library. Functions of libraries do what
they do as the server's own account, whoever calls them."""


@pytest.mark.parametrize("source", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_body_calls_a_function_that_the_source_has_none_of(
    source: str, channel_of: ChannelOf, undone: list[tuple[Channel, tuple[str, ...]]]
) -> None:
    """On the source the body does not come to the call."""
    target, installed, call = _LOADED[source]
    channel = channel_of(source, target)
    undone.append((channel, tuple(each.replace("INSTALL", "UNINSTALL") for each in installed)))
    run_on(channel.target, *installed, log=False)
    ((server_id,),) = channel.source.query("SELECT @@server_id")
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    branch = f"IF @@server_id <> {server_id} THEN SET @x = {call}; END IF"
    body = f"BEGIN {branch}; INSERT INTO u (a) VALUES (1); RETURN 42; END"
    tables = ("CREATE TABLE app.t (n INT)", "CREATE TABLE app.u (a INT)", "USE app")
    function = f"CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA {body}"
    channel.on_both("CREATE DATABASE app", *tables, function)
    channel.write_channel(UNSAFE)
    run_on(channel.source, "SET binlog_format = STATEMENT", "INSERT INTO app.t VALUES (app.f())")

    with pytest.raises(BinlaneError, match=r"(?s)a stored function, or none, on one server, .*\[function-names\]"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []


@pytest.mark.parametrize("source", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_trigger_calls_one_where_no_routine_is_stored(
    source: str,
    channel_of: ChannelOf,
    undone: list[tuple[Channel, tuple[str, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A trigger is a body, too. Its handler takes the source's error 1305."""
    # else a view of the state is one, by chance
    monkeypatch.setattr(situation, "read_program_names", lambda _connection: frozenset())
    target, installed, call = _LOADED[source]
    channel = channel_of(source, target)
    undone.append((channel, tuple(each.replace("INSTALL", "UNINSTALL") for each in installed)))
    run_on(channel.target, *installed, log=False)
    handler = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END"
    trigger = f"CREATE TRIGGER app.r BEFORE INSERT ON app.t FOR EACH ROW BEGIN {handler}; SET @x = {call}; END"
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT)", trigger)
    channel.write_channel(UNSAFE)
    assert channel.run() is not None
    run_on(channel.source, "SET binlog_format = STATEMENT", "INSERT INTO app.t VALUES (1)")
    assert channel.source.query("SELECT n FROM app.t") == [(1,)]

    with pytest.raises(BinlaneError, match=r"(?s)a stored function, or none, on one server, .*\[function-names\]"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []
