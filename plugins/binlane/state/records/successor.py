"""The channel that goes on where another one has ended (``binlane init NEW --after OLD``): what of the state it gets.

What is known of the target and of the transactions up to the watermark goes to the successor: nothing else tells it.
What belongs to the former source's log, or to runs and windows that have ended, stays behind. Each table of channels is
in one of the two lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, update

from binlane.errors import PositionError
from binlane.state import tables
from binlane.state.channels import Channel, read_channel
from binlane.state.records.coverage import hand_over_coverage
from binlane.state.windows import forget_unplanned, read_open_window

HANDED_OVER: Final[tuple[Table, ...]] = (
    *(tables.prepared, tables.prepared_chunks),
    # whether one that was skipped can be replayed goes by the repairs behind it
    *(tables.skips, tables.skipped_events, tables.conflicts, tables.repairs),
    # which databases are the channel's: of these alone restores and other channels keep away
    *(tables.databases, tables.bootstraps),
    # rows that are known to differ, among them those of a recopy that has not ended; restores that were not equal
    *(tables.suspects, tables.drills),
)
"""Tables whose rows get the successor's name."""
COVERAGE: Final[tuple[Table, ...]] = (tables.verified, tables.verified_tables, tables.verifications)
"""What verifications have found equal, with the former source; ``hand_over_coverage`` says what is left of it."""
LEFT_BEHIND: Final[Mapping[Table, str]] = {
    tables.channels: "the successor has a row of its own; the former one's is removed",
    tables.windows: "the history of a log that the successor does not read",
    tables.positions: "of a window that is finished",
    tables.splits: "of windows that are finished",
    tables.epochs: "places in the former source's log",
    tables.ddl: "of a window that is finished: none of its DDL is undecided",
    tables.temporary: "of a window that is finished: none ends while a temporary table is open",
    tables.errors: "of windows: none is open any more that they could have stopped",
    tables.kept_inputs: "what the newest plan was made from, to make it again",
    tables.progress: "of a run of the former channel",
    tables.heartbeats: "of a run of the former channel",
    tables.bootstrap_objects: "of a first copy that has no channel yet",
    tables.restores: "a restore ends by itself and has no successor",
}
"""Tables whose rows keep the former channel's name, and why the successor can do without them."""
_CHANGED: Final[Mapping[Table, Mapping[str, Any]]] = {
    # a place in the former source's log would settle rows that are pending
    tables.suspects: {"log_end": None},
    # as the command line: no order of the successor's is answered by it
    tables.bootstraps: {"finished_for": ""},
}


def hand_over(connection: Connection, former: Channel, name: str) -> None:
    """Give a new channel what is known of the target and of the ``former`` one's transactions. The former ends: its row
    is removed, and so is an open window of it that has no plan, of which nothing is on the target.

    The new one begins at the former's watermark and goes on with its seqnos and numbers of windows, so that both name
    the same transactions. Raises PositionError if a window of the former is being applied, or has moved its watermark
    meanwhile.
    """
    now = read_channel(connection, former.name, for_update=True)
    windows = now.windows - forget_unplanned(connection, former.name)
    # a run that has planned the window a moment ago is seen by a locking read alone
    planned = read_open_window(connection, former.name, for_update=True)
    if planned is not None or now.watermark != former.watermark:
        raise PositionError(
            f"channel {former.name}: expected no window that has begun and seqno {former.watermark.seqno:,}, found "
            f"a window that is being applied or has moved the watermark (seqno {now.watermark.seqno:,}); nothing was "
            f"changed: finish it first (`binlane run {former.name}`), or, if that needs the source and it does not "
            "answer any more, load the target anew"
        )
    for table in HANDED_OVER:
        rows = update(table).where(table.c.channel == former.name)
        if table is tables.skips:
            # an order for a later seqno was one about the former source's log
            rows = rows.where(table.c.seqno <= former.watermark.seqno)
        connection.execute(rows.values(channel=name, **_CHANGED.get(table, {})))
    hand_over_coverage(connection, former.name, name, former.watermark.seqno)
    connection.execute(update(tables.channels).where(tables.channels.c.channel == name).values(windows=windows))
    connection.execute(delete(tables.channels).where(tables.channels.c.channel == former.name))
