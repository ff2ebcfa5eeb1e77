"""The process from which this machine's workers are forked: those of a local plan job, and the lanes behind it.

A program has one such server for its whole life. ``begin_fork_server`` starts it as an interpreter of its own, which
imports what the workers need: safe from any program. A command that has imported the same modules forks it from itself
instead, by ``fork_server_here``: no module is imported twice.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import connection, forkserver, get_context, resource_tracker, util
from typing import Any, Final

from binlane.blas_threads import one_blas_thread
from binlane.garbage import kept_imports
from binlane.safe_path import safe_path

PLANNING: Final = ("binlane.work.plan_job.job",)
LANES: Final = ("binlane.orchestration.lane_processes", "binlane.apply.lane.runner")
WORKERS: Final = (*PLANNING, "binlane.work.plan_job.early_scans", "binlane.restore.indexing", *LANES)
"""The modules of all workers, by name, because the server alone imports them. Whoever starts the server first, workers
of other kinds are forked from it later: a lane whose modules it lacks takes half a second of a core to import them, in
each window again."""
_STDERR: Final = 2
_SERVER: Final[Any] = forkserver._forkserver
"""multiprocessing's own record of the server; it has no public way to say that there is one already."""


def begin_fork_server(*others: str) -> None:
    """Start the server, if there is none, without waiting for its imports: half a second of a core, which a window that
    is being extracted does not miss. It imports ``WORKERS``. ``others``: modules that it imports, too."""
    get_context("forkserver").set_forkserver_preload([*WORKERS, *others])
    with _interrupts_ignored(), one_blas_thread(), safe_path():
        forkserver.ensure_running()


def fork_server_here(*preload: str, shared: Sequence[str] = ()) -> None:
    """Fork the server from this process, if there is none yet, with every module that this process has imported.

    ``shared``: modules that this process imports first, because it needs them, too. ``preload``: modules that the
    server imports by itself, meanwhile. The server would inherit connections and the locks of other threads: a program
    that has any gets a server by ``begin_fork_server`` instead.
    """
    if _SERVER._forkserver_pid is not None or threading.active_count() > 1 or _has_sockets():
        begin_fork_server(*shared, *preload)
        return
    # for a server that takes the place of this one
    get_context("forkserver").set_forkserver_preload([*WORKERS, *shared, *preload])
    with kept_imports():
        for module in shared:
            import_module(module)
    with _interrupts_ignored(), socket.socket(socket.AF_UNIX) as listener:
        with safe_path():
            resource_tracker.ensure_running()
        address = connection.arbitrary_address("AF_UNIX")  # type: ignore[attr-defined]
        listener.bind(address)
        if not util.is_abstract_socket_namespace(address):
            os.chmod(address, 0o600)  # noqa: PTH101 -- as multiprocessing does
        listener.listen()
        # every client has the write end; when all have ended, the read end shows it
        alive_read, alive_write = os.pipe()
        # or both would write what is in the buffers
        util._flush_std_streams()  # type: ignore[attr-defined]
        pid = os.fork()
        if pid == 0:
            os.close(alive_write)
            _serve(listener.detach(), alive_read, preload)
        os.close(alive_read)
    _SERVER._forkserver_address, _SERVER._forkserver_alive_fd = address, alive_write
    _SERVER._forkserver_pid = pid


def _has_sockets() -> bool:
    """Whether this process has a socket besides its input and output; True where the system does not tell."""
    try:
        open_files = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 -- of numbers
    except OSError:
        return True
    return any(_is_socket(number) for number in open_files if number > _STDERR)


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        # that of the listing itself is closed
        return False


def _serve(listener: int, alive_read: int, preload: tuple[str, ...]) -> None:
    """The server's life; ends its process."""
    code = 1
    try:
        for number in signal.valid_signals():
            # the command's handlers are not the workers'
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        with kept_imports():
            for module in preload:
                import_module(module)
        forkserver.main(listener, alive_read, [])
    except SystemExit:
        code = 0
    finally:
        # what the command would do at its end, such as removing temporary folders, is the command's
        os._exit(code)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ctrl-C while the server imports would print its own traceback beside the command's one line."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, heard)
