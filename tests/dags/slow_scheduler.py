"""Airflow's own scheduler, which stops at one place of its code until it is told to go on.

Between what it has read and what it then writes, a person can mark a run: with SQLite, Airflow locks no rows, and what
it writes last stays. Arguments: the place, the folder of the files ``held`` and ``go``, then those of ``airflow``.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from airflow.__main__ import main
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from sqlalchemy import select
from sqlalchemy.orm import Session

place, folder = sys.argv.pop(1), Path(sys.argv.pop(1))


@functools.cache
def hold() -> None:
    """Wait once: this scheduler goes on in later tests, in which the folder may be gone."""
    (folder / "held").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)


def is_second_try(tasks: Collection[Any]) -> bool:
    return any(task.task_id == "apply_lane" and task.try_number > 1 for task in tasks)


def before_queueing(original: Callable[..., Any]) -> Callable[..., Any]:
    def filter_for_tis(tasks: Collection[Any]) -> Any:
        if sys._getframe(1).f_code.co_name == "_executable_task_instances_to_queued" and is_second_try(tasks):
            hold()
        return original(tasks)

    return filter_for_tis


def before_judging(original: Callable[..., Any]) -> Callable[..., Any]:
    def update_state(run: DagRun, *, session: Session, **arguments: Any) -> Any:
        tries = select(TaskInstance.task_id, TaskInstance.try_number).where(TaskInstance.run_id == run.run_id)
        if is_second_try(session.execute(tries).all()):
            hold()
        return original(run, session=session, **arguments)

    return update_state


if place == "queueing":
    TaskInstance.filter_for_tis = staticmethod(before_queueing(TaskInstance.filter_for_tis))  # type: ignore[method-assign]
else:
    DagRun.update_state = before_judging(DagRun.update_state)  # type: ignore[method-assign]
main()  # type: ignore[no-untyped-call]
