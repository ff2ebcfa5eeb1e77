"""How far the plan job of a window is, by the names of the files that it has written: the same for every engine.

No file is read: whoever looks may look every second, and the inputs of a large window are large.
"""

from __future__ import annotations

import re
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.work import files
from binlane.work.files import WorkFolder

_KEY: Final = re.compile(r"[0-9a-f]{16}")
"""The name of a plan's folder."""
_MOST_LANES: Final = 32
"""Lanes whose files are listed. A segment that changes no shard of the first lanes is counted when the job ends."""


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """Segments of a window in the plan job."""

    segments: int
    is_scanned: bool
    """All segments are scanned; before that none is built."""
    built: int
    """Segments with a lane file, the one that is being written left out."""

    @property
    def share(self) -> float:
        """Of the whole job, from 0 to 1: each segment is scanned, then built."""
        return (self.segments * self.is_scanned + self.built) / (2 * self.segments) if self.segments else 0.0


def plan_progress(work: WorkFolder, segments: int) -> PlanProgress | None:
    """The job on the folder of a window with that many segments; None if the folder is not of this machine, or holds
    the plans of several settings. Raises what its file system raises."""
    if not work.exists(files.MANIFEST):
        return None
    keys = [name for name in work.children() if _KEY.fullmatch(name)]
    if len(keys) > 1:
        return None
    if not keys or not (plans := work.child(keys[0])).exists(files.CONTEXT):
        return PlanProgress(segments, is_scanned=False, built=0)
    # with reduce = "window", segments are built as parts of lanes
    place = plans.child("parts" if "parts" in plans.children() else "lanes")
    built = {name for lane in place.children()[:_MOST_LANES] for name in place.child(lane).names()}
    return PlanProgress(segments, is_scanned=True, built=sum(name.endswith(".parquet") for name in built))
