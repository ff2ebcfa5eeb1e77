"""The plan job without its engine: scan every segment, fold, map every segment, write plan.json. With ``reduce =
"window"`` a third run, over lanes, folds the files that the second has written.

An engine runs one function over names, anywhere, in any order, as often as it likes: Spark executors, a pool of local
processes, or this process. The function reads and writes only the window's folder, and equal input gives equal bytes,
so retries and speculative tasks are harmless. A result is a small row for each segment: payloads stay in the worker.

A task of an engine has a batch of names: one segment of the usual size, or several small ones, which would cost more to
hand out than to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from typing import Final, Protocol

from binlane.choices import Reduce
from binlane.errors import ExecutorsLostError
from binlane.formats import OF_PLAN
from binlane.garbage import uncollected
from binlane.plan.manifest import Segment
from binlane.plan.segment.map import MapSummary, ScanSummary
from binlane.plan.settings import PlanSettings
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.merge import make_plan, merge_window
from binlane.plan.window.reduce import FoldedLane
from binlane.plan.window_plan import WindowPlan
from binlane.work import files
from binlane.work.files import WorkFolder, room_needed
from binlane.work.folder_formats import write_formats
from binlane.work.plan_inputs import WorkerInputs, read_inputs
from binlane.work.plan_job.fork_server import begin_fork_server
from binlane.work.plan_job.made import note_made
from binlane.work.plan_job.processes import ForkedProcesses, end_with_parent
from binlane.work.plan_job.tasks import fold_task, map_task, scan_task
from binlane.work.plan_job.wire import from_wire

Task = Callable[[str], bytes]
Scanned = Callable[[PlanSettings], Mapping[Segment, bytes]]
"""Rows of ``scan_task`` that are there already, by their segments, for a window of these settings."""
_BATCH_BYTES: Final = 64 << 20
"""A batch of several segments is no larger than a segment of the usual size."""
_BATCHES: Final = 256
"""Small segments are batched only so far that a window still has about as many batches: enough for that many cores."""
MOST_BATCHES: Final = 1024
"""Batches that an engine hands out at once: it holds their results, and no more of them in a longer window. Only a
window of more than 64 GB has more."""


class Engine(Protocol):
    """Runs a task over names; the order of the results is that of the names."""

    def run(self, stage: str, task: Task, batches: Sequence[Sequence[str]]) -> Iterable[bytes]:
        """Call ``task`` once or more for every name and return one result for each; a worker takes a batch at a time.

        ``stage``: what the tasks do, for the engine's own display.
        """

    def close(self) -> None:
        """Stop the workers at the job's end. The engine can be used again."""


class InProcess:
    """Runs the tasks in this process, one after another."""

    def run(self, stage: str, task: Task, batches: Sequence[Sequence[str]]) -> Iterator[bytes]:
        """Call the task for each name in turn."""
        return (task(name) for batch in batches for name in batch)

    def close(self) -> None:
        """See Engine."""


class LocalProcesses:
    """A pool of processes on this machine, without a JVM: for rolling a backup forward on one machine.

    They are forked from the fork server, which a process has for its whole life.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._context = ForkedProcesses()

    def run(self, stage: str, task: Task, batches: Sequence[Sequence[str]]) -> Iterator[bytes]:
        """Spread the batches over the pool; one process or one batch needs no pool. Raises ExecutorsLostError if a
        process is gone."""
        if self._processes == 1 or len(batches) < 2:
            yield from InProcess().run(stage, task, batches)
            return
        if self._pool is None:
            begin_fork_server()
            self._context = ForkedProcesses()
            # the job's next run uses the same pool
            self._pool = ProcessPoolExecutor(self._processes, mp_context=self._context, initializer=end_with_parent)
        try:
            for first in range(0, len(batches), MOST_BATCHES):
                part = batches[first : first + MOST_BATCHES]
                results = self._pool.map(partial(_in_turn, task), part)
                self._context.watch(self._pool)
                yield from chain.from_iterable(results)
        except (KeyboardInterrupt, SystemExit):
            # the pool would wait for the batches that are at work
            self._context.end()
            raise
        except BrokenProcessPool as exc:
            self.close()
            raise ExecutorsLostError(
                f"a process of the plan job {self._context.how_ended}; this step writes nothing to the target: run it "
                "again, if memory was the cause with smaller segments.bytes, behind removing the window's "
                "folder, which is then read anew"
            ) from exc

    def close(self) -> None:
        """See Engine."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _in_turn(task: Task, batch: Sequence[str]) -> list[bytes]:
    return [task(name) for name in batch]


def batches_of(segments: Sequence[Segment]) -> list[list[str]]:
    """The names of the segments in their order, in batches for one task each."""
    limit = min(_BATCH_BYTES, sum(segment.bytes for segment in segments) // _BATCHES)
    batches, size = list[list[str]](), 0
    for segment in segments:
        if not batches or size + segment.bytes > limit:
            batches.append([])
            size = 0
        batches[-1].append(segment.name)
        size += segment.bytes
    return batches


def run_plan_job(folder: WorkFolder, engine: Engine, scanned: Scanned | None = None) -> WindowPlan:
    """Plan the window whose manifest, settings and schema are in ``folder``; the plan's files go to a folder below it.

    A second run with the same input writes the same files. Raises BinlogError for anything in the log that cannot be
    applied exactly, ConfigError for the shard list, PlanError if files of the window are missing or changed, WorkError
    if the disk is full.
    """
    try:
        with room_needed(folder.uri):
            return _planned(folder, engine, scanned)
    finally:
        engine.close()


@uncollected()
def _planned(folder: WorkFolder, engine: Engine, scanned: Scanned | None) -> WindowPlan:
    inputs = read_inputs(folder)
    plans = folder.plans(inputs.key)
    write_formats(plans, OF_PLAN, last=files.PLAN)
    segments = inputs.manifest.segments
    early = {} if scanned is None else scanned(inputs.settings)
    names = (*segments, *inputs.manifest.carried)
    others = engine.run(
        "scan", partial(scan_task, folder.uri, inputs.key), batches_of([each for each in names if each not in early])
    )
    rest = iter(others)
    scans = (from_wire(ScanSummary, early[each] if each in early else next(rest)) for each in names)
    routing, of_one_kind = merge_window(
        inputs.manifest, islice(scans, len(segments)), inputs.settings, inputs.schema, scans
    )
    context = routing.to_json()
    plans.write_once(files.CONTEXT, context)
    planning = WorkerInputs.of(folder, inputs.key, context)
    mapped = engine.run("map", partial(map_task, planning), batches_of(segments))
    window = MappedWindow.of(from_wire(MapSummary, row) for row in mapped)
    folded = None
    if inputs.settings.chosen(routing.size).reduce == Reduce.WINDOW:
        parts = {str(lane): window.files[lane] for lane in sorted(window.files)}
        task = partial(fold_task, planning, parts)
        folded = [from_wire(FoldedLane, row) for row in engine.run("fold", task, [[lane] for lane in parts])]
    known = inputs.schema.tables
    unsealed = make_plan(inputs.manifest, routing, window, folded, inputs.settings.renaming, known, of_one_kind)
    plan, data = unsealed.sealed()
    # before the plan, whose presence says that everything is there
    activity = window.activity.to_json()
    plans.write_once(files.DATABASES, activity)
    plans.write_once(files.PLAN, data)
    note_made(folder, plans, inputs.digests, {files.CONTEXT: context, files.DATABASES: activity, files.PLAN: data})
    return plan
