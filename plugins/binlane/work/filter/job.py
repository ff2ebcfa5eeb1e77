"""The filter job without its engine: scan every segment, fold, map every segment, write plan.json. With ``reduce =
"window"`` a third run, over lanes, folds the files that the second has written.

An engine runs one function over names, anywhere, in any order, as often as it likes: Spark executors, a pool of local
processes, or this process. The function reads and writes only the window's folder, and equal input gives equal bytes,
so retries and speculative tasks are harmless. A result is a small row for each segment: payloads stay in the worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Final, Protocol

from binlane.choices import Reduce
from binlane.plan.database_activity import whole
from binlane.plan.window.fold import files_of, fold_scans, make_plan
from binlane.plan.window_plan import WindowPlan
from binlane.work import files
from binlane.work.files import WorkFolder, room_needed
from binlane.work.filter.processes import end_with_parent
from binlane.work.filter.tasks import fold_task, map_task, scan_task
from binlane.work.plan_inputs import read_inputs

Task = Callable[[str], bytes]
_WARM: Final = "binlane.work.filter.warm"


class Engine(Protocol):
    """Runs a task over names; the order of the results is that of the names."""

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """Call ``task`` once or more for every name and return one result for each."""

    def close(self) -> None:
        """Stop the workers at the job's end. The engine can be used again."""


class InProcess:
    """Runs the tasks in this process, one after another."""

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """Call the task for each name in turn."""
        return [task(name) for name in names]

    def close(self) -> None:
        """See Engine."""


class LocalProcesses:
    """A pool of processes on this machine, without a JVM: for rolling a backup forward on one machine.

    They are forked from a server that has imported ``warm`` and ``preload``. A process has one such server for its
    whole life, so a program that forks other workers later names their imports, too.
    """

    def __init__(self, processes: int, preload: str = __name__) -> None:
        self._processes, self._preload = processes, preload
        self._pool: ProcessPoolExecutor | None = None

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """Spread the names over the pool; one process or one name needs no pool."""
        if self._processes == 1 or len(names) == 1:
            return InProcess().run(task, names)
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload([self._preload, _WARM])
            # the job's next run uses the same pool
            self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=end_with_parent)
        return list(self._pool.map(task, names))

    def close(self) -> None:
        """See Engine."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def run_filter(folder: WorkFolder, engine: Engine) -> WindowPlan:
    """Plan the window whose manifest, settings and schema are in ``folder``; the plan's files go to a folder below it.

    A second run with the same input writes the same files. Raises BinlogError for anything in the log that cannot be
    applied exactly, ConfigError for the shard list, PlanError if files of the window are missing or changed, WorkError
    if the disk is full.
    """
    try:
        with room_needed(folder.uri):
            return _planned(folder, engine)
    finally:
        engine.close()


def _planned(folder: WorkFolder, engine: Engine) -> WindowPlan:
    inputs = read_inputs(folder)
    names = [segment.name for segment in inputs.manifest.segments]
    # pickled by workers of this same program
    carried = [segment.name for segment in inputs.manifest.carried]
    scans = [pickle.loads(row) for row in engine.run(partial(scan_task, folder.uri, inputs.key), [*names, *carried])]
    earlier = scans[len(names) :]
    routing = fold_scans(inputs.manifest, scans[: len(names)], inputs.settings, inputs.schema, earlier)
    plans = folder.child(inputs.key)
    plans.write_once(files.CONTEXT, routing.to_json())
    summaries = [pickle.loads(row) for row in engine.run(partial(map_task, folder.uri, inputs.key), names)]
    folded = None
    if inputs.settings.reduce == Reduce.WINDOW:
        parts = {str(lane): found for lane in range(routing.lanes + 1) if (found := files_of(lane, summaries))}
        task = partial(fold_task, folder.uri, inputs.key, parts)
        folded = [pickle.loads(row) for row in engine.run(task, list(parts))]
    plan = make_plan(inputs.manifest, routing, summaries, folded, inputs.settings.renaming)
    # before the plan, whose presence says that everything is there
    plans.write_once(files.DATABASES, whole(each.activity.databases for each in summaries).to_json())
    plans.write_once(files.PLAN, plan.to_json())
    return plan
