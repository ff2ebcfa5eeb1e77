"""Some tables or shards are verified alone."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from binlane.errors import ConfigError
from binlane.orchestration.commands.verify import verify_channel
from binlane.state.records.verifications import Suspect
from binlane.verify.outcome import Options
from binlane.verify.scope import Scope
from binlane.verify.verification import Verifier
from tests.integration.verify.scene import ONE_OF_EACH, found, tables
from tests.integration.window.conftest import (
    CHANNEL,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)

__all__ = ["channel_of", "clean_servers"]


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_some_tables_are_verified_alone(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    run_on(channel.target, "UPDATE app.a SET n = 9 WHERE id = 3", "UPDATE app.b SET n = 9 WHERE id = 3", log=False)
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("app.b",))))
    assert (found(outcome), outcome.counts.rows) == ({("drift", "b", ("3",))}, 14)
    assert outcome.covered.full_at is None
    whole = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(("app",))))
    assert (whole.counts.rows, len(whole.suspects)) == (42, 2)
    # the answer about some tables says nothing of others, and forgets nothing of them
    run_on(channel.target, "UPDATE app.b SET n = 0 WHERE id = 3", log=False)
    again = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("app.b",))))
    assert (again.state, found(again)) == ("clean", set())
    assert channel.target.query("SELECT table_name FROM binlane.suspects") == [("a",)]
    with pytest.raises(ConfigError, match=r"expected database\.table, got 'b'"):
        verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("b",))))


@pytest.mark.parametrize("other", ["app.a", "app.b"], ids=["the same rows", "other rows"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_what_another_verification_finds_meanwhile_is_not_forgotten(
    families: tuple[str, str], other: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has compared its rows and settles them while another one finds drift and ends."""
    channel = channel_of(*families)
    tables(channel, 14)
    settled = Verifier._settled

    def meanwhile(self: Verifier, stored: Iterable[Suspect]) -> tuple[Suspect, ...]:
        monkeypatch.setattr(Verifier, "_settled", settled)
        run_on(channel.target, f"UPDATE {other} SET n = 9 WHERE id = 3", log=False)
        verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=(other,))))
        return settled(self, stored)

    monkeypatch.setattr(Verifier, "_settled", meanwhile)
    verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("app.a",))))
    assert channel.target.query("SELECT table_name, row_key, state FROM binlane.suspects") == [
        (other.partition(".")[2], '["3"]', "drift")
    ]


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_shard_is_verified_alone_with_all_databases_of_its_group(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE zoo",
            "CREATE TABLE zoo.child (id INT PRIMARY KEY, n INT, FOREIGN KEY (id) REFERENCES app.a (id))",
            "INSERT INTO zoo.child VALUES (3, 1)",
            "CREATE DATABASE other",
            "CREATE TABLE other.t (id INT PRIMARY KEY)",
            log=False,
        )
    run_on(channel.target, "UPDATE zoo.child SET n = 9", "INSERT INTO other.t VALUES (1)", log=False)
    capsys.readouterr()
    assert channel.cli("verify", CHANNEL, "--full", "--shard", "ap*") == 1
    assert "4 tables, 43 rows" in (said := capsys.readouterr().out)
    assert "zoo.child, primary key id=3" in said
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(shards=("app",))))
    assert found(outcome) == {("drift", "child", ("3",))}
    assert outcome.covered.full_at is None
    assert channel.cli("verify", CHANNEL, "--full", "--shard", "zoo") == 2
    assert "--shard: expected the shard of a database of the target, got 'zoo'" in capsys.readouterr().err
