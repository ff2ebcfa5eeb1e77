"""A runner's heartbeat, on a thread and a connection of its own.

It renews the heartbeats of the held lanes, and reads the stop flag and other lanes' errors, so that no block waits for
these queries. Correctness does not depend on its timing: writes of a killed holder fail at the compare-and-set.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Final

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.errors import ConfigError, StateSchemaError
from binlane.state.leases import beat
from binlane.state.records.journal import LaneError, read_errors
from binlane.state.windows import read_window

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from binlane.state.positions import PlanKey

_log = logging.getLogger(__name__)
_FIRST_SECONDS: Final = 0.05


class Heartbeat:
    """A context manager. The runner writes ``held`` and reads ``stop_at`` and ``failed``."""

    def __init__(self, engine: Engine, key: PlanKey, interval: float, errors_before: int) -> None:
        self.held: dict[int, int] = {}
        """Held lane -> id of the connection that holds its lease. Replaced as a whole, never changed."""
        self.stop_at: int | None = None
        self.failed: LaneError | None = None
        """An error that has stopped a lane of this window since this runner started."""
        self._engine = engine
        self._key = key
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="binlane-heartbeat", daemon=True)
        self._holder = f"{socket.gethostname()} pid {os.getpid()}"
        self._errors_before = errors_before

    def __enter__(self) -> Heartbeat:
        with self._engine.connect() as connection:
            self.listen(connection)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            # after a lost connection a new one is opened; meanwhile the lane continues. While SQLAlchemy opens it,
            # errors are the driver's own; a restarted server may ask for a login that the connection's settings do not
            # allow. A view in a table's place is refused here as in the lane's own transactions, which say so
            with (
                contextlib.suppress(SQLAlchemyError, pymysql.err.Error, OSError, ConfigError, StateSchemaError),
                self._engine.connect() as connection,
            ):
                self._beat(connection.execution_options(isolation_level="AUTOCOMMIT"))
            self._ended.wait(self._interval)

    def _beat(self, connection: Connection) -> None:
        self._wait_for_a_lane()
        while not self._ended.is_set():
            for lane, connection_id in self.held.items():
                beat(connection, self._key.channel, lane, f"{self._holder} connection {connection_id}", connection_id)
            self.listen(connection)
            self._ended.wait(self._interval)

    def _wait_for_a_lane(self) -> None:
        """Wait for the runner's first lane, at most an interval: else the lane would seem to have no holder."""
        end = time.monotonic() + self._interval
        while not self.held and time.monotonic() < end and not self._ended.wait(_FIRST_SECONDS):
            pass

    def listen(self, connection: Connection) -> None:
        """Read the stop flag and other lanes' errors now, on a connection in autocommit."""
        window = read_window(connection, self._key.channel, self._key.window_id)
        self.stop_at = None if window is None else window.stop_at
        for error in read_errors(connection, self._key.channel, after=self._errors_before, limit=1):
            if error.window_id == self._key.window_id:
                self.failed = error
