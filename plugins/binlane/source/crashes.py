"""Crashes of a live source behind which its log may lack transactions that it has (``sync_binlog`` other than 1).

The log shows when the server was started again, and not what the variable was before: whoever administers it sets it
behind the crash. So a channel keeps since when each of its readings has found 1, and believes it of no earlier time.
"""

from __future__ import annotations

from collections.abc import Callable

from binlane.source.protocol import LogState


class SourceCrashes:
    """What a reading of the log tells of them."""

    def __init__(
        self, synced_since: float | None, keep: Callable[[float | None], object], tell: Callable[[str], object]
    ) -> None:
        """``synced_since``: see ``Channel``; ``keep`` takes another one. ``tell`` takes the file of each such crash."""
        self._synced_since, self._keep, self._tell = synced_since, keep, tell
        self._is_known = True

    def asked(self, state: LogState) -> None:
        """The channel's source has answered; before the log is read."""
        self._is_known = state.may_lose is None
        if self._is_known:
            return
        since = None
        if not state.may_lose:
            now = state.clock if state.own_clock is None else state.own_clock
            since = now if self._synced_since is None else self._synced_since
        if since != self._synced_since:
            self._synced_since = since
            self._keep(since)

    def started_behind(self, file: str, created: float) -> None:
        """The server was started at ``created``, in seconds since the epoch by its clock, and had crashed in a file."""
        if not self._is_known and (self._synced_since is None or created < self._synced_since):
            self._tell(file)
