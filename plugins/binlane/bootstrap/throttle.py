"""Limits of a first copy: rows and bytes in a second, and the source's load, above which the copy waits. Of lanes and
loads it is the target's load (``orchestration.target_load``)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import Final

from binlane.bootstrap.sessions import Session
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor

_ASK_SECONDS: Final = 1.0
"""Between two questions about the source's load."""
_REPLICA_STATUS: Final = {Flavor.MARIADB: "SHOW ALL SLAVES STATUS", Flavor.MYSQL: "SHOW REPLICA STATUS"}
_LAG_COLUMNS: Final = frozenset({"Seconds_Behind_Master", "Seconds_Behind_Source"})


@dataclass(frozen=True, slots=True)
class Limits:
    """0: no limit."""

    rows_per_second: int = 0
    mib_per_second: int = 0
    """Of the statements that are sent to the target."""
    threads_running: int = 0
    """The source's status ``Threads_running``; the copy's own connections count."""
    source_lag: int = 0
    """Seconds that the source, if it is a replica itself, may be behind."""

    @property
    def ask_source(self) -> bool:
        """Whether a limit needs the source's load."""
        return bool(self.threads_running or self.source_lag)


NO_LIMITS: Final = Limits()


class CopyFailedError(Exception):
    """Another job of the copy has failed, so this one need not wait any longer."""


@dataclass(slots=True)
class Throttle:
    """Makes the jobs of one copy wait. ``session``: a connection to the source; None if no limit needs its load."""

    limits: Limits
    session: Session | None
    tell: Callable[[str], None]
    """Called with the reason when the copy begins to wait for the source, and with an empty text when it continues."""
    failed: threading.Event
    """Set when a job has failed: then no job waits."""
    server: str = "source"
    """Whose load it is, for the reason."""
    own: Callable[[], int] | None = None
    """The number of threads running that do not count; asked only above the limit."""
    meanwhile: Callable[[], None] = lambda: None
    """Called once a second in a wait for the server's load."""
    clock: Callable[[], float] = time.monotonic
    _free_at: float = 0.0
    """When the rates allow the next statement."""
    _ask_at: float = 0.0
    _rate: threading.Lock = field(default_factory=threading.Lock)
    _load: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, rows: int, size: int) -> None:
        """Wait until a statement of so many rows and bytes may be sent. Raises SourceError; CopyFailedError instead of
        waiting when a job has failed."""
        if self.limits.ask_source:
            # jobs queue here while one of them waits
            with self._load:
                self._wait_for_source()
        limits = self.limits
        seconds = max(
            rows / limits.rows_per_second if limits.rows_per_second else 0.0,
            size / (limits.mib_per_second << 20) if limits.mib_per_second else 0.0,
        )
        if not seconds:
            return
        with self._rate:
            now = self.clock()
            begins = max(now, self._free_at)
            self._free_at = begins + seconds
        if begins > now:
            self._sleep(begins - now)

    def _wait_for_source(self) -> None:
        if self.clock() < self._ask_at:
            return
        told = ""
        while reason := self._busy():
            if reason != told:
                self.tell(reason)
            told = reason
            self.meanwhile()
            self._sleep(_ASK_SECONDS)
        if told:
            self.tell("")
        self._ask_at = self.clock() + _ASK_SECONDS

    def _sleep(self, seconds: float) -> None:
        if self.failed.wait(seconds):
            raise CopyFailedError

    def _busy(self) -> str:
        assert self.session is not None
        if limit := self.limits.threads_running:
            running = int(self.session.texts("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1])
            if running > limit and self.own is not None:
                running -= self.own()
            if running > limit:
                others = "" if self.own is None else " besides this channel's"
                return f"waits: {running:,} threads running on the {self.server}{others}, limit {limit:,}"
        if limit := self.limits.source_lag:
            lag = _lag(self.session)
            if lag is not None and lag > limit:
                return f"waits: the source is {lag:,} s behind its own source, limit {limit:,} s"
        return ""


def _lag(session: Session) -> int | None:
    """The largest lag of the server's replication channels; None if it is no replica, or does not know."""
    rows = session.named_rows(_REPLICA_STATUS[session.flavor])
    found = [value for row in rows for name, value in row.items() if name in _LAG_COLUMNS and value is not None]
    return max(map(int, found), default=None)
