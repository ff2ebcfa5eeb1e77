"""Makes lanes, and the load of a restore, wait while the target is busy: by the throttle of first copies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
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
                self._throttle = Throttle(limits, self._session, self.tell, ended, "target")
            self._throttle.meanwhile = in_wait
            self._throttle.wait(0, 0)
        except CopyFailedError:
            # who asks looks at the interruption next
            return True
        except BaseException:
            self.close()
            raise
        return has_waited

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
