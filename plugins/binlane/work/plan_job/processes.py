"""Makes the processes of a pool end with the process that created them, however it ends; and says how they ended.

A pool's processes hold both ends of the pipe on which they wait, so they see no end of file if their parent is killed
by SIGKILL: they would finish their task, hours later, and then wait for ever.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any, Final

_TERMINATED: Final = -15
"""A pool that has lost a process ends the others so."""
_SERVER_GONE: Final = 255
"""The code of a process whose fork server is gone."""


class ForkedProcesses(ForkServerContext):
    """For one pool, whose processes are forked from the fork server: says why one is gone."""

    def __init__(self) -> None:
        self._begun = list[ForkServerProcess]()

    def Process(self, *args: Any, **options: Any) -> ForkServerProcess:  # type: ignore[override]  # noqa: N802
        """As the class of that name."""
        process = ForkServerProcess(*args, **options)
        self._begun.append(process)
        return process

    @staticmethod
    def watch(pool: ProcessPoolExecutor) -> None:
        """Let a pool that has got its work notice the end of any process: of the one that it has begun last it would do
        so only when something else happens (Python 3.11 to 3.13)."""
        pool.submit(int)

    def end(self) -> None:
        """Ask all processes to end now, whatever they work on."""
        for each in self._begun:
            if each.is_alive():
                each.terminate()

    @property
    def how_ended(self) -> str:
        """What became of the process whose loss has broken the pool, which is shut down."""
        codes = {each.exitcode for each in self._begun} - {None, 0}
        code = next(iter(codes - {_TERMINATED}), _TERMINATED)
        if code is not None and 0 < code < _SERVER_GONE:
            return (
                f"ended with exit code {code}, and has printed why; a script that runs binlane does so below "
                'if __name__ == "__main__":'
            )
        if code == -signal.SIGBUS:
            return (
                "was ended by SIGBUS: a file that it had mapped, such as a segment of 128 MiB or more, was cut while "
                "it was read, or its disk has failed; find out who can write to the work folder"
            )
        return "was killed from outside (kill -9, or out of memory)"


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
