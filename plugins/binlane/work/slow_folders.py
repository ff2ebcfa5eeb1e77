"""Questions to the work folder of who only looks, or gives an order: a file system that hangs (a hard mount whose
server is away) answers none, and nothing ends such a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

Found = TypeVar("Found")
FOLDER_SECONDS: Final = 3.0
"""For an answer."""
_FREE: Final = threading.Semaphore(32)
"""Questions that are not answered yet, at most."""


def answered_in_time(ask: Callable[[], Found]) -> Found:
    """The answer of ``ask``, which a file system can hold for longer than whoever looks may wait. Raises TimeoutError.

    Threads of a pool would hold the end of the process as well.
    """
    free = _FREE
    if not free.acquire(blocking=False):
        raise TimeoutError("earlier questions to this or another folder are not answered yet")
    answer = Future[Found]()

    def answered() -> None:
        try:
            answer.set_result(ask())
        except BaseException as exc:
            answer.set_exception(exc)
        finally:
            free.release()

    threading.Thread(target=answered, name="binlane-look", daemon=True).start()
    return answer.result(FOLDER_SECONDS)
