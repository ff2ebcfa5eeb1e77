"""A first copy with accounts changes none that the target has, and gives nobody privileges on the channel's state.

Attacker: an administrator of the source, who has none of these accounts on the target; also nobody, where MariaDB shows
with a role the privileges of another.
"""

from __future__ import annotations

from typing import Final

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

_LEFT: Final = (
    *("DROP USER IF EXISTS test_new", "DROP USER IF EXISTS test_old"),
    *("DROP ROLE IF EXISTS test_outer", "DROP ROLE IF EXISTS test_inner"),
)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_copy_changes_no_account_of_the_target_and_gives_no_state(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    try:
        run_on(channel.target, "DROP DATABASE binlane", "CREATE ROLE test_inner", "CREATE USER test_old", log=False)
        run_on(
            channel.source,
            "CREATE DATABASE hr",
            "CREATE TABLE hr.t (n INT PRIMARY KEY)",
            "CREATE ROLE test_inner",
            "GRANT ALL PRIVILEGES ON hr.* TO test_inner WITH GRANT OPTION",
            "CREATE ROLE test_outer",
            "GRANT test_inner TO test_outer",
            "CREATE USER test_old",
            "GRANT SELECT ON hr.* TO test_old",
            "CREATE USER test_new IDENTIFIED BY 'Aa-12345'",
            "GRANT test_outer TO test_new",
            "GRANT SELECT ON hr.t TO test_new WITH GRANT OPTION",
            "GRANT ALL PRIVILEGES ON binlane.* TO test_new",
            log=False,
        )
        before = [_grants(channel.target, name) for name in ("test_inner", "test_old")]

        assert channel.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err

        assert [_grants(channel.target, name) for name in ("test_inner", "test_old")] == before
        of_source = _grants(channel.source, "test_new")
        assert _grants(channel.target, "test_new") == [line for line in of_source if "binlane" not in line]
        assert len(of_source) == len(_grants(channel.target, "test_new")) + 1
        said = capsys.readouterr()
        assert "left out: the schema binlane is each target's own" in said.out + said.err
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True, accounts=True))
        assert {(one.schema_object.kind.split("'")[1], one.what) for one in outcome.differences} == {
            ("test_inner", "privileges on `hr`.*"),
            ("test_old", "privileges on `hr`.*"),
        }
    finally:
        for server in (channel.source, channel.target):
            run_on(server, *_LEFT, log=False)


def _grants(server: PrivateServer, name: str) -> list[str]:
    return [str(line) for (line,) in server.query(f"SHOW GRANTS FOR {name}")]
