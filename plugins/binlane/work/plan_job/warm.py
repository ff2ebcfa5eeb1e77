"""Imported by the process that forks the plan job's workers: all that a task needs, including machine code.

A forked worker starts in a quarter of a second; a worker without this import takes one and a half, for imports and
numba's own start.
"""

from __future__ import annotations

from binlane.binlog.vector import frames
from binlane.work.plan_job import tasks  # noqa: F401 -- for its import

# what all machine code needs is made when the first kernel is loaded, not when numba is imported
frames.frame(b"", 0, 0)
