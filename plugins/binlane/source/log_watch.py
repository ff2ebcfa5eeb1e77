"""Whether a source has written anything, for callers that ask every second."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from binlane.errors import BinlaneError
from binlane.source import server
from binlane.source.protocol import EventSource, LogState
from binlane.source.stream import ServerSource


class LogWatch:
    """Compares a source's log with an earlier state of it.

    A server is asked for its log's end by one statement on a connection that stays open: a login and all of
    ``EventSource.state`` take ten times the CPU of both sides. So a log that was purged, or reset to the same end, is
    not noticed here; whoever reads the log notices it.
    """

    def __init__(self, source: EventSource, state: LogState) -> None:
        self.source = source
        self.state = state
        """The earlier one."""
        self._connection: Any = None

    def has_grown(self) -> bool:
        """Whether the source may have written something. True if it cannot be asked: whoever reads it says why."""
        if not isinstance(self.source, ServerSource):
            return _timeless(self.source.state()) != _timeless(self.state)
        try:
            with server.translated(self.source.name):
                if self._connection is None:
                    self._connection = self.source.connected()
                return server.log_end(self._connection) != self.state.end
        except BinlaneError:
            self.close()
            return True

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection = None


def _timeless(state: LogState) -> LogState:
    """The same for as long as the source writes nothing."""
    return replace(state, clock=0)
