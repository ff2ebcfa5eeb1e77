"""Reading ahead: the next item is read while the last one is processed."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

Thing = TypeVar("Thing")

_END: Final[Any] = object()


def ahead(things: Generator[Thing]) -> Generator[Thing]:
    """The same things, each asked for in another thread as soon as the one before it is taken.

    One is held, never more. What ``things`` raises is raised where the thing would have been. Closed, it closes
    ``things``.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="binlane-ahead") as pool:
        following = pool.submit(next, things, _END)
        try:
            while (thing := following.result()) is not _END:
                following = pool.submit(next, things, _END)
                yield thing
        finally:
            # a generator that runs cannot be closed
            wait([following])
            things.close()
