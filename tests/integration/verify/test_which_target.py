"""A target connection that leads to a replica, a clone or an older copy of the channel's target: no command uses it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from binlane.cli.commands import app
from binlane.model import Flavor
from binlane.state.target_record import file_of
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    fresh_channel,
    run_on,
)

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = [pytest.param(Flavor.MYSQL, marks=requires_mysql), Flavor.MARIADB]
WITH_TARGET: Final[Mapping[str, tuple[str, ...]]] = {
    "init": (CHANNEL,),
    "plan": (CHANNEL,),
    "advise": (CHANNEL,),
    "run": (CHANNEL,),
    "follow": (CHANNEL, "--for", "1s"),
    "verify": (CHANNEL, "--full", "--repair", "--yes"),
    "recopy": (CHANNEL, "--table", "tenant_1.t", "--yes"),
    "bootstrap": (CHANNEL,),
    "doctor": (CHANNEL,),
    "status": (CHANNEL,),
    "find": (),
    "stop": (CHANNEL,),
    "resume": (CHANNEL,),
    "show": (CHANNEL, "1"),
    "check": (CHANNEL,),
    "decide": (CHANNEL, "1", "--ran"),
    "xa": (CHANNEL,),
    "skip": (CHANNEL, "--seqno", "1", "--reason", "none"),
    "replay-skipped": (CHANNEL, "1"),
    "conflicts": (CHANNEL,),
    "audit": (CHANNEL,),
    "read-at": (CHANNEL, "--command", "true"),
    "drill": (CHANNEL, "--list"),
}
"""The commands that open the target, with their arguments."""
WRITING: Final = ("run", "verify", "recopy", "doctor", "check")
WITHOUT_TARGET: Final = frozenset(
    {
        *("config", "inspect", "archive", "spark-job", "spark-archive", "new", "version"),
        # asks for the family and version alone, before a login
        "grants",
        # the way on
        "adopt-target",
        # makes a channel of its own, whose windows prove the target as all windows do
        "restore",
    }
)


@contextlib.contextmanager
def copied(server: PrivateServer, folder: Path, *, identity: bool) -> Iterator[PrivateServer]:
    """A server on the copied data ``folder``; with the ``identity`` of the one that was copied, or with its own."""
    options = (f"--server-id={server.port}",) if identity and server.flavor is Flavor.MARIADB else ()
    if not identity and server.flavor is Flavor.MYSQL:
        (folder / "auto.cnf").unlink()
    with private_server(folder, server.flavor, options, name="copied", durable=False) as found:
        yield found


def refused(
    channel: Channel, server: PrivateServer, capsys: pytest.CaptureFixture[str], commands: Collection[str]
) -> None:
    """The commands refuse the server, and change nothing on it."""
    channel.connect("target_server", server)
    before = (
        server.query("SELECT watermark_seqno, stopped FROM binlane.channels"),
        server.query("SELECT * FROM tenant_1.t ORDER BY id"),
    )
    capsys.readouterr()
    for command in commands:
        assert channel.cli(command, *WITH_TARGET[command]) != 0, command
        said = capsys.readouterr()
        assert "channel's target" in said.err + said.out or "expected" in said.err + said.out, (command, said)
        assert f"adopt-target {CHANNEL}" in said.err + said.out, (command, said)
    after = (
        server.query("SELECT watermark_seqno, stopped FROM binlane.channels"),
        server.query("SELECT * FROM tenant_1.t ORDER BY id"),
    )
    assert after == before


@pytest.mark.parametrize("flavor", BOTH)
def test_a_copy_of_the_target_is_refused_by_every_command_until_it_is_adopted(
    request: pytest.FixtureRequest, flavor: Flavor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source: PrivateServer = request.getfixturevalue(f"{flavor.value}_source")
    clean = request.getfixturevalue("clean_servers")
    with private_server(tmp_path / "data", flavor, name="target", durable=False) as target:
        channel = fresh_channel(
            source, target, tmp_path / "project", lambda server: clean(server) if server is source else None
        )
        run_on(source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)")
        run_on(source, "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2)")
        assert channel.run() is not None
        target.stop()
        for name in ("older", "clone"):
            shutil.copytree(tmp_path / "data", tmp_path / name)
        target.restart()
        run_on(source, "INSERT INTO tenant_1.t VALUES (3, 3)")
        assert channel.run() is not None
        record = Path(channel.config.work.uri) / file_of(CHANNEL)

        with copied(target, tmp_path / "older", identity=True) as older:
            refused(channel, older, capsys, WITH_TARGET)
        with copied(target, tmp_path / "clone", identity=False) as clone:
            refused(channel, clone, capsys, WRITING)
            # the clone has the state of another server: that is seen without a record, too
            kept = record.read_bytes()
            record.unlink()
            for command in ("status", "verify", "run"):
                assert channel.cli(command, CHANNEL) == 1
                assert "TargetIdentityError" in capsys.readouterr().err
            record.write_bytes(kept)
            before = channel.cli("adopt-target", CHANNEL), clone.query("SELECT target_identity FROM binlane.channels")
            said = capsys.readouterr().out
            assert before[0] == 0
            assert "with --yes it is the target from now on" in " ".join(said.split()), said
            assert channel.cli("run", CHANNEL) == 1
            assert channel.cli("adopt-target", CHANNEL, "--yes") == 0
            assert clone.query("SELECT target_identity FROM binlane.channels") != before[1]
            assert channel.cli("run", CHANNEL) == 0
            assert clone.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 1), (2, 2), (3, 3)]
            # the former target is another state now, however far it has come
            refused(channel, target, capsys, WRITING)


@pytest.mark.parametrize("flavor", BOTH)
def test_a_channel_begins_again_on_another_server(
    channel_of: ChannelOf, flavor: Flavor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    with private_server(tmp_path / "data", flavor, name="new", durable=False) as new:
        channel.connect("target_server", new)
        for command in ("init", "bootstrap", "status", "check"):
            assert channel.cli(command, CHANNEL) != 0
            said = capsys.readouterr()
            # a channel that looks new would be begun on the wrong server
            assert "TargetIdentityError" in said.err or f"adopt-target {CHANNEL}" in "".join(said.out.split("\n"))
        assert new.query("SHOW DATABASES LIKE 'binlane'") == []
        for _ in range(2):
            assert channel.cli("adopt-target", CHANNEL, "--yes") == 0
            assert "does not have the channel" in capsys.readouterr().out
        assert channel.cli("init", CHANNEL, "--start", "now") == 0
        run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
        assert channel.cli("run", CHANNEL) == 0
        assert new.query("SHOW TABLES FROM tenant_1") == [("t",)]


def test_a_damaged_record_names_its_place(channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]) -> None:
    channel = channel_of("mariadb", "mariadb")
    record = Path(channel.config.work.uri) / file_of(CHANNEL)
    record.write_bytes(b"{}")
    assert channel.cli("run", CHANNEL) != 0
    assert str(record) in "".join(capsys.readouterr().err.split("\n"))
    record.unlink()
    assert channel.cli("run", CHANNEL) == 0
    assert record.exists()


def test_each_command_is_in_one_of_the_tables() -> None:
    """A new command says whether it opens the target."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(group.commands) == {*WITH_TARGET, *WITHOUT_TARGET}
    assert not WITHOUT_TARGET & WITH_TARGET.keys()
