"""Where segments end, and that a window's place is told alike however its log has come."""

from __future__ import annotations

import pytest

from binlane.model import LogPosition
from binlane.source import segments
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Fingerprint, Start, canonical_header, digest
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segments import Extraction
from tests.unit.binlog.cases import MARIADB, crc
from tests.unit.plan.logs import rows
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


@pytest.mark.parametrize("size_of_chunk", [1, 2, 5, 12])
def test_the_last_transaction_is_told_alike_whatever_chunks_the_log_has_come_in(size_of_chunk: int) -> None:
    """Its fingerprint is that of its bytes, of which some may have come earlier."""
    state = LogState("me", MARIADB.flavor, ("binlog.000001",), None, 1_800_000_000.0, closes_by_clock=True)
    start = Start(0, LogPosition("binlog.000001", FIRST), "", 0.0, "me", "")
    run = Extraction("s", state, start, UntilLogEnd(), Counted(), 1 << 20)
    run.take(LogChunk("binlog.000001", LOG_START, HEADER))
    events, at = [crc(event) for transaction in LOG for event in transaction], FIRST
    for first in range(0, len(events), size_of_chunk):
        data = b"".join(events[first : first + size_of_chunk])
        run.take(LogChunk("binlog.000001", at, data))
        at += len(data)
    run.finish()
    manifest = run.manifest("channel", "window")
    assert manifest.last_seqno == len(LOG)
    assert manifest.end == LogPosition("binlog.000001", at)
    last = b"".join(crc(event) for event in LOG[-1])
    assert manifest.fingerprint == str(Fingerprint(digest(canonical_header(HEADER, "s")), at - len(last), digest(last)))
