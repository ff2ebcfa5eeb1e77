"""A crash of the source, as its log shows it: a file has no end, and the next one was begun by a start."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from binlane.errors import SourceIdentityError
from binlane.model import LogPosition
from binlane.source.crashes import SourceCrashes
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segments import Extraction, extract
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import MARIADB, T, crc, format_event, wire
from tests.unit.plan.logs import rows
from tests.unit.source.test_load_files import HEADER, Counted

FIRST, SECOND = "binlog.000001", "binlog.000002"
AT, NOW = 1_700_000_000.0, 1_800_000_000.0
STARTED = format_event(replace(MARIADB, created=int(AT)))
ROTATE = wire(T.ROTATE, struct.pack("<Q", 4) + SECOND.encode())
STOP = wire(T.STOP, b"")


@pytest.mark.parametrize(
    ("end", "header", "may_lose", "since", "expected"),
    [
        pytest.param((), STARTED, True, None, [FIRST], id="a crash"),
        pytest.param((), STARTED, True, AT - 1, [FIRST], id="a crash, and it syncs its log no longer"),
        pytest.param((), STARTED, False, AT - 1, [], id="a crash of a server that syncs its log"),
        pytest.param((), STARTED, False, AT + 1, [FIRST], id="a crash, and it syncs its log since"),
        pytest.param((), STARTED, False, None, [FIRST], id="a crash, and it was not asked before"),
        pytest.param((), STARTED, None, None, [], id="a crash of a server whose GTIDs tell"),
        pytest.param((), HEADER, True, None, [], id="no start of the server"),
        pytest.param((STOP,), STARTED, True, None, [], id="a shutdown"),
        pytest.param((ROTATE,), HEADER, True, None, [], id="the next file"),
        pytest.param((ROTATE,), STARTED, True, None, [], id="a crash before the next file had a transaction"),
    ],
)
def test_a_crash_is_told_where_the_log_may_lack_transactions(
    end: tuple[bytes, ...], header: bytes, may_lose: bool | None, since: float | None, expected: list[str]
) -> None:
    state = LogState("me", MARIADB.flavor, (FIRST, SECOND), None, NOW, True, may_lose=may_lose)
    start = Start(0, LogPosition(FIRST, LOG_START), "", 0.0, "me", "")
    told = list[str]()
    crashes = SourceCrashes(since, lambda _: None, told.append)
    crashes.asked(state)
    run = Extraction("s", state, start, UntilLogEnd(), Counted(), first_bytes=lambda _: b"", crashes=crashes)
    for file, head, events in ((FIRST, HEADER, (*rows(1, "a"), *end)), (SECOND, header, rows(2, "a"))):
        run.take(LogChunk(file, LOG_START, head))
        run.take(LogChunk(file, LOG_START + len(head), b"".join(map(crc, events))))
    run.finish()
    assert told == expected
    assert run.manifest("c", "w").last_seqno == 2


@pytest.mark.parametrize(
    ("may_lose", "since", "kept"),
    [
        pytest.param(True, None, [], id="it does not sync its log, as before"),
        pytest.param(True, AT, [None], id="it syncs its log no longer"),
        pytest.param(False, None, [NOW], id="it syncs its log from now on"),
        pytest.param(False, AT, [], id="it syncs its log, as before"),
        pytest.param(None, AT, [], id="an archive, or GTIDs"),
    ],
)
def test_since_when_a_source_syncs_its_log_is_kept_when_it_changes(
    may_lose: bool | None, since: float | None, kept: list[float | None]
) -> None:
    state = LogState("me", MARIADB.flavor, (FIRST,), None, NOW, True, may_lose=may_lose)
    found = list[float | None]()
    crashes = SourceCrashes(since, found.append, pytest.fail)

    crashes.asked(state)
    crashes.asked(replace(state, clock=NOW + 1))

    assert found == kept


def test_a_source_whose_clock_is_ahead_is_believed_of_no_earlier_time_either() -> None:
    """The start of a server behind a crash has its own time, which is later than this machine's."""
    state = LogState("me", MARIADB.flavor, (FIRST,), None, NOW, True, may_lose=False, own_clock=NOW + 600)
    told = list[str]()
    crashes = SourceCrashes(None, lambda _: None, told.append)
    crashes.asked(state)
    crashes.started_behind(FIRST, NOW + 480)
    crashes.started_behind(SECOND, NOW + 660)
    assert told == [FIRST]


def test_the_answer_of_another_server_is_not_kept(tmp_path: Path) -> None:
    state = LogState("another", MARIADB.flavor, (FIRST,), None, NOW, True, may_lose=False)
    source = Mock(state=lambda: state)
    source.name = "s"
    start = Start(0, LogPosition(FIRST, LOG_START), "", 0.0, "me", "")
    crashes = SourceCrashes(None, lambda _: pytest.fail("it was kept"), pytest.fail)
    with pytest.raises(SourceIdentityError, match="expected the channel's source, me, found another"):
        extract(source, start, UntilLogEnd(), WorkFolder(str(tmp_path)), channel="c", window="w", crashes=crashes)
