"""The filter job without its engine: scan every segment, fold, map every segment, write plan.json. With
``reduce = "window"`` a third run, over lanes, folds what the second has written.

An engine runs one function over names, anywhere, in any order, as often as it likes: Spark executors, a pool of local
processes, or this process. What it runs reads and writes only the window's folder, and the same input gives the same
bytes, so retries and speculative tasks are harmless. Results are a small row a segment: no payload leaves the worker.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Protocol

from binlane.binlog.reader import LogReader
from binlane.binlog.wire import Buffer
from binlane.errors import PlanError
from binlane.model import Flavor
from binlane.plan.columnar import map_segment, scan_segment
from binlane.plan.fold import critical_databases, files_of, fold_scans, make_plan
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.reduce import Reducer
from binlane.plan.routing import LaneCursor, Routing
from binlane.plan.schema_json import schema_from_json
from binlane.plan.segment_map import LaneSink
from binlane.plan.settings import REDUCE_OFF, REDUCE_WINDOW, FilterSettings
from binlane.plan.stretches import StretchFolder
from binlane.plan.table_rules import table_rules
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.work import files
from binlane.work.children import end_with_parent
from binlane.work.files import WorkFolder, room_needed
from binlane.work.folded_files import fold_files
from binlane.work.lane_files import LaneFileWriter
from binlane.work.mapped import mapped
from binlane.work.prepared_groups import SegmentGroups

Task = Callable[[str], bytes]


class Engine(Protocol):
    """Runs a task over names; the order of the results is that of the names."""

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """Call ``task`` once or more for every name and return one result for each."""

    def close(self) -> None:
        """The job has ended: keep no workers. It can be run again."""


class InProcess:
    """The plainest engine: one after another, here."""

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """Call the task for each name in turn."""
        return [task(name) for name in names]

    def close(self) -> None:
        """See Engine."""


class LocalProcesses:
    """A pool of processes on this machine: no JVM, for rolling a backup forward on one machine.

    They are forked from a server that has imported ``preload``. A process has one such server for all of its life, so a
    program that forks others later names what those need.
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
            context.set_forkserver_preload([self._preload])
            # kept for the job's next run: a worker needs a second until its machine code is loaded
            self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=end_with_parent)
        return list(self._pool.map(task, names))

    def close(self) -> None:
        """See Engine."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def run_filter(folder: WorkFolder, engine: Engine) -> WindowPlan:
    """Plan the window whose manifest, settings and schema are in ``folder``; the plan's files go to a folder below it.

    Running it again with the same input writes the same files. Raises BinlogError for what the log holds that cannot be
    applied exactly, ConfigError for the shard list, PlanError if files of the window are missing or changed, WorkError
    if they find no room.
    """
    try:
        with room_needed(folder.uri):
            return _planned(folder, engine)
    finally:
        engine.close()


def _planned(folder: WorkFolder, engine: Engine) -> WindowPlan:
    inputs = read_inputs(folder)
    names = [segment.name for segment in inputs.manifest.segments]
    # pickled values of this very program, from its own workers
    carried = [segment.name for segment in inputs.manifest.carried]
    scans = [pickle.loads(row) for row in engine.run(partial(scan_task, folder.uri, inputs.key), [*names, *carried])]
    earlier = scans[len(names) :]
    routing = fold_scans(inputs.manifest, scans[: len(names)], inputs.settings, inputs.schema, earlier)
    plans = folder.child(inputs.key)
    plans.write_once(files.CONTEXT, routing.to_json())
    summaries = [pickle.loads(row) for row in engine.run(partial(map_task, folder.uri, inputs.key), names)]
    folded = None
    if inputs.settings.reduce == REDUCE_WINDOW:
        parts = {str(lane): found for lane in range(routing.lanes + 1) if (found := files_of(lane, summaries))}
        task = partial(fold_task, folder.uri, inputs.key, parts)
        folded = [pickle.loads(row) for row in engine.run(task, list(parts))]
    plan = make_plan(inputs.manifest, routing, summaries, folded, inputs.settings.renaming)
    plans.write_once(files.PLAN, plan.to_json())
    return plan


class Inputs:
    """What a window's plan is made from. ``key`` names the plan's folder: other inputs, other folder."""

    def __init__(self, folder: WorkFolder) -> None:
        data = {name: folder.read(name) for name in (files.MANIFEST, files.CHANNEL, files.SCHEMA)}
        self.manifest = Manifest.from_json(data[files.MANIFEST], f"{folder.uri}/{files.MANIFEST}")
        self.settings = FilterSettings.from_json(data[files.CHANNEL], f"{folder.uri}/{files.CHANNEL}")
        self.schema = schema_from_json(data[files.SCHEMA], f"{folder.uri}/{files.SCHEMA}")
        self.is_critical = critical_databases(self.settings, self.schema)
        self.key = hashlib.sha256(b"\0".join(data.values())).hexdigest()[:16]

    def reducer(self, routing: Routing) -> Reducer | None:
        """What folds blocks; None where the channel replays them as they are."""
        if self.settings.reduce == REDUCE_OFF:
            return None
        rules = table_rules(self.schema, routing.excluded)
        return Reducer(rules, self.settings.payload_bytes, self.settings.largest_bytes)

    def segment(self, name: str) -> Segment:
        """The manifest's entry of a segment file, or of a carried group's."""
        entries = (*self.manifest.segments, *self.manifest.carried)
        return next(segment for segment in entries if segment.name == name)

    def groups(self, folder: WorkFolder, routing: Routing, segment: Segment, data: Buffer) -> SegmentGroups:
        """What the XA COMMITs of a segment commit."""
        log_format = LogReader(data, segment.source_file, verify=False).format
        return SegmentGroups(
            routing,
            log_format,
            Flavor(self.settings.target),
            self.segment,
            partial(segment_bytes, folder),
            self.settings.selection,
            self.settings.renaming,
        )


@lru_cache(maxsize=2)
def _inputs(uri: str, key: str) -> Inputs:
    """The inputs that ``key`` names. Raises PlanError if the folder holds others by now."""
    inputs = Inputs(WorkFolder(uri))
    if inputs.key != key:
        raise PlanError(f"{uri}: expected the inputs {key}, found {inputs.key}: another run has replaced them")
    return inputs


def read_inputs(folder: WorkFolder) -> Inputs:
    """Read manifest, settings and schema afresh."""
    return Inputs(folder)


@lru_cache(maxsize=2)
def read_routing(uri: str, key: str) -> Routing:
    """The window's routes, as the fold has written them."""
    plans = WorkFolder(uri).child(key)
    return Routing.from_json(plans.read(files.CONTEXT), f"{plans.uri}/{files.CONTEXT}")


