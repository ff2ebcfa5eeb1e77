"""One definition, created on the target."""

from __future__ import annotations

import pytest

from binlane.bootstrap.definitions import Definition, make
from binlane.bootstrap.sessions import MODE, write_session
from binlane.errors import TargetError, TargetUnavailableError
from tests.integration.bootstrap.conftest import either
from tests.integration.window.conftest import Channel, clean_servers

__all__ = ["clean_servers", "either"]


def of(statement: str) -> Definition:
    return Definition("VIEW", "app", "v", statement.encode(), "latin1", "latin1_swedish_ci")


def test_a_connection_that_is_lost_with_a_definition_is_named_as_lost(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    number = session.texts("SELECT CONNECTION_ID()")[0][0]
    with pytest.raises(TargetUnavailableError, match=r"view app\.v: the server says: .*(killed|interrupted) "):
        make(session, of(f"KILL CONNECTION {number}"))
    session.close()


def test_a_definition_that_is_refused_leaves_the_session_as_it_was(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    with pytest.raises(TargetError, match=r"view app\.v: the server says: .*app\.no_table"):
        make(session, of("CREATE VIEW app.v AS SELECT * FROM app.no_table"))
    [(client, mode)] = session.texts("SELECT @@character_set_client, @@sql_mode")
    assert client == "utf8mb4"
    assert {*MODE.split(",")} <= {*mode.split(",")}
    session.close()
