"""A frozen server: its kernel acknowledges everything, it says nothing. No command waits for it for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from binlane.driver import wire
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel

OF_THE_TARGET = (
    ("status", CHANNEL),
    ("plan", CHANNEL),
    ("run", CHANNEL),
    ("stop", CHANNEL),
    ("resume", CHANNEL),
    ("verify", CHANNEL, "--full"),
    ("xa", CHANNEL),
    ("conflicts", CHANNEL),
    ("skip", CHANNEL, "--seqno", "1", "--reason", "x"),
    ("decide", CHANNEL, "1", "--ran"),
    ("init", CHANNEL, "--start", "now"),
    ("bootstrap", CHANNEL),
)
OF_THE_SOURCE = (("plan", CHANNEL), ("run", CHANNEL), ("verify", CHANNEL, "--full"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GREETING_SECONDS", "SILENT_SECONDS"):
        monkeypatch.setattr(wire, name, 1)


@pytest.fixture
def stopped() -> Iterator[list[PrivateServer]]:
    """Servers put in here are woken at the end."""
    servers: list[PrivateServer] = []
    yield servers
    for server in servers:
        os.kill(server.pid, signal.SIGCONT)


@pytest.mark.parametrize("part", ["target", "source"])
def test_every_command_gives_a_frozen_server_up_by_name(
    channel: Channel, part: str, stopped: list[PrivateServer], capsys: pytest.CaptureFixture[str]
) -> None:
    channel.source.query("CREATE DATABASE tenant_1")
    assert channel.run() is not None
    channel.source.query("CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    server = channel.target if part == "target" else channel.source
    os.kill(server.pid, signal.SIGSTOP)
    stopped.append(server)
    for command in OF_THE_TARGET if part == "target" else OF_THE_SOURCE:
        capsys.readouterr()
        assert channel.cli(*command) == 1, command
        said = capsys.readouterr()
        assert "sends nothing for 1 s: it is frozen or overloaded" in " ".join(said.err.split()), (command, said)
        assert f"{part}_server" in said.err, (command, said)
