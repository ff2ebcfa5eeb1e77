"""Where segments end, and that a window's place is told alike however its log has come."""

from __future__ import annotations

import pytest

from binlane.model import LogPosition
from binlane.source import segments
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import WHOLE_TRANSACTION, Fingerprint, Start, canonical_header, digest
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segments import Extraction
from tests.unit.binlog.cases import MARIADB, crc
from tests.unit.plan.logs import rows, statements
from tests.unit.source.test_load_files import FIRST, HEADER, Counted, extracted, size

LOG = [rows(seqno, "a") for seqno in range(1, 13)]
ONE = size(LOG[0])


@pytest.mark.parametrize(
    ("limit", "last"),
    [
        (4 * ONE, [2, 4, 8, 12]),
        (2 * ONE, [2, 4, 6, 8, 10, 12]),
        (ONE, list(range(1, 13))),
    ],
)
def test_a_windows_first_segments_are_smaller_so_that_more_processes_have_one(
    limit: int, last: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_FIRST_SEGMENTS", (2 * ONE, 2 * ONE))
    assert extracted(limit, LOG) == (last, None)
    # a file's end closes a segment, too
    assert extracted(limit, LOG[:1], LOG[1:])[0][0] == 1


WHOLE = statements(13, *(f"INSERT INTO t VALUES ('{'x' * 1000}')" for _ in range(40)))
LARGE = statements(13, *(f"INSERT INTO t VALUES ('{'x' * 1000}')" for _ in range(80)))
OPEN = statements(14, *(f"INSERT INTO t VALUES ('{'y' * 1000}')" for _ in range(200)))[:-1]


@pytest.mark.parametrize("size_of_chunk", [1, 2, 5, 12, 50, 1000])
@pytest.mark.parametrize("last", [LOG[-1], WHOLE, LARGE], ids=["small", "whole", "large"])
@pytest.mark.parametrize("behind", [0, 1, 30, len(OPEN)])
def test_the_last_transaction_has_one_fingerprint_whatever_chunks_the_log_came_in(
    size_of_chunk: int, last: tuple[bytes, ...], behind: int
) -> None:
    """Its fingerprint is that of its bytes, which may have come long before the log's end: a transaction that is open
    there may have any length."""
    state = LogState("me", MARIADB.flavor, ("binlog.000001",), None, 1_800_000_000.0, closes_by_clock=True)
    start = Start(0, LogPosition("binlog.000001", FIRST), "", 0.0, "me", "")
    run = Extraction("s", state, start, UntilLogEnd(), Counted(), 1 << 20)
    run.take(LogChunk("binlog.000001", LOG_START, HEADER))
    log = (*LOG[:-1], last)
    events, at = [crc(event) for transaction in (*log, OPEN[:behind]) for event in transaction], FIRST
    for first in range(0, len(events), size_of_chunk):
        data = b"".join(events[first : first + size_of_chunk])
        run.take(LogChunk("binlog.000001", at, data))
        at += len(data)
    run.finish()
    manifest = run.manifest("channel", "window")
    assert manifest.last_seqno == len(log)
    assert manifest.end == LogPosition("binlog.000001", FIRST + size(*log))
    hashed = b"".join(crc(event) for event in (last if size(last) <= WHOLE_TRANSACTION else last[-1:]))
    expected = Fingerprint(digest(canonical_header(HEADER, "s")), manifest.end.offset - len(hashed), digest(hashed))
    assert manifest.fingerprint == str(expected)
