"""Temporary tables that routines have left in an earlier window, and bodies that the target's account may not read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, run_on
from tests.integration.window.statements.test_temporary import prepared, session

HEAD = "CREATE FUNCTION tenant_1.{}() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN "
GROWS = (
    f"{HEAD.format('grows')}CREATE TEMPORARY TABLE IF NOT EXISTS grown (a INT); INSERT INTO grown VALUES (1);"
    " RETURN (SELECT COUNT(*) FROM grown); END"
)
STARTS_ANEW = (
    f"{HEAD.format('starts_anew')}CREATE TEMPORARY TABLE IF NOT EXISTS anew (a INT); DELETE FROM anew;"
    " INSERT INTO anew VALUES (1); RETURN (SELECT COUNT(*) FROM anew); END"
)
LEAVES_NOTHING = (
    f"{HEAD.format('leaves_nothing')}CREATE TEMPORARY TABLE IF NOT EXISTS gone (a INT); INSERT INTO gone VALUES (1);"
    " SET @n = (SELECT COUNT(*) FROM gone); DROP TEMPORARY TABLE gone; RETURN @n; END"
)
HIDES = f"{HEAD.format('hides')}CREATE TEMPORARY TABLE x (a INT); RETURN 1; END"
LOOKS = f"{HEAD.format('looks')}RETURN (SELECT COUNT(*) FROM x); END"
EVERYWHERE = {
    Flavor.MYSQL: "BINLOG_ADMIN, REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN, CONNECTION_ADMIN, SET_ANY_DEFINER",
    Flavor.MARIADB: "BINLOG REPLAY, BINLOG ADMIN, CONNECTION ADMIN, SET USER",
}
RIGHTS = (
    *(
        f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES, TRIGGER, EVENT, EXECUTE, "
        f"CREATE VIEW, CREATE ROUTINE, ALTER ROUTINE, CREATE TEMPORARY TABLES, LOCK TABLES ON {name}.* "
        "TO test_writer@'%'"
        for name in ("tenant_1", "tenant_2")
    ),
    "GRANT ALL ON binlane.* TO test_writer@'%'",
)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def channel(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    servers = [request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target")]
    found: Channel = prepared(servers[0], servers[1], tmp_path, clean_servers)
    return found


def refused(channel: Channel, match: str) -> None:
    before = channel.rows_of(channel.target)
    with pytest.raises(PrecheckError, match=match) as named:
        channel.run()
    assert "[temporary-tables]" in str(named.value)
    assert channel.rows_of(channel.target) == before


def test_a_table_that_an_earlier_window_has_left_is_not_made_anew_in_silence(channel: Channel) -> None:
    channel.source.query(GROWS)
    with session(channel) as run:
        run("INSERT INTO t (v) VALUES (grows())")
        channel.write_channel("allow_unsafe = true\n")
        assert channel.run() is not None
        channel.assert_equal()
        channel.write_channel()
        run("INSERT INTO t (v) VALUES (grows())")
    refused(channel, r"found tenant_1\.grown, which a routine or trigger may have made before this window")


def test_a_table_that_a_name_means_no_more_is_not_read_in_silence(channel: Channel) -> None:
    run_on(channel.source, "CREATE TABLE tenant_1.x (a INT)", "INSERT INTO tenant_1.x VALUES (1), (2)", HIDES, LOOKS)
    with session(channel) as run:
        run("DO hides()")
        assert channel.run() is not None
        run("INSERT INTO t (v) VALUES (looks())")
        refused(
            channel, r"looks\(\)\): .* found tenant_1\.x, which a routine or trigger may have made before this window"
        )


def test_tables_that_no_call_takes_over_need_nothing_of_an_earlier_window(channel: Channel) -> None:
    for function in (STARTS_ANEW, LEAVES_NOTHING):
        channel.source.query(function)
    with session(channel) as run:
        for _ in range(2):
            run("INSERT INTO t (v) VALUES (starts_anew())", "INSERT INTO t (v) VALUES (leaves_nothing())")
            assert channel.run() is not None
    channel.assert_equal()


def restricted(channel: Channel) -> None:
    """The target's account sees routines, and not their text."""
    flavor = Flavor.MARIADB if "MariaDB" in channel.target.query("SELECT VERSION()")[0][0] else Flavor.MYSQL
    run_on(
        channel.target,
        f"CREATE USER test_writer@'%' IDENTIFIED BY '{channel.target.password}'",
        f"GRANT {EVERYWHERE[flavor]}, PROCESS ON *.* TO test_writer@'%'",
        *RIGHTS,
        log=False,
    )
    channel.connect("target_server", channel.target, "test_writer")


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t (v) VALUES (grows())", "INSERT INTO t (v) SELECT n FROM grown_n ORDER BY n"]
)
def test_a_body_that_the_account_may_not_read_is_named(channel: Channel, statement: str) -> None:
    channel.on_both(GROWS, "CREATE VIEW tenant_1.grown_n AS SELECT tenant_1.grows() AS n")
    restricted(channel)
    with session(channel) as run:
        run(statement)
    refused(channel, r"found .*tenant_1\.grow.*, which it may not; GRANT S")


def test_a_view_that_calls_a_function_is_looked_into(channel: Channel) -> None:
    channel.on_both(GROWS, "CREATE VIEW tenant_1.grown_n AS SELECT tenant_1.grows() AS n")
    with session(channel) as run:
        run("INSERT INTO t (v) SELECT n FROM grown_n ORDER BY n")
        channel.source.query("CREATE TABLE tenant_1.between_them (id INT PRIMARY KEY)")
        run("INSERT INTO t (v) SELECT n FROM grown_n ORDER BY n")
    refused(channel, r"grown_n ORDER BY n: .* found tenant_1\.grown, which a routine or trigger has made in seqno")
