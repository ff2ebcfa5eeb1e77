"""The tasks of the plan job's workers, for one segment or lane each; ``job`` runs the workers.

A worker imports this module and nothing that only the driver needs: it must start in less than a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from binlane.choices import Reduce
from binlane.garbage import uncollected
from binlane.plan.barriers import LaneEdges
from binlane.plan.segment.lane_writer import LaneSink
from binlane.plan.segment.map import MapSummary, ScanSummary, map_segment, scan_segment
from binlane.plan.window.reduce import FoldedLane, LaneFolder
from binlane.plan.window_plan import LaneFile
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneFileWriter
from binlane.work.plan_inputs import (
    WorkerInputs,
    bound_of,
    chains_of,
    inputs_of,
    modes_of,
    reducer_of,
    routing_of,
    segment_bytes,
)
from binlane.work.plan_job.folded_files import fold_files
from binlane.work.plan_job.wire import to_wire

RESULTS: Final[Mapping[str, type]] = {"scan": ScanSummary, "map": MapSummary, "fold": FoldedLane}
"""What the tasks of a stage return, in the form of ``wire``."""


@uncollected()
def scan_task(uri: str, key: str, name: str) -> bytes:
    """Scan one segment of the window in folder ``uri``; returns its ScanSummary for the driver."""
    inputs = inputs_of(uri, key)
    segment = inputs.segment(name)
    with segment_bytes(WorkFolder.of_window(uri), segment) as data:
        return to_wire(ScanSummary, scan_segment(data, segment, inputs.settings, inputs.is_critical))


@uncollected()
def map_task(planning: WorkerInputs, name: str) -> bytes:
    """Write one segment's lane files; returns its MapSummary for the driver."""
    inputs, folder = inputs_of(planning.uri, planning.key), WorkFolder.of_window(planning.uri)
    segment = inputs.segment(name)
    ordinal = inputs.ordinal(name)
    routing = routing_of(planning)
    settings = inputs.settings.chosen(routing.size)
    place = "parts" if settings.reduce == Reduce.WINDOW else "lanes"

    writers: list[LaneFileWriter] = []

    def sink(lane: int, format_event: bytes) -> LaneSink:
        writers.append(LaneFileWriter(planning.plans, f"{place}/{lane:04d}/{ordinal:06d}.parquet", format_event))
        return writers[-1]

    with segment_bytes(folder, segment) as data:
        try:
            groups = inputs.groups(folder, routing, segment, data)
            tables = modes_of(planning), bound_of(planning), chains_of(planning)
            mapped = map_segment(data, segment, routing, settings, sink, reducer_of(planning), groups, *tables)
            return to_wire(MapSummary, mapped)
        except BaseException as exc:
            for writer in writers:
                writer.abandon(exc)
            raise


@uncollected()
def fold_task(planning: WorkerInputs, parts: Mapping[str, Sequence[LaneFile]], lane: str) -> bytes:
    """Fold one lane's ``parts`` into its files, across segments; returns its FoldedLane for the driver."""
    inputs, routing = inputs_of(planning.uri, planning.key), routing_of(planning)
    reducer = reducer_of(planning)
    assert reducer is not None
    edges = LaneEdges(routing.by_lane[int(lane)])
    settings = inputs.settings.chosen(routing.size)
    limits = replace(settings.limits, bound=bound_of(planning), chains=chains_of(planning))
    folding = LaneFolder(reducer, limits, settings.window_bytes, edges.stretch)
    return to_wire(FoldedLane, fold_files(planning.plans, int(lane), parts[lane], folding))
