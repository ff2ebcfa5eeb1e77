"""Imported by the process that forks lanes behind a local plan job: their machine code, which would be loaded in each
lane otherwise, or only after some blocks."""

from __future__ import annotations

from binlane.binlog.vector import narrow_rows

narrow_rows.load()
