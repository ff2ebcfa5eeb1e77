"""A name with two servers behind it: one connection of a command, each in turn, is answered by the other one."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.trials.sampling import sampled

COMMANDS: Final = {
    "run": ("run", CHANNEL),
    "verify": ("verify", CHANNEL, "--full"),
    "recopy": ("recopy", CHANNEL, "--table", "tenant_1.t", "--yes"),
    "init": ("init", CHANNEL, "--start", "now"),
    "bootstrap": ("bootstrap", CHANNEL),
}
BEGINNINGS: Final = ("init", "bootstrap")
"""They need a target without the channel."""
CASES: Final = tuple((command, family) for command in COMMANDS for family in ("mariadb", "mysql"))
SAMPLE: Final = (("run", "mariadb"), ("init", "mysql"))


@dataclass(slots=True)
class Switch:
    """A port that leads to one server, and for one connection to another."""

    usual: PrivateServer
    other: PrivateServer
    listener: socket.socket
    connections: int = 0
    elsewhere: int = 0
    """The number of the connection that the other server answers; 0: none."""

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            to = self.other if self.connections == self.elsewhere else self.usual
            server = socket.create_connection((to.host, to.port))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    for end in (one, other):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def switched(usual: PrivateServer, other: PrivateServer) -> Iterator[Switch]:
    with socket.create_server((usual.host, 0)) as listener:
        switch = Switch(usual, other, listener)
        threading.Thread(target=switch.serve, daemon=True).start()
        yield switch


@pytest.mark.parametrize(
    ("command", "family"),
    [pytest.param(*case, marks=requires_mysql if case[1] == "mysql" else ()) for case in sampled(CASES, SAMPLE)],
)
def test_a_command_is_refused_or_right_whichever_connection_goes_elsewhere(
    channel_of: ChannelOf, command: str, family: str, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2)")
    assert channel.run() is not None
    with switched(channel.source, channel.target) as switch:
        channel.connect("source_server", channel.source, port=switch.listener.getsockname()[1])
        for number in range(1, 60):
            prepared(channel, command, number)
            capsys.readouterr()
            switch.connections, switch.elsewhere = 0, number
            code = channel.cli(*COMMANDS[command])
            opened, switch.elsewhere = switch.connections, 0
            said = capsys.readouterr().err
            if opened < number:
                assert code == 0
                break
            assert code == 0 or "Error: " in said, (number, said)
            if code == 0 and command != "init":
                channel.assert_equal()
        else:
            pytest.fail("a command without an end")
        channel.connect("source_server", channel.source)
        if command != "init":
            assert channel.cli("run", CHANNEL) == 0
            channel.assert_equal()


def prepared(channel: Channel, command: str, number: int) -> None:
    """What the command has to do: a row to apply, or a target without the channel."""
    if command in BEGINNINGS:
        run_on(channel.target, "DROP DATABASE IF EXISTS binlane", "DROP DATABASE IF EXISTS tenant_1", log=False)
    elif command == "run":
        run_on(channel.source, f"INSERT INTO tenant_1.t VALUES ({10 + number}, 1)")
