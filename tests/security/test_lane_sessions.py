"""Bodies and statements that would end, or hold up, the session of a lane, or change the target's server.

Attacker: whoever may write a trigger or a function of one database of the source. A body more is an attack more.
"""

from __future__ import annotations

from typing import Final

import pytest

from binlane.errors import BinlaneError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

ON_TARGET: Final = "IF @@server_id <> {server_id} THEN {body}; END IF"
BODIES: Final = {
    "RELEASE_ALL_LOCKS()": "SET @x = RELEASE_ALL_LOCKS()",
    "KILL": "KILL CONNECTION_ID()",
    "SET GLOBAL": "SET GLOBAL max_connections = 77",
}
FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_body_runs_in_a_lane_that_ends_its_session_or_changes_the_server(family: str, channel_of: ChannelOf) -> None:
    """Also where the channel allows what is unsafe; the trigger runs as its definer, who may do all of it."""
    channel = channel_of(family, family)
    ((server_id,),) = channel.source.query("SELECT @@server_id")
    tables = [f"CREATE TABLE app.t{number} (n INT PRIMARY KEY)" for number in range(len(BODIES))]
    run_on(channel.source, "CREATE DATABASE app", *tables)
    for server in (channel.source, channel.target):
        run_on(server, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    for number, body in enumerate(BODIES.values()):
        text = ON_TARGET.format(server_id=server_id, body=body)
        run_on(channel.source, f"CREATE TRIGGER app.x{number} BEFORE INSERT ON app.t{number} FOR EACH ROW {text}")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    before = channel.target.query("SELECT @@global.max_connections")
    for number in range(len(BODIES)):
        run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT INTO app.t{number} VALUES ({number})")

    with pytest.raises(BinlaneError, match="unsafe-bodies") as refused:
        channel.run()

    for number, what in enumerate(BODIES):
        assert f"found {what} of trigger app.x{number}" in str(refused.value)
        assert channel.target.query(f"SELECT n FROM app.t{number}") == []
    assert channel.target.query("SELECT @@global.max_connections") == before


@pytest.mark.parametrize("family", FAMILIES)
def test_no_statement_gives_up_a_lane_s_lease(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (n INT PRIMARY KEY)")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    run_on(
        channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.t SELECT release_all_locks/* x */()"
    )

    with pytest.raises(BinlaneError, match="a statement that releases all locks of its session"):
        channel.run()

    assert channel.target.query("SELECT n FROM app.t") == []
