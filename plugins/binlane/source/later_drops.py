"""DROPs behind a window's end of temporary tables that connections older than the channel may use in the window."""

from __future__ import annotations

from dataclasses import replace

from binlane.plan.manifest import Manifest, TemporaryDrop
from binlane.source.lost_sessions import read_behind
from binlane.source.protocol import EventSource
from binlane.source.temporary import TemporaryTracker


def with_later_drops(source: EventSource, manifest: Manifest, tracker: TemporaryTracker) -> Manifest:
    """The window with what the log has behind its end. Raises SourceError, as reading the log does."""
    older = read_behind(source, manifest, tracker).older
    drops = (TemporaryDrop(*session, key) for session, key in sorted(older.dropped or (), key=str))
    return replace(manifest, later_drops=tuple(drops), waits_for_drops=older.waits)
