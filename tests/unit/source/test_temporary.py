"""Where extraction must end a window for temporary tables that are made or dropped in prepared XA transactions."""

from __future__ import annotations

import contextlib
import struct

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Boundaries
from binlane.binlog.wire import EventType
from binlane.errors import PrecheckError
from binlane.model import LogPosition
from binlane.shards.selection import EVERYTHING, Selection
from binlane.source.session_end import SessionEnd
from binlane.source.temporary import TemporaryTracker
from tests.unit.binlog.cases import wire
from tests.unit.plan.logs import bound, ends, prepare, rows, segment_of

MAKE, DROP = "CREATE TEMPORARY TABLE tmp (a INT)", "DROP TEMPORARY TABLE tmp"
OTHER = "CREATE TEMPORARY TABLE other (a INT)"


def prepared(seqno: int, xid: str, *texts: str, one_phase: bool = False) -> tuple[bytes, ...]:
    """The first half of an XA transaction of marked statements, or all of it."""
    name = struct.pack("<BIII", one_phase, 1, len(xid), 0) + xid.encode()
    return (*prepare(seqno, xid, "a")[:1], *bound(seqno, *texts)[1:-1], wire(EventType.XA_PREPARE, name))


def open_since(*log: tuple[bytes, ...], selection: Selection = EVERYTHING) -> int | None:
    """Number of the transaction before which a window of the log ends, from 1; None if it may end behind all."""
    data, segment = segment_of(log)
    reader, tracker = LogReader(data, segment.source_file), TemporaryTracker(selection)
    boundaries, number, begins = Boundaries(reader.format, reader.name), 0, dict[LogPosition, int]()
    before = LogPosition(reader.name, 0)
    for event in reader.events():
        was_outside = boundaries.open_since is None
        boundaries.feed(event)
        if event.header.type_code == EventType.FORMAT_DESCRIPTION:
            continue
        if was_outside:
            number, before = number + 1, LogPosition(reader.name, event.offset)
            begins[before] = number
        tracker.take(event, before, reader.format, reader.name)
    assert number == len(log)
    since = tracker.open_since
    assert since is None or "temporary table" in tracker.text
    return None if since is None else begins[since]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP)], 1, id="dropped"),
        pytest.param([rows(1, "a"), prepared(2, "x", MAKE, DROP)], 2, id="made-and-dropped"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP, OTHER, "DROP TEMPORARY TABLE other")], 1, id="and-others"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP), bound(3, MAKE, thread=9)], 1, id="the-first-of-two"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP), ends(3, "COMMIT", "y")], 1, id="another-ends"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP), ends(3, "COMMIT", "x")], None, id="commit"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP), ends(3, "ROLLBACK", "x")], None, id="rollback"),
        pytest.param([bound(1, MAKE), prepared(2, "x", DROP, one_phase=True)], None, id="one-phase"),
        pytest.param([bound(1, MAKE), bound(2, DROP), prepare(3, "x", "a")], None, id="none-in-it"),
        pytest.param([prepared(1, "x", MAKE), ends(2, "COMMIT", "x")], 1, id="not-dropped"),
        pytest.param([prepared(1, "x", MAKE), ends(2, "COMMIT", "x"), bound(3, DROP)], None, id="dropped-behind"),
    ],
)
def test_a_window_ends_before_the_tables_of_a_transaction_that_has_not_ended(
    log: list[tuple[bytes, ...]], expected: int | None
) -> None:
    assert open_since(*log) == expected


@pytest.mark.parametrize("folds", [False, True])
def test_a_drop_of_another_spelling_drops_the_table_where_the_servers_fold_names(folds: bool) -> None:
    log = bound(1, MAKE), bound(2, "DROP TEMPORARY TABLE IF EXISTS TMP")
    assert open_since(*log, selection=Selection(folds_names=folds)) == (None if folds else 1)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_connection_that_has_ended_is_another_one_behind_a_restart(is_named: bool) -> None:
    data, segment = segment_of([bound(1, "INSERT INTO t SELECT a FROM tmp")])
    reader = LogReader(data, segment.source_file)
    end = SessionEnd((7, 6), LogPosition("binlog.000001", 4), is_named)
    tracker, events = TemporaryTracker(ends=[end]), list(reader.events())

    def take() -> None:
        for event in events:
            tracker.take(event, LogPosition("binlog.000007", 4), reader.format, reader.name)

    with pytest.raises(PrecheckError, match="source.ended_sessions" if is_named else "pseudo_thread_id is not there"):
        take()
    tracker.restarted(2)
    with pytest.raises(PrecheckError) if is_named else contextlib.nullcontext():
        take()
