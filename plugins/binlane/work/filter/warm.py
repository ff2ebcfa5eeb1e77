"""Imported by processes that fork the filter's workers: everything a task needs, machine code included.

A forked worker is at work in a quarter of a second; one that begins with nothing takes one and a half, for imports and
for numba's own start.
"""

from __future__ import annotations

from binlane.binlog.vector import frames
from binlane.work.filter import tasks  # noqa: F401 -- for its import

# numba starts with the first kernel that is loaded, not with its import
frames.frame(b"", 0, 0)
