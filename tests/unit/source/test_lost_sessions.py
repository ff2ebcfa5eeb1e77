"""Connections whose temporary tables are open at a window's end, and that the log behind it shows to have ended."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlog.wire import MAGIC
from binlane.plan.transaction.temporary_tables import Session
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilPosition
from binlane.source.lost_sessions import LostSessions, lost_sessions
from binlane.source.segments import extract
from binlane.source.session_end import SessionEnd
from binlane.source.start_position import begin
from binlane.source.temporary import TemporaryTracker
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import T, crc, wire
from tests.unit.plan.logs import bound, rows
from tests.unit.source.test_load_files import HEADER, RESTARTED, Events, size

MADE, USED, DROPPED = (
    "CREATE TEMPORARY TABLE tmp (a INT)",
    "INSERT INTO t SELECT a FROM tmp",
    "DROP TEMPORARY TABLE tmp",
)
ROTATE = wire(T.ROTATE, struct.pack("<Q", 4) + b"binlog.000002")


def head(gtid: int) -> bytes:
    """A GTID list of what is before a file."""
    entries = struct.pack("<IIQ", 0, 7, gtid) if gtid else b""
    return crc(wire(T.MARIADB_GTID_LIST, struct.pack("<I", bool(gtid)) + entries))


class AskedSource(ArchiveSource):
    """An archive beside a server that can be asked for its connections."""

    own = 7

    def newest_session(self) -> int:
        return 9

    def open_sessions(self) -> frozenset[Session]:  # type: ignore[override]  # an archive has none
        return frozenset({(self.own, 9)})


class ReplicaSource(AskedSource):
    """Of a server whose own number is another one than the log's: the connections are its source's."""

    own = 8


def lost(
    folder: Path,
    first: tuple[Events, ...],
    second: tuple[Events, ...],
    *,
    restarted: bool = True,
    kind: type[ArchiveSource] = ArchiveSource,
    is_named: bool = False,
) -> LostSessions:
    """Of a window that ends behind the first two transactions of the first file."""
    source = kind(str(folder / "log"))
    (folder / "log").mkdir()
    begins = MAGIC + HEADER + head(0)
    bodies = [b"".join(crc(event) for events in each for event in events) for each in (first, second)]
    end = b"" if restarted else crc(ROTATE)
    (folder / "log" / "binlog.000001").write_bytes(begins + bodies[0] + end)
    header = RESTARTED if restarted else HEADER
    (folder / "log" / "binlog.000002").write_bytes(MAGIC + header + head(len(first)) + bodies[1])
    start = begin(source, "oldest")
    created = SessionEnd((7, 6), replace(start.position, offset=len(begins)))
    tracker = TemporaryTracker(ends=[created] if is_named else [])
    until = UntilPosition(replace(start.position, offset=len(begins) + size(*first[:2])))
    work = WorkFolder(str(folder / "work"))
    manifest = extract(source, start, until, work, channel="c", window="w", temporary=tracker)
    assert manifest.last_seqno == 2
    return lost_sessions(source, manifest, tracker)


BEGUN = (bound(1, MADE, alone=True), rows(2, "a"))
AGAIN = (bound(3, MADE, alone=True), bound(4, USED))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(BEGUN, (rows(3, "a"),), {6}, id="crash"),
        pytest.param((*BEGUN, rows(3, "a")), (rows(4, "a"),), {6}, id="crash later"),
        pytest.param(BEGUN, AGAIN, {6}, id="the number is given again"),
        pytest.param((*BEGUN, bound(3, USED)), (rows(4, "a"),), set(), id="used before the crash"),
        pytest.param((*BEGUN, bound(3, DROPPED, alone=True)), (rows(4, "a"),), set(), id="dropped before the crash"),
        pytest.param(
            (BEGUN[0], bound(2, MADE, alone=True, thread=9), bound(3, USED)), (rows(4, "a"),), {9}, id="one of two"
        ),
    ],
)
def test_a_restart_of_the_source_ends_its_connections(
    first: tuple[Events, ...], second: tuple[Events, ...], expected: set[int], tmp_path: Path
) -> None:
    """Nobody has to be asked for them."""
    sessions = frozenset((7, connection) for connection in expected)
    assert lost(tmp_path, first, second) == LostSessions(sessions, sessions)


def test_a_new_file_ends_none(tmp_path: Path) -> None:
    assert lost(tmp_path, BEGUN, (rows(3, "a"),), restarted=False) == LostSessions()


@pytest.mark.parametrize(
    ("kind", "is_named", "is_lost", "by_source"),
    [
        pytest.param(ArchiveSource, True, True, False, id="an archive"),
        pytest.param(ReplicaSource, True, True, False, id="of the source's own source"),
        pytest.param(ReplicaSource, False, False, False, id="of the source's own source, unnamed"),
        pytest.param(AskedSource, False, True, True, id="not in the source's list"),
        pytest.param(AskedSource, True, True, True, id="not in the source's list, and named"),
    ],
)
def test_what_an_operator_has_said_is_not_the_source_s_word(
    kind: type[ArchiveSource], is_named: bool, is_lost: bool, by_source: bool, tmp_path: Path
) -> None:
    """Who takes the entry out takes it back."""
    session = frozenset({(7, 6)})
    found = lost(tmp_path, BEGUN, (rows(3, "a"),), restarted=False, kind=kind, is_named=is_named)
    assert found == LostSessions(session if is_lost else frozenset(), session if by_source else frozenset())
