"""Functions that a MariaDB server calls for whoever looks at a view: they change nothing as binlane's accounts.

They were there before the channel, so that no log has their text. A function more in ``CHANGES`` is an attack more.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.apply.lane.bisect import find_failing
from binlane.errors import BinlaneError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

CHANGES: Final = {
    "innodb": "INSERT INTO other.victim VALUES (1)",
    "myisam": "INSERT INTO other.plain VALUES (1)",
    "caught": "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; INSERT INTO other.victim VALUES (1); END",
    "writable": "SET SESSION {read_only} = 0; INSERT INTO other.victim VALUES (1)",
    "procedure": "CALL other.p()",
    "state": "UPDATE binlane.channels SET windows = 99",
    "accounts": "UPDATE mysql.{accounts} SET host = 'evil' WHERE user = 'test_u'",
}
"""What a function of app does when it is called."""
OF_MARIADB: Final = {"sequence": "SET @n = NEXTVAL(other.s)"}
SESSION: Final = "SET SESSION sql_select_limit = 0, foreign_key_checks = 0, lc_time_names = 'de_DE', sql_notes = 0"
"""Would hide rows from the statements behind it, and is no change of data."""
READ_ONLY: Final = {Flavor.MARIADB: "tx_read_only", Flavor.MYSQL: "transaction_read_only"}


def made(server: PrivateServer, *, only: str = "") -> None:
    """A database with a view for each function, or for a function that is ``only`` this; and another one whose tables
    nobody may change."""
    flavor = server.flavor
    names = {"read_only": READ_ONLY[flavor], "accounts": "global_priv" if flavor is Flavor.MARIADB else "user"}
    bodies = {"only": only} if only else {**CHANGES, **(OF_MARIADB if flavor is Flavor.MARIADB else {})}
    sequence = ["CREATE SEQUENCE other.s"] if flavor is Flavor.MARIADB else []
    run_on(
        server,
        "SET GLOBAL log_bin_trust_function_creators = ON",
        "CREATE DATABASE other",
        "CREATE TABLE other.victim (n INT)",
        "CREATE TABLE other.plain (n INT) ENGINE=MyISAM",
        "CREATE PROCEDURE other.p() SQL SECURITY INVOKER INSERT INTO other.victim VALUES (1)",
        *sequence,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY, m INT)",
        "CREATE TABLE app.c (n INT PRIMARY KEY, m INT, FOREIGN KEY (m) REFERENCES app.t (n))",
        *(statement for name, body in bodies.items() for statement in _function(name, body.format(**names))),
        log=False,
    )


def _function(name: str, body: str) -> tuple[str, ...]:
    head = f"CREATE FUNCTION app.f_{name}() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER"
    view = f"CREATE SQL SECURITY INVOKER VIEW app.v_{name} AS SELECT ROUND(1.5, app.f_{name}()) AS x FROM app.t"
    # a view that is made calls its function
    return f"{head} RETURN 1", view, f"DROP FUNCTION app.f_{name}", f"{head} BEGIN {body}; RETURN 1; END"


def unchanged(server: PrivateServer) -> None:
    """None of the functions has changed anything."""
    assert server.query("SELECT * FROM other.victim UNION ALL SELECT * FROM other.plain") == []
    assert server.query("SELECT 1 FROM mysql.user WHERE host = 'evil'") == []
    if server.flavor is Flavor.MARIADB:
        assert server.query("SELECT next_not_cached_value FROM other.s") == [(1,)]


def looked_at(channel: Channel) -> None:
    """Everything that reads the servers' catalogues."""
    both: list[dict[str, Any] | None] = []
    for statements in (
        ("INSERT INTO app.t VALUES (1, 1)",),
        ("ALTER TABLE app.t ADD k INT", "CREATE VIEW app.w AS SELECT 1 AS y", "RENAME TABLE app.w TO app.w2"),
        ("SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t VALUES (2, 1, 1)"),
    ):
        run_on(channel.source, *statements)
        both.append(channel.run())
    assert None not in both
    assert channel.cli("plan", "orders") == 0
    assert channel.cli("verify", "orders") == 0
    assert channel.cli("verify", "orders", "--full") == 0
    assert channel.cli("grants", "orders", "--users") == 0
    channel.cli("doctor", "orders")


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_function_changes_anything_because_a_command_looks_at_its_view(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    for server in (channel.source, channel.target):
        made(server)

    looked_at(channel)

    for server in (channel.source, channel.target):
        unchanged(server)
    assert channel.target.query("SELECT windows FROM binlane.channels") != [(99,)]
    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (2,)]


def test_no_function_changes_the_session_that_looks_at_its_view(channel: Channel) -> None:
    for server in (channel.source, channel.target):
        made(server, only=SESSION)

    looked_at(channel)

    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (2,)]


def test_drift_is_repaired_beside_such_views(channel: Channel) -> None:
    for server in (channel.source, channel.target):
        made(server)
    run_on(channel.source, "INSERT INTO app.t VALUES (1, 1)")
    assert channel.run() is not None
    drift = ("DROP VIEW app.v_innodb", "CREATE VIEW app.v_caught2 AS SELECT 1 AS x", "DELETE FROM app.t")
    run_on(channel.target, *drift, log=False)

    channel.cli("verify", "orders", "--full", "--repair", "--yes")

    for server in (channel.source, channel.target):
        unchanged(server)
    assert channel.target.query("SELECT n, m FROM app.t") == [(1, 1)]


def test_a_first_copy_with_such_a_view_is_refused_by_its_reason(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for server in (mariadb_source, mariadb_target):
        clean_servers(server)
    made(mariadb_source)
    channel = Channel(mariadb_source, mariadb_target, tmp_path)

    assert channel.cli("bootstrap", "orders", "--databases", "app") != 0

    assert "the view has a stored function that changes data" in capsys.readouterr().err
    unchanged(mariadb_source)


def test_no_function_changes_anything_because_a_lane_looks_for_a_refused_row(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its transaction, for the columns of what has the table's name. What a function changes in a table without
    transactions would stay."""
    for server in (channel.source, channel.target):
        made(server, only="INSERT INTO other.plain VALUES (1)")
    channel.on_both("CREATE TABLE app.o (n INT PRIMARY KEY)", "CREATE TABLE app.p (n INT PRIMARY KEY)")
    for number in (1, 2):
        run_on(channel.source, f"INSERT INTO app.o VALUES ({number})", f"INSERT INTO app.p VALUES ({number})")
    run_on(channel.target, "INSERT INTO app.p VALUES (2)", log=False)
    found: list[Any] = []

    def failing(*arguments: Any) -> Any:
        # behind the precheck
        run_on(channel.target, "RENAME TABLE app.p TO app.b, app.v_only TO app.p", log=False)
        found.append(find_failing(*arguments))
        return found[0]

    monkeypatch.setattr("binlane.apply.lane.runner.find_failing", failing)
    with pytest.raises(BinlaneError):
        channel.run()
    unchanged(channel.target)
    [failed] = found
    assert "row 1 of the event: app.p, primary key (none): insert @1=1" in failed.message
