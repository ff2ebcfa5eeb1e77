"""How far the filter job of a window is, by the files that it has written: the same for every engine."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from binlane.choices import Reduce
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs


@dataclass(frozen=True, slots=True)
class FilterProgress:
    """Segments of a window in the filter job."""

    segments: int
    is_scanned: bool
    """All segments are scanned; before that none is built."""
    built: int
    """Segments with a lane file, the one that is being written left out."""

    @property
    def share(self) -> float:
        """Of the whole job, from 0 to 1: each segment is scanned, then built."""
        return (self.segments * self.is_scanned + self.built) / (2 * self.segments) if self.segments else 0.0


def filter_progress(work: WorkFolder) -> FilterProgress:
    """The job on the window's folder. Raises PlanError if the folder has no inputs, OSError if it cannot be read."""
    inputs = read_inputs(work)
    plans, segments = work.child(inputs.key), len(inputs.manifest.segments)
    if not plans.exists(files.CONTEXT):
        return FilterProgress(segments, is_scanned=False, built=0)
    place = plans.child("parts" if inputs.settings.reduce == Reduce.WINDOW else "lanes")
    built = {posixpath.basename(name) for lane in place.children() for name in place.child(lane).names()}
    return FilterProgress(segments, is_scanned=True, built=len({name for name in built if name.endswith(".parquet")}))
