"""Makes lanes, and the load of a restore, wait while the target is busy: by the throttle of first copies.

Statements of the channel's own lanes are no load: lanes that wait for each other would wait for themselves.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from binlane.bootstrap.sessions import Session, write_session
from binlane.bootstrap.throttle import CopyFailedError, Limits, Throttle
from binlane.connections import Endpoint
from binlane.lazy_dataclass import dataclass


@dataclass(slots=True)
class TargetLoad:
    """Asked between two blocks, or two statements of a dump, when no transaction is open."""

    target: Endpoint
    threads_running: int
    """``apply.max_threads_running``; 0: nobody waits."""
    tell: Callable[[str], None]
    """Called with the reason of a wait, and with an empty text when it ends."""
    interrupted: threading.Event | None = None
    """Ends a wait when it is set."""
    leases: Sequence[str] = ()
    """Locks whose connections are the channel's own."""
    _session: Session | None = field(default=None)
    _throttle: Throttle | None = field(default=None)

    def wait(self, meanwhile: Callable[[], None] = lambda: None) -> bool:
        """Return when the target is not busy, or at an interruption: whether there was a wait, in which ``meanwhile``
        is called once a second. Raises its errors and those of the driver, behind which the next call connects anew."""
        if not self.threads_running:
            return False
        has_waited = False

        def in_wait() -> None:
            nonlocal has_waited
            has_waited = True
            meanwhile()

        try:
            if self._throttle is None:
                self._session = write_session(self.target)
                limits, ended = Limits(threads_running=self.threads_running), self.interrupted or threading.Event()
                self._throttle = Throttle(limits, self._session, self.tell, ended, "target", self._own)
            self._throttle.meanwhile = in_wait
            self._throttle.wait(0, 0)
        except CopyFailedError:
            # who asks looks at the interruption next
            return True
        except BaseException:
            self.close()
            raise
        return has_waited

    def _own(self) -> int:
        """How many of the channel's own sessions run a statement; this question's is one. Each account sees its own
        sessions."""
        assert self._session is not None
        if not self.leases:
            return 1
        asked = ", ".join(f"IS_USED_LOCK('{name}')" for name in self.leases)
        [holders] = self._session.texts(f"SELECT {asked}")
        numbers = ", ".join(sorted({str(int(each)) for each in holders if each})) or "0"
        [(running,)] = self._session.texts(
            f"SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Sleep' AND id IN ({numbers})"
        )
        return 1 + int(running)

    def close(self) -> None:
        """End the connection."""
        session, self._session, self._throttle = self._session, None, None
        if session is not None:
            session.close()


def paced(load: TargetLoad, statements: Iterator[bytes]) -> Iterator[bytes]:
    """The statements, each when the target is not busy."""
    with contextlib.closing(load):
        for each in statements:
            load.wait()
            yield each
