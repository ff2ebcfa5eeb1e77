"""A task's process that ends by itself: real processes, which are forked, told, interrupted and killed.

Invariant 8 holds without any of it; this is about tasks that would otherwise run, or wait, for ever.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from binlane.orchestration.airflow import task_watch
from binlane.orchestration.airflow.task_watch import watching, why_ended

TOLD, RAISED, WORKED = 3, 4, 5
"""Exit codes of the forked processes."""


def nothing() -> None:
    """An operator that has no way to end."""


def goes_on() -> None:
    return None


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("PARENT_SECONDS", 0.02), ("RUN_SECONDS", 0.05), ("GRACE_SECONDS", 0.2)):
        monkeypatch.setattr(task_watch, name, seconds)


def ending(task: Callable[[], int]) -> int:
    """The exit code of a process in a group of its own that does the task; minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os._exit(task())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_task_is_told_first_and_can_end_by_itself() -> None:
    def task() -> int:
        told: list[int] = []
        with watching(lambda: "marked", lambda: told.append(TOLD)) as watch:
            while not told:
                time.sleep(0.01)
        # nothing interrupts it any more
        time.sleep(0.6)
        return told[0] if watch.reason == "marked" else 0

    assert ending(task) == TOLD


def test_a_task_that_waits_is_interrupted_wherever_it_waits() -> None:
    def task() -> int:
        reader, _ = os.pipe()
        try:
            with watching(lambda: "marked", nothing):
                os.read(reader, 1)
        except AirflowFailException as exc:
            return RAISED if str(exc) == "marked" else 0
        return 0

    assert ending(task) == RAISED


def test_a_task_that_goes_on_all_the_same_is_killed_with_what_it_has_started() -> None:
    reader, writer = os.pipe()

    def task() -> int:
        if os.fork() == 0:
            time.sleep(30)
        os.close(writer)
        with watching(lambda: "marked", nothing):
            while True:
                try:
                    time.sleep(30)
                except AirflowFailException:
                    continue

    assert ending(task) == -signal.SIGKILL
    os.close(writer)
    # the child has the other end open for as long as it lives
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_task_outlives_its_supervisor_for_moments_only() -> None:
    reader, writer = os.pipe()

    def supervisor() -> int:
        if os.fork() == 0:
            try:
                with watching(goes_on, nothing):
                    os.write(writer, b"up")
                    time.sleep(30)
            except AirflowFailException as exc:
                os.write(writer, str(exc).encode())
            os._exit(0)
        time.sleep(30)
        return 0

    pid = os.fork()
    if pid == 0:
        os._exit(supervisor())
    os.close(writer)
    assert os.read(reader, 100) == b"up"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert os.read(reader, 100).decode() == f"the process that supervises this task, pid {pid}, is gone"
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_task_whose_run_goes_on_is_left_alone() -> None:
    def task() -> int:
        asked: list[None] = []
        with watching(lambda: asked.append(None), lambda: os._exit(TOLD)) as watch:
            time.sleep(0.5)
        return WORKED if asked and watch.reason is None else 0

    assert ending(task) == WORKED


class Asked:
    """What a task asks of Airflow."""

    def __init__(self, task_id: str, run: Any, advance: str | None) -> None:
        self.task_id, self._run, self._advance = task_id, run, advance

    def get_dagrun_state(self, dag_id: str, run_id: str) -> str:
        if isinstance(self._run, Exception):
            raise self._run
        return str(self._run)

    def get_task_states(self, *, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, Any]:
        assert task_ids == ["advance_watermark"]
        return {run_ids[0]: {"advance_watermark": self._advance}}


class Run:
    dag_id, run_id = "replicate_shop", "r1"


@pytest.mark.parametrize(
    ("task_id", "run", "advance", "expected"),
    [
        ("apply_lane", "running", None, None),
        ("apply_lane", "failed", None, "run r1 is failed"),
        ("verify_target", "success", "success", "run r1 is success"),
        ("apply_lane", "running", "skipped", "advance_watermark of run r1 is skipped"),
        ("event_metadata_filter", "running", "skipped", "advance_watermark of run r1 is skipped"),
        # a lane that is cleared alone, and what follows a skipped watermark
        ("apply_lane", "running", "upstream_failed", None),
        ("verify_target", "running", "skipped", None),
        ("apply_lane", RuntimeError("the api-server is gone"), "skipped", None),
    ],
)
def test_a_run_ends_its_tasks_when_it_ends_or_skips_what_they_work_for(
    task_id: str, run: Any, advance: str | None, expected: str | None
) -> None:
    context: Any = {"dag_run": Run, "ti": Asked(task_id, run, advance)}
    found = why_ended(context)
    assert found is None if expected is None else (found or "").startswith(expected)
