"""Reads ahead: the next item is read while the last one is processed."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

Item = TypeVar("Item")

_END: Final[Any] = object()


def ahead(items: Generator[Item]) -> Generator[Item]:
    """The same items; each is requested in another thread as soon as the one before it is taken.

    At most one item is held. An error of ``items`` is raised in the place of its item. Closing the result closes
    ``items``.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="binlane-ahead") as pool:
        following = pool.submit(next, items, _END)
        try:
            while (item := following.result()) is not _END:
                following = pool.submit(next, items, _END)
                yield item
        finally:
            # a running generator cannot be closed
            wait([following])
            items.close()
