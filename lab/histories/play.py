"""Plays a history's statements on the source: several sessions, one statement at a time, in the history's order.

A statement that would wait for another session's lock fails at once, because that session could not continue meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pymysql

from binlane.model import Flavor
from lab.histories.history import DISCONNECT, Event
from lab.histories.servers import SESSIONS, commit_prepared
from lab.servers import PrivateServer

_PATIENCE: Final = 0.04
"""Seconds of a statement after which the watcher checks whether it waits for a lock."""
_GONE_SECONDS: Final = 2.0
_WAITS: Final = (
    "SELECT (SELECT COUNT(*) FROM performance_schema.data_lock_waits) + "
    "(SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE lock_status = 'PENDING')"
)
_PRELUDE: Final = {
    Flavor.MARIADB: "SET SESSION innodb_lock_wait_timeout = 0, lock_wait_timeout = 0, timestamp = 1700000000",
    Flavor.MYSQL: "SET SESSION innodb_lock_wait_timeout = 2, lock_wait_timeout = 2, timestamp = 1700000000",
}


class Stage:
    """The source's sessions; a context manager that ends them."""

    def __init__(self, server: PrivateServer, files: Path) -> None:
        self._server, self._files = server, files
        self._sessions: dict[str, pymysql.connections.Connection[Any]] = {}
        self._control = server.connect(autocommit=True)
        self.failed: Counter[int] = Counter()
        self.played = 0
        self.last_error = ""
        self._watcher = _Watcher(server) if server.flavor is Flavor.MYSQL else None

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_sessions()
        self._control.close()
        if self._watcher is not None:
            self._watcher.close()

    def play(self, event: Event) -> None:
        """Play one event of a session. Statements that the source refuses are counted; they are not logged."""
        self.last_error = ""
        if event.sql == DISCONNECT:
            self._disconnect(event.session)
            return
        self.played += 1
        sql = event.sql.replace("{files}", str(self._files))
        try:
            connection = self._session(event.session)
            watched = contextlib.nullcontext() if self._watcher is None else self._watcher.watch(_number_of(connection))
            with watched, connection.cursor() as cursor:
                cursor.execute(sql)
                while cursor.nextset():
                    pass
        except (pymysql.err.MySQLError, UnicodeError) as exc:
            self.failed[exc.args[0] if isinstance(exc.args[0], int) else 0] += 1
            self.last_error = f"{type(exc).__name__}: {exc}"
            if isinstance(exc, pymysql.err.OperationalError) and exc.args[0] in (2006, 2013):
                raise

    def commit_prepared(self) -> None:
        """End the XA transactions that the sessions have left prepared."""
        commit_prepared(self._server)

    def end_sessions(self) -> None:
        """Close every session's connection, and wait until the server has ended it."""
        for name in list(self._sessions):
            self._disconnect(name)

    def _session(self, name: str) -> pymysql.connections.Connection[Any]:
        if name not in self._sessions:
            connection = self._server.connect(autocommit=True, read_timeout=60, use_unicode=False)
            with connection.cursor() as cursor:
                cursor.execute(_PRELUDE[self._server.flavor])
            self._sessions[name] = connection
        return self._sessions[name]

    def _disconnect(self, name: str) -> None:
        connection = self._sessions.pop(name, None)
        if connection is None:
            return
        number = _number_of(connection)
        connection.close()
        alive = f"SELECT COUNT(*) FROM ({SESSIONS[self._server.flavor]}) AS sessions WHERE id = %s"
        last = time.monotonic() + _GONE_SECONDS
        with self._control.cursor() as cursor:
            while time.monotonic() < last:
                cursor.execute(alive, (number,))
                if cursor.fetchall()[0][0] == 0:
                    return
                time.sleep(0.002)


class _Watcher:
    """Kills statements that wait for a lock on MySQL, whose minimum lock wait timeout is a second."""

    def __init__(self, server: PrivateServer) -> None:
        self._connection = server.connect(autocommit=True)
        self._running: tuple[int, float] | None = None
        self._ended, self._changed = False, threading.Condition()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def watch(self, number: int) -> Iterator[None]:
        """Watch the connection with this id while it executes a statement."""
        with self._changed:
            self._running = number, time.monotonic()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running = None

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()
        self._connection.close()

    def _look(self) -> None:
        with self._changed:
            while not self._ended:
                if self._running is None:
                    self._changed.wait()
                    continue
                number, since = self._running
                left = _PATIENCE - (time.monotonic() - since)
                if left > 0:
                    self._changed.wait(left)
                    continue
                # the lock is held, so that the killed statement is the one that was checked
                if self._is_waiting():
                    with contextlib.suppress(pymysql.err.MySQLError), self._connection.cursor() as cursor:
                        cursor.execute(f"KILL QUERY {number}")
                self._changed.wait(_PATIENCE)

    def _is_waiting(self) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(_WAITS)
            return bool(cursor.fetchall()[0][0])


def _number_of(connection: Any) -> int:
    """A connection's id on the server."""
    return int(connection.thread_id())
