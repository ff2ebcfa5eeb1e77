"""``binlane init NEW --after OLD``: what is known of the target stays known, and a window without a plan is no bar."""

from __future__ import annotations

import contextlib

import pytest

from binlane.bootstrap.sessions import write_session
from binlane.errors import PrecheckError
from binlane.model import TableKey
from binlane.orchestration import steps
from binlane.orchestration.commands.copies.missing_tables import MissingTable, note_missing
from binlane.orchestration.commands.copies.restore_plan import require_replaceable_now
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.records.verifications import read_tables_being_copied
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.integration.window.control.test_stop import channel

__all__ = ["channel"]

OBJECTS = tuple(
    statement
    for name in ("tenant_1", "tenant_2")
    for statement in (
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO {name}.t VALUES (1, 10), (2, 20)",
    )
)


@pytest.fixture
def filled(channel: Channel) -> Channel:
    """A channel that has applied a window of two databases, and the file of another one."""
    run_on(channel.source, *OBJECTS)
    assert channel.run() is not None
    (channel.channels / "shop2.toml").write_text((channel.channels / f"{CHANNEL}.toml").read_text())
    return channel


def test_what_is_known_to_differ_and_which_databases_are_the_channel_s_go_to_its_successor(
    filled: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(filled.target, "DELETE FROM tenant_1.t WHERE id = 2", log=False)
    assert filled.cli("verify", CHANNEL) == 1
    assert filled.cli("init", "shop2", "--after", CHANNEL) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert filled.cli("check", "shop2") == 2
    assert "drifted" in capsys.readouterr().out

    # of databases that the successor has not written yet
    target, replaced = filled.endpoints.target, {"tenant_2": "tenant_2_kept"}
    with (
        contextlib.closing(write_session(target)) as session,
        pytest.raises(PrecheckError, match="found channel shop2"),
    ):
        require_replaceable_now(session, target, "back", replaced)
    run_on(filled.source, "DROP DATABASE tenant_2", log=False)
    assert filled.cli("verify", "shop2", "--full") == 1
    assert "DROP DATABASE `tenant_2`" in capsys.readouterr().out

    # windows are counted on, as seqnos are: what is known of databases names them
    run_on(filled.source, "INSERT INTO tenant_1.t VALUES (3, 30)")
    assert filled.cli("run", "shop2") == 0, capsys.readouterr().err
    numbers = filled.target.query("SELECT channel, number FROM binlane.windows ORDER BY number")
    assert numbers == [(CHANNEL, 1), ("shop2", 2)]


def test_a_channel_that_has_begun_elsewhere_is_no_successor(
    filled: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filled.cli("init", CHANNEL, "--after", CHANNEL) == 2
    assert "expected another channel" in capsys.readouterr().err
    assert filled.cli("init", "shop2", "--start", "now") == 0, capsys.readouterr().err
    for _ in range(2):
        assert filled.cli("init", "shop2", "--after", CHANNEL) == 2
        assert f"nothing of {CHANNEL} was handed over" in " ".join(capsys.readouterr().err.split())
    filled.target.query("DELETE FROM binlane.channels WHERE channel = 'shop2'")
    for _ in range(2):
        # a repeated command finds it done
        assert filled.cli("init", "shop2", "--after", CHANNEL) == 0, capsys.readouterr().err
    assert filled.target.query("SELECT channel FROM binlane.channels") == [("shop2",)]


def test_a_recopy_that_has_not_ended_stays_known(filled: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    table = MissingTable(TableKey("tenant_1", "t"), TableKey("tenant_1", "t"))
    engine = engine_of(filled.endpoints.target)
    note_missing(engine, filled.status.channel, [table])
    assert filled.cli("init", "shop2", "--after", CHANNEL) == 0, capsys.readouterr().err
    with engine.connect() as connection:
        assert read_tables_being_copied(connection, "shop2") == {table.target}


def test_a_window_without_a_plan_is_read_by_the_successor(filled: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    """Its source may be gone, and nothing of it is on the target."""
    run_on(filled.source, "INSERT INTO tenant_1.t VALUES (3, 30)")
    assert steps.extract(filled.config, filled.endpoints, WindowRequest("now"))["work"] is not None
    assert filled.cli("init", "shop2", "--after", CHANNEL) == 0, capsys.readouterr().err
    assert filled.target.query("SELECT channel, windows FROM binlane.channels") == [("shop2", 1)]
    assert filled.cli("run", "shop2") == 0, capsys.readouterr().err
    assert filled.target.query("SELECT channel, number, state FROM binlane.windows ORDER BY number") == [
        (CHANNEL, 1, "finished"), ("shop2", 2, "finished"),
    ]  # fmt: skip
    filled.assert_equal()
