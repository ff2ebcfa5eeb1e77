"""Makes the processes of a pool end with the process that created them, however it ends.

A pool's processes hold both ends of the pipe on which they wait, so they see no end of file if their parent is killed
by SIGKILL: they would finish their task, hours later, and then wait for ever.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from multiprocessing.process import BaseProcess


def end_with_parent() -> None:
    """Initializer of a pool's processes. Does nothing in a process that ``multiprocessing`` has not created."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), name="binlane-parent", daemon=True).start()


def _follow(parent: BaseProcess) -> None:
    # waits on a pipe whose other end only the parent holds
    parent.join()
    # no clean-up: connections drop, and the target rolls back what was not committed
    os._exit(1)
