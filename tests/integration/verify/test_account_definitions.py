"""Accounts are compared by choice: within a family whole, between the families what both have."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.outcome import Options, Outcome
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.verify.test_definitions import BOTH, verify
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)
from tests.integration.window.ddl.test_whole_server import (
    without_accounts,
)

__all__ = ["channel_of", "clean_servers"]

SECRET: Final = re.compile(r"6BB4837E|\*[0-9A-F]{40}|0x24|\$A\$|Aa-12345")
HASHES: Final = {
    "mariadb": "IDENTIFIED BY PASSWORD '*{}'".format("6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9"),
    "mysql": "IDENTIFIED BY 'Aa-12345'",
}
TOLD: Final = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (a INT, b INT)",
    "CREATE USER 'test_o''x'@'10.%' {}",
    "CREATE USER test_b@'%' {}",
    "CREATE ROLE test_role",
    "GRANT SELECT, INSERT ON tenant_1.* TO 'test_o''x'@'10.%' WITH GRANT OPTION",
    "GRANT SELECT (a), UPDATE ON tenant_1.t TO test_b@'%'",
    "GRANT SELECT ON tenant_1.* TO test_role",
    "GRANT test_role TO test_b@'%'",
)
UNTOLD: Final = (
    "REVOKE INSERT ON tenant_1.* FROM 'test_o''x'@'10.%'",
    "GRANT DELETE ON tenant_1.* TO 'test_o''x'@'10.%'",
    "GRANT EVENT ON *.* TO test_role",
    "REVOKE test_role FROM test_b@'%'",
    "CREATE USER test_mine@'%'",
)


@contextlib.contextmanager
def without_role(channel: Channel) -> Iterator[None]:
    """A role is no user for MariaDB's DROP USER."""
    try:
        yield
    finally:
        for server in (channel.source, channel.target):
            run_on(server, "DROP ROLE IF EXISTS test_role", log=False)


@BOTH
def test_accounts_are_compared_by_choice_and_no_hash_is_shown(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)

    def found() -> dict[tuple[str, str], tuple[str, ...]]:
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        assert {one.state for one in outcome.suspects} <= {"drift"}
        return {(one.schema_object.kind, one.what): one.mend.statements for one in outcome.differences}

    with without_accounts(channel), without_role(channel):
        run_on(channel.source, *(statement.format(HASHES[family]) for statement in TOLD))
        assert channel.run() is not None
        assert found() == {}
        run_on(channel.target, *UNTOLD, "ALTER USER test_b@'%' IDENTIFIED BY 'Other-12345'", log=False)
        role = "'test_role'" if family == "mariadb" else "'test_role'@'%'"
        before = found()
        assert before.keys() == {
            ("account 'test_o''x'@'10.%'", "privileges on `tenant_1`.*"),
            (f"account {role}", "privileges on *.*"),
            ("account 'test_b'@'%'", "privileges on roles"),
            ("account 'test_b'@'%'", "password hash"),
        }
        run_on(channel.target, *(statement for each in before.values() for statement in each), log=False)
        run_on(channel.target, "DROP USER 'test_o''x'@'10.%'", log=False)
        assert found().keys() == {("account 'test_b'@'%'", "password hash"), ("account 'test_o''x'@'10.%'", "")}
        assert channel.cli("verify", CHANNEL, "--full", "--accounts", "--repair", "--yes") == 1
        said = capsys.readouterr().out
        assert "'@'10.%': exists on the source and not on the target; the statement holds a password hash" in said
        assert "account 'test_mine'@'%': only the target has it" in said
        stored = str(channel.target.query("SELECT * FROM binlane.suspects"))
        files = "".join(file.read_text() for file in (channel.work / "repairs").glob("*.json"))
        for text in (said, stored, files):
            assert "test_b" in text
            assert not SECRET.search(text)
        # since the watermark the source has changed accounts
        run_on(channel.source, "GRANT SELECT ON tenant_1.t TO test_b@'%'")
        assert {one.state for one in verify(channel, full=False).suspects} == {"pending"}
        # what was copied once, and no window follows: the target's test_mine and the source's test_late are not
        channel.write_channel('[filter.kinds]\naccounts = "ignore"\n')
        run_on(channel.source, "CREATE USER test_late@'%'")
        assert channel.run() is not None
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        parts = {(one.schema_object.kind, one.what) for one in outcome.differences}
        assert ("account 'test_b'@'%'", "privileges on `tenant_1`.`t`") in parts
        assert {kind for kind, _ in parts} == {"account 'test_b'@'%'"}
        assert "account 'test_late'@'%': only the source has it, and the channel's filter ignores accounts" in {
            *outcome.unseen
        }
    assert channel.cli("verify", CHANNEL, "--accounts") == 2


