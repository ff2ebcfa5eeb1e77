"""Where the session's servers keep their data: in memory, if there is enough of it.

A DDL waits for a disk several times, and these waits are most of what small tests take; they cost the servers two to
four times the CPU, too. Nothing of a shared server outlives its session, so nothing has to be on a disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

MEMORY: Final = Path("/dev/shm")
LEFT: Final = 8 << 30
"""Bytes of memory that are left to processes; a server's data begin with 0.2 GB."""
_PREFIX: Final = "binlane-tests-"
_LOCK: Final = "lock"


def has_memory(memory: Path = MEMORY, left: int = LEFT) -> bool:
    """Whether one more server may keep its data in memory."""
    return memory.is_dir() and min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) > left


@contextlib.contextmanager
def memory_folder(memory: Path = MEMORY) -> Iterator[Path]:
    """A folder in memory, removed at the end. Those of sessions that were killed are removed now: they hold memory."""
    for left in memory.glob(f"{_PREFIX}*"):
        # locked by its session, or another user's
        with contextlib.suppress(OSError), (left / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    # it has another name until it is locked
    made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=memory))
    with (made / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = made.rename(memory / made.name.removeprefix("."))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
