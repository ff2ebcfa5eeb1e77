"""A network that misbehaves on request: a TCP proxy in front of a target."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: close sends RST, at once."""


class Act(Enum):
    """What the network does with a piece of what a client sends."""

    PASS = "passed"
    CUT_BEFORE = "cut before the statement"
    CUT_HALF = "cut in the middle of the statement"
    CUT_AFTER = "cut between the statement and its answer"
    SILENCE = "silent for ever, without a FIN"


Rule = Callable[[bytes], Act]


class Proxy:
    """Forwards 127.0.0.1:``port`` to a server; ``rule`` is asked about everything that a client sends."""

    def __init__(self, host: str, port: int) -> None:
        self.rule: Rule = lambda data: Act.PASS
        self.struck = 0
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._silent = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, url: str) -> str:
        """The server's URL through the proxy."""
        return url.replace(f":{self._server[1]}/", f":{self.port}/")

    def once(self, token: bytes, act: Act, skip: int = 0) -> None:
        """Strike at the (``skip`` + 1)-th statement that begins with ``token``, and never again."""
        lock, left = threading.Lock(), [skip]

        def rule(data: bytes) -> Act:
            # four bytes of length and number, one of command
            with lock:
                if self.struck or not data[5:].startswith(token):
                    return Act.PASS
                left[0] -= 1
                if left[0] >= 0:
                    return Act.PASS
                self.struck += 1
                return act

        self.rule = rule

    def heal(self) -> None:
        """Everything passes from now on; connections that were silent end."""
        self.rule = lambda data: Act.PASS
        self._silent.set()

    def close(self) -> None:
        self.heal()
        for each in [self._listener, *self._open]:
            _close(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    _close(client)
                    continue
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open += [client, server]
                muted = threading.Event()
                threading.Thread(target=self._upstream, args=(client, server, muted), daemon=True).start()
                threading.Thread(target=self._downstream, args=(client, server, muted), daemon=True).start()

    def _upstream(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                act = self.rule(data)
                if act is Act.PASS:
                    server.sendall(data)
                    continue
                muted.set()
                if act is Act.SILENCE:
                    self._silent.wait()
                elif act is Act.CUT_HALF:
                    server.sendall(data[: len(data) // 2])
                elif act is Act.CUT_AFTER:
                    server.sendall(data)
                    # the server has answered, or waits for a lock: either way it has the statement
                    time.sleep(0.05)
                break
        _close(client)
        _close(server)

    def _downstream(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                if not muted.is_set():
                    client.sendall(data)
        if not muted.is_set():
            _close(client)


def flaky(chance: random.Random, cut: float, delay: float) -> Rule:
    """Cuts and delays anything, at random."""
    lock = threading.Lock()

    def rule(_: bytes) -> Act:
        with lock:
            throw, pause, how = chance.random(), chance.uniform(0.0, delay), chance.randrange(3)
        time.sleep(pause)
        return (Act.CUT_BEFORE, Act.CUT_HALF, Act.CUT_AFTER)[how] if throw < cut else Act.PASS

    return rule


@contextlib.contextmanager
def proxy(host: str, port: int) -> Iterator[Proxy]:
    """A proxy for the length of a ``with`` block."""
    running = Proxy(host, port)
    try:
        yield running
    finally:
        running.close()


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    # wakes a thread that reads from it
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