HELD: Final = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (a INT, b INT)",
    "CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE USER test_a@'10.%'",
    "CREATE USER test_b@'%'",
    "CREATE ROLE test_role",
    "GRANT ALL ON tenant_1.* TO test_a@'10.%' WITH GRANT OPTION",
    "GRANT SELECT (a), UPDATE ON tenant_1.t TO test_b@'%'",
    "GRANT EXECUTE ON FUNCTION tenant_1.f TO test_b@'%'",
    "GRANT RELOAD, PROCESS ON *.* TO test_b@'%'",
    "GRANT SELECT ON tenant_1.* TO test_role",
    "GRANT test_role TO test_b@'%'",
)
NOT_HELD: Final = (
    "REVOKE EVENT, GRANT OPTION ON tenant_1.* FROM test_a@'10.%'",
    "GRANT FILE ON *.* TO test_b@'%'",
    "REVOKE RELOAD ON *.* FROM test_b@'%'",
    "REVOKE SELECT (a) ON tenant_1.t FROM test_b@'%'",
    "REVOKE EXECUTE ON FUNCTION tenant_1.f FROM test_b@'%'",
    "REVOKE test_role FROM test_b@'%'",
    "GRANT INSERT ON tenant_1.* TO test_role",
)


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids="-".join)
def test_between_the_families_privileges_that_both_have_are_compared(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    run_on(channel.source, "CREATE DATABASE tenant_9")
    assert channel.run() is not None

    def compared() -> tuple[Outcome, list[DefinitionDifference]]:
        found = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        return found, [one for one in found.differences if one.schema_object.kind.startswith("account ")]

    with without_accounts(channel), without_role(channel):
        for server in (channel.source, channel.target):
            run_on(server, *HELD, log=False)
        outcome, differences = compared()
        assert list(map(str, differences)) == []
        assert not any("account 'test_" in text for text in outcome.unseen)
        # of one server alone, or with another meaning: named, not compared
        own = "BINLOG REPLAY" if families[1] == "mariadb" else "BINLOG_ADMIN"
        run_on(channel.target, f"GRANT {own}, SUPER ON *.* TO test_b@'%'", *NOT_HELD, log=False)
        outcome, differences = compared()
        named = "account 'test_b'@'%': privileges on *.* that not all versions and families have: "
        told = [text for text in outcome.unseen if "'test_" in text and "privileges on" in text]
        assert f"{named}target {own}, SUPER" in told
        # what ALL is on one server alone, once it is not ALL any more
        assert all(text.partition(" have: ")[2].startswith("target ") for text in told)
        assert {(one.schema_object.kind, one.what): one.mend.left for one in differences} == {
            (f"account {account}", f"privileges on {on}"): "privileges are for an operator to decide"
            for account, on in (
                ("'test_a'@'10.%'", "`tenant_1`.*"),
                ("'test_b'@'%'", "*.*"),
                ("'test_b'@'%'", "`tenant_1`.`t`"),
                ("'test_b'@'%'", "FUNCTION `tenant_1`.`f`"),
                ("'test_b'@'%'", "roles"),
                ("'test_role'@'%'", "`tenant_1`.*"),
            )
        }
        for one in differences:
            run_on(channel.target, *one.mend.statements, log=False)
        assert compared()[1] == []


LIMITED: Final = (
    "CREATE USER test_a@'%' REQUIRE SUBJECT '/CN=a ACCOUNT LOCK' WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 3",
    "CREATE USER test_b@'%' IDENTIFIED BY 'Aa-12345' PASSWORD EXPIRE INTERVAL 30 DAY",
    "CREATE USER test_c@'%' IDENTIFIED BY 'Aa-12345' REQUIRE SSL",
    "CREATE USER test_d@'%' IDENTIFIED BY 'Aa-12345' ACCOUNT LOCK",
    "CREATE ROLE test_role",
    "GRANT test_role TO test_d@'%'",
    "SET DEFAULT ROLE test_role {} test_d@'%'",
)
OTHERWISE: Final = (
    "ALTER USER test_a@'%' REQUIRE X509 WITH MAX_QUERIES_PER_HOUR 6 MAX_USER_CONNECTIONS 0",
    "ALTER USER test_b@'%' PASSWORD EXPIRE NEVER",
    "ALTER USER test_c@'%' REQUIRE NONE ACCOUNT LOCK",
    "ALTER USER test_d@'%' ACCOUNT UNLOCK",
    "SET DEFAULT ROLE NONE {} test_d@'%'",
)
OF_ONE_FAMILY: Final = {
    "mariadb": ("ALTER USER test_b@'%' WITH MAX_STATEMENT_TIME 7", "MAX_STATEMENT_TIME 7"),
    "mysql": (
        "ALTER USER test_b@'%' PASSWORD HISTORY 4 FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2",
        "PASSWORD HISTORY 4",
    ),
}


def spelled(server: PrivateServer, *statements: str) -> None:
    """Run statements in the words of the server's family, out of its log."""
    run_on(server, *(each.format("FOR" if server.flavor == "mariadb" else "TO") for each in statements), log=False)


def on_each(channel: Channel, *statements: str) -> None:
    for server in (channel.source, channel.target):
        spelled(server, *statements)


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids="-".join)
def test_between_the_families_options_and_passwords_are_compared_as_far_as_both_can_tell(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    run_on(channel.source, "CREATE DATABASE tenant_9")
    assert channel.run() is not None

    def compared() -> tuple[str, dict[tuple[str, str], tuple[str, ...]]]:
        found = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        texts = " ".join((*map(str, found.differences), *found.unseen))
        assert not SECRET.search(texts)
        # no repair runs them
        assert not any(one.mend.is_run for one in found.differences)
        return " ".join(found.unseen), {
            (one.schema_object.kind.removeprefix("account "), one.what): one.mend.statements
            for one in found.differences
        }

    with without_accounts(channel), without_role(channel):
        on_each(channel, *LIMITED)
        unseen, differences = compared()
        assert differences == {}
        plugins = {"mariadb": "mysql_native_password", "mysql": "caching_sha2_password"}
        named = f"source {plugins[families[0]]}, target {plugins[families[1]]}"
        for name in ("test_b", "test_c", "test_d"):
            assert (
                f"password of account '{name}'@'%': {named}: the target has no plugin {plugins[families[0]]}" in unseen
            )
        assert "password of account 'test_a'" not in unseen
        own, text = OF_ONE_FAMILY[families[0]]
        run_on(channel.source, own, log=False)
        run_on(
            channel.target, *(each.format("FOR" if families[1] == "mariadb" else "TO") for each in OTHERWISE), log=False
        )
        unseen, differences = compared()
        assert f"account 'test_b'@'%': {text}" in unseen
        assert "of the source: the other family has no such option" in unseen
        assert differences.keys() == {
            ("'test_a'@'%'", "REQUIRE"),
            ("'test_a'@'%'", "MAX_QUERIES_PER_HOUR"),
            ("'test_a'@'%'", "MAX_USER_CONNECTIONS"),
            ("'test_b'@'%'", "PASSWORD EXPIRE"),
            ("'test_c'@'%'", "REQUIRE"),
            ("'test_c'@'%'", "ACCOUNT"),
            ("'test_d'@'%'", "ACCOUNT"),
            ("'test_d'@'%'", "default roles"),
        }
        for statements in differences.values():
            run_on(channel.target, *statements, log=False)
        assert compared()[1] == {}
        # an account that everybody may use is another one, whatever the plugins are
        for server in (channel.target, channel.source):
            run_on(server, "DROP USER test_c@'%'", "CREATE USER test_c@'%' REQUIRE SSL", log=False)
            expected = {("'test_c'@'%'", "password"): ()} if server is channel.target else {}
            assert compared()[1] == expected
        # and a role is no account that may log in
        run_on(channel.target, "DROP ROLE test_role", "CREATE USER test_role@'%'", log=False)
        # MySQL's role is a locked account, MariaDB's has no options
        what = "kind" if families[0] == "mariadb" else "ACCOUNT"
        assert ("'test_role'@'%'", what) in compared()[1]


@pytest.mark.parametrize("versions", [("10.11", "11.8")], ids="-".join)
def test_between_versions_all_options_and_hashes_are_compared(
    versions: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of(*versions)
    run_on(channel.source, "CREATE DATABASE tenant_9")
    assert channel.run() is not None

    def differing() -> set[tuple[str, str]]:
        found = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        assert found.unseen == ()
        return {(one.schema_object.kind, one.what) for one in found.differences}

    with without_accounts(channel), without_role(channel):
        on_each(channel, *LIMITED, "ALTER USER test_b@'%' WITH MAX_STATEMENT_TIME 7")
        assert differing() == set()
        run_on(
            channel.target, "ALTER USER test_b@'%' IDENTIFIED BY 'Bb-12345' WITH MAX_STATEMENT_TIME 8", log=False
        )  # fmt: skip
        assert differing() == {
            ("account 'test_b'@'%'", "MAX_STATEMENT_TIME"), ("account 'test_b'@'%'", "password hash"),
        }  # fmt: skip
