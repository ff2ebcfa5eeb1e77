"""A first copy with ``--users`` asks, before it writes, for what the source's accounts need of the target."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pymysql
import pytest

from binlane.errors import PrecheckError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, run_on

pytestmark = requires_mysql
UNDONE = (
    "DROP USER IF EXISTS test_a",
    "RESET PERSIST IF EXISTS partial_revokes",
    "SET GLOBAL partial_revokes = OFF",
    "UNINSTALL PLUGIN auth_socket",
)
PARTIAL = ("SET GLOBAL partial_revokes = ON", "CREATE USER test_a", "GRANT SELECT ON *.* TO test_a")


@pytest.fixture
def channel(mysql: Channel) -> Iterator[Channel]:
    yield mysql
    for server in (mysql.source, mysql.target):
        for statement in UNDONE:
            with contextlib.suppress(pymysql.err.MySQLError):
                run_on(server, statement, log=False)


@pytest.mark.parametrize(
    ("made", "named", "mend"),
    [
        pytest.param(
            ("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'", "CREATE USER test_a IDENTIFIED WITH auth_socket"),
            r"authentication plugin auth_socket: expected a target that has it",
            "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'",
            id="a plugin",
        ),
        pytest.param(
            (*PARTIAL, "REVOKE SELECT ON shop.* FROM test_a"),
            r"partial_revokes of the target: expected ON, as on the source, found OFF",
            "SET PERSIST partial_revokes = ON",
            id="a partial revoke",
        ),
        pytest.param(
            (*PARTIAL, "GRANT INSERT ON `shop_`.* TO test_a"),
            r"partial_revokes of the target: expected ON",
            "SET PERSIST partial_revokes = ON",
            id="a wildcard",
        ),
    ],
)
def test_what_an_account_of_the_source_needs_of_the_target_is_named_before_the_first_write(
    channel: Channel, capsys: pytest.CaptureFixture[str], made: tuple[str, ...], named: str, mend: str
) -> None:
    run_on(channel.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", *made, log=False)
    assert channel.cli("doctor", CHANNEL, "--users") == 1
    assert channel.cli("bootstrap", CHANNEL, "--users") == 1
    said = capsys.readouterr()
    assert re.search(named, said.out) is not None
    assert re.search(named, said.err) is not None
    assert channel.target.query("SHOW DATABASES LIKE 'shop'") == []
    run_on(channel.target, mend, log=False)
    assert channel.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err
    grants = "SHOW GRANTS FOR test_a"
    assert channel.target.query(grants) == channel.source.query(grants)


def test_a_privilege_that_the_target_does_not_have_is_not_asked_for_its_account(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """SET_USER_ID of servers before 8.4: no GRANT of it can be run there."""
    granted = "INSERT INTO mysql.global_grants VALUES ('test_a', '%', 'SET_USER_ID', 'N')"
    run_on(channel.source, "CREATE DATABASE shop", "CREATE USER test_a", granted, "FLUSH PRIVILEGES", log=False)
    assert channel.cli("bootstrap", CHANNEL, "--users") == 1
    said = capsys.readouterr().err
    assert "expected SET_USER_ID, a privilege of the target, found a server without it (1149); REVOKE it" in said
    assert "GRANT SET_USER_ID" not in said.partition("what mends it")[2]
    run_on(channel.source, "DELETE FROM mysql.global_grants WHERE user = 'test_a'", "FLUSH PRIVILEGES", log=False)
    run_on(channel.source, "GRANT SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER ON *.* TO test_a", log=False)
    assert channel.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err


def test_a_logged_statement_that_partial_revokes_decides_about_is_named(channel: Channel) -> None:
    run_on(channel.source, "CREATE DATABASE shop", *PARTIAL[1:], log=False)
    assert channel.cli("bootstrap", CHANNEL, "--users") == 0
    run_on(channel.source, PARTIAL[0], "REVOKE SELECT ON shop.* FROM test_a")
    with pytest.raises(PrecheckError, match="partial_revokes of the target: expected ON, as on the source"):
        channel.run()
    run_on(channel.target, "SET PERSIST partial_revokes = ON")
    assert channel.run() is not None
    grants = "SHOW GRANTS FOR test_a"
    assert channel.target.query(grants) == channel.source.query(grants)
