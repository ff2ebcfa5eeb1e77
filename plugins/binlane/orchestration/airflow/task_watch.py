"""Ends a task's process when its run has ended or its supervisor is gone.

Airflow ends a task through its supervisor, when a heartbeat is refused. That does not reach a task whose supervisor was
killed, nor a task that the scheduler queued after a person marked its run: with SQLite (and without row locks) the
scheduler overwrites the mark with the state that it read before, and the heartbeats of that task are accepted. So each
task checks in a thread: is its supervisor still its parent, is its run still running, and are its downstream tasks
still to come?

A task that is to end gets ``on_kill`` first (a lane stops at its next block boundary), then an exception wherever it
waits, then its process group is killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.python import PythonOperator, ShortCircuitOperator
from airflow.sdk import BaseOperator

from binlane.errors import BinlaneError
from binlane.orchestration.airflow.dag_shape import Kind
from binlane.orchestration.airflow.releases import AirflowException, AirflowFailException
from binlane.orchestration.airflow.task_errors import note_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from airflow.sdk import Context

log = logging.getLogger(__name__)

PARENT_SECONDS: Final = 1.0
"""Seconds between two checks of the process's parent."""
RUN_SECONDS: Final = 10.0
"""Seconds between two requests to Airflow."""
GRACE_SECONDS: Final = 15.0
"""Seconds from ``on_kill`` to the exception, and from the exception to the kill."""
_ENDED: Final = ("failed", "success")
_SIGNAL: Final = signal.SIGUSR1


class WatchedTask(BaseOperator):
    """A mixin for tasks that end by themselves; stands before the operator class that does the work."""

    def execute(self, context: Context) -> Any:
        """Run the operator's ``execute`` under a watch. A task ended by the watch fails and is not retried."""
        try:
            return self._execute_watched(context)
        # binlane's own errors are noted where they become Airflow's
        except (AirflowException, BinlaneError):
            raise
        except Exception as exc:
            note_error(context, exc)
            raise

    def _execute_watched(self, context: Context) -> Any:
        if not _has_supervisor():  # `airflow dags test`
            return super().execute(context)
        if (reason := why_ended(context)) is not None:
            raise AirflowFailException(reason)
        with watching(lambda: why_ended(context), self.on_kill) as watch:
            try:
                return super().execute(context)
            except Exception as exc:
                if watch.reason is None:
                    raise
                raise AirflowFailException(watch.reason) from exc


class StepOperator(WatchedTask, PythonOperator):
    """A step in Python."""


class ShortCircuitStepOperator(WatchedTask, ShortCircuitOperator):
    """A step that can skip all downstream tasks."""


class Watch:
    """The watching thread; ``reason`` is set once the task is to end."""

    def __init__(self, ended: Callable[[], str | None], tell: Callable[[], None]) -> None:
        self.reason: str | None = None
        self._ended, self._tell = ended, tell
        self._parent, self._main = os.getppid(), threading.get_ident()
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="binlane-task-watch", daemon=True)

    def start(self) -> None:
        """Start the thread; call from the thread that does the work."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; afterwards nothing is interrupted any more."""
        with self._lock:
            self._done.set()

    def raise_reason(self, _: int, __: FrameType | None) -> None:
        """The signal's handler, in the thread that does the work."""
        raise AirflowFailException(self.reason or "asked to end")

    def _run(self) -> None:
        next_question = time.monotonic() + RUN_SECONDS
        while not self._done.wait(PARENT_SECONDS):
            if os.getppid() != self._parent:
                self.reason = f"the process that supervises this task, pid {self._parent}, is gone"
            elif time.monotonic() >= next_question:
                self.reason = self._ended()
                next_question = time.monotonic() + RUN_SECONDS
            if self.reason is not None:
                self._end()
                return

    def _end(self) -> None:
        # logging writes to the supervisor, which may be gone
        with contextlib.suppress(OSError):
            log.error("%s: this task ends", self.reason)
        # whatever on_kill raises, the task ends by the next means
        with contextlib.suppress(Exception):
            self._tell()
        if self._done.wait(GRACE_SECONDS):
            return
        with self._lock:
            if not self._done.is_set():
                signal.pthread_kill(self._main, _SIGNAL)
        if self._done.wait(GRACE_SECONDS):
            return
        # a task leads its own process group, which has all processes that it started
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def watching(ended: Callable[[], str | None], tell: Callable[[], None]) -> Iterator[Watch]:
    """Watch this process; call from its main thread. ``ended``: the reason to end, or None; ``tell``: begins the
    end."""
    watch = Watch(ended, tell)
    before = signal.signal(_SIGNAL, watch.raise_reason)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
        signal.signal(_SIGNAL, before)


def why_ended(context: Context) -> str | None:
    """Why the task should end; None if its run is active, or Airflow does not answer."""
    run, ti = context["dag_run"], context["ti"]
    try:
        state = ti.get_dagrun_state(run.dag_id, run.run_id)
        if state in _ENDED:
            return f"run {run.run_id} is {state}: it was marked, or its other tasks ended, while this task was running"
        if ti.task_id not in _BEFORE_WATERMARK:
            return None
        following = ti.get_task_states(dag_id=run.dag_id, task_ids=[Kind.ADVANCE.value], run_ids=[run.run_id])
    # then only Airflow's heartbeats decide
    except Exception as exc:
        with contextlib.suppress(OSError):
            log.debug("Airflow did not answer about run %s: %s", run.run_id, exc)
        return None
    if following.get(run.run_id, {}).get(Kind.ADVANCE.value) != "skipped":
        return None
    return (
        f"{Kind.ADVANCE.value} of run {run.run_id} is skipped: the run was marked while this task was running; "
        "clear the task with its downstream tasks, or start another run"
    )


_BEFORE_WATERMARK: Final = frozenset((Kind.FILTER.value, Kind.ADOPT.value, Kind.APPLY.value))


def _has_supervisor() -> bool:
    """Whether this process was forked by a task supervisor."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import CommsDecoder

    return isinstance(getattr(task_runner, "SUPERVISOR_COMMS", None), CommsDecoder)
