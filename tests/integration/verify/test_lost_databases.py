"""A database that the channel has written and the source has no more is drift until the target drops it."""

from __future__ import annotations

import pytest

from binlane.orchestration.commands.verify import outcome_text
from tests.conftest import requires_mysql
from tests.integration.verify.test_definitions import drift, verify
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

OBJECTS = (
    *(f"CREATE DATABASE {name}" for name in ("kept", "gone", "bare")),
    *(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)" for name in ("kept", "gone")),
    *(f"INSERT INTO {name}.t VALUES (1, 1), (2, 2)" for name in ("kept", "gone")),
    "CREATE VIEW gone.v AS SELECT id FROM gone.t",
)
DROPS = ("DROP DATABASE gone", "DROP DATABASE bare")
LOST = {("database gone.", ""), ("database bare.", ""), ("view gone.v", "")}
NOTE = "the table exists on the target and not on the source"


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    made = channel_of(request.param, request.param)
    run_on(made.source, *OBJECTS)
    run_on(made.target, "CREATE DATABASE others", "CREATE TABLE others.t (id INT PRIMARY KEY)", log=False)
    assert made.run() is not None
    assert verify(made).state == "clean"
    return made


def test_a_database_that_only_the_target_has_is_drift_until_it_is_dropped(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.target, "UPDATE gone.t SET n = 7 WHERE id = 2", log=False)
    assert {one.key for one in verify(channel).suspects} == {("2",)}
    run_on(channel.source, *DROPS, log=False)
    for full in (True, False):
        # of the second one all is read again that the first one has found
        outcome = verify(channel, full=full)
        found = {key: said for key, said in drift(outcome).items() if key in LOST}
        assert found.keys() == LOST
        assert "DROP DATABASE `gone`" in found["database gone.", ""]
        assert {one.table.database for one in outcome.suspects if one.note == NOTE} == {"gone"}
        assert "others" not in outcome_text(outcome)
    assert channel.cli("verify", CHANNEL, "--full", "--repair") == 1
    assert "DROP DATABASE `gone`" in capsys.readouterr().out
    run_on(channel.target, *DROPS, log=False)
    outcome = verify(channel)
    assert (outcome.state, outcome.suspects) == ("clean", ())


def test_a_database_that_the_log_drops_behind_the_watermark_is_no_drift(channel: Channel) -> None:
    run_on(channel.source, *DROPS)
    assert {one.state for one in verify(channel).suspects} == {"pending"}
    assert channel.run() is not None
    assert verify(channel).state == "clean"


@pytest.mark.parametrize("channel", ["mariadb"], indirect=True)
def test_a_database_that_the_filter_keeps_or_the_channel_has_forgotten_is_no_drift(channel: Channel) -> None:
    run_on(channel.source, *DROPS, log=False)
    channel.write_channel('[filter.kinds]\ndrop_database = "ignore"\n')
    assert verify(channel).state == "clean"
    channel.write_channel()
    assert verify(channel).state == "drift"
    # the record of a channel that is not there says nothing; this one's is gone, as `forgetting` says
    moved = "UPDATE binlane.`databases` SET channel = 'other' WHERE database_name IN ('gone', 'bare')"
    run_on(channel.target, moved, log=False)
    outcome = verify(channel)
    assert (outcome.state, outcome.suspects) == ("clean", ())
