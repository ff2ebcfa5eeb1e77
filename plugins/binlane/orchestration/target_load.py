"""Makes lanes, and the load of a restore, wait while the target is busy: by the throttle of first copies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import field

from binlane.apply.lane.options import Progress, ProgressCallback
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

    def wait(self) -> None:
        """Return when the target is not busy, or at an interruption. Raises driver errors, behind which the next call
        connects anew."""
        if not self.threads_running:
            return
        try:
            if self._throttle is None:
                self._session = write_session(self.target)
                limits, ended = Limits(threads_running=self.threads_running), self.interrupted or threading.Event()
                self._throttle = Throttle(limits, self._session, self.tell, ended, "target")
            self._throttle.wait(0, 0)
        except CopyFailedError:
            # who asks looks at the interruption next
            return
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        session, self._session, self._throttle = self._session, None, None
        if session is not None:
            session.close()


@contextlib.contextmanager
def paced_lane(load: TargetLoad, told: ProgressCallback) -> Iterator[ProgressCallback]:
    """The callback of a lane: tells its progress, and waits in front of the next block."""

    def behind_a_block(progress: Progress) -> None:
        told(progress)
        load.wait()

    with contextlib.closing(load):
        yield behind_a_block


def paced(load: TargetLoad, statements: Iterator[bytes]) -> Iterator[bytes]:
    """The statements, each when the target is not busy."""
    with contextlib.closing(load):
        for each in statements:
            load.wait()
            yield each
