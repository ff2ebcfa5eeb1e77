"""Names that connections older than the channel use in a window, and that no permanent table of the source has.

What such a statement changes is a temporary table then (``plan.transaction.unseen_tables``). That the target has no
table of the name proves nothing: it may have lost one.
"""

from __future__ import annotations

from dataclasses import replace

from binlane.plan.manifest import Manifest
from binlane.source.ddl_after import untouched_behind
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.temporary import TemporaryTracker


def with_absent_tables(source: EventSource, manifest: Manifest, tracker: TemporaryTracker) -> Manifest:
    """The window with what the source says of these names. Raises SourceError, BinlogError, as reading the log does."""
    absent = source.missing_tables(tracker.older.names)
    if absent:
        # one that was dropped before the server was asked is in the log by now
        start = Start(0, manifest.end, manifest.gtid_set, manifest.end_time, manifest.identity, manifest.fingerprint)
        absent = untouched_behind(source, start, absent)
    return replace(manifest, absent=tuple(sorted(absent, key=str)))
