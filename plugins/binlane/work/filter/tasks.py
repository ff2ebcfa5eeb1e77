"""The tasks of the filter job's workers, for one segment or lane each; ``job`` runs the workers.

A worker imports this module and nothing that only the driver needs: it must start in less than a second.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence

from binlane.choices import Reduce
from binlane.plan.barriers import LaneEdges
from binlane.plan.segment.lane_writer import LaneSink
from binlane.plan.segment.map import map_segment, scan_segment
from binlane.plan.window.reduce import LaneFolder
from binlane.plan.window_plan import LaneFile
from binlane.work.files import WorkFolder
from binlane.work.filter.folded_files import fold_files
from binlane.work.lane_files import LaneFileWriter
from binlane.work.plan_inputs import check_content, inputs_of, read_routing, segment_bytes


def scan_task(uri: str, key: str, name: str) -> bytes:
    """Scan one segment of the window in folder ``uri``; returns its ScanSummary, pickled."""
    inputs = inputs_of(uri, key)
    segment = inputs.segment(name)
    with segment_bytes(WorkFolder(uri), segment) as data:
        check_content(uri, segment, data)
        return pickle.dumps(scan_segment(data, segment, inputs.settings, inputs.is_critical))


def map_task(uri: str, key: str, name: str) -> bytes:
    """Write one segment's lane files; returns its MapSummary, pickled."""
    inputs, folder = inputs_of(uri, key), WorkFolder(uri)
    segment = inputs.segment(name)
    ordinal = inputs.manifest.segments.index(segment)
    place = "parts" if inputs.settings.reduce == Reduce.WINDOW else "lanes"

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
    """Fold one lane's ``parts`` into its files, across segments; returns its FoldedLane, pickled."""
    inputs, routing = inputs_of(uri, key), read_routing(uri, key)
    reducer = inputs.reducer(routing)
    assert reducer is not None
    edges = LaneEdges(routing.by_lane[int(lane)])
    folding = LaneFolder(reducer, inputs.settings.limits, inputs.settings.window_bytes, edges.stretch)
    return pickle.dumps(fold_files(WorkFolder(uri).child(key), int(lane), parts[lane], folding))
