"""A crash of the source, as its log shows it: a file has no end, and the next one was begun by a start."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from binlane.model import LogPosition
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segments import Extraction
from tests.unit.binlog.cases import MARIADB, T, crc, format_event, wire
from tests.unit.plan.logs import rows
from tests.unit.source.test_load_files import HEADER, Counted

FIRST, SECOND = "binlog.000001", "binlog.000002"
STARTED = format_event(replace(MARIADB, created=1_700_000_000))
ROTATE = wire(T.ROTATE, struct.pack("<Q", 4) + SECOND.encode())
STOP = wire(T.STOP, b"")


@pytest.mark.parametrize(
    ("end", "header", "may_lose", "expected"),
    [
        pytest.param((), STARTED, True, [FIRST], id="a crash"),
        pytest.param((), STARTED, False, [], id="a crash of a server that syncs its log"),
        pytest.param((), HEADER, True, [], id="no start of the server"),
        pytest.param((STOP,), STARTED, True, [], id="a shutdown"),
        pytest.param((ROTATE,), HEADER, True, [], id="the next file"),
        pytest.param((ROTATE,), STARTED, True, [], id="a crash before the next file had a transaction"),
    ],
)
def test_a_crash_is_told_where_the_log_may_lack_transactions(
    end: tuple[bytes, ...], header: bytes, may_lose: bool, expected: list[str]
) -> None:
    state = LogState("me", MARIADB.flavor, (FIRST, SECOND), None, 1_800_000_000.0, True, may_lose=may_lose)
    start = Start(0, LogPosition(FIRST, LOG_START), "", 0.0, "me", "")
    told = list[str]()
    run = Extraction("s", state, start, UntilLogEnd(), Counted(), first_bytes=lambda _: b"", crashed=told.append)
    for file, head, events in ((FIRST, HEADER, (*rows(1, "a"), *end)), (SECOND, header, rows(2, "a"))):
        run.take(LogChunk(file, LOG_START, head))
        run.take(LogChunk(file, LOG_START + len(head), b"".join(map(crc, events))))
    run.finish()
    assert told == expected
    assert run.manifest("c", "w").last_seqno == 2
