"""A source connection that leads to another server, or to an older copy of the channel's, reads and repairs nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from binlane.cli.commands import app
from binlane.connections import Endpoint
from binlane.errors import SourceIdentityError
from binlane.model import Flavor, LogPosition
from binlane.servers.engines import engine_of
from binlane.sessions.server_proof import ServerProof
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = [pytest.param(Flavor.MYSQL, marks=requires_mysql), Flavor.MARIADB]
TABLE: Final = ("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)")
OLDER: Final = (*TABLE, "INSERT INTO tenant_1.t VALUES (1, 0), (3, 0)")
COMMANDS: Final = (
    ("verify", CHANNEL, "--full"),
    ("verify", CHANNEL),
    ("verify", CHANNEL, "--full", "--repair", "--yes"),
    ("recopy", CHANNEL, "--table", "tenant_1.t", "--yes"),
)


@contextlib.contextmanager
def posing_as(source: PrivateServer, folder: Path) -> Iterator[PrivateServer]:
    """Another server with the identity of the source, as one that was restored from a copy has it."""
    options = (f"--server-id={source.port}",) if source.flavor is Flavor.MARIADB else ()
    with private_server(folder / "data", source.flavor, options, name="older", durable=False) as server:
        if source.flavor is Flavor.MYSQL:
            server.stop()
            (server.datadir / "auto.cnf").write_text((source.datadir / "auto.cnf").read_text())
            server.restart()
        yield server


def changed(channel: Channel) -> None:
    """A channel that has applied two windows, and whose target is right."""
    run_on(channel.source, *TABLE, "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2)")
    assert channel.run() is not None
    run_on(channel.source, "UPDATE tenant_1.t SET n = n + 10")
    assert channel.run() is not None
    channel.assert_equal()


WITH_SOURCE: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "init": ((CHANNEL,), "SourceIdentityError"),
    "plan": ((CHANNEL,), "SourceIdentityError"),
    "advise": ((CHANNEL,), "SourceIdentityError"),
    "run": ((CHANNEL,), "SourceIdentityError"),
    "follow": ((CHANNEL,), "SourceIdentityError"),
    "verify": ((CHANNEL, "--full"), "SourceIdentityError"),
    "recopy": ((CHANNEL, "--table", "tenant_1.t", "--yes"), "SourceIdentityError"),
    "bootstrap": ((CHANNEL,), "target: server: expected another one than the source"),
    "doctor": ((CHANNEL,), "expected the channel's server"),
}
"""The commands that read the source: their arguments, and how another server is refused."""
WITHOUT_SOURCE: Final = frozenset(
    {
        *("config", "status", "find", "stop", "resume", "inspect", "show", "check", "decide", "xa", "skip"),
        *("replay-skipped", "conflicts", "spark-job", "spark-archive", "new", "version", "read-at", "adopt-target"),
        *("archive", "audit"),
        # asks for the family and version alone, before a login
        "grants",
        # its dump's GTIDs have to be those of the log, and its windows prove the log as all windows do
        "restore",
        # its restores do, and its comparison asks for the server in whose log they stand
        "drill",
    }
)


def refused(channel: Channel, capsys: pytest.CaptureFixture[str], why: str) -> None:
    capsys.readouterr()
    for command in COMMANDS:
        assert channel.cli(*command) == 1, command
        assert why in capsys.readouterr().err, command
    assert channel.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 11), (2, 12)]
    assert channel.target.query("SELECT COUNT(*) FROM binlane.suspects") == [(0,)]


@pytest.mark.parametrize("flavor", BOTH)
def test_an_older_copy_of_the_source_is_refused_by_every_command(
    channel_of: ChannelOf, flavor: Flavor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    changed(channel)
    with posing_as(channel.source, tmp_path) as older:
        channel.connect("source_server", older)
        refused(channel, capsys, "SourceIdentityError")
        run_on(older, *OLDER)
        for command in COMMANDS[:3]:
            assert channel.cli(*command) == 1
            assert "has executed the channel's transactions up to its watermark" in capsys.readouterr().err
        assert channel.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 11), (2, 12)]


def test_each_command_is_in_one_of_the_tables() -> None:
    """A new command says whether it reads the source."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(group.commands) == {*WITH_SOURCE, *WITHOUT_SOURCE}
    assert not WITHOUT_SOURCE & WITH_SOURCE.keys()


