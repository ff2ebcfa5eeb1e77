"""Connections that have ended without a DROP of their temporary tables in the log: with ``sql_log_bin = 0`` in front.

A window cannot end while a temporary table is open, and no window would ever begin behind such a table.
"""

from __future__ import annotations

import contextlib

from binlane.plan.manifest import Manifest
from binlane.plan.transaction.temporary_tables import Session
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.proved import proved
from binlane.source.temporary import TemporaryTracker


def lost_sessions(source: EventSource, manifest: Manifest, tracker: TemporaryTracker) -> frozenset[Session]:
    """The connections whose tables are open at the window's end and for ever: the source's server has them no more, and
    the log behind the window has no DROP. Raises SourceError, as reading the log does."""
    there = source.open_sessions()
    if there is None:
        return frozenset()
    own = {server_id for server_id, _ in there}
    ended = frozenset(each for each in tracker.owners() if each not in there and each[0] in own)
    if not ended:
        return ended
    # a connection's DROP is logged before it leaves the list of connections
    behind = tracker.copied()
    start = Start(0, manifest.end, manifest.gtid_set, manifest.end_time, manifest.identity, manifest.fingerprint)
    with contextlib.closing(proved(source, start, behind)) as chunks:
        for _ in chunks:
            pass
    return ended & behind.owners()
