"""A segment's bytes: read into memory, or, of a large one, mapped from a local file with few pages resident at a time.

Others may be able to write to the work folder. What was read or fetched cannot be changed behind the comparison of its
digest; a large file of a folder of this machine can.

Mapped pages count as a process's memory until they are dropped, although the kernel could reclaim them at any time;
container and cluster managers kill processes for them. A segment of one huge transaction may be larger than the
machine's memory.
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
"""Files of at least this many bytes have their pages dropped while they are read. An ordinary segment has half."""
_INTERVAL: Final = 0.05
"""Seconds between two drops: about 100 MB at the speed of the fastest kernel."""


@contextlib.contextmanager
def mapped(folder: WorkFolder, name: str, large: int = LARGE) -> Iterator[memoryview]:
    """The file's bytes. A large remote file is first fetched into a temporary file.

    Raises PlanError if the file is missing.
    """
    size = folder.size(name)
    if size < large:
        with folder.open(name) as content:
            # one that has grown since is not the window's
            yield memoryview(content.read(size))
        return
    with contextlib.ExitStack() as stack:
        if folder.is_local:
            path = Path(folder.path(name))
        else:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binlane-"))) / "segment"
            folder.fetch(name, path)
        with folder.open(name) if folder.is_local else path.open("rb") as file:
            # closed when the last reference is gone: an error's traceback may still hold one
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(pages) >= large:
            stack.enter_context(_dropping(pages))
        yield memoryview(pages)


@contextlib.contextmanager
def _dropping(pages: mmap.mmap) -> Iterator[None]:
    """Drop all pages at intervals; a reader gets them back from the file or from the kernel's cache of it."""
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
