"""Keeps a verification from loading its servers: a rate of rows, and a pause while either server is busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.verify.rows.sides import Pair

_PAUSE = 1.0
"""Seconds between two looks at a busy server."""


@dataclass(slots=True)
class Throttle:
    """Called around each batch of rows."""

    pair: Pair
    rows_per_second: int | None = None
    """Of the target; None: no limit."""
    threads_running: int | None = None
    """Pause while either server has more threads running; None: never."""
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    paused: float = 0.0
    """Seconds of pauses because a server was busy."""
    _since: float = field(default=0.0)

    @property
    def is_on(self) -> bool:
        """Whether there is any limit."""
        return self.rows_per_second is not None or self.threads_running is not None

    def begin(self) -> None:
        """Before a batch: wait until both servers have time."""
        while self.threads_running is not None and self._busiest() > self.threads_running:
            self.sleep(_PAUSE)
            self.paused += _PAUSE
        self._since = self.clock()

    def end(self, rows: int) -> None:
        """After a batch of ``rows``."""
        if self.rows_per_second is not None:
            self.sleep(max(0.0, rows / self.rows_per_second - (self.clock() - self._since)))

    def _busiest(self) -> int:
        # the connection that asks counts as running
        return max(int(each.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1]) - 1 for each in self.pair.sides)
