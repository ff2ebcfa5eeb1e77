"""A segment's bytes, mapped into memory from a file of this machine, with few pages resident at a time.

Mapped pages count as a process's memory until they are dropped, though the system could take them back at any time:
container and cluster managers kill for them. A segment of one huge transaction may be larger than the machine's memory.
"""

from __future__ import annotations

import contextlib
import mmap
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.work.files import WorkFolder

LARGE: Final = 128 << 20
"""Bytes from which on pages are dropped behind the reader. An ordinary segment has half of it."""
_INTERVAL: Final = 0.05
"""Seconds between two drops: at the speed of the fastest kernel about 100 MB."""


@contextlib.contextmanager
def mapped(folder: WorkFolder, name: str, large: int = LARGE) -> Iterator[memoryview]:
    """The file's bytes. One that is not of this machine is fetched into a temporary file first.

    Raises PlanError if it is not there.
    """
    with contextlib.ExitStack() as stack:
        if folder.is_local:
            path = Path(folder.path(name))
        else:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binlane-"))) / "segment"
            folder.fetch(name, path)
        with path.open("rb") as file:
            # closed when nothing refers to it any more: an error's traceback may still do
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(pages) >= large:
            stack.enter_context(_dropping(pages))
        yield memoryview(pages)


@contextlib.contextmanager
def _dropping(pages: mmap.mmap) -> Iterator[None]:
    """Drop all pages again and again; who reads them gets them back from the file, or the system's cache of it."""
    ended = threading.Event()

    def drop() -> None:
        while not ended.wait(_INTERVAL):
            pages.madvise(mmap.MADV_DONTNEED)

    thread = threading.Thread(target=drop, name="binlane-pages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
