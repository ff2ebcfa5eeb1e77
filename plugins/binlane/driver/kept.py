"""Keeps sessions while their own threads have nothing to ask: they read a file, wait for somebody, give way.

A server ends a session whose client says nothing for ``wait_timeout``, and with it a transaction, locks and temporary
tables. That is meant for a machine that is lost. So a thread of the process asks the server in time, whatever the
session's own thread waits for, and nobody has to think of it in front of a wait.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from binlane.driver.wire import WireConnection


class Keeper:
    """The thread, from now on until ``end``. A session that is lost says so with its next statement."""

    def __init__(self, connections: Sequence[WireConnection], pause: float, longest: float = math.inf) -> None:
        """``pause``: seconds, less than a third of the sessions' ``wait_timeout``. ``longest``: seconds for which a
        session's own thread may say nothing; then the server ends the session, with its transaction and its locks."""
        for connection in connections:
            connection.take_turns()
        self._connections, self._pause, self._longest = list(connections), pause, longest
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="binlane-kept-sessions", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        left = self._connections
        while left and not self._ended.wait(self._pause):
            # one that was used since has its time anew
            left = [connection for connection in left if connection.stay(self._pause, self._longest)]

    def end(self, *, waits: bool = True) -> None:
        """Ask no more. ``waits``: until a question under way is answered."""
        self._ended.set()
        if waits:
            self._thread.join()
