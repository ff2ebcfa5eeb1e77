"""Connections that have ended without a DROP of their temporary tables in the log: with ``sql_log_bin = 0`` in front.

A window cannot end while a temporary table is open, and no window would ever begin behind such a table. A live source
is asked for its connections. Of those that nobody can be asked for (an archive's, those of the source's own source, or
all if the account lacks PROCESS), an operator says in ``source.ended_sessions`` that they have ended. A restart of the
source behind the window has ended them all.
"""

from __future__ import annotations

import contextlib

from binlane.lazy_dataclass import dataclass
from binlane.plan.manifest import Manifest
from binlane.plan.transaction.temporary_tables import Session
from binlane.source.identity import Start
from binlane.source.older_sessions import restarts_behind
from binlane.source.protocol import EventSource
from binlane.source.proved import proved
from binlane.source.temporary import TemporaryTracker


@dataclass(frozen=True, slots=True)
class LostSessions:
    """Connections that have ended without a DROP in the log."""

    sessions: frozenset[Session] = frozenset()
    by_source: frozenset[Session] = frozenset()
    """Those of which the source says it: its list of connections, or a restart in its log. Of the others an operator
    does, who takes it back by taking the entry out."""


def lost_sessions(source: EventSource, manifest: Manifest, tracker: TemporaryTracker) -> LostSessions:
    """The connections whose tables are open at the window's end and for ever: they have ended, and the log behind the
    window has neither their DROP nor a statement that uses them. Raises SourceError, as reading the log does."""
    named, unlisted, there = tracker.named_ends(), frozenset[Session](), source.open_sessions()
    if there is not None:
        own, newest = {server_id for server_id, _ in there}, source.newest_session()
        # a higher number was set (pseudo_thread_id): nobody can tell whether that connection is there
        unlisted = frozenset(each for each in tracker.owners() if each[0] in own and each[1] <= newest) - there
        named -= there
    if not named and not unlisted and not restarts_behind(source, manifest.end):
        return LostSessions()
    # a connection's DROP is logged before it leaves the list of connections
    behind = read_behind(source, manifest, tracker)
    if behind.lost is not None:
        lost = tracker.owners() & behind.lost
        return LostSessions(lost, lost)
    unused = behind.owners() - behind.users
    return LostSessions((named | unlisted) & unused, unlisted & unused)


def read_behind(source: EventSource, manifest: Manifest, tracker: TemporaryTracker) -> TemporaryTracker:
    """What the tracker of a window's reading becomes if it is given the log behind the window, too, up to a restart of
    the source, which numbers its connections anew."""
    behind = tracker.copied()
    start = Start(0, manifest.end, manifest.gtid_set, manifest.end_time, manifest.identity, manifest.fingerprint)
    with contextlib.closing(proved(source, start, behind)) as chunks:
        for _ in chunks:
            if behind.lost is not None:
                break
    return behind
