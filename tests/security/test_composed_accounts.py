"""MariaDB writes SET PASSWORD and SET DEFAULT ROLE into its log without escapes: a password may be SQL there.

Attacker: whoever has an account on the source, without any privilege. Everybody may change his own password, and one of
41 or of 16 characters is taken for a hash as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

from binlane.errors import UnsupportedEventError
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, run_on

WRITTEN: Final = {
    "another account's password": "',password for 'root'@'localhost'='",
    "the channel's own password": "',password='",
    "a function": "',@a=app.f(),@b='",
    "a query": "',@a=(select 1 from app.t),@b='",
    "a variable of the lane's session": "',sql_select_limit=0,@b='",
    "a comment": "' # ",
}
"""What stands in the server's text behind the password; a line more is an attack more."""
HASH: Final = 41
SHORT_HASH: Final = 16
RIGHTFUL: Final = (
    "PASSWORD('Bb-12345')",
    "OLD_PASSWORD('b')",
    "''",
    "'invalid'",
    "'*THISISNOTAVALIDPASSWORDTHATCANBEUSEDHERE'",
)
NAMES: Final = ("test_joe", "test_jörg")


def of_length(text: str) -> str:
    """The text with blanks behind its comma, so that the server takes it for a hash."""
    length = SHORT_HASH if len(text) <= SHORT_HASH else HASH
    return text.replace(",", "," + " " * (length - len(text)), 1) if "," in text else text.ljust(length)


@pytest.fixture
def accounts(channel: Channel) -> Iterator[Channel]:
    """A channel with accounts that have no privilege, and a table on both servers."""
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a INT PRIMARY KEY)")
    run_on(channel.source, *(f"CREATE USER {name} IDENTIFIED BY 'Aa-12345'" for name in NAMES))
    assert channel.run() is not None
    try:
        yield channel
    finally:
        for server in (channel.source, channel.target):
            run_on(server, *(f"DROP USER IF EXISTS {name}" for name in NAMES), log=False)


def passwords(server: PrivateServer) -> list[tuple[object, ...]]:
    return server.query("SELECT User, Host, plugin, authentication_string FROM mysql.user ORDER BY User, Host")


@pytest.mark.parametrize("name", WRITTEN)
def test_a_password_is_no_sql_of_its_owner_s(name: str, accounts: Channel) -> None:
    password = of_length(WRITTEN[name])
    before = passwords(accounts.target)
    with contextlib.closing(accounts.source.connect(user="test_joe", password="Aa-12345")) as joe:
        joe.query("SET PASSWORD = '{}'".format(password.replace("'", "''")))

    with pytest.raises(UnsupportedEventError, match="a server writes without escapes"):
        accounts.run()

    assert passwords(accounts.target) == before


def test_every_rightful_password_and_role_reaches_the_target(accounts: Channel) -> None:
    """Also of a client whose character set is not the one in which the server writes an account's name."""
    source = accounts.source
    for password in RIGHTFUL:
        run_on(source, f"SET PASSWORD FOR test_joe = {password}")
    with contextlib.closing(source.connect(autocommit=True, charset="latin1")) as connection:
        for sql in (
            "SET PASSWORD FOR test_jörg = PASSWORD('Cc-12345')",
            "CREATE ROLE `test_rôle`",
            "GRANT `test_rôle` TO test_jörg",
            "SET DEFAULT ROLE `test_rôle` FOR test_jörg",
        ):
            connection.query(sql)
    try:
        assert accounts.run() is not None
        of_source, of_target = passwords(source), passwords(accounts.target)
        assert [row for row in of_source if str(row[0]) in NAMES] == [row for row in of_target if str(row[0]) in NAMES]
        outcome = verify_channel(accounts.config, accounts.endpoints, Options(full=True, accounts=True))
        assert not [one for one in outcome.differences if "test_" in str(one)]
    finally:
        for server in (source, accounts.target):
            run_on(server, "DROP ROLE IF EXISTS `test_rôle`", log=False)


def test_a_password_of_one_account_holds_up_no_copy_and_no_comparison_of_accounts(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """SHOW CREATE USER and SHOW GRANTS have no escapes either: the account itself is left out, by name."""
    password = of_length(WRITTEN["another account's password"]).replace("'", "''")
    try:
        run_on(channel.target, "DROP DATABASE binlane", log=False)
        run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a INT PRIMARY KEY)", log=False)
        run_on(channel.source, *(f"CREATE USER {name} IDENTIFIED BY 'Aa-12345'" for name in NAMES), log=False)
        run_on(channel.source, f"SET PASSWORD FOR test_joe = '{password}'", log=False)
        before = passwords(channel.target)

        assert channel.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err

        said = capsys.readouterr()
        assert "account 'test_joe'@'%': left out: its password is no hash" in said.out + said.err
        made = [row for row in passwords(channel.source) if row[0] == "test_jörg"]
        assert [row for row in passwords(channel.target) if row not in before] == made
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        assert not outcome.differences
        assert any("'test_joe'@'%': left out" in one for one in outcome.unseen)
    finally:
        for server in (channel.source, channel.target):
            run_on(server, *(f"DROP USER IF EXISTS {name}" for name in NAMES), log=False)
