"""Imported by the process that forks the plan job's workers of a command, while the log is being read: the machine code
that a window of plain rows needs, which each worker would load at its first segment otherwise.

Only what is cached: other code is compiled when it is needed, not before.
"""

from __future__ import annotations

from binlane.binlog.vector import fold_rows, frame_kernels, row_events, row_kernels, simple_transactions
from binlane.machine_code import load_cached

load_cached(
    row_kernels.count,
    simple_transactions._find_of_one_database,
    frame_kernels.appearances,
    frame_kernels.strip,
    fold_rows.arrange,
    fold_rows.fold,
    fold_rows.judge,
    fold_rows.places,
    row_events._cut,
    row_events._pack,
    row_events._write,
)
