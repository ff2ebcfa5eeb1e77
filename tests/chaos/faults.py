"""Faults by an injected connection: a PyMySQL connection that counts what is sent and strikes at the n-th statement.

And by functions of ``os`` that count what is done to files. Nothing in the product knows of either. Statements of the
heartbeat's thread are not counted: they come at any time.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, cast

from pymysql.constants import COMMAND
from sqlalchemy import Engine, NullPool

from binlane.driver.connection import Connection
from binlane.servers.engines import engine_at

NEVER = 1 << 40
FILE_CALLS: Final = ("fsync", "replace", "mkdir", "unlink", "rmdir")
"""What makes a file or folder appear under its name, last, or go."""
PLAIN: Final = {"ssl_disabled": True, "get_server_public_key": True}
"""PyMySQL would load all certificate authorities of the machine for every connection. A MySQL server that has just
started asks for a password that is encrypted by its key."""


def plain_engine(url: str) -> Engine:
    """An engine without faults."""
    return engine_at(url, poolclass=NullPool, connect_args=PLAIN)


class When(Enum):
    """Where a fault strikes. Behind a statement's answer is the same as before the next statement."""

    BEFORE = "before"
    """The statement is not sent."""
    SENT = "sent"
    """The statement is with the server, its answer is never read: nobody knows whether it has run."""


class Act(Enum):
    """What happens there."""

    KILL = "SIGKILL of the worker"
    PAUSE = "SIGSTOP of the worker"
    CUT = "connection cut"
    ENDED = "KILL CONNECTION"


@dataclass(frozen=True, slots=True)
class Fault:
    """One strike at the ``at``-th statement of a process, counted from 1."""

    at: int = NEVER
    when: When = When.BEFORE
    act: Act = Act.KILL


@dataclass(slots=True)
class Faults:
    """Counts the statements of a process's connections, and strikes once."""

    fault: Fault = field(default_factory=Fault)
    count: int = 0
    seen: list[str] = field(default_factory=list)
    """Every statement's beginning, in order."""
    kill: Callable[[int], object] = lambda number: None
    """Ends the connection of this id from outside."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self, url: str) -> Engine:
        """An engine whose connections are counted."""
        faulty = functools.partial(FaultyConnection, self)
        return engine_at(url, driver=faulty, poolclass=NullPool, connect_args=PLAIN)

    def watch_files(self) -> None:
        """Count this process's calls that change folders, instead of statements; for the rest of its life."""
        for name in FILE_CALLS:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*positional: Any, **named: Any) -> Any:
            if self.strikes(When.BEFORE, f"{name} {positional[0]}"):
                os.kill(os.getpid(), signal.SIGKILL)
            done = call(*positional, **named)
            if self.strikes(When.SENT, ""):
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return watched

    def strikes(self, when: When, statement: str) -> bool:
        """Whether the fault strikes here; BEFORE is asked first and counts."""
        with self._lock:
            if when is When.BEFORE:
                self.count += 1
                self.seen.append(statement)
            return self.fault.when is when and self.count == self.fault.at

    def strike(self, connection: FaultyConnection) -> None:
        """Do it. After SIGSTOP the process goes on when it is continued."""
        if self.fault.act in (Act.KILL, Act.PAUSE):
            os.kill(os.getpid(), signal.SIGKILL if self.fault.act is Act.KILL else signal.SIGSTOP)
        elif self.fault.act is Act.ENDED:
            self.kill(connection.thread_id())  # type: ignore[no-untyped-call]
        else:
            with contextlib.suppress(OSError):
                cast(Any, connection)._sock.shutdown(socket.SHUT_RDWR)


class FaultyConnection(Connection):
    """Asks its ``Faults`` around every command."""

    def __init__(self, faults: Faults, **named: Any) -> None:
        self._faults = faults
        super().__init__(**named)

    def _execute_command(self, command: int, sql: Any) -> None:
        if command == COMMAND.COM_QUIT or threading.current_thread().name == "binlane-heartbeat":
            super()._execute_command(command, sql)
            return
        text = bytes(sql) if isinstance(sql, (bytes, bytearray)) else str(sql).encode()
        if self._faults.strikes(When.BEFORE, text[:60].decode("utf-8", "replace")):
            self._faults.strike(self)
        super()._execute_command(command, sql)
        if self._faults.strikes(When.SENT, ""):
            self._faults.strike(self)


def killer(url: str) -> Callable[[int], None]:
    """Ends connections of the server at ``url`` as a DBA would, and waits until they are gone."""

    def kill(number: int) -> None:
        with plain_engine(url).connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            with contextlib.suppress(Exception):
                connection.exec_driver_sql(f"KILL CONNECTION {number}")
            query = f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"
            while connection.exec_driver_sql(query).first() is not None:
                pass

    return kill
