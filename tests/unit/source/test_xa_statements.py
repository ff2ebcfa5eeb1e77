"""Where a window cannot end because an XA transaction with statements is prepared."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.gtids import MariadbGtidFlag
from binlane.model import LogPosition
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segments import Extraction
from binlane.source.xa import XaTracker
from tests.unit.binlog.cases import MARIADB, T, crc, query, wire
from tests.unit.plan.logs import ends, insert, rows, table_map
from tests.unit.source.test_load_files import FIRST, HEADER, RESTARTED, Counted, Events, size

TORN = int(MariadbGtidFlag.TRANSACTIONAL | MariadbGtidFlag.PREPARED_XA)
STATEMENT = query(b"INSERT INTO t VALUES (2)")
ROWS = (table_map(1), insert(1, [1]))


def group(seqno: int, *events: bytes, one_phase: bool | None = False) -> Events:
    """MariaDB's first half of the XA transaction ``x``; ``one_phase`` None: without its end."""
    begin = wire(T.MARIADB_GTID, struct.pack("<QIB", seqno, 0, TORN) + struct.pack("<IBB", 1, 1, 0) + b"x")
    end = wire(T.XA_PREPARE, struct.pack("<BIII", one_phase or False, 1, 1, 0) + b"x")
    return (begin, *events, *(() if one_phase is None else (end,)))


def open_since(*files: tuple[Events, ...]) -> tuple[int, int | None]:
    """How many transactions are read, and where a window has to end before."""
    start = Start(0, LogPosition("binlog.000001", FIRST), "", 0.0, "me", "")
    state = LogState("me", MARIADB.flavor, ("binlog.000001",), None, 1_800_000_000.0, closes_by_clock=True)
    xa = XaTracker()
    run = Extraction("s", state, start, UntilLogEnd(), Counted(), xa=xa)
    for number, transactions in enumerate(files, 1):
        header = HEADER if number == 1 else RESTARTED
        run.take(LogChunk(f"binlog.{number:06d}", LOG_START, header))
        data = b"".join(crc(event) for events in transactions for event in events)
        run.take(LogChunk(f"binlog.{number:06d}", LOG_START + len(header), data))
    run.finish()
    since = xa.statements.open_since
    return run.seqno, None if since is None else since.offset


BEHIND = FIRST + size(rows(1, "a"))


@pytest.mark.parametrize(
    ("transactions", "count", "since"),
    [
        pytest.param((group(2, STATEMENT),), 2, BEHIND, id="prepared"),
        pytest.param((group(2, *ROWS, STATEMENT, STATEMENT),), 2, BEHIND, id="rows, too"),
        pytest.param((group(2, STATEMENT), ends(3, "COMMIT", "x")), 3, None, id="committed"),
        pytest.param((group(2, STATEMENT), ends(3, "ROLLBACK", "x")), 3, None, id="rolled back"),
        pytest.param((group(2, STATEMENT, one_phase=True),), 2, None, id="one phase"),
        pytest.param((group(2, *ROWS),), 2, None, id="rows alone"),
        pytest.param((group(2, STATEMENT, one_phase=None),), 1, None, id="not complete"),
    ],
)
def test_a_window_cannot_end_behind_a_prepared_transaction_with_statements(
    transactions: tuple[Events, ...], count: int, since: int | None
) -> None:
    assert open_since((rows(1, "a"), *transactions)) == (count, since)


def test_a_transaction_that_a_crash_has_cut_holds_no_window() -> None:
    """It was never prepared: the source's XA RECOVER does not list it, and nothing ends it in the log."""
    assert open_since((rows(1, "a"), group(2, STATEMENT, one_phase=None)), (rows(2, "a"),)) == (2, None)
    cut, again = group(2, STATEMENT, one_phase=None), group(2, *ROWS)
    assert open_since((rows(1, "a"), cut), (again, ends(3, "COMMIT", "x"))) == (3, None)
