"""One definition, created on the target."""

from __future__ import annotations

import pytest

from binlane.bootstrap.definitions import Definition, make, make_behind_rows
from binlane.bootstrap.sessions import write_session
from binlane.errors import TargetError, TargetUnavailableError
from binlane.session_pins import WRITE_MODE
from tests.integration.bootstrap.conftest import either
from tests.integration.window.conftest import CHANNEL, Channel, clean_servers, run_on

__all__ = ["clean_servers", "either"]


def of(statement: str) -> Definition:
    return Definition("VIEW", "app", "v", statement.encode(), "latin1", "latin1_swedish_ci")


@pytest.mark.parametrize("gone", ["DATABASE other", "TABLE other.t"])
def test_views_whose_tables_are_gone_are_named_and_stop_nothing(
    either: Channel, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(
        either.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY)",
        "INSERT INTO app.t VALUES (1)",
        "CREATE VIEW app.whole AS SELECT id FROM app.t",
        "CREATE DATABASE other",
        "CREATE TABLE other.t (id INT PRIMARY KEY)",
        "CREATE VIEW app.broken AS SELECT id FROM other.t",
        "CREATE VIEW app.above AS SELECT id FROM app.broken",
        f"DROP {gone}",
    )
    assert either.cli("doctor", CHANNEL) == 0
    capsys.readouterr()
    assert either.cli("bootstrap", CHANNEL) == 0
    said = capsys.readouterr().out
    for name in ("broken", "above"):
        assert f"view app.{name}: was not created, because " in said
    assert either.target.query("SELECT * FROM app.whole") == [(1,)]
    assert either.target.query("SHOW FULL TABLES FROM app WHERE table_type = 'VIEW'") == [("whole", "VIEW")]


def test_a_view_that_needs_a_database_which_the_target_lacks_is_named(either: Channel) -> None:
    either.target.query("CREATE DATABASE app")
    session = write_session(either.endpoints.target)
    [note] = make_behind_rows(session, [of("CREATE VIEW app.v AS SELECT id FROM nowhere.t")])
    assert note.startswith("view app.v: was not created, because an object that it needs was not copied: ")
    session.close()


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
    assert {*WRITE_MODE.split(",")} <= {*mode.split(",")}
    session.close()