def scan_task(uri: str, key: str, name: str) -> bytes:
    """Scan one segment of the window in folder ``uri``; returns its ScanSummary, pickled."""
    inputs = _inputs(uri, key)
    segment = inputs.segment(name)
    with segment_bytes(WorkFolder(uri), segment) as data:
        check_content(uri, segment, data)
        return pickle.dumps(scan_segment(data, segment, inputs.settings, inputs.is_critical))


def map_task(uri: str, key: str, name: str) -> bytes:
    """Write one segment's lane files; returns its MapSummary, pickled."""
    inputs, folder = _inputs(uri, key), WorkFolder(uri)
    segment = inputs.segment(name)
    ordinal = inputs.manifest.segments.index(segment)
    place = "parts" if inputs.settings.reduce == REDUCE_WINDOW else "lanes"

    writers: list[LaneFileWriter] = []

    def sink(lane: int, format_event: bytes) -> LaneSink:
        writers.append(LaneFileWriter(folder.child(key), f"{place}/{lane:04d}/{ordinal:06d}.parquet", format_event))
        return writers[-1]

    with segment_bytes(folder, segment) as data:
        try:
            routing = read_routing(uri, key)
            groups = inputs.groups(folder, routing, segment, data)
            return pickle.dumps(
                map_segment(data, segment, routing, inputs.settings, sink, inputs.reducer(routing), groups)
            )
        except BaseException as exc:
            for writer in writers:
                writer.abandon(exc)
            raise


def fold_task(uri: str, key: str, parts: Mapping[str, Sequence[LaneFile]], lane: str) -> bytes:
    """Write one lane's files, folded over segments, of its ``parts``; returns its FoldedLane, pickled."""
    inputs, routing = _inputs(uri, key), read_routing(uri, key)
    reducer = inputs.reducer(routing)
    assert reducer is not None
    cursor = LaneCursor(routing.by_lane[int(lane)])
    folding = StretchFolder(reducer, inputs.settings.limits, inputs.settings.window_bytes, cursor.stretch)
    return pickle.dumps(fold_files(WorkFolder(uri).child(key), int(lane), parts[lane], folding))


@contextmanager
def segment_bytes(folder: WorkFolder, segment: Segment) -> Iterator[Buffer]:
    """A segment's bytes: usually about 64 MB, but as many as its largest transaction has.

    Raises PlanError if it is not the file that the manifest names.
    """
    _check(folder, segment, folder.size(segment.name))
    with mapped(folder, segment.name) as data:
        yield data


def check_content(uri: str, segment: Segment, data: Buffer) -> None:
    """Raises PlanError for a changed segment. The events' own checksums were compared when its digest was taken."""
    found = hashlib.sha256(data).hexdigest()
    if found != segment.sha256:
        raise PlanError(
            f"{uri}/{segment.name}: expected SHA-256 {segment.sha256} by the manifest, found {found}: the file was "
            "changed or damaged; remove the window's folder and run the extract step again: it reads the same"
        )


def _check(folder: WorkFolder, segment: Segment, size: int) -> None:
    if size != segment.bytes:
        raise PlanError(
            f"{folder.uri}/{segment.name}: expected {segment.bytes:,} bytes by the manifest, found {size:,}; "
            "remove the window's folder and run the extract step again: it re-reads the same stretch of the log"
        )
