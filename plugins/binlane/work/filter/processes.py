"""Processes of a pool that end with the process that made them, however that one ends.

A pool's processes hold both ends of the pipe that they wait at, so a parent that was killed by SIGKILL is no end of
file for them: they would finish what they have begun, hours later, and then wait for ever.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.process import BaseProcess


def end_with_parent() -> None:
    """The initializer of a pool's processes. In a process that ``multiprocessing`` has not made nothing happens."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), name="binlane-parent", daemon=True).start()


def _follow(parent: BaseProcess) -> None:
    # waits at a pipe of which the parent alone holds the other end
    parent.join()
    # no clean-up: connections drop, and the target rolls back what was not committed
    os._exit(1)