@pytest.mark.parametrize("flavor", BOTH)
def test_another_server_is_refused_by_every_command(
    channel_of: ChannelOf, flavor: Flavor, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    changed(channel)
    channel.connect("source_server", channel.target)
    refused(channel, capsys, "SourceIdentityError")
    before = channel.status
    for command, (arguments, why) in WITH_SOURCE.items():
        assert channel.cli(command, *arguments) != 0, command
        said = capsys.readouterr()
        assert why in said.err + said.out, command
    assert channel.status.channel == before.channel
    assert channel.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 11), (2, 12)]


def test_a_log_that_was_written_anew_is_refused_where_it_decides_what_is_drift(
    channel_of: ChannelOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server with the identity and the GTIDs, whose transactions are others."""
    channel = channel_of("mariadb", "mariadb")
    changed(channel)
    at = channel.status.channel.watermark
    with posing_as(channel.source, tmp_path) as other:
        number = int(at.gtid_set.split(",")[-1].split("-")[-1])
        run_on(other, f"SET SESSION gtid_seq_no = {number + 10}", OLDER[0])
        while int(other.query("SHOW MASTER STATUS")[0][0].rpartition(".")[2]) <= int(at.source.file.rpartition(".")[2]):
            run_on(other, "FLUSH BINARY LOGS")
        run_on(other, *OLDER[1:])
        channel.connect("source_server", other)
        assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
        assert "SourceIdentityError" in capsys.readouterr().err
        assert channel.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 11), (2, 12)]


@pytest.mark.parametrize("flavor", BOTH)
def test_each_connection_proves_which_server_answers(channel_of: ChannelOf, flavor: Flavor) -> None:
    channel = channel_of(flavor.value, flavor.value)
    source = channel.endpoints.source
    assert source is not None
    state = channel.status.channel
    position = LogPosition(state.watermark.source.file.rpartition(".")[0] + ".999999", 4)
    proofs = {
        "": ServerProof(state.source_identity, state.watermark.gtid_set, state.watermark.source),
        "expected the channel's server": ServerProof(state.source_identity + "0"),
        "expected a log that has reached": ServerProof(state.source_identity, "", position),
    }
    for why, proof in proofs.items():
        endpoint = Endpoint(source.name, source.host, source.port, source.user, source.password, source.tls, proof)
        with pytest.raises(SourceIdentityError, match=why) if why else contextlib.nullcontext():
            engine_of(endpoint).connect().close()


def test_a_domain_that_is_gone_from_the_log_tells_nothing() -> None:
    proof = ServerProof("mariadb server_id 1", "0-1-10,5-1-7")
    for reached in ("0-1-10", "0-1-10,0-2-5,5-1-7", "0-2-500,0-1-11,5-1-8,5-3-1"):
        assert proof.refusal(Flavor.MARIADB, ("1", reached, "")) is None
    for behind in ("0-1-9,5-1-7", "0-1-10,5-1-6", "0-2-500,5-1-7", "7-1-100", ""):
        assert proof.refusal(Flavor.MARIADB, ("1", behind, "")) is not None


@pytest.mark.parametrize(
    ("logged", "replicated", "is_it"),
    [
        pytest.param("", "0-7-500", True, id="nothing logged yet"),
        pytest.param("0-1-10", "0-7-500", True, id="put in behind what is logged"),
        pytest.param("0-1-501", "0-7-500", True, id="it goes on"),
        pytest.param("0-1-10,0-8-600", "0-8-600", True, id="a replica of another server since"),
        pytest.param("0-1-10", "", False, id="a copy of before"),
        pytest.param("0-1-9", "0-7-400", False, id="an older dump"),
        pytest.param("", "", False, id="an empty server"),
    ],
)
def test_what_a_dump_has_put_in_is_proved_by_gtid_slave_pos(logged: str, replicated: str, is_it: bool) -> None:
    for watermark in ("0-7-500", "0-7-500,0-1-10") if "0-1" in logged else ("0-7-500",):
        proof = ServerProof("mariadb server_id 1", watermark)
        assert (proof.refusal(Flavor.MARIADB, ("1", logged, replicated)) is None) is is_it
