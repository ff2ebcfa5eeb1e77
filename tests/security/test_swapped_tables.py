"""A table that becomes a view while its rows are read runs nothing: sessions that only read are read-only.

Attacker: whoever owns one database of the target or of the source. A function with its invoker's privileges, in a view
that has taken the table's place, would run as binlane's account.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import pymysql
import pytest

from binlane.bootstrap.sessions import read_session
from binlane.errors import BinlaneError
from binlane.orchestration.commands.verify import verify
from binlane.state.records.verifications import begin_verification
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
TABLE: Final = "CREATE TABLE app.t (n INT PRIMARY KEY)"
EVIL: Final = (
    "SET GLOBAL log_bin_trust_function_creators = ON",
    "CREATE DATABASE victim",
    "CREATE TABLE victim.t (n INT)",
    "CREATE FUNCTION app.f() RETURNS INT MODIFIES SQL DATA SQL SECURITY INVOKER "
    "BEGIN INSERT INTO victim.t VALUES (1); RETURN 1; END",
)
SWAP: Final = ("DROP TABLE app.t", "CREATE SQL SECURITY INVOKER VIEW app.t AS SELECT app.f() + 0 AS n")


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_comparison_of_rows_calls_no_function_that_changes_anything(
    family: str, side: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    for name, value in channel.environment.items():
        monkeypatch.setenv(name, value)
    channel.on_both("CREATE DATABASE app", TABLE, "INSERT INTO app.t VALUES (1)", *EVIL)
    server: PrivateServer = getattr(channel, side)

    def begun(*arguments: Any, **named: Any) -> Any:
        run_on(server, *SWAP, log=False)
        return begin_verification(*arguments, **named)

    monkeypatch.setattr("binlane.verify.verification.begin_verification", begun)
    with pytest.raises((BinlaneError, pymysql.err.MySQLError), match="READ ONLY transaction"):
        verify(CHANNEL, channel.channels, Options(full=True))
    assert server.query("SELECT n FROM victim.t") == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_copy_of_rows_calls_no_function_that_changes_anything(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE app", *EVIL, SWAP[1], log=False)
    source = channel.endpoints.source
    assert source is not None
    with contextlib.closing(read_session(source)) as session, pytest.raises(BinlaneError, match="READ ONLY"):
        session.rows("SELECT * FROM app.t")
    assert channel.source.query("SELECT n FROM victim.t") == []
