"""Dumps that have come into a source past its log, and whether one of them is still being loaded.

A dump's head sets ``gtid_purged`` (or ``gtid_slave_pos``) long before its last row is there, and what it loads with
``sql_log_bin = 0`` is in no window. So who takes all transactions of the source for had asks here.
"""

from __future__ import annotations

from dataclasses import replace

from binlane.errors import MissingLogError, PrecheckError
from binlane.model import LogPosition
from binlane.source.gtid_set import joined, set_of_head
from binlane.source.identity import OF_UNLOGGED, Start, lost_gtids
from binlane.source.protocol import EventSource, LogState
from binlane.source.start_position import head_of, logged_start


def loaded_dumps(source: EventSource, state: LogState) -> str:
    """The GTIDs of transactions that the source has and no file of its log, not even an older one that was purged.

    Raises PrecheckError if there are some while connections write without the log: rows of theirs may be missing. Only
    MySQL shows these connections, and only to an account that may read ``performance_schema``.
    """
    if not state.unlogged:
        return ""
    head = head_of(source, state.files[0])
    loaded = lost_gtids(state.flavor, state.unlogged, "" if head is None else str(set_of_head(head)))
    writing = source.unlogged_sessions() if loaded else ()
    if writing:
        raise PrecheckError(
            f"{source.name}: expected no connection that writes without the log (sql_log_bin = 0) on a source with "
            f"transactions of a dump, {loaded} ({OF_UNLOGGED[state.flavor]}), found connection "
            f"{', '.join(map(str, writing))}: if the dump is still being loaded, no window will have the rest of its "
            "rows; wait until these connections have ended, or, if the dump was loaded whole, name its transactions "
            "in source.unlogged_gtids of the channel"
        )
    return loaded


def begin_copy(source: EventSource, at: LogPosition, had: str) -> Start:
    """The start of a channel at a copy's snapshot. ``had``: GTIDs that the source had before the snapshot and its log
    does not have. Raises MissingLogError for others."""
    state = source.state()
    found = logged_start(source, state, str(at))
    start = replace(found, gtid_set=joined(state.flavor, found.gtid_set, had)) if had else found
    check_no_dump_since(source, start.gtid_set, state)
    return start


def check_no_dump_since(source: EventSource, gtids: str, state: LogState | None = None) -> None:
    """Raises MissingLogError if the source, whose copy has ``gtids``, has got transactions past its log since.
    ``state``: the source's, if it was asked."""
    state = source.state() if state is None else state
    lost = lost_gtids(state.flavor, state.unlogged, gtids)
    if lost:
        raise MissingLogError(
            f"{source.name}: expected no transactions past the source's log while its tables are copied, found {lost} "
            f"({OF_UNLOGGED[state.flavor]}): a dump was loaded, or files of the log were purged; its rows may be in no "
            "table of the copy, and will be in no window; run the command again when the load has ended: all tables "
            "are copied anew"
        )
