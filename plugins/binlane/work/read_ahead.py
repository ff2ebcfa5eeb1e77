"""Works ahead: the next items are read, or made, while the last one is processed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

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


def made_ahead(make: Callable[[Item], Made], items: Iterable[Item], threads: int) -> Iterator[Made]:
    """``make`` of each item, in the order of the items; at most ``threads`` results are made or held at a time.

    An error is raised in the place of its item.
    """
    with ThreadPoolExecutor(threads, thread_name_prefix="binlane-ahead") as pool:
        begun = deque[Future[Made]]()
        for item in items:
            begun.append(pool.submit(make, item))
            if len(begun) == threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
